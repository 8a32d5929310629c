/**
 * Streams of a server for fast-check: packets right and wrong, changed here and there, and how they are delivered.
 *
 * Every part of a PUBLISH is drawn from what is usual, from the edges of what is allowed, and from what is not.
 */
import fc from 'fast-check'
import { serverPacket } from '../../fuzz/arbitraries.js'
import { field, hex, join, type Part, two, variable } from '../../fuzz/build.js'
import { longest, type Mutation, mutate, mutationKinds } from '../../fuzz/mutate.js'
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
const lengthy = fc
  .oneof({ weight: 4, arbitrary: fc.constantFrom(100, 1023, 1024, 1025) }, { weight: 1, arbitrary: fc.constantFrom(5000, 65_534, 65_535) })
  .map((length) => 'l'.repeat(length))
/** Text at the edges of UTF-8, of 16 bytes, and of what a topic may be. */
const text: fc.Arbitrary<Part> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'a/b', 'sensors/room-1/temperature', 'ü', 'températures/été', '日本語/温度', '\u{1f600}', '\ufeffx') },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 24 }) },
  { weight: 2, arbitrary: fc.nat(70).map((length) => 'x'.repeat(length)) },
  { weight: 1, arbitrary: fc.tuple(fc.nat(40), bytes, fc.nat(20)).map(([before, odd, after]) => join('y'.repeat(before), odd, 'z'.repeat(after))) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.nat(34),
        fc.constantFrom('00', '23', '2b', '7f', '80', 'c080', 'c1bf', 'c280', 'dfbf', 'e08080', 'e09fbf', 'e0a080', 'ed9fbf', 'eda080', 'edbfbf'),
        fc.constantFrom('', 'eebfbf', 'efbfbf', 'f0808080', 'f08fbfbf', 'f0908080', 'f48fbfbf', 'f4908080', 'f5808080', 'ff', 'e282', 'f09f98', 'c2'),
        fc.nat(34),
      )
      .map(([before, one, other, after]) => join('y'.repeat(before), fromHex(one), fromHex(other), 'z'.repeat(after))),
  },
  { weight: 1, arbitrary: lengthy },
  { weight: 1, arbitrary: bytes },
)

function fromHex(digits: string): Uint8Array {
  return new Uint8Array(Buffer.from(digits, 'hex'))
}

const number = fc.oneof(fc.constantFrom(0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455), fc.nat(300))
/** Variable byte integers, some in more bytes than they need, some that never end. */
const lengths = fc.oneof(
  { weight: 6, arbitrary: number.map(variable) },
  {
    weight: 1,
    arbitrary: fc.constantFrom([0], [0x80, 0], [0x81, 0], [0x80, 0x80, 0x80, 0x80, 1], [0x81, 0x80, 0x80, 0x80, 0x10], [0xff, 0xff, 0xff, 0xff]),
  },
  { weight: 1, arbitrary: fc.array(byte, { maxLength: 5 }) },
)
/** Bytes that make a length longer than it needs to be; mostly none. */
const padding = fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 4 }) })

function padded(value: number, by: number): number[] {
  const shortest = variable(value)
  return by === 0 ? shortest : [...shortest.slice(0, -1), (shortest.at(-1) as number) | 128, ...new Array<number>(by - 1).fill(128), 0]
}
const pair = fc.tuple(text, text).map(([name, value]) => join(38, field(name), field(value)))
const property: fc.Arbitrary<Uint8Array> = fc.oneof(
  { weight: 4, arbitrary: pair },
  { weight: 2, arbitrary: lengths.map((value) => join(11, value)) },
  { weight: 1, arbitrary: fc.nat(2).map((value) => join(1, value)) },
  { weight: 1, arbitrary: fc.constantFrom(2, 24).map((id) => join(id, 0, 1, 2, 3)) },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(3, 8, 9), text).map(([id, value]) => join(id, field(value))) },
  { weight: 2, arbitrary: fc.nat(3).map((value) => join(35, two(value))) },
  { weight: 1, arbitrary: fc.tuple(byte, bytes).map(([id, value]) => join(id, value)) },
)

const shape = fc.record({
  flags: fc.oneof({ weight: 6, arbitrary: fc.constantFrom(0, 1, 2, 3, 4, 10, 13) }, { weight: 1, arbitrary: fc.nat(15) }),
  topic: fc.oneof({ weight: 8, arbitrary: text }, { weight: 1, arbitrary: fc.constant('') }),
  id: fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 1, max: 65_535 }) }, { weight: 1, arbitrary: fc.constant(0) }),
  properties: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 4, arbitrary: fc.uniqueArray(property, { maxLength: 4, selector: ([id]) => (id === 38 ? Symbol() : id) }) },
    { weight: 1, arbitrary: fc.array(property, { maxLength: 6 }) },
  ),
  /** Added to the Property Length. */
  off: fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: -2, max: 2 }) }),
  /** Bytes that lack at the end, though the Remaining Length is right. */
  short: fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  paddings: fc.tuple(padding, padding),
  payload: fc.oneof(
    { weight: 9, arbitrary: fc.constant(0) },
    { weight: 20, arbitrary: fc.nat(30) },
    { weight: 3, arbitrary: fc.nat(600) },
    { weight: 3, arbitrary: fc.constantFrom(90, 110, 120) },
    { weight: 1, arbitrary: fc.constantFrom(16_370, 17_000, 65_500, 65_530, 70_000) },
  ),
})

function publish(version: 4 | 5): fc.Arbitrary<Uint8Array> {
  return shape.map(({ flags, topic, id, properties, off, short, paddings, payload }) => {
    const section = join(...properties)
    const length = version === 5 ? padded(Math.max(0, section.length + off), paddings[0]) : []
    const body = join(field(topic), (flags & 6) > 0 ? two(id) : [], length, version === 5 ? section : [], new Uint8Array(payload).fill(0x70))
    const cut = body.subarray(0, Math.max(0, body.length - short))
    return join(0x30 | flags, padded(cut.length, paddings[1]), cut)
  })
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom(...mutationKinds),
  at: fc.nat(longest),
  value: fc.nat(65_535),
  size: fc.nat(255),
})

/** The bytes of a stream. */
function content(version: 4 | 5): fc.Arbitrary<Uint8Array> {
  const one = fc.oneof(
    { weight: 10, arbitrary: publish(version) },
    { weight: 3, arbitrary: serverPacket(version) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 12 }) },
  )
  return fc.tuple(fc.array(one, { maxLength: 24 }), fc.oneof(fc.constant([]), fc.array(mutation, { maxLength: 3 }))).map(([packets, mutations]) => {
    const whole = join(...packets)
    return whole.length > longest ? whole : mutations.reduce((changed, each) => mutate(changed, 0, each), whole)
  })
}

const cut = fc.record(
  {
    size: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 3000 }), fc.constant(65_536)),
    form: fc.constantFrom(...transportForms),
    inPlace: fc.boolean(),
    apart: fc.boolean(),
    viewed: fc.boolean(),
    keepAfter: fc.nat(6),
    change: fc.record({
      maximumPacketSize: fc.constantFrom(20, 60, 268_435_460),
      protocolVersion: fc.constantFrom(4 as const, 5 as const),
    }),
  },
  { requiredKeys: ['size', 'form', 'inPlace', 'viewed', 'apart'] },
)

/** Cuts the bytes into deliveries, using the cuts again and again. */
function delivered(whole: Uint8Array, cuts: readonly ({ readonly size: number } & Omit<Delivery, 'bytes'>)[]): Delivery[] {
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
    fc.constantFrom(4 as const, 5 as const, 5 as const, 5 as const),
    limit,
    fc.array(cut, { minLength: 1, maxLength: 5 }),
    fc.boolean(),
    fc.boolean(),
  )
  .chain(([protocolVersion, maximumPacketSize, cuts, splits, skips]) =>
    content(protocolVersion).map((whole) => ({
      setting: { protocolVersion, maximumPacketSize, splits, skips },
      deliveries: delivered(whole, cuts),
      [fc.toStringMethod]: () =>
        `${JSON.stringify({ protocolVersion, maximumPacketSize, splits, skips, cuts })} ${hex(whole.subarray(0, 4000))}${whole.length > 4000 ? `… (${whole.length})` : ''}`,
    })),
  )
