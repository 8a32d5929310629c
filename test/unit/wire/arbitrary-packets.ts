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

const { boolean, constant, constantFrom, record } = fc
type Any = fc.Arbitrary<Packet>

const readable = (value: string): string => Buffer.from(value.replaceAll('\0', '')).toString()
const text = fc.string({ unit: 'binary', maxLength: 40 }).map(readable)
const bytes = fc.uint8Array({ maxLength: 40 })
const topic = text.map((value) => value.replaceAll('+', '').replaceAll('#', '') || 'topic')
const packetId = fc.integer({ min: 1, max: 65_535 })
const qos = constantFrom(0 as const, 1 as const, 2 as const)
const flag = constantFrom(0, 1)
const u16 = fc.integer({ min: 0, max: 65_535 })
const u32 = fc.integer({ min: 0, max: 4_294_967_295 })
const identifier = fc.integer({ min: 1, max: 268_435_455 })
const userProperties = fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 4 })
const filter = constantFrom('#', '+', 'a/+/b', '/', 'x/#', '$SYS/#', 'ü/日', '$share/g/a/#')
const plainFilter = constantFrom('#', '+', 'a/+/b', '/', 'x/#', '$SYS/#', '$share/g')
const none: fc.Arbitrary<Properties> = constant({})

const perhaps = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

/** Some of these, and user properties. */
function properties(entries: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Properties> {
  const all = { ...entries, userProperties }
  return record(all, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<Properties>
}

const reason = { reasonString: text }
const message = {
  ...{ payloadFormatIndicator: flag, messageExpiryInterval: u32 },
  ...{ contentType: text, responseTopic: topic, correlationData: bytes },
}
const limits = {
  ...{ sessionExpiryInterval: u32, receiveMaximum: packetId, topicAliasMaximum: u16 },
  maximumPacketSize: fc.integer({ min: 1, max: 4_294_967_295 }),
}

/** Authentication data wants a method. */
const requests = { requestProblemInformation: flag, requestResponseInformation: flag }
const authentication = properties({ authenticationData: bytes }).chain((rest) => {
  return text.map((authenticationMethod) => ({ ...rest, authenticationMethod }))
})
const connectProperties = record({
  base: properties({ ...limits, ...requests }),
  auth: fc.option(authentication),
}).map(({ base, auth }) => ({ ...base, ...auth }))

function connect(protocolVersion: 4 | 5): Any {
  const five = protocolVersion === 5
  const willProperties = five ? properties({ ...message, willDelayInterval: u32 }) : none
  const will = record({ topic, payload: bytes, qos, retain: boolean(), properties: willProperties })
  const credentials = record({ username: perhaps(text), password: perhaps(bytes) })
  const head = { keepAlive: u16, cleanStart: boolean(), clientId: text, will: perhaps(will) }
  const fields = { ...head, credentials, properties: five ? connectProperties : none }
  return record(fields).map(({ credentials: { username, password }, ...rest }) => ({
    ...{ type: 'connect' as const, protocolName: 'MQTT', protocolVersion, ...rest },
    cleanStart: rest.cleanStart || (!five && rest.clientId === ''),
    username,
    password: five || username !== undefined ? password : undefined,
  }))
}

function publish(protocolVersion: 4 | 5, from: 'client' | 'server'): Any {
  const identifiers = fc.array(identifier, { minLength: 1, maxLength: 3 })
  const sent = from === 'server' ? { subscriptionIdentifiers: identifiers } : {}
  const own = properties({ ...message, ...sent, topicAlias: packetId })
  const head = {
    dup: boolean(),
    qos,
    retain: boolean(),
    topic: fc.oneof(topic, constant('')),
    packetId,
  }
  const body = {
    properties: protocolVersion === 5 ? own : none,
    payload: fc.uint8Array({ maxLength: 300 }),
  }
  return record({ ...head, ...body }).map((packet) => ({
    type: 'publish' as const,
    ...packet,
    dup: packet.dup && packet.qos > 0,
    topic: packet.properties.topicAlias === undefined ? packet.topic || 'a' : packet.topic,
    packetId: packet.qos > 0 ? packet.packetId : undefined,
  }))
}

function acknowledgement(protocolVersion: 4 | 5): Any {
  const own = protocolVersion === 5 ? properties(reason) : none
  const ack = (types: readonly string[], codes: readonly number[]): Any => {
    const reasonCode = protocolVersion === 5 ? constantFrom(...codes) : constant(0)
    return record({ type: constantFrom(...types), packetId, reasonCode, properties: own }) as Any
  }
  const received = ack(['puback', 'pubrec'], [0, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])
  return fc.oneof(received, ack(['pubrel', 'pubcomp'], [0, 0x92]))
}

function subscribe(protocolVersion: 4 | 5): Any {
  const five = protocolVersion === 5
  const option = five ? boolean() : constant(false)
  const retainHandling = five ? qos : constant(0 as const)
  const head = { filter: five ? filter : plainFilter, qos, noLocal: option }
  const options = { retainAsPublished: option, retainHandling }
  const subscription = record({ ...head, ...options }).map((entry) => {
    return { ...entry, noLocal: entry.noLocal && !entry.filter.startsWith('$share/') }
  })
  const own = properties({ subscriptionIdentifiers: identifier.map((value) => [value]) })
  const subscriptions = fc.array(subscription, { minLength: 1, maxLength: 4 })
  return record({
    type: constant('subscribe' as const),
    packetId,
    properties: five ? own : none,
    subscriptions,
  })
}

function unsubscribe(protocolVersion: 4 | 5): Any {
  const five = protocolVersion === 5
  const filters = fc.array(five ? filter : plainFilter, { minLength: 1, maxLength: 4 })
  const own = five ? properties({}) : none
  return record({ type: constant('unsubscribe' as const), packetId, properties: own, filters })
}

function connack(protocolVersion: 4 | 5): Any {
  const five = protocolVersion === 5
  const own = properties({
    ...{ ...limits, ...reason, maximumQoS: flag, retainAvailable: flag },
    ...{ wildcardSubscriptionAvailable: flag, subscriptionIdentifierAvailable: flag },
    ...{ sharedSubscriptionAvailable: flag, assignedClientIdentifier: text },
    ...{ responseInformation: text, serverReference: text, authenticationMethod: text },
    ...{ serverKeepAlive: u16, authenticationData: bytes },
  })
  const reasonCode = five ? constantFrom(0, 0x80, 0x84, 0x87, 0x9f) : fc.integer({ min: 0, max: 5 })
  const fields = { sessionPresent: boolean(), reasonCode, properties: five ? own : none }
  return record(fields).map((packet) => ({
    ...{ type: 'connack' as const, ...packet },
    sessionPresent: packet.sessionPresent && packet.reasonCode === 0,
  }))
}

function suback(protocolVersion: 4 | 5): Any {
  const five = protocolVersion === 5
  const own = five ? properties(reason) : none
  const answer = (name: 'suback' | 'unsuback', codes: number[], least: number): Any => {
    const reasonCodes = fc.array(constantFrom(...codes), { minLength: least, maxLength: least * 5 })
    return record({ type: constant(name), packetId, properties: own, reasonCodes })
  }
  const subscribed = answer('suback', five ? [0, 1, 2, 0x80, 0x87, 0xa2] : [0, 1, 2, 0x80], 1)
  return fc.oneof(subscribed, answer('unsuback', [0, 0x11, 0x80, 0x91], five ? 1 : 0))
}

function disconnect(from: 'client' | 'server'): Any {
  const codes = from === 'client' ? [0, 4, 0x80, 0x99] : [0, 0x80, 0x8b, 0x9c, 0xa2]
  const own = from === 'client' ? { sessionExpiryInterval: u32 } : { serverReference: text }
  const type = constant('disconnect' as const)
  return record({
    type,
    reasonCode: constantFrom(...codes),
    properties: properties({ ...reason, ...own }),
  })
}

function auth(from: 'client' | 'server'): Any {
  const reasonCode = from === 'client' ? constantFrom(0x18, 0x19) : constantFrom(0, 0x18)
  const own = fc.tuple(properties({ ...reason, authenticationData: bytes }), text)
  const withMethod = own.map(([rest, authenticationMethod]) => ({ ...rest, authenticationMethod }))
  return record({ type: constant('auth' as const), reasonCode, properties: withMethod })
}

const ping = (type: 'pingreq' | 'pingresp'): Any => constant({ type })

function sample(version: 4 | 5, from: 'client' | 'server'): fc.Arbitrary<Sample> {
  const kinds = [publish(version, from), acknowledgement(version)]
  if (from === 'client')
    kinds.push(connect(version), subscribe(version), unsubscribe(version), ping('pingreq'))
  else kinds.push(connack(version), suback(version), ping('pingresp'))
  if (version === 5) kinds.push(disconnect(from), auth(from))
  else if (from === 'client')
    kinds.push(constant({ type: 'disconnect', reasonCode: 0, properties: {} }))
  return fc.oneof(...kinds).map((packet) => ({ packet, protocolVersion: version, from }))
}

const [ofClient, ofServer] = [sample(5, 'client'), sample(5, 'server')]
/** Any valid packet, with the version and the side that may send it. */
export const samples: fc.Arbitrary<Sample> = fc.oneof(
  ofClient,
  ofServer,
  sample(4, 'client'),
  sample(4, 'server'),
)
