/**
 * Streams of a server for fast-check: packets right and wrong, changed here and there, and how they are delivered.
 *
 * Every part of a PUBLISH is drawn from what is usual, from the edges of what is allowed, and from what is not.
 */
import fc from 'fast-check'
import { mutation, serverPacket, weighted } from '../../fuzz/arbitraries.js'
import { field, fromHex, hex, join, type Part, two, variable } from '../../fuzz/build.js'
import { longest, mutate } from '../../fuzz/mutate.js'
import { transportForms } from '../wire/byte-forms.js'
import type { Setting } from './scanner.js'
import type { Delivery } from './story.js'

/** One connection: how it is read, and what comes in. */
export interface Stream {
  readonly setting: Setting
  readonly deliveries: readonly Delivery[]
}

const byte = fc.nat(255)
const bytes = fc.uint8Array({ maxLength: 40 })
const lengthy = weighted(
  [4, fc.constantFrom(100, 1023, 1024, 1025)],
  [1, fc.constantFrom(5000, 65_534, 65_535)],
)
const usual =
  'a a/b sensors/room-1/temperature ü températures/été 日本語/温度 \u{1f600} \ufeffx'.split(' ')
const ones = '00 23 2b 7f 80 c080 c1bf c280 dfbf e08080 e09fbf e0a080 ed9fbf eda080 edbfbf'.split(
  ' ',
)
const others =
  ' eebfbf efbfbf f0808080 f08fbfbf f0908080 f48fbfbf f4908080 f5808080 ff e282 f09f98 c2'.split(
    ' ',
  )
/** Text at the edges of UTF-8, of 16 bytes, and of what a topic may be. */
const text = weighted<Part>(
  [4, fc.constantFrom(...usual)],
  [2, fc.string({ unit: 'binary', maxLength: 24 })],
  [2, fc.nat(70).map((length) => 'x'.repeat(length))],
  [
    1,
    fc
      .tuple(fc.nat(40), bytes, fc.nat(20))
      .map(([before, odd, after]) => join('y'.repeat(before), odd, 'z'.repeat(after))),
  ],
  [
    2,
    fc
      .tuple(fc.nat(34), fc.constantFrom(...ones), fc.constantFrom(...others), fc.nat(34))
      .map(([before, one, other, after]) => {
        return join('y'.repeat(before), fromHex(one), fromHex(other), 'z'.repeat(after))
      }),
  ],
  [1, lengthy.map((length) => 'l'.repeat(length))],
  [1, bytes],
)

const number = fc.oneof(
  fc.constantFrom(0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455),
  fc.nat(300),
)
/** Variable byte integers, some in more bytes than they need, some that never end. */
const odd = ['00', '8000', '8100', '8080808001', '8180808010', 'ffffffff'].map((digits) => [
  ...fromHex(digits),
])
const lengths = weighted<number[]>(
  [6, number.map(variable)],
  [1, fc.constantFrom(...odd)],
  [1, fc.array(byte, { maxLength: 5 })],
)
const seldom = (weight: number, min: number, max: number) =>
  weighted([weight, fc.constant(0)], [1, fc.integer({ min, max })])
/** Bytes that make a length longer than it needs to be; mostly none. */
const padding = seldom(20, 1, 4)

function padded(value: number, by: number): number[] {
  const shortest = variable(value)
  return by === 0
    ? shortest
    : [
        ...shortest.slice(0, -1),
        (shortest.at(-1) as number) | 128,
        ...new Array<number>(by - 1).fill(128),
        0,
      ]
}
const pair = fc.tuple(text, text).map(([name, value]) => join(38, field(name), field(value)))
const property = weighted<Uint8Array>(
  [4, pair],
  [2, lengths.map((value) => join(11, value))],
  [1, fc.nat(2).map((value) => join(1, value))],
  [1, fc.constantFrom(2, 24).map((id) => join(id, 0, 1, 2, 3))],
  [3, fc.tuple(fc.constantFrom(3, 8, 9), text).map(([id, value]) => join(id, field(value)))],
  [2, fc.nat(3).map((value) => join(35, two(value)))],
  [1, fc.tuple(byte, bytes).map(([id, value]) => join(id, value))],
)

const shape = fc.record({
  flags: weighted([6, fc.constantFrom(0, 1, 2, 3, 4, 10, 13)], [1, fc.nat(15)]),
  topic: weighted<Part>([8, text], [1, fc.constant('')]),
  id: weighted([8, fc.integer({ min: 1, max: 65_535 })], [1, fc.constant(0)]),
  properties: weighted<Uint8Array[]>(
    [4, fc.constant([])],
    [
      4,
      fc.uniqueArray(property, { maxLength: 4, selector: ([id]) => (id === 38 ? Symbol() : id) }),
    ],
    [1, fc.array(property, { maxLength: 6 })],
  ),
  /** Added to the Property Length. */
  off: seldom(12, -2, 2),
  /** Bytes that lack at the end, though the Remaining Length is right. */
  short: seldom(12, 1, 3),
  paddings: fc.tuple(padding, padding),
  payload: weighted(
    [9, fc.constant(0)],
    [20, fc.nat(30)],
    [3, fc.nat(600)],
    [3, fc.constantFrom(90, 110, 120)],
    [1, fc.constantFrom(16_370, 17_000, 65_500, 65_530, 70_000)],
  ),
})

function publish(version: 4 | 5): fc.Arbitrary<Uint8Array> {
  return shape.map(({ flags, topic, id, properties, off, short, paddings, payload }) => {
    const section = join(...properties)
    const length = version === 5 ? padded(Math.max(0, section.length + off), paddings[0]) : []
    const ended = new Uint8Array(payload).fill(0x70)
    const body = join(
      field(topic),
      (flags & 6) > 0 ? two(id) : [],
      length,
      version === 5 ? section : [],
      ended,
    )
    const cut = body.subarray(0, Math.max(0, body.length - short))
    return join(0x30 | flags, padded(cut.length, paddings[1]), cut)
  })
}

/** The bytes of a stream. */
function content(version: 4 | 5): fc.Arbitrary<Uint8Array> {
  const one = weighted<Uint8Array>(
    [10, publish(version)],
    [3, serverPacket(version)],
    [1, fc.uint8Array({ maxLength: 12 })],
  )
  const mutations = fc.oneof(fc.constant([]), fc.array(mutation, { maxLength: 3 }))
  return fc.tuple(fc.array(one, { maxLength: 24 }), mutations).map(([packets, list]) => {
    const whole = join(...packets)
    return whole.length > longest
      ? whole
      : list.reduce((changed, each) => mutate(changed, 0, each), whole)
  })
}

const cut = fc.record(
  {
    size: fc.oneof(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 3000 }),
      fc.constant(65_536),
    ),
    form: fc.constantFrom(...transportForms),
    inPlace: fc.boolean(),
    apart: fc.boolean(),
    viewed: fc.boolean(),
    keepAfter: fc.nat(6),
    change: fc.record({
      maximumPacketSize: fc.constantFrom(20, 60, 268_435_460),
      protocolVersion: fc.constantFrom<(4 | 5)[]>(4, 5),
    }),
  },
  { requiredKeys: ['size', 'form', 'inPlace', 'viewed', 'apart'] },
)

/** Cuts the bytes into deliveries, using the cuts again and again. */
function delivered(
  whole: Uint8Array,
  cuts: readonly ({ readonly size: number } & Omit<Delivery, 'bytes'>)[],
): Delivery[] {
  const deliveries: Delivery[] = []
  for (let at = 0, index = 0; at < whole.length; index++) {
    const { size, ...rest } = cuts[index % cuts.length] as (typeof cuts)[number]
    deliveries.push({ ...rest, bytes: whole.slice(at, at + size) })
    at += size
  }
  return deliveries
}

const limit = fc.constantFrom(268_435_460, 268_435_460, 1 << 20, 65_536, 2000, 127, 60, 24, 2)

/** Streams of one version of the protocol, or of the other read as that. */
export const streams: fc.Arbitrary<Stream> = fc
  .tuple(
    fc.constantFrom<(4 | 5)[]>(4, 5, 5, 5),
    limit,
    fc.array(cut, { minLength: 1, maxLength: 5 }),
    fc.boolean(),
    fc.boolean(),
  )
  .chain(([protocolVersion, maximumPacketSize, cuts, splits, skips]) => {
    const setting = { protocolVersion, maximumPacketSize, splits, skips }
    return content(protocolVersion).map((whole) => ({
      setting,
      deliveries: delivered(whole, cuts),
      [fc.toStringMethod]: () =>
        `${JSON.stringify({ ...setting, cuts })} ${hex(whole.subarray(0, 4000))} (${whole.length})`,
    }))
  })
