/**
 * What real brokers make of the rules, as habits of the world's broker: each by itself, and together as profiles of those that were watched.
 *
 * A habit changes what leaves the broker, packet by packet, or what it is told of the client. It must never do what no broker was seen to do.
 */
import type { ClientPacket, ServerPacket } from '../../src/wire/packets.js'
import type { WorldClock } from './clock.js'
import type { Habit } from './pipe.js'
import { payloadName } from './reader.js'

/** Kinds of packets, by their first byte. */
const PUBLISH = 3
const PUBACK = 4
const PUBREC = 5
const PUBREL = 6
const PUBCOMP = 7
const SUBACK = 9

/** Milliseconds for which acknowledgements are gathered, or are late; and how many make a batch. */
const gatherTime = 40
const lateTime = 300
const batch = 8
/** Connections that a short-lived link has, and how long each of them lasts. */
const shortLives = 5
const shortLife = 250

/** Means of one connection. */
export interface HabitMeans {
  readonly clock: WorldClock
  readonly version: 4 | 5
  /** Number of the connection, from 1. */
  readonly link: number
  /** Cuts the link. */
  readonly reset: () => void
}

/** What the CONNECT of the client asked for, as far as a habit has to know. */
interface AskedFor {
  topicAliasMaximum: number
}

/** What a habit does. */
interface Manner {
  /** To the packets that leave. */
  readonly down?: (means: HabitMeans) => Habit
  /** To the client's packets, decoded. */
  readonly in?: (packet: ClientPacket, reset: () => void) => ClientPacket | false | undefined
  /** To the broker's packets, decoded. */
  readonly out?: (version: 4 | 5, client: AskedFor) => (packet: ServerPacket) => ServerPacket | undefined
}

const kindOf = (packet: Uint8Array): number => (packet[0] as number) >> 4
const acknowledges = (kind: number): boolean => kind === PUBACK || kind === PUBREC || kind === PUBCOMP

// Keeps what `which` says until `most` are there or some time has passed; their order stays.
function keeping(which: (kind: number) => boolean, most: number, time: number) {
  return ({ clock }: HabitMeans): Habit => {
    const kept: Uint8Array[] = []
    let timer: (() => void) | undefined
    return (packet, pass) => {
      if (!which(kindOf(packet))) return pass(packet)
      const release = (): void => {
        timer?.()
        timer = undefined
        for (const one of kept.splice(0)) pass(one)
      }
      kept.push(packet)
      if (kept.length >= most) release()
      else timer ??= clock.setTimer(release, time)
    }
  }
}

const doubled = (): Habit => (packet, pass) => {
  pass(packet)
  if (acknowledges(kindOf(packet))) pass(packet.slice())
}

// A repeated message was taken, and is refused once it was released.
const secondThoughts =
  ({ version }: HabitMeans): Habit =>
  (packet, pass) => {
    if (kindOf(packet) === PUBCOMP && version === 5) {
      const at = (packet[1] as number) >= 2 ? 2 : 0
      pass(Uint8Array.of(PUBREC << 4, 3, packet[at] as number, packet[at + 1] as number, 0x91))
    }
    pass(packet)
  }

// The first acknowledgement of the first connection is one of the other QoS; nothing follows it.
const confused = ({ link }: HabitMeans): Habit => {
  let done = link > 1
  let mute = false
  return (packet, pass) => {
    const kind = kindOf(packet)
    if (mute) return
    if (!done && (kind === PUBACK || kind === PUBREC)) {
      done = true
      mute = true
      const other = packet.slice()
      other[0] = (kind === PUBACK ? PUBREC : PUBACK) << 4
      return pass(other)
    }
    pass(packet)
  }
}

// Retained messages overtake the SUBACK that they belong to.
const retainedFirst = ({ clock }: HabitMeans): Habit => {
  const waiting: Uint8Array[] = []
  let timer: (() => void) | undefined
  return (packet, pass) => {
    const release = (): void => {
      timer?.()
      timer = undefined
      for (const one of waiting.splice(0)) pass(one)
    }
    const kind = kindOf(packet)
    if (kind === SUBACK) {
      release()
      waiting.push(packet)
      timer = clock.setTimer(release, 3)
    } else if (kind === PUBLISH && ((packet[0] as number) & 1) === 1) pass(packet)
    else {
      release()
      pass(packet)
    }
  }
}

const shortLived = ({ clock, link, reset }: HabitMeans): Habit => {
  let first = true
  return (packet, pass) => {
    if (first && link <= shortLives) clock.setTimer(reset, shortLife)
    first = false
    pass(packet)
  }
}

/** Names of messages that a poisoned broker cannot bear: every eleventh, from the third on. */
export function isPoison(payload: string): boolean {
  return /^p(3|14|25|36)$/.test(payload)
}

// It closes without a word.
function poisoned(packet: ClientPacket, reset: () => void): false | undefined {
  if (packet.type !== 'publish' || !isPoison(payloadName(packet.payload))) return undefined
  reset()
  return false
}

// Whatever Receive Maximum the client announced, it gets more.
function excessive(packet: ClientPacket): ClientPacket | undefined {
  if (packet.type !== 'connect' || packet.properties.receiveMaximum === undefined) return undefined
  return { ...packet, properties: { ...packet.properties, receiveMaximum: undefined } }
}

// An alias that was made on an earlier connection is used again as if it were known.
function staleAliases(_version: 4 | 5, client: AskedFor): (packet: ServerPacket) => ServerPacket | undefined {
  const earlier = new Map<string, number>()
  let current = new Map<string, number>()
  return (packet) => {
    if (packet.type === 'connack') {
      for (const [topic, alias] of current) earlier.set(topic, alias)
      current = new Map()
    }
    if (packet.type !== 'publish') return undefined
    const { topic } = packet
    const known = current.get(topic)
    const topicAlias = known ?? current.size + 1
    if (topicAlias > client.topicAliasMaximum) return undefined
    const stale = earlier.get(topic) === topicAlias
    current.set(topic, topicAlias)
    return { ...packet, topic: known !== undefined || stale ? '' : topic, properties: { ...packet.properties, topicAlias } }
  }
}

// What was released it knows nothing of: 0x92, which ends the exchange all the same.
const unknownReleases = (version: 4 | 5) => (packet: ServerPacket) =>
  version === 5 && packet.type === 'pubcomp' && packet.reasonCode === 0 ? { ...packet, reasonCode: 0x92 as const } : undefined

const none = ['none'] as const

/** By name. */
const manners = {
  gathered: { down: keeping(acknowledges, batch, gatherTime) },
  late: { down: keeping(acknowledges, Number.POSITIVE_INFINITY, lateTime) },
  'releases-late': { down: keeping((kind) => kind === PUBREL, batch, gatherTime) },
  doubled: { down: doubled },
  'second-thoughts': { down: secondThoughts },
  confused: { down: confused },
  'retained-first': { down: retainedFirst },
  'short-lived': { down: shortLived },
  poisoned: { in: poisoned },
  excessive: { in: excessive },
  'stale-aliases': { out: staleAliases },
  'unknown-releases': { out: unknownReleases },
} satisfies Record<string, Manner>

/** One way of being different. */
export type MannerName = keyof typeof manners

/** Brokers that were watched, as the manners that they were seen with: `test/programs/ordinary/expectations.ts` has the figures. */
const profiles = {
  // 2.0.11: sends up to 3,393 messages against 256 when acknowledgements come in batches, and answers in batches itself (its sockets have Nagle on).
  mosquitto: ['excessive', 'gathered'],
  // 2.0.0-beta.1: knows no Receive Maximum of ours, closes without DISCONNECT at what it cannot bear.
  aedes: ['excessive', 'poisoned'],
  // Answers a repeated PUBLISH twice, and uses aliases of connections that are gone.
  mochi: ['second-thoughts', 'stale-aliases'],
  // Community Edition: acknowledges late, once its store has the message.
  hivemq: ['late'],
  // Counts what was in flight against the next window; sends retained messages before SUBACK.
  artemis: ['excessive', 'retained-first'],
} satisfies Record<string, readonly MannerName[]>

/** A manner, a broker, or nothing. */
export type HabitName = (typeof none)[number] | MannerName | keyof typeof profiles

/** All of them but `'none'`. */
export const habitNames = [...Object.keys(manners), ...Object.keys(profiles)] as Exclude<HabitName, 'none'>[]

/** The manners of a habit. */
export function mannersOf(name: HabitName): readonly MannerName[] {
  if (name === 'none') return []
  return name in profiles ? profiles[name as keyof typeof profiles] : [name as MannerName]
}

/** True when the broker ends connections by itself, or makes the client end one. */
export function isHarsh(name: HabitName): boolean {
  return mannersOf(name).some((manner) => ['confused', 'short-lived', 'poisoned', 'stale-aliases'].includes(manner))
}

/** What is done to the packets of one connection; undefined where nothing is. */
export function habitOf(name: HabitName, means: HabitMeans): Habit | undefined {
  const all = mannersOf(name).flatMap((manner) => {
    const { down } = manners[manner] as Manner
    return down === undefined ? [] : [down(means)]
  })
  if (all.length === 0) return undefined
  return all.reduce((first, second) => (packet, pass) => first(packet, (passed) => second(passed, pass)))
}

/** What is done to decoded packets; `reset` cuts the client's link. */
export function interceptionOf(name: HabitName, version: 4 | 5, reset: () => void) {
  const all = mannersOf(name).map((manner) => manners[manner] as Manner)
  const client = { topicAliasMaximum: 0 }
  const outs = all.flatMap(({ out }) => (out === undefined ? [] : [out(version, client)]))
  return (direction: 'in' | 'out', packet: ClientPacket | ServerPacket): ClientPacket | ServerPacket | false | undefined => {
    if (direction === 'out') return outs.reduce<ServerPacket>((so, out) => out(so) ?? so, packet as ServerPacket)
    let now = packet as ClientPacket
    if (now.type === 'connect') client.topicAliasMaximum = now.properties.topicAliasMaximum ?? 0
    for (const manner of all) {
      const given = manner.in?.(now, reset)
      if (given === false) return false
      now = given ?? now
    }
    return now
  }
}
