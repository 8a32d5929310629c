/**
 * Ways to write packets, each checked to write them whole. Runs in browsers as well.
 */
import { packetOf, topicOf, workloads } from './workload.js'

const flushAt = 60_000

// As a program that makes each packet anew.
const anew = (packet) => ({ ...packet, properties: { ...packet.properties } })
const asItIs = (packet) => packet

function byEncode({ encode }, packets, make) {
  return (count) => {
    let bytes = 0
    for (let index = 0; index < count; index++)
      bytes += encode(make(packets[index % packets.length])).length
    if (bytes === 0) throw new Error('nothing was written')
  }
}

function byEncoder({ Encoder }, packets, make) {
  const encoder = new Encoder()
  return (count) => {
    let bytes = 0
    for (let index = 0; index < count; index++) {
      encoder.write(make(packets[index % packets.length]))
      if (encoder.length >= flushAt) {
        bytes += encoder.length
        encoder.clear()
      }
    }
    bytes += encoder.length
    if (bytes === 0) throw new Error('nothing was written')
  }
}

function byGenerate({ generate }, packets, make) {
  const version = { protocolVersion: 5 }
  return (count) => {
    let bytes = 0
    for (let index = 0; index < count; index++)
      bytes += generate(make(packets[index % packets.length]), version).length
    if (bytes === 0) throw new Error('nothing was written')
  }
}

const pairsOf = (pairs) => Object.fromEntries(pairs)
const bytesOf = (text) => new TextEncoder().encode(text)

/** One packet of each kind, for mqwire and for mqtt-packet. */
export const samples = {
  PUBLISH: () => {
    const ours = Array.from({ length: 100 }, (_, index) => packetOf(workloads.plain, index))
    return [
      ours,
      ours.map(({ topic, payload }) => ({
        cmd: 'publish',
        topic,
        payload: Buffer.from(payload),
        qos: 0,
        dup: false,
        retain: false,
      })),
    ]
  },
  'PUBLISH with 5 user properties': () => {
    const ours = Array.from({ length: 100 }, (_, index) => packetOf(workloads.properties, index))
    const theirs = ours.map(({ topic, payload, packetId, properties: { userProperties } }) => {
      const properties = { userProperties: pairsOf(userProperties) }
      return {
        cmd: 'publish',
        topic,
        payload: Buffer.from(payload),
        qos: 1,
        dup: false,
        retain: false,
        messageId: packetId,
        properties,
      }
    })
    return [ours, theirs]
  },
  CONNECT: () => {
    const [clientId, username, password, topic, payload] = [
      'device-0042',
      'reader',
      'a long password',
      topicOf(3),
      'gone',
    ]
    const will = { topic, payload: bytesOf(payload), qos: 1, retain: true, properties: {} }
    const settings = { sessionExpiryInterval: 3600, receiveMaximum: 200 }
    const base = {
      type: 'connect',
      protocolName: 'MQTT',
      protocolVersion: 5,
      cleanStart: true,
      keepAlive: 60,
      clientId,
      username,
    }
    const ours = { ...base, will, password: bytesOf(password), properties: settings }
    const theirs = {
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 5,
      clean: true,
      keepalive: 60,
      clientId,
      username,
      properties: settings,
    }
    return [
      [ours],
      [
        {
          ...theirs,
          password: Buffer.from(password),
          will: { topic, payload: Buffer.from(payload), qos: 1, retain: true, properties: {} },
        },
      ],
    ]
  },
  SUBSCRIBE: () => {
    const filters = ['plants/+/level', 'plants/hall-07/#', 'alarms/#']
    const shared = { noLocal: false, retainAsPublished: true, retainHandling: 1 }
    const ours = { type: 'subscribe', packetId: 9, properties: { subscriptionIdentifiers: [7] } }
    const theirs = { cmd: 'subscribe', messageId: 9, properties: { subscriptionIdentifier: 7 } }
    const named = { nl: false, rap: true, rh: 1 }
    return [
      [{ ...ours, subscriptions: filters.map((filter) => ({ filter, qos: 1, ...shared })) }],
      [{ ...theirs, subscriptions: filters.map((topic) => ({ topic, qos: 1, ...named })) }],
    ]
  },
  AUTH: () => {
    const [authenticationMethod, data] = ['SCRAM-SHA-256', 'n,,n=reader,r=fyko+d2lbbFgONRv9qkxdawL']
    const ours = {
      type: 'auth',
      reasonCode: 0x18,
      properties: { authenticationMethod, authenticationData: bytesOf(data) },
    }
    return [
      [ours],
      [
        {
          cmd: 'auth',
          reasonCode: 0x18,
          properties: { authenticationMethod, authenticationData: Buffer.from(data) },
        },
      ],
    ]
  },
}

/**
 * Candidates that write a sample: `mqwire` (Encoder where there is one, else encode), `encode`, `mqtt-packet`.
 * @param {{ making?: boolean, only?: string[] }} [options] make each packet anew; names of candidates
 */
export function encoders({ wire, mqttPacket }, name, { making = false, only } = {}) {
  const [ours, theirs] = samples[name]()
  const make = making ? anew : asItIs
  const candidates = { encode: byEncode(wire, ours, make) }
  candidates['mqwire'] =
    wire.Encoder === undefined ? candidates.encode : byEncoder(wire, ours, make)
  if (mqttPacket !== undefined) candidates['mqtt-packet'] = byGenerate(mqttPacket, theirs, make)
  return Object.fromEntries(
    Object.entries(candidates).filter(
      ([candidate]) => only === undefined || only.includes(candidate),
    ),
  )
}

/** Candidates that read a sample, one packet a call, as its server does. */
export function readers({ wire, mqttPacket }, name) {
  const [[ours], [theirs]] = samples[name]()
  const bytes = wire.encode(ours)
  if (wire.decode(bytes, { from: 'client' }).type !== ours.type)
    throw new Error(`${name} does not survive`)
  const candidates = {
    mqwire: (count) => {
      for (let index = 0; index < count; index++)
        if (wire.decode(bytes, { from: 'client' }).type !== ours.type)
          throw new Error('another packet')
    },
  }
  if (mqttPacket === undefined) return candidates
  const parser = mqttPacket.parser({ protocolVersion: 5 })
  const buffer = Buffer.from(bytes)
  let seen = 0
  parser.on('packet', (packet) => {
    if (packet.cmd === theirs.cmd) seen++
  })
  candidates['mqtt-packet'] = (count) => {
    seen = 0
    for (let index = 0; index < count; index++) parser.parse(buffer)
    if (seen !== count) throw new Error(`${seen} of ${count} packets were read`)
  }
  return candidates
}
