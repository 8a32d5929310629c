/**
 * Scenes: what clients send to the broker in memory and what has to come back, packet by packet, under virtual time. A scene is a text of steps,
 * separated by `; `:
 *
 *     a> packet packet     the client `a` sends these in one write, on a new stream where its own has ended
 *     a< packet packet     these came, and nothing else
 *     a* filter:qos        subscribes, and takes the SUBACK
 *     a.                   the broker has ended the stream; `a.82` by DISCONNECT 0x82 where there is one, on 5.0
 *     a!                   cuts the stream
 *     a_                   nothing came
 *     > packet             the broker itself publishes
 *     = text | text        these rules were broken since the last time, as the broker notes them
 *     +1500                time passes, in milliseconds
 *
 * A client whose first packet is no CONNECT is connected before, cleanly, by its letter, unless its first word is `raw`. In the end nothing is left over. Packets in short:
 *
 * - `C:id` CONNECT, with `~` a session that stays (`~9` for 9 s), `*` Clean Start 0 alone, `%n` Receive Maximum, `^n` Maximum Packet Size, `&n` Keep
 *   Alive, `$n` Topic Alias Maximum, `!topic=text` a will, `!!` a retained one, `!1` at QoS 1, `/n` delayed; `K:0` and `K:1` CONNACK without and with a
 *   session, `K:87` a refusal.
 * - `P:topic=text` PUBLISH at QoS 0, `P1:id:topic=text` at QoS 1; before the QoS `X` RETAIN, `@n/` Subscription Identifiers, `Tn` a topic alias, `En,`
 *   Message Expiry Interval; behind it `+` DUP.
 * - `PA:id PR:id PL:id PC:id` acknowledgements, with `:n` or a code; `S:id:filter:qos,…` SUBSCRIBE, with `Sn:` an identifier, `n` No Local, `r` Retain
 *   As Published, `h2` Retain Handling; `SA:id:code,…`; `U:id:filter,…`, `UA:id:code,…`; `Q` PINGREQ, `R` PINGRESP; `D` DISCONNECT, `D4` with the will,
 *   `D0` that ends the session; `hex:…` bytes.
 */
import { expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import {
  encode,
  type PacketInput,
  type ProtocolVersion,
  type PublishInput,
  type ServerPacket,
} from '../../src/wire/index.js'
import { bytes, bytesOf, type RawClient, text, type World, world } from './raw-client.js'

const hexCode = (code: number): string => code.toString(16)

function shortOf(packet: ServerPacket): string {
  switch (packet.type) {
    case 'connack':
      return `K:${packet.reasonCode > 0 ? hexCode(packet.reasonCode) : Number(packet.sessionPresent)}`
    case 'publish': {
      const { qos, dup, retain, packetId, topic, payload } = packet
      const { subscriptionIdentifiers: ids, topicAlias, messageExpiryInterval } = packet.properties
      const marks = `${retain ? 'X' : ''}${ids ? `@${ids.toSorted((a, b) => a - b)}/` : ''}${topicAlias ? `T${topicAlias}` : ''}`
      const expiry = messageExpiryInterval === undefined ? '' : `E${messageExpiryInterval},`
      return `P${marks}${expiry}${qos > 0 ? `${qos}${dup ? '+' : ''}:${packetId}` : ''}:${topic}=${text(payload)}`
    }
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp': {
      const { type, packetId, reasonCode } = packet
      const name = { puback: 'PA', pubrec: 'PR', pubrel: 'PL', pubcomp: 'PC' }[type]
      return `${name}:${packetId}${reasonCode === 0 ? '' : reasonCode === 0x10 ? ':n' : `:${hexCode(reasonCode)}`}`
    }
    case 'suback':
    case 'unsuback':
      return `${packet.type === 'suback' ? 'SA' : 'UA'}:${packet.packetId}:${packet.reasonCodes.map(hexCode).join()}`
    case 'pingresp':
      return 'R'
    case 'disconnect':
      return `D:${hexCode(packet.reasonCode)}`
    default:
      return packet.type
  }
}

/** 3.1.1 has no reason codes in acknowledgements, and none at all in UNSUBACK. */
const in311 = (wanted: string): string =>
  wanted.replace(/^(UA:\d+:).*$/, '$1').replace(/^(P[ARC]:\d+):\w+$/, '$1')

function bytesOfWord(word: string, version: ProtocolVersion): Uint8Array | number[] {
  if (word.startsWith('hex:')) return bytesOf(word.slice(4))
  // No client sends a CONNACK.
  if (word === 'K:0') return bytesOf(version === 5 ? '2003000000' : '20020000')
  return encode(packetOf(word, version), { protocolVersion: version })
}

const acks: Readonly<Record<string, 'puback' | 'pubrec' | 'pubrel' | 'pubcomp'>> = {
  PA: 'puback',
  PR: 'pubrec',
  PL: 'pubrel',
  PC: 'pubcomp',
}

function packetOf(word: string, version: ProtocolVersion): PacketInput {
  const [head = '', ...rest] = word.split(':')
  if (head === 'C') return connectOf(rest.join(':'), version)
  if (head === 'Q') return { type: 'pingreq' }
  if (head === 'D0') return { type: 'disconnect', properties: { sessionExpiryInterval: 0 } }
  if (head[0] === 'D')
    return { type: 'disconnect', ...(head === 'D' ? {} : { reasonCode: Number(head.slice(1)) }) }
  if (head[0] === 'S') return subscribeOf(head, rest)
  if (head === 'U')
    return {
      type: 'unsubscribe',
      packetId: Number(rest[0]),
      filters: rest.slice(1).join(':').split(','),
    }
  const type = acks[head]
  return type === undefined
    ? publishOf(word)
    : { type, packetId: Number(rest[0]), reasonCode: Number.parseInt(rest[1] ?? '0', 16) }
}

function connectOf(given: string, version: ProtocolVersion): PacketInput {
  const [, clientId = '', marks = '', retain, qos, topic, payload = '', delay] =
    /^(\w*)((?:[~*%^&$]\d*)*)(?:!(!?)(\d?)([a-z]+)=(\w*)(?:\/(\d+))?)?$/.exec(given) ?? []
  const mark = (sign: string): string | undefined => new RegExp(`\\${sign}(\\d*)`).exec(marks)?.[1]
  const numberOf = (sign: string, otherwise = 0): number | undefined => {
    const value = mark(sign)
    return value === undefined ? undefined : Number(value || otherwise)
  }
  const properties = {
    sessionExpiryInterval: numberOf('~', 600),
    receiveMaximum: numberOf('%'),
    maximumPacketSize: numberOf('^'),
    topicAliasMaximum: numberOf('$'),
  }
  const will = {
    topic: topic ?? '',
    payload: bytes(payload),
    qos: Number(qos),
    retain: retain === '!',
    properties: { willDelayInterval: delay && Number(delay) },
  }
  return {
    type: 'connect',
    clientId,
    cleanStart: mark('~') === undefined && mark('*') === undefined,
    protocolVersion: version,
    keepAlive: numberOf('&'),
    properties: version === 5 ? properties : undefined,
    will: topic === undefined ? undefined : will,
  } as PacketInput
}

function subscribeOf(head: string, [packetId, ...rest]: readonly string[]): PacketInput {
  const subscriptions = rest
    .join(':')
    .split(',')
    .map((each) => {
      const [, filter = '', qos, noLocal, asPublished, handling] =
        /^(.*):(\d)(n?)(r?)(?:h(\d))?$/.exec(each) ?? []
      return {
        filter,
        qos: Number(qos),
        noLocal: noLocal === 'n',
        retainAsPublished: asPublished === 'r',
        retainHandling: Number(handling ?? 0),
      }
    })
  const subscriptionIdentifiers = head.length > 1 ? [Number(head.slice(1))] : undefined
  return {
    type: 'subscribe',
    packetId: Number(packetId),
    subscriptions,
    properties: { subscriptionIdentifiers },
  }
}

function publishOf(word: string): PublishInput & { type: 'publish' } {
  const [, retain, alias, expiry, qos, dup, packetId, topic = '', payload = ''] =
    /^P(X?)(?:T(\d+))?(?:E(\d+),)?([12]?)(\+?):(?:(\d+):)?(.*)=(.*)$/.exec(word) ?? []
  return {
    type: 'publish',
    topic,
    payload: bytes(payload),
    qos: Number(qos),
    retain: retain === 'X',
    dup: dup === '+',
    packetId: packetId ? Number(packetId) : undefined,
    properties: {
      topicAlias: alias ? Number(alias) : undefined,
      messageExpiryInterval: expiry ? Number(expiry) : undefined,
    },
  }
}

/** Plays a scene; gives the broker as it is afterwards. */
export async function play(
  scene: string,
  version: ProtocolVersion = 5,
  options: MemoryBrokerOptions = {},
): Promise<World> {
  const all = world(options)
  const { broker, clock, dial } = all
  const wires = new Map<string, { readonly client: RawClient; seen: number }>()
  /** The next packets of a client are these; without any, there are none. */
  const wants = (step: string, name: string, words: readonly string[], leftOver = false): void => {
    const wire = wires.get(name)
    const came = wire?.client.received.slice(wire.seen).map(shortOf) ?? []
    const wanted = version === 5 ? words : words.map(in311)
    expect([step, ...(leftOver ? came.slice(0, wanted.length) : came)]).toEqual([step, ...wanted])
    if (wire !== undefined) wire.seen += wanted.length
  }
  const send = async (name: string, words: readonly string[]): Promise<void> => {
    let wire = wires.get(name)
    if (wire === undefined || wire.client.gone) {
      wire = { client: dial(version), seen: 0 }
      wires.set(name, wire)
      if (!/^(?:C:|raw$)/.test(words[0] ?? '')) {
        await wire.client.connect({ clientId: name })
        wire.seen = 1
      }
    }
    await wire.client.sendBytes(
      ...words.filter((word) => word !== 'raw').map((word) => bytesOfWord(word, version)),
    )
  }
  let blamed = 0
  for (const step of scene.split('; ')) {
    const [, name = '', what, rest = ''] = /^(\w?)([><.!_*+=])\s*(.*)$/.exec(step) ?? []
    const words = rest.split(' ').filter((word) => word !== '')
    if (what === '+') await clock.advance(Number(rest))
    else if (what === '=') {
      const noted = broker.violations.slice(blamed).map(({ text }) => text)
      blamed += noted.length
      expect([step, noted.join(' | ')]).toEqual([step, rest])
    } else if (what === '>' && name === '') {
      for (const { topic, payload, qos, retain, properties } of words.map(publishOf))
        broker.publish({ topic, payload, qos, retain, properties } as never)
      await clock.settle()
    } else if (what === '>') await send(name, words)
    else if (what === '*') {
      await send(name, [`S:1:${rest}`])
      wants(step, name, [`SA:1:${rest.split(',').map((each) => /:(\d)/.exec(each)?.[1])}`], true)
    } else if (what === '<' || what === '_') wants(step, name, words)
    else if (what === '!') await wires.get(name)?.client.cut()
    else if (what === '.') {
      wants(step, name, rest !== '' && version === 5 ? [`D:${rest}`] : [])
      expect([step, wires.get(name)?.client.gone]).toEqual([step, true])
    } else throw new Error(`no step: ${step}`)
  }
  for (const name of wires.keys()) wants('the end', name, [])
  return all
}

/** Sends packets in short; gives what came since the last time, in short as well. */
export async function said(client: RawClient, words = ''): Promise<string> {
  const sent = words.split(' ').filter((word) => word !== '')
  return (await client.sendBytes(...sent.map((word) => bytesOfWord(word, client.version))))
    .map(shortOf)
    .join(' ')
}

export function scenes(
  rows: Readonly<Record<string, string>>,
  versions: readonly ProtocolVersion[] = [5, 4],
  options: MemoryBrokerOptions = {},
): void {
  for (const version of versions) {
    it.each(Object.entries(rows))(version === 5 ? '%s' : '3.1.1: %s', async (_name, scene) => {
      await play(scene, version, options)
    })
  }
}
