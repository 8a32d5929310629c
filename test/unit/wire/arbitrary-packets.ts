/**
 * Generators of valid packets: each of the 15 types, both versions, as the decoder gives them.
 *
 * Lists what the standard allows by hand, and shares no table with the codec.
 */
import fc from 'fast-check'
import type { Packet, Properties } from '../../../src/wire/index.js'

export interface Sample {
  packet: Packet
  protocolVersion: 4 | 5
  from: 'client' | 'server'
}

const text = fc.string({ unit: 'binary', maxLength: 40 }).map((value) => Buffer.from(value.replaceAll('\0', '')).toString())
const bytes = fc.uint8Array({ maxLength: 40 })
const topic = text.map((value) => value.replaceAll('+', '').replaceAll('#', '') || 'topic')
const packetId = fc.integer({ min: 1, max: 65_535 })
const qos = fc.constantFrom(0 as const, 1 as const, 2 as const)
const flag = fc.constantFrom(0, 1)
const u16 = fc.integer({ min: 0, max: 65_535 })
const u32 = fc.integer({ min: 0, max: 4_294_967_295 })
const identifier = fc.integer({ min: 1, max: 268_435_455 })
const userProperties = fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 4 })
const filter = fc.constantFrom('#', '+', 'a/+/b', '/', 'x/#', '$SYS/#', 'ü/日', '$share/g/a/#')
const plainFilter = fc.constantFrom('#', '+', 'a/+/b', '/', 'x/#', '$SYS/#', '$share/g')

function properties(entries: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Properties> {
  return fc.record({ ...entries, userProperties }, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<Properties>
}

const reason = { reasonString: text }
const message = { payloadFormatIndicator: flag, messageExpiryInterval: u32, contentType: text, responseTopic: topic, correlationData: bytes }
const limits = {
  sessionExpiryInterval: u32,
  receiveMaximum: packetId,
  topicAliasMaximum: u16,
  maximumPacketSize: fc.integer({ min: 1, max: 4_294_967_295 }),
}

const connectProperties = fc
  .record({
    base: properties({ ...limits, requestProblemInformation: flag, requestResponseInformation: flag }),
    auth: fc.option(
      properties({ authenticationData: bytes }).chain((rest) => text.map((authenticationMethod) => ({ ...rest, authenticationMethod }))),
    ),
  })
  .map(({ base, auth }) => ({ ...base, ...auth }))

const none = fc.constant({})

function connect(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  const five = protocolVersion === 5
  const will = fc.record({
    topic,
    payload: bytes,
    qos,
    retain: fc.boolean(),
    properties: five ? properties({ ...message, willDelayInterval: u32 }) : none,
  })
  const credentials = fc.record({ username: fc.option(text, { nil: undefined }), password: fc.option(bytes, { nil: undefined }) })
  return fc
    .record({
      keepAlive: u16,
      cleanStart: fc.boolean(),
      clientId: text,
      will: fc.option(will, { nil: undefined }),
      credentials,
      properties: five ? connectProperties : none,
    })
    .map(({ credentials: { username, password }, ...rest }) => ({
      type: 'connect' as const,
      protocolName: 'MQTT',
      protocolVersion,
      ...rest,
      cleanStart: rest.cleanStart || (!five && rest.clientId === ''),
      username,
      password: five || username !== undefined ? password : undefined,
    }))
}

function publish(protocolVersion: 4 | 5, from: 'client' | 'server'): fc.Arbitrary<Packet> {
  const sent = from === 'server' ? { subscriptionIdentifiers: fc.array(identifier, { minLength: 1, maxLength: 3 }) } : {}
  return fc
    .record({
      dup: fc.boolean(),
      qos,
      retain: fc.boolean(),
      topic: fc.oneof(topic, fc.constant('')),
      packetId,
      properties: protocolVersion === 5 ? properties({ ...message, ...sent, topicAlias: packetId }) : none,
      payload: fc.uint8Array({ maxLength: 300 }),
    })
    .map((packet) => ({
      type: 'publish' as const,
      ...packet,
      dup: packet.dup && packet.qos > 0,
      topic: packet.topic === '' && (packet.properties as Properties).topicAlias === undefined ? 'a' : packet.topic,
      packetId: packet.qos > 0 ? packet.packetId : undefined,
    }))
}

function acknowledgement(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  const record = (types: readonly string[], codes: readonly number[]): fc.Arbitrary<Packet> =>
    fc.record({
      type: fc.constantFrom(...types),
      packetId,
      reasonCode: protocolVersion === 5 ? fc.constantFrom(...codes) : fc.constant(0),
      properties: protocolVersion === 5 ? properties(reason) : none,
    }) as fc.Arbitrary<Packet>
  return fc.oneof(record(['puback', 'pubrec'], [0, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]), record(['pubrel', 'pubcomp'], [0, 0x92]))
}

function subscribe(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  const five = protocolVersion === 5
  const option = five ? fc.boolean() : fc.constant(false)
  const subscription = fc
    .record({
      filter: five ? filter : plainFilter,
      qos,
      noLocal: option,
      retainAsPublished: option,
      retainHandling: five ? fc.constantFrom(0 as const, 1 as const, 2 as const) : fc.constant(0 as const),
    })
    .map((entry) => ({ ...entry, noLocal: entry.noLocal && !entry.filter.startsWith('$share/') }))
  return fc.record({
    type: fc.constant('subscribe' as const),
    packetId,
    properties: five ? properties({ subscriptionIdentifiers: identifier.map((value) => [value]) }) : none,
    subscriptions: fc.array(subscription, { minLength: 1, maxLength: 4 }),
  })
}

function unsubscribe(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  return fc.record({
    type: fc.constant('unsubscribe' as const),
    packetId,
    properties: protocolVersion === 5 ? properties({}) : none,
    filters: fc.array(protocolVersion === 5 ? filter : plainFilter, { minLength: 1, maxLength: 4 }),
  })
}

function connack(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  const available = [
    'maximumQoS',
    'retainAvailable',
    'wildcardSubscriptionAvailable',
    'subscriptionIdentifierAvailable',
    'sharedSubscriptionAvailable',
  ]
  const texts = ['assignedClientIdentifier', 'responseInformation', 'serverReference', 'authenticationMethod']
  const entries = {
    ...limits,
    ...reason,
    ...Object.fromEntries(available.map((name) => [name, flag])),
    ...Object.fromEntries(texts.map((name) => [name, text])),
    serverKeepAlive: u16,
    authenticationData: bytes,
  }
  return fc
    .record({
      sessionPresent: fc.boolean(),
      reasonCode: protocolVersion === 5 ? fc.constantFrom(0, 0x80, 0x84, 0x87, 0x9f) : fc.integer({ min: 0, max: 5 }),
      properties: protocolVersion === 5 ? properties(entries) : none,
    })
    .map((packet) => ({ type: 'connack' as const, ...packet, sessionPresent: packet.sessionPresent && packet.reasonCode === 0 }))
}

function suback(protocolVersion: 4 | 5): fc.Arbitrary<Packet> {
  const five = protocolVersion === 5
  const answer = (type: 'suback' | 'unsuback', codes: number[], least: number): fc.Arbitrary<Packet> =>
    fc.record({
      type: fc.constant(type),
      packetId,
      properties: five ? properties(reason) : none,
      reasonCodes: fc.array(fc.constantFrom(...codes), { minLength: least, maxLength: least * 5 }),
    })
  return fc.oneof(answer('suback', five ? [0, 1, 2, 0x80, 0x87, 0xa2] : [0, 1, 2, 0x80], 1), answer('unsuback', [0, 0x11, 0x80, 0x91], five ? 1 : 0))
}

function disconnect(from: 'client' | 'server'): fc.Arbitrary<Packet> {
  return fc.record({
    type: fc.constant('disconnect' as const),
    reasonCode: from === 'client' ? fc.constantFrom(0, 4, 0x80, 0x99) : fc.constantFrom(0, 0x80, 0x8b, 0x9c, 0xa2),
    properties: properties(from === 'client' ? { ...reason, sessionExpiryInterval: u32 } : { ...reason, serverReference: text }),
  })
}

function auth(from: 'client' | 'server'): fc.Arbitrary<Packet> {
  return fc.record({
    type: fc.constant('auth' as const),
    reasonCode: from === 'client' ? fc.constantFrom(0x18, 0x19) : fc.constantFrom(0, 0x18),
    properties: fc
      .tuple(properties({ ...reason, authenticationData: bytes }), text)
      .map(([rest, authenticationMethod]) => ({ ...rest, authenticationMethod })),
  })
}

function sample(protocolVersion: 4 | 5, from: 'client' | 'server'): fc.Arbitrary<Sample> {
  const five = protocolVersion === 5
  const kinds: fc.Arbitrary<Packet>[] = [publish(protocolVersion, from), acknowledgement(protocolVersion)]
  if (from === 'client')
    kinds.push(connect(protocolVersion), subscribe(protocolVersion), unsubscribe(protocolVersion), fc.constant({ type: 'pingreq' }))
  else kinds.push(connack(protocolVersion), suback(protocolVersion), fc.constant({ type: 'pingresp' }))
  if (five) kinds.push(disconnect(from), auth(from))
  else if (from === 'client') kinds.push(fc.constant({ type: 'disconnect', reasonCode: 0, properties: {} }))
  return fc.oneof(...kinds).map((packet) => ({ packet, protocolVersion, from }))
}

/** Any valid packet, with the version and the side that may send it. */
export const samples: fc.Arbitrary<Sample> = fc.oneof(sample(5, 'client'), sample(5, 'server'), sample(4, 'client'), sample(4, 'server'))
