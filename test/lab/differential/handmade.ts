/** Packets with a fault that random changes seldom make, for one version or one sender or all. It asks no codec. */
import {
  acknowledge,
  auth,
  connect,
  disconnect,
  field,
  fromHex,
  given,
  type Pairs,
  packet,
  publish,
  type Speaker,
  section,
  subscribe,
  two,
  unsubscribe,
} from '../../fuzz/build.js'
import type { Random } from '../../world/random.js'

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
export function handmade(version: 4 | 5, from: 'client' | 'server', random: Random): Uint8Array {
  const others = sentBy[from === 'client' ? 'server' : 'client']
  for (;;) {
    const bytes = random.pick(random.chance(0.3) ? withOddText : makers)({ version }, random)
    if (!others.includes((bytes[0] ?? 0) >> 4) || random.chance(0.05)) return bytes
  }
}
