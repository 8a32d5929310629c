/** What real brokers make of the rules, as habits of the world's broker: each by itself, and together as profiles of those that were watched. */
import type { ClientPacket, ServerPacket } from '../../src/wire/packets.js'
import type { WorldClock } from './clock.js'
import type { Habit } from './pipe.js'
import { payloadName } from './reader.js'

const CONNACK = 2
const PUBLISH = 3
const PUBACK = 4
const PUBREC = 5
const PUBREL = 6
const PUBCOMP = 7
const SUBACK = 9
const UNSUBACK = 11

/** Milliseconds for which acknowledgements are gathered, or are late; and how many make a batch. */
const gatherTime = 40
const lateTime = 300
const batch = 8
/** Connections that a short-lived link has, and how long each of them lasts. */
const shortLives = 5
const shortLife = 250
/** How long each connection lasts with a broker that dies young, and how many of them bring no answer. */
const youngLife = 200
const slowStarts = 12
/** Filters that one SUBSCRIBE or UNSUBSCRIBE may hold where they are few. */
export const mostFilters = 8
/** QoS 2 exchanges that are kept where there are twenty. */
const mostExchanges = 20

/** At SUBSCRIBE with this filter one broker closes. */
export const closedFilter = 'closed/a'
/** Maximum Packet Size of a client whose broker ignores it. */
export const smallPacket = 1000
/** Topic of what a broker acknowledged and forgot. */
export const forgottenTopic = 'forgotten'

export interface HabitMeans {
  readonly clock: WorldClock
  readonly version: 4 | 5
  readonly link: number
  /** Cuts the link, unless the world has healed. */
  readonly reset: () => void
  readonly cut: () => void
}

/** What a broker knows of the client, as far as a habit needs it. */
interface Known {
  version: 4 | 5
  topicAliasMaximum: number
  /** Identifiers of QoS 2 messages that came and were not released. */
  readonly unreleased: Set<number>
}

export interface Ends {
  /** Without a word. */
  readonly reset: () => void
  /** With DISCONNECT 0x87, on 5.0. Absent: without a word, too. */
  readonly refuse?: (() => void) | undefined
}

interface Manner {
  /** To the packets that leave. */
  readonly down?: (means: HabitMeans) => Habit
  /** To the client's packets, decoded. */
  readonly in?: (
    packet: ClientPacket,
    ends: Ends,
    client: Known,
  ) => ClientPacket | false | undefined
  /** To the broker's packets, decoded. */
  readonly out?: (client: Known) => (packet: ServerPacket) => ServerPacket | undefined
}

const kindOf = (packet: Uint8Array): number => (packet[0] as number) >> 4
const acknowledges = (kind: number): boolean =>
  kind === PUBACK || kind === PUBREC || kind === PUBCOMP

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

// While it starts, its answers would come later than its end, whatever it was asked.
const diesYoung = ({ clock, link, cut }: HabitMeans): Habit => {
  let first = true
  return (packet, pass) => {
    if (first) clock.setTimer(cut, youngLife)
    first = false
    const kind = kindOf(packet)
    if (link > slowStarts || !(acknowledges(kind) || kind === SUBACK || kind === UNSUBACK))
      pass(packet)
  }
}

// It acknowledges what nobody sent.
const acknowledgesZero = (): Habit => (packet, pass) => {
  pass(packet)
  if (kindOf(packet) === CONNACK && packet[3] === 0)
    for (const kind of [PUBREC, PUBACK]) pass(Uint8Array.of(kind << 4, 2, 0, 0))
}

// Each third message has a property that belongs to a will.
const foreignProperties = ({ version }: HabitMeans): Habit => {
  let count = 0
  return (packet, pass) =>
    pass(
      version === 5 && kindOf(packet) === PUBLISH && count++ % 3 === 0
        ? withWillDelay(packet)
        : packet,
    )
}

function withWillDelay(packet: Uint8Array): Uint8Array {
  const willDelay = [0x18, 0, 0, 0, 5]
  const start = packet.findIndex((byte, at) => at > 0 && byte < 128) + 1
  const topicEnd = start + 2 + (((packet[start] as number) << 8) | (packet[start + 1] as number))
  const at = topicEnd + (((packet[0] as number) & 6) > 0 ? 2 : 0)
  const length = packet[at] as number
  // Longer properties are left alone: their length would need another byte.
  if (length + willDelay.length > 127) return packet
  const header = [packet[0] as number]
  for (
    let rest = packet.length - start + willDelay.length;
    header.length === 1 || rest > 0;
    rest >>= 7
  )
    header.push((rest & 127) | (rest > 127 ? 128 : 0))
  const properties = Uint8Array.of(length + willDelay.length, ...willDelay)
  return new Uint8Array(
    Buffer.concat([
      Uint8Array.from(header),
      packet.subarray(start, at),
      properties,
      packet.subarray(at + 1),
    ]),
  )
}

/** Names of messages that a poisoned broker cannot bear: every eleventh, from the third on. */
export function isPoison(payload: string): boolean {
  return /^p(3|14|25|36)$/.test(payload)
}

// It closes there.
const closing =
  (at: (packet: ClientPacket) => boolean, mayRefuse = false) =>
  (packet: ClientPacket, { reset, refuse }: Ends, { version }: Known): false | undefined => {
    if (!at(packet)) return undefined
    if (mayRefuse && version === 5) (refuse ?? reset)()
    else reset()
    return false
  }

function filtersOf(packet: ClientPacket): readonly string[] {
  if (packet.type === 'subscribe') return packet.subscriptions.map(({ filter }) => filter)
  return packet.type === 'unsubscribe' ? packet.filters : []
}

const poisoned = closing(
  (packet) => packet.type === 'publish' && isPoison(payloadName(packet.payload)),
)
const closesAtFilter = closing(
  (packet) => packet.type === 'subscribe' && filtersOf(packet).includes(closedFilter),
  true,
)
const fewFilters = closing(
  (packet) =>
    filtersOf(packet).length > mostFilters ||
    (packet.type === 'subscribe' && packet.properties.subscriptionIdentifiers !== undefined),
)

const withoutIdentifiers = (client: Known) => (packet: ServerPacket) =>
  client.version === 5 && packet.type === 'connack'
    ? {
        ...packet,
        properties: { ...packet.properties, subscriptionIdentifierAvailable: 0 as const },
      }
    : undefined

// Whatever the client announced, it gets more.
const exceeding = (limit: 'receiveMaximum' | 'maximumPacketSize') => (packet: ClientPacket) =>
  packet.type === 'connect' && packet.properties[limit] !== undefined
    ? { ...packet, properties: { ...packet.properties, [limit]: undefined } }
    : undefined

// Of more exchanges than it has room for it acknowledges the rest, which nobody gets.
function onlyTwenty(
  packet: ClientPacket,
  _ends: Ends,
  { version, unreleased }: Known,
): ClientPacket | undefined {
  if (version === 5) return undefined
  if (packet.type === 'pubrel') unreleased.delete(packet.packetId)
  if (packet.type !== 'publish' || packet.qos !== 2 || unreleased.has(packet.packetId as number))
    return undefined
  unreleased.add(packet.packetId as number)
  return unreleased.size > mostExchanges ? { ...packet, topic: forgottenTopic } : undefined
}

// An alias that was made on an earlier connection is used again as if it were known.
function staleAliases(client: Known): (packet: ServerPacket) => ServerPacket | undefined {
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
    return {
      ...packet,
      topic: known !== undefined || stale ? '' : topic,
      properties: { ...packet.properties, topicAlias },
    }
  }
}

// What was released it knows nothing of: 0x92, which ends the exchange all the same.
const unknownReleases = (client: Known) => (packet: ServerPacket) =>
  client.version === 5 && packet.type === 'pubcomp' && packet.reasonCode === 0
    ? { ...packet, reasonCode: 0x92 as const }
    : undefined

const none = ['none'] as const

const manners = {
  gathered: { down: keeping(acknowledges, batch, gatherTime) },
  late: { down: keeping(acknowledges, Number.POSITIVE_INFINITY, lateTime) },
  'releases-late': { down: keeping((kind) => kind === PUBREL, batch, gatherTime) },
  doubled: { down: doubled },
  'second-thoughts': { down: secondThoughts },
  confused: { down: confused },
  'retained-first': { down: retainedFirst },
  'short-lived': { down: shortLived },
  'dies-young': { down: diesYoung },
  'acknowledges-zero': { down: acknowledgesZero },
  'foreign-properties': { down: foreignProperties },
  poisoned: { in: poisoned },
  excessive: { in: exceeding('receiveMaximum') },
  'ignores-sizes': { in: exceeding('maximumPacketSize') },
  'few-filters': { in: fewFilters, out: withoutIdentifiers },
  'closes-at-filter': { in: closesAtFilter },
  'only-twenty': { in: onlyTwenty },
  'stale-aliases': { out: staleAliases },
  'unknown-releases': { out: unknownReleases },
} satisfies Record<string, Manner>

export type MannerName = keyof typeof manners

/** Brokers that were watched, as the manners that they were seen with: `test/real/programs/expectations.ts` has the figures. */
const profiles = {
  // 2.0.11: sends up to 3,393 messages against 256 when acknowledgements come in batches, and answers in batches itself (its sockets have Nagle on).
  // On 3.1.1 it delivers 20 of 100 messages at QoS 2 that it acknowledged.
  mosquitto: ['excessive', 'gathered', 'only-twenty'],
  // 2.0.0-beta.1: knows no limit of ours, closes without DISCONNECT at what it cannot bear, leaves the delay of a will in its message.
  aedes: ['excessive', 'ignores-sizes', 'poisoned', 'foreign-properties'],
  // Answers a repeated PUBLISH twice, uses aliases of connections that are gone, acknowledges identifier 0 after a restart.
  mochi: ['second-thoughts', 'stale-aliases', 'acknowledges-zero'],
  // Community Edition: acknowledges late, once its store has the message.
  hivemq: ['late'],
  // Counts what was in flight against the next window; sends retained messages before SUBACK.
  artemis: ['excessive', 'retained-first'],
} satisfies Record<string, readonly MannerName[]>

export type HabitName = (typeof none)[number] | MannerName | keyof typeof profiles

export const habitNames = [...Object.keys(manners), ...Object.keys(profiles)] as Exclude<
  HabitName,
  'none'
>[]

export function mannersOf(name: HabitName): readonly MannerName[] {
  if (name === 'none') return []
  return name in profiles ? profiles[name as keyof typeof profiles] : [name as MannerName]
}

const ending: readonly MannerName[] = ['short-lived', 'dies-young', 'poisoned', 'few-filters']
const harsh: readonly MannerName[] = [...ending, 'confused', 'stale-aliases', 'closes-at-filter']

/** True when the broker ends connections by itself, or makes the client end one. */
export function isHarsh(name: HabitName): boolean {
  return mannersOf(name).some((manner) => harsh.includes(manner))
}

/** What is done to the packets of one connection; undefined where nothing is. */
export function habitOf(name: HabitName, means: HabitMeans): Habit | undefined {
  const all = mannersOf(name).flatMap((manner) => {
    const { down } = manners[manner] as Manner
    return down === undefined ? [] : [down(means)]
  })
  if (all.length === 0) return undefined
  return all.reduce(
    (first, second) => (packet, pass) => first(packet, (passed) => second(passed, pass)),
  )
}

export function interceptionOf(name: HabitName, ends: Ends) {
  const all = mannersOf(name).map((manner) => manners[manner] as Manner)
  const client: Known = { version: 5, topicAliasMaximum: 0, unreleased: new Set() }
  const outs = all.flatMap(({ out }) => (out === undefined ? [] : [out(client)]))
  return (
    direction: 'in' | 'out',
    packet: ClientPacket | ServerPacket,
  ): ClientPacket | ServerPacket | false | undefined => {
    if (packet.type === 'connack' && !packet.sessionPresent) client.unreleased.clear()
    if (direction === 'out')
      return outs.reduce<ServerPacket>((so, out) => out(so) ?? so, packet as ServerPacket)
    let now = packet as ClientPacket
    if (now.type === 'connect') {
      client.version = now.protocolVersion
      client.topicAliasMaximum = now.properties.topicAliasMaximum ?? 0
    }
    for (const manner of all) {
      const given = manner.in?.(now, ends, client)
      if (given === false) return false
      now = given ?? now
    }
    return now
  }
}
