/**
 * Inputs for fast-check: valid sessions of a server, or of a client, each with a few changes; they print as hexadecimal.
 *
 * What is valid is built by `build.ts`. Identifiers and topics are few, so that packets meet exchanges that exist.
 */
import fc from 'fast-check'
import {
  acknowledge,
  answer,
  auth,
  connack,
  connect,
  disconnect,
  given,
  hex,
  join,
  type Pairs,
  pingreq,
  pingresp,
  publish,
  subscribe,
  unsubscribe,
} from './build.js'
import { longest, type Mutation, mutate, mutationKinds } from './mutate.js'
import { headerLength } from './session.js'

/** One of several, each as often as its number says. */
export function weighted<T>(
  ...parts: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]
): fc.Arbitrary<T> {
  return fc.oneof(...parts.map(([weight, arbitrary]) => ({ weight, arbitrary })))
}

/** An input that prints itself. */
export class Input {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  [fc.toStringMethod](): string {
    return hex(this.bytes)
  }
}

const byte = fc.nat(255)
const id = fc.integer({ min: 1, max: 6 })
const topic = fc.constantFrom('t', 'a/b', 'ü', 'l', '$SYS/x', 'mqwire/answers')
const filter = fc.constantFrom('t', '#', 'a/+', '$share/g/t', '+/b')
const text = fc.constantFrom('', 'x', 'text', 'ü/日', '\u{1f600}')
const reason = fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x87, 0x91, 0x92, 0x97)

const property = fc.oneof(
  fc.tuple(fc.constantFrom(1, 2, 35, 11), fc.integer({ min: 1, max: 3 })),
  fc.tuple(fc.constantFrom(3, 8, 9), text),
  fc.tuple(fc.constant(38), text, text),
)
const pairs: fc.Arbitrary<Pairs> = fc.uniqueArray(property, {
  maxLength: 3,
  selector: ([name]) => name,
})
const reasons: fc.Arbitrary<Pairs> = fc.constantFrom([], [], [[31, 'why']], [[38, 'k', 'v']])
const limits: fc.Arbitrary<Pairs> = fc.constantFrom<Pairs[]>(
  [],
  given([33, 2], [34, 2]),
  given([39, 40]),
  given([18, 'given'], [19, 7]),
  given([21, 'm']),
)
const method = given([21, 'm'])

type Version = 4 | 5
type Bytes = fc.Arbitrary<Uint8Array>

function published(version: Version): Bytes {
  const shape = fc.record({
    qos: fc.constantFrom(0, 1, 2),
    dup: fc.boolean(),
    retain: fc.boolean(),
    id,
    pairs,
  })
  return fc.tuple(topic, text, shape).map(([name, payload, details]) => {
    return publish({ version }, name, payload, { ...details, dup: details.dup && details.qos > 0 })
  })
}

const acknowledged = (version: Version): Bytes =>
  fc
    .tuple(fc.integer({ min: 4, max: 7 }), id, reason, reasons)
    .map((rest) => acknowledge({ version }, ...rest))

const answered = (version: Version): Bytes =>
  fc
    .tuple(
      fc.constantFrom(9 as const, 11 as const),
      id,
      fc.array(reason, { minLength: 1, maxLength: 2 }),
    )
    .map((rest) => answer({ version }, ...rest))

const disconnected = (version: Version, ...codes: number[]): Bytes =>
  fc.tuple(fc.constantFrom(...codes), reasons).map((rest) => disconnect({ version }, ...rest))

const authenticated = (...codes: number[]): Bytes =>
  fc.constantFrom(...codes).map((code) => auth(code, method))

/** A packet of a server. */
export function serverPacket(version: Version): Bytes {
  return weighted(
    [6, published(version)],
    [6, acknowledged(version)],
    [2, answered(version)],
    [1, fc.constant(pingresp)],
    [1, fc.tuple(fc.nat(1), reason, limits).map((rest) => connack({ version }, ...rest))],
    [1, disconnected(version, 0, 0x8b, 0x8e, 0x9c)],
    [version === 5 ? 1 : 0, authenticated(0, 0x18)],
  )
}

/** A packet of a client. */
export function clientPacket(version: Version): Bytes {
  const speaker = { version }
  const filters = fc.array(filter, { minLength: 1, maxLength: 3 })
  const subscriptions = fc.array(fc.tuple(filter, fc.nat(63)), { minLength: 1, maxLength: 3 })
  const will = join(0, 1, 120, 0, 1, 121)
  return weighted(
    [3, published(version)],
    [3, acknowledged(version)],
    [
      2,
      fc
        .tuple(text, byte, pairs)
        .map(([name, flags, given]) => connect(speaker, name, flags, 30, given, will)),
    ],
    [2, fc.tuple(id, subscriptions).map((rest) => subscribe(speaker, ...rest))],
    [1, fc.tuple(id, filters).map((rest) => unsubscribe(speaker, ...rest))],
    [1, fc.constant(pingreq)],
    [1, disconnected(version, 0, 4)],
    [version === 5 ? 1 : 0, authenticated(0x18, 0x19)],
  )
}

/** Flip, cut, splice, duplicate, swap, lengths, properties: see `mutate`. */
export const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom(...mutationKinds),
  at: fc.nat(longest),
  value: fc.nat(65_535),
  size: byte,
})
const mutations = fc.array(mutation, { maxLength: 6 })

const version: fc.Arbitrary<Version> = fc.constantFrom(5, 5, 4)

function changed(header: number): (parts: readonly [Uint8Array, readonly Mutation[]]) => Input {
  return ([bytes, list]) =>
    new Input(list.reduce((input, each) => mutate(input, header, each), bytes))
}

/** Inputs of the target `wire`. */
export const wireInputs: fc.Arbitrary<Input> = fc
  .tuple(version, fc.boolean(), fc.nat(3), byte)
  .chain(([speaks, isClient, limit, seed]) => {
    const packets = fc.array(isClient ? clientPacket(speaks) : serverPacket(speaks), {
      maxLength: 12,
    })
    const flags = (speaks === 4 ? 1 : 0) | (isClient ? 2 : 0) | (limit << 2)
    return fc.tuple(
      packets.map((list) => join(flags, seed, ...list)),
      mutations,
    )
  })
  .map(changed(2))

/** Inputs of the target `session`. */
export const sessionInputs: fc.Arbitrary<Input> = version
  .chain((speaks) => {
    const stream = fc.tuple(
      byte,
      fc.tuple(byte, byte, byte, byte, byte),
      fc.array(serverPacket(speaks), { maxLength: 30 }),
    )
    return fc.tuple(
      stream.map(([first, more, packets]) =>
        join((first & 0xfe) | (speaks === 4 ? 1 : 0), more, ...packets),
      ),
      mutations,
    )
  })
  .map(changed(headerLength))
