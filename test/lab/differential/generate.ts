/** The packets of the differential run: valid, valid in their longer forms, and with a fault. The same seed gives the same bytes. */
import fc from 'fast-check'
import { encode, type Packet, type PacketInput } from '../../../src/wire/index.js'
import {
  acknowledge,
  auth,
  connect,
  disconnect,
  field,
  fromHex,
  given,
  join,
  type Pairs,
  packet,
  publish,
  type Speaker,
  section,
  subscribe,
  two,
  unsubscribe,
  variable,
} from '../../fuzz/build.js'
import { mutate, mutationKinds, packetsIn, tokens } from '../../fuzz/mutate.js'
import { type Sample, samples } from '../../unit/wire/arbitrary-packets.js'
import { codesOf } from '../../unit/wire/reference-decoder.js'
import { Random } from '../../world/random.js'

/** What is left over: the first two are valid where a Reason Code and a Property Length were left out. */
const more: readonly number[][] = [[0], [0, 0], [0, 1, 97], [255], [0xd0, 0], [0xc0, 0]]

/** A packet taken apart: its first byte, and what follows its Remaining Length. */
interface Parts {
  readonly first: number
  readonly body: Uint8Array
}

function partsOf(bytes: Uint8Array): Parts {
  return { first: bytes[0] ?? 0, body: bytes.subarray(packetsIn(bytes, 0)[0]?.[1] ?? 2) }
}

function whole({ first, body }: Parts): Uint8Array {
  return join(first, variable(body.length), body)
}

const typeOf = ({ first }: Parts): number => first >> 4

/** Where the Property Length lies in the body of a valid packet of MQTT 5.0; beyond the end where it was left out. */
function propertiesAt({ first, body }: Parts): number {
  const type = first >> 4
  if (type === 1) return 10
  if (type === 2 || (type > 7 && type < 12)) return 2
  if (type === 3) return 2 + (body[0] ?? 0) * 256 + (body[1] ?? 0) + ((first & 6) > 0 ? 2 : 0)
  return type < 8 ? 3 : type > 13 ? 1 : body.length
}

/** Where the Reason Code lies, or the first of several; beyond the end where there is none. */
function codeAt(parts: Parts): number {
  const type = typeOf(parts)
  if (type === 2) return 1
  if (type > 3 && type < 8) return 2
  if (type > 13) return 0
  return type === 9 || type === 11 ? parts.body.length - 1 : parts.body.length
}

function identifierAt(parts: Parts): number {
  const type = typeOf(parts)
  if (type === 3)
    return (parts.first & 6) > 0
      ? 2 + (parts.body[0] ?? 0) * 256 + (parts.body[1] ?? 0)
      : parts.body.length
  return (type > 3 && type < 8) || (type > 7 && type < 12) ? 0 : parts.body.length
}

/** Says a Reason Code of 0 and a Property Length of 0 where they may be left out (sections 3.4.2.1, 3.14.2.1). */
function prolonged(bytes: Uint8Array, random: Random): Uint8Array {
  const parts = partsOf(bytes)
  const type = typeOf(parts)
  const before = type === 14 ? 0 : 2
  if (type !== 14 && (type < 4 || type > 7)) return bytes
  const { length } = parts.body
  if (length > before + 1) return bytes
  const added = length === before ? random.pick(more.slice(0, 2)) : [0]
  return whole({ ...parts, body: join(parts.body, added) })
}

function put(body: Uint8Array, at: number, ...values: readonly number[]): Uint8Array {
  const changed = body.slice()
  values.forEach((value, index) => {
    if (at + index < changed.length) changed[at + index] = value
  })
  return changed
}

/** A property more, with its lengths right. */
function withProperty(parts: Parts, random: Random): Parts {
  const at = propertiesAt(parts)
  const { body } = parts
  const length = body[at] ?? 0
  // Longer blocks stay as they are.
  if (at > body.length || length > 90) return parts
  const token = random.pick(properties)
  const added = random.chance(0.5) ? join(token, token) : token
  const longer = put(at === body.length ? join(body, 0) : body, at, length + added.length)
  const place = at + 1 + (random.chance(0.5) ? 0 : length)
  return { ...parts, body: join(longer.subarray(0, place), added, longer.subarray(place)) }
}

/** The same number in more bytes than it needs [MQTT-1.5.5-1], or in five. */
function overlong(value: number, random: Random): number[] {
  const shortest = variable(value)
  const bytes = shortest.map((byte) => byte | 128)
  while (bytes.length < 3 && random.chance(0.3)) bytes.push(128)
  return random.chance(0.2) ? [128, 128, 128, 128, 0] : [...bytes, 0]
}

const properties = tokens.slice(0, 34)
const badText = ['eda080', 'c080', 'e080af', 'efbbbf'].map(fromHex)

type Fault = (parts: Parts, version: 4 | 5, random: Random) => Uint8Array

/** Values put over the body, from a place on. */
const over =
  (
    place: (parts: Parts, random: Random) => number,
    values: (random: Random, parts: Parts) => Iterable<number>,
  ): Fault =>
  (parts, _version, random) => {
    const at = place(parts, random)
    return whole({ ...parts, body: put(parts.body, at, ...values(random, parts)) })
  }

const anywhere = ({ body }: Parts, random: Random): number => random.below(body.length + 1)
const any = (random: Random): number[] => [random.below(256)]

const faults: readonly Fault[] = [
  // Packet identifier 0 [MQTT-2.2.1-3].
  over(identifierAt, () => [0, 0]),
  // Any Reason Code.
  over(codeAt, any),
  // Flags of the fixed header (section 2.1.3).
  (parts, _version, random) => whole({ ...parts, first: (parts.first & 0xf0) | random.below(16) }),
  // Another type with this body.
  (parts, _version, random) =>
    whole({ ...parts, first: (random.below(16) << 4) | random.pick([parts.first & 15, 0, 2]) }),
  (parts, version, random) => whole(version === 5 ? withProperty(parts, random) : parts),
  (parts, version, random) =>
    whole(version === 5 ? withProperty(withProperty(parts, random), random) : parts),
  // A Remaining Length in more bytes than it needs, or in five.
  (parts, _version, random) => join(parts.first, overlong(parts.body.length, random), parts.body),
  // A Property Length in more bytes than it needs.
  (parts, version, random) => {
    const at = propertiesAt(parts)
    const length = parts.body[at] ?? 128
    if (version === 4 || length > 127) return whole(parts)
    return whole({
      ...parts,
      body: join(parts.body.subarray(0, at), overlong(length, random), parts.body.subarray(at + 1)),
    })
  },
  // A Property Length that is too long or too short.
  over(propertiesAt, (random, parts) => [
    ((parts.body[propertiesAt(parts)] ?? 0) + random.between(-3, 3)) & 255,
  ]),
  // Bytes that strings must not hold, or that topics must not.
  over(anywhere, (random) => [
    random.pick([0, 0xff, 0xc0, 0xed, 0x80, 0x2b, 0x23, 0x2f, random.below(256)]),
  ]),
  // Surrogates, overlong forms and U+0000 inside of strings: three bytes, whose lengths are left alone.
  over(anywhere, (random) => random.pick(badText)),
  // Cut off, or with bytes left over, inside and behind.
  (parts, _version, random) =>
    whole({ ...parts, body: parts.body.subarray(0, anywhere(parts, random)) }),
  (parts, _version, random) => whole({ ...parts, body: join(parts.body, random.pick(more)) }),
  (parts, _version, random) => whole(parts).slice(0, random.below(parts.body.length + 2)),
  (parts, _version, random) => join(whole(parts), random.pick(more)),
  // Flags of a CONNECT or of a CONNACK, and the last options of a SUBSCRIBE.
  over((parts) => (typeOf(parts) === 1 ? 7 : 0), any),
  over(({ body }) => body.length - 1, any),
  // Another protocol name or version.
  over(
    (parts, random) => (typeOf(parts) === 1 ? 2 + random.below(5) : 0),
    (random) => [random.pick([3, 4, 5, 6, 0x84, 77])],
  ),
  // No body.
  (parts) => whole({ ...parts, body: new Uint8Array(0) }),
]

/** The packet with a fault, or with up to three changes of the fuzzer. Large ones lose a byte at most. */
function faulty(bytes: Uint8Array, version: 4 | 5, random: Random): Uint8Array {
  const parts = partsOf(bytes)
  if (random.chance(0.7) || bytes.length > 2000) return random.pick(faults)(parts, version, random)
  let changed = bytes
  for (let count = random.between(1, 3); count > 0; count--) {
    const kind = random.pick(mutationKinds)
    changed = mutate(changed, 0, {
      kind,
      at: random.below(4096),
      value: random.below(65_536),
      size: random.below(256),
    })
  }
  return changed
}

type Maker = (to: Speaker, random: Random) => Uint8Array

const filters =
  ' a# #/a a/#/b a+ +a/b $share/g $share//a $share/g/ $share/g+/a $share/#/a $share/g/a# $share/g/a'.split(
    ' ',
  )
const topics = ['', '+', 'a/+', '#', 'a/#', 'a+b', '$share/g/a', '/']

/** Properties with a value that is not allowed in any packet, or not from one sender, or only once. */
const outside = given(
  ...given([1, 2], [11, 0], [11, 1], [17, 5], [23, 2], [25, 9], [28, 's'], [33, 0]),
  ...given([35, 0], [36, 2], [37, 3], [39, 0], [40, 2], [41, 255], [42, 2]),
)

/** Text at the edges of UTF-8: surrogates, overlong forms, more than U+10FFFF, sequences cut off, U+0000, and what is well-formed and looks odd. */
const oddTexts = `eda080 edbfbf c080 c1bf e09fbf f08fbfbf f4908080 f888808080 6180 c3 e282 6100
  efbbbf efbfbf f48fbfbf ed9fbf f0908080 017f`
  .split(/\s+/)
  .map(fromHex)

const odd = (random: Random): Uint8Array => field(random.pick(oddTexts))

const withOddText: readonly Maker[] = [
  (to, random) => packet(0x30, odd(random), section(to.version, []), 'x'),
  (to, random) => packet(0x82, 0, 1, section(to.version, []), odd(random), 0),
  (to, random) => packet(0xa2, 0, 1, section(to.version, []), odd(random)),
  (to, random) =>
    packet(0x10, field('MQTT'), to.version, 2, 0, 0, section(to.version, []), odd(random)),
  (to, random) => connect(to, 'c', 0x82, 0, [], odd(random)),
  (to, random) => publish(to, 'a', 'x', { pairs: [[3, random.pick(oddTexts)]] }),
  (to, random) => publish(to, 'a', 'x', { pairs: [[8, random.pick(oddTexts)]] }),
  (to, random) => disconnect(to, 0x80, [[38, random.pick(oddTexts), 'v']]),
  (to, random) => acknowledge(to, 4, 1, 0x80, [[38, 'n', random.pick(oddTexts)]]),
  (to, random) => packet(0x20, 0, 0, section(to.version, [[31, random.pick(oddTexts)]])),
]

const makers: readonly Maker[] = [
  (to, random) =>
    subscribe(to, random.between(0, 3), [[random.pick(filters), random.pick([0, 1, 2, 4, 5])]]),
  (to, random) => subscribe(to, 1, [['a', random.below(256)]]),
  (to, random) =>
    subscribe(to, 1, [[random.pick(['a', '$share/g/a']), random.pick([4, 5, 0x40, 0x80, 0x30])]]),
  (to, random) => unsubscribe(to, 1, ['a', random.pick(filters)]),
  (to, random) => {
    const topic = random.pick(topics)
    const pairs: Pairs = random.chance(0.2) ? [[35, 1]] : []
    return publish(to, topic, 'x', { pairs, qos: random.below(3), id: random.below(2) })
  },
  (to, random) => publish(to, 'a', 'x', { dup: true, qos: random.pick([0, 0, 3]) }),
  // A property of a PUBLISH, a CONNECT, a CONNACK, a SUBSCRIBE and a DISCONNECT.
  (to, random) =>
    publish(to, 'a', 'x', {
      pairs: random.chance(0.5) ? [random.pick(outside)] : [[8, random.pick(topics)]],
    }),
  (to, random) => connect(to, 'c', 2, 0, [random.pick(outside)]),
  (to, random) => packet(0x20, 0, 0, section(to.version, [random.pick(outside)])),
  (to, random) => subscribe(to, 1, [['a', 0]], [random.pick(outside)]),
  (to, random) => disconnect(to, 0, [random.pick(outside)]),
  // Authentication Data without a method; AUTH without one.
  (to) => connect(to, 'c', 2, 0, [[22, 'd']]),
  (_to, random) =>
    auth(random.pick([0, 0x18, 0x19]), random.pick<Pairs>([[], [[31, 'r']], [[22, 'd']]])),
  () => packet(0xf0),
  (to) => disconnect(to),
  // Section 2.4 lists 0x8C for DISCONNECT, section 3.14.2.1 does not.
  (to) => disconnect(to, 0x8c),
  (to, random) => acknowledge(to, random.pick([4, 5]), 1, random.pick([0x10, 0x87])),
  // A CONNECT of either version, whatever is spoken.
  (_to, random) =>
    connect(
      { version: random.pick([4, 5]) },
      random.pick(['', 'client']),
      random.pick([0, 2]),
      random.below(600),
    ),
  (_to, random) => connect({ version: random.pick([4, 5]) }, 'client', 0x42, 0, [], field('p')),
  // No Client Identifier, and nothing to keep; a Password alone.
  (to) => connect(to, '', 0),
  (to, random) => connect(to, 'c', 0x42, 0, [], field(random.pick(['p', '']))),
  // Protocol Names that are no text; names and versions that are no more.
  (to, random) => {
    const name = field(random.pick(['MQIsdp', 'MQTT', [77, 81, 84, 0xff], [0]]))
    return packet(
      0x10,
      name,
      random.pick([3, 4, 5, 0x84]),
      2,
      two(0),
      section(to.version, []),
      field('c'),
    )
  },
  // A will without its flag, with QoS 3, without a topic, with a wildcard in it.
  (to, random) => connect(to, 'c', random.pick([0x0a, 0x12, 0x22])),
  (to, random) =>
    will(to, random.pick([0x06, 0x1e, 0x26, 0x3e]), random.pick(topics), random.pick(['', 'x'])),
  (to, random) => will(to, 6, 'w', 'x', [random.pick(outside)]),
  // Session Present with a refusal, and flags beyond.
  (to, random) =>
    packet(
      0x20,
      random.pick([1, 1, 2, 0x81]),
      random.pick([0, to.version === 5 ? 0x87 : 5]),
      section(to.version, []),
    ),
]

function will(
  to: Speaker,
  flags: number,
  topic: string,
  payload: string,
  pairs: Pairs = [],
): Uint8Array {
  return connect(to, 'c', flags, 0, [], section(to.version, pairs), field(topic), field(payload))
}

/** Packet types that one side alone sends (section 2.1.2). */
const sentBy = { client: [1, 8, 10, 12], server: [2, 9, 11, 13] }

/** One of them, as this side sends it, but for a few. */
function handmade(version: 4 | 5, from: 'client' | 'server', random: Random): Uint8Array {
  const others = sentBy[from === 'client' ? 'server' : 'client']
  for (;;) {
    const bytes = random.pick(random.chance(0.3) ? withOddText : makers)({ version }, random)
    if (!others.includes((bytes[0] ?? 0) >> 4) || random.chance(0.05)) return bytes
  }
}

/** One packet of the run. */
export interface Case {
  /** Which one of its seed it is, from 0. */
  readonly number: number
  readonly bytes: Uint8Array
  readonly version: 4 | 5
  readonly from: 'client' | 'server'
  /** `encoded`: the shortest form. `long`: valid, with what could be left out. `faulty`: changed afterwards, most of them invalid. */
  readonly kind: 'encoded' | 'long' | 'faulty'
  /** What the bytes say, where nothing was changed. */
  readonly packet: Packet | undefined
  /** Why the valid packet that was drawn could not be encoded, where it could not. */
  readonly unencoded?: string
}

/** Packets of a batch. The number of a packet tells its batch. */
export const batchSize = 500

/** One batch of a seed. */
export function generate(seed: number, batch: number): Case[] {
  const random = new Random(seed * 1_000_003 + batch)
  const drawn = fc.sample(samples, { seed: random.next() | 0, numRuns: batchSize })
  return drawn.map((sample, index) =>
    makeCase(vary(sample, random), random, batch * batchSize + index),
  )
}

function makeCase(
  { packet, protocolVersion: version, from }: Sample,
  random: Random,
  number: number,
): Case {
  const shortest = encoded(packet, version)
  if (typeof shortest === 'string') {
    const bytes = handmade(version, from, random)
    return { number, bytes, version, from, kind: 'faulty', packet: undefined, unencoded: shortest }
  }
  const kind = random.pick(['encoded', 'encoded', 'long', 'faulty', 'faulty', 'faulty'] as const)
  if (kind === 'encoded') return { number, bytes: shortest, version, from, kind, packet }
  const long =
    version === 5 && random.chance(kind === 'long' ? 1 : 0.3)
      ? prolonged(shortest, random)
      : shortest
  if (kind === 'long') return { number, bytes: long, version, from, kind, packet }
  const bytes = random.chance(0.2) ? handmade(version, from, random) : faulty(long, version, random)
  return { number, bytes, version, from, kind, packet: undefined }
}

function encoded(packet: Packet, protocolVersion: 4 | 5): Uint8Array | string {
  try {
    return encode(packet as PacketInput, { protocolVersion })
  } catch (error) {
    return `${String(error)}: ${JSON.stringify(packet)}`
  }
}

function vary({ packet, protocolVersion, from }: Sample, random: Random): Sample {
  const codes =
    'reasonCode' in packet || 'reasonCodes' in packet
      ? codesOf(packet.type.toUpperCase(), from)
      : []
  if (protocolVersion === 5 && 'reasonCode' in packet && random.chance(0.7)) {
    packet.reasonCode = codes.includes(0x10) && random.chance(0.3) ? 0x10 : random.pick(codes)
    if (packet.type === 'connack') packet.sessionPresent &&= packet.reasonCode === 0
  }
  if (protocolVersion === 5 && 'reasonCodes' in packet)
    packet.reasonCodes = packet.reasonCodes.map(() => random.pick(codes))
  if ('properties' in packet) shuffle(packet, random)
  if (packet.type === 'publish' && random.chance(0.1)) {
    packet.payload = new Uint8Array(drawSize(random)).fill(random.below(256))
  }
  return { packet, protocolVersion, from }
}

// Where the Remaining Length takes another byte, and sometimes long strings.
function drawSize(random: Random): number {
  if (random.chance(0.0005)) return 2_097_152 - random.below(200)
  return (random.chance(0.1) ? 16_384 : 128) - random.below(random.chance(0.5) ? 10 : 128)
}

function shuffle(packet: Packet & { properties: object }, random: Random): void {
  const entries = Object.entries(packet.properties)
  const own = entries.find(([name]) => name === 'userProperties')
  // Names and values that repeat, that are empty, and names that an object puts in another order.
  if (own !== undefined && random.chance(0.2)) {
    const pair = () => [random.pick(['a', 'b', '1', '']), random.pick(['', 'x', 'y'])]
    own[1] = Array.from({ length: random.between(1, 5) }, pair)
  }
  for (let last = entries.length - 1; last > 0; last--) {
    const other = random.below(last + 1)
    const [moved] = entries.splice(other, 1, entries[last] as (typeof entries)[number])
    entries[last] = moved as (typeof entries)[number]
  }
  if (entries.length > 0 && random.chance(0.002)) {
    entries.push(['userProperties', [['long', 'x'.repeat(65_535 - random.below(2))]]])
  }
  packet.properties = Object.fromEntries(entries)
}
