/**
 * Packets with a fault that random changes seldom make: filters and topics that are none, values out of range, CONNECT and AUTH that lack something.
 *
 * Each breaks one rule, or breaks it only for one version or one sender: that is not told here. It asks no codec.
 */
import { acknowledge, auth, connect, disconnect, field, type Pairs, packet, publish, section, subscribe, two, unsubscribe } from '../../fuzz/build.js'
import type { Random } from '../../world/random.js'

type Maker = (version: 4 | 5, random: Random) => Uint8Array

const filters = [
  '',
  'a#',
  '#/a',
  'a/#/b',
  'a+',
  '+a/b',
  '$share/g',
  '$share//a',
  '$share/g/',
  '$share/g+/a',
  '$share/#/a',
  '$share/g/a#',
  '$share/g/a',
]
const topics = ['', '+', 'a/+', '#', 'a/#', 'a+b', '$share/g/a', '/']

/** Properties with a value that is not allowed in any packet, or not from one sender, or only once. */
const outside: readonly Pairs[number][] = [
  [1, 2],
  [11, 0],
  [11, 1],
  [17, 5],
  [23, 2],
  [25, 9],
  [28, 's'],
  [33, 0],
  [35, 0],
  [36, 2],
  [37, 3],
  [39, 0],
  [40, 2],
  [41, 255],
  [42, 2],
]

/** Text at the edges of UTF-8: surrogates, overlong forms, more than U+10FFFF, sequences cut off, U+0000, and what is well-formed and looks odd. */
const oddTexts: readonly (readonly number[])[] = [
  [0xed, 0xa0, 0x80],
  [0xed, 0xbf, 0xbf],
  [0xc0, 0x80],
  [0xc1, 0xbf],
  [0xe0, 0x9f, 0xbf],
  [0xf0, 0x8f, 0xbf, 0xbf],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0x61, 0x80],
  [0xc3],
  [0xe2, 0x82],
  [0x61, 0],
  [0xef, 0xbb, 0xbf],
  [0xef, 0xbf, 0xbf],
  [0xf4, 0x8f, 0xbf, 0xbf],
  [0xed, 0x9f, 0xbf],
  [0xf0, 0x90, 0x80, 0x80],
  [1, 0x7f],
]

const odd = (random: Random): Uint8Array => field(random.pick(oddTexts))

const withOddText: readonly Maker[] = [
  (version, random) => packet(0x30, odd(random), section(version, []), 'x'),
  (version, random) => packet(0x82, 0, 1, section(version, []), odd(random), 0),
  (version, random) => packet(0xa2, 0, 1, section(version, []), odd(random)),
  (version, random) => packet(0x10, field('MQTT'), version, 2, 0, 0, section(version, []), odd(random)),
  (version, random) => connect({ version }, 'c', 0x82, 0, [], odd(random)),
  (version, random) => publish({ version }, 'a', 'x', { pairs: [[3, random.pick(oddTexts)]] }),
  (version, random) => publish({ version }, 'a', 'x', { pairs: [[8, random.pick(oddTexts)]] }),
  (version, random) => disconnect({ version }, 0x80, [[38, random.pick(oddTexts), 'v']]),
  (version, random) => acknowledge({ version }, 4, 1, 0x80, [[38, 'n', random.pick(oddTexts)]]),
  (version, random) => packet(0x20, 0, 0, section(version, [[31, random.pick(oddTexts)]])),
]

const makers: readonly Maker[] = [
  (version, random) => subscribe({ version }, random.between(0, 3), [[random.pick(filters), random.pick([0, 1, 2, 4, 5])]]),
  (version, random) => subscribe({ version }, 1, [['a', random.below(256)]]),
  (version, random) => subscribe({ version }, 1, [[random.pick(['a', '$share/g/a']), random.pick([4, 5, 0x40, 0x80, 0x30])]]),
  (version, random) => unsubscribe({ version }, 1, ['a', random.pick(filters)]),
  (version, random) =>
    publish({ version }, random.pick(topics), 'x', { pairs: random.chance(0.2) ? [[35, 1]] : [], qos: random.below(3), id: random.below(2) }),
  (version, random) => publish({ version }, 'a', 'x', { dup: true, qos: random.pick([0, 0, 3]) }),
  // A property of a PUBLISH, a CONNECT, a CONNACK, a SUBSCRIBE and a DISCONNECT.
  (version, random) => publish({ version }, 'a', 'x', { pairs: random.chance(0.5) ? [random.pick(outside)] : [[8, random.pick(topics)]] }),
  (version, random) => connect({ version }, 'c', 2, 0, [random.pick(outside)]),
  (version, random) => packet(0x20, 0, 0, section(version, [random.pick(outside)])),
  (version, random) => subscribe({ version }, 1, [['a', 0]], [random.pick(outside)]),
  (version, random) => disconnect({ version }, 0, [random.pick(outside)]),
  // Authentication Data without a method; AUTH without one.
  (version) => connect({ version }, 'c', 2, 0, [[22, 'd']]),
  (_version, random) => auth(random.pick([0, 0x18, 0x19]), random.pick<Pairs>([[], [[31, 'r']], [[22, 'd']]])),
  () => packet(0xf0),
  (version) => disconnect({ version }),
  // Section 2.4 lists 0x8C for DISCONNECT, section 3.14.2.1 does not.
  (version) => disconnect({ version }, 0x8c),
  (version, random) => acknowledge({ version }, random.pick([4, 5]), 1, random.pick([0x10, 0x87])),
  // A CONNECT of either version, whatever is spoken.
  (_version, random) => connect({ version: random.pick([4, 5]) }, random.pick(['', 'client']), random.pick([0, 2]), random.below(600)),
  (_version, random) => connect({ version: random.pick([4, 5]) }, 'client', 0x42, 0, [], field('p')),
  // No Client Identifier, and nothing to keep; a Password alone.
  (version) => connect({ version }, '', 0),
  (version, random) => connect({ version }, 'c', 0x42, 0, [], field(random.pick(['p', '']))),
  // Protocol Names that are no text; names and versions that are no more.
  (version, random) =>
    packet(
      0x10,
      field(random.pick(['MQIsdp', 'MQTT', [77, 81, 84, 0xff], [0]])),
      random.pick([3, 4, 5, 0x84]),
      2,
      two(0),
      section(version, []),
      field('c'),
    ),
  // A will without its flag, with QoS 3, without a topic, with a wildcard in it.
  (version, random) => connect({ version }, 'c', random.pick([0x0a, 0x12, 0x22])),
  (version, random) => will(version, random.pick([0x06, 0x1e, 0x26, 0x3e]), random.pick(topics), random.pick(['', 'x'])),
  (version, random) => will(version, 6, 'w', 'x', [random.pick(outside)]),
  // Session Present with a refusal, and flags beyond.
  (version, random) => packet(0x20, random.pick([1, 1, 2, 0x81]), random.pick([0, version === 5 ? 0x87 : 5]), section(version, [])),
]

function will(version: 4 | 5, flags: number, topic: string, payload: string, pairs: Pairs = []): Uint8Array {
  return connect({ version }, 'c', flags, 0, [], section(version, pairs), field(topic), field(payload))
}

/** Packet types that one side alone sends (section 2.1.2). */
const sentBy = { client: [1, 8, 10, 12], server: [2, 9, 11, 13] }

/** One of them, as this side sends it, but for a few. */
export function handmade(version: 4 | 5, from: 'client' | 'server', random: Random): Uint8Array {
  const others = sentBy[from === 'client' ? 'server' : 'client']
  for (;;) {
    const bytes = random.pick(random.chance(0.3) ? withOddText : makers)(version, random)
    if (!others.includes((bytes[0] ?? 0) >> 4) || random.chance(0.05)) return bytes
  }
}
