/**
 * Inputs for fast-check: valid sessions of a server, or of a client, and programs, each with a few changes; they print as hexadecimal.
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
  hex,
  join,
  type Pairs,
  pingreq,
  pingresp,
  publish,
  subscribe,
  unsubscribe,
} from './build.js'
import { operationNumbers } from './client-program.js'
import { setupLength } from './client-setup.js'
import { longest, type Mutation, mutate, mutationKinds } from './mutate.js'
import { headerLength } from './session.js'

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
const pairs: fc.Arbitrary<Pairs> = fc.uniqueArray(property, { maxLength: 3, selector: ([name]) => name })
const reasons: fc.Arbitrary<Pairs> = fc.constantFrom([], [], [[31, 'why']], [[38, 'k', 'v']])
const limits: fc.Arbitrary<Pairs> = fc.constantFrom(
  [],
  [
    [33, 2],
    [34, 2],
  ],
  [[39, 40]],
  [
    [18, 'given'],
    [19, 7],
  ],
  [[21, 'm']],
)

type Version = 4 | 5

function published(version: Version): fc.Arbitrary<Uint8Array> {
  const shape = fc.record({ qos: fc.constantFrom(0, 1, 2), dup: fc.boolean(), retain: fc.boolean(), id, pairs })
  return fc
    .tuple(topic, text, shape)
    .map(([name, payload, given]) => publish({ version }, name, payload, { ...given, dup: given.dup && given.qos > 0 }))
}

const acknowledged = (version: Version): fc.Arbitrary<Uint8Array> =>
  fc
    .tuple(fc.integer({ min: 4, max: 7 }), id, reason, reasons)
    .map(([type, number, code, more]) => acknowledge({ version }, type, number, code, more))

/** A packet of a server. */
export function serverPacket(version: Version): fc.Arbitrary<Uint8Array> {
  const speaker = { version }
  return fc.oneof(
    { weight: 6, arbitrary: published(version) },
    { weight: 6, arbitrary: acknowledged(version) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(fc.constantFrom(9 as const, 11 as const), id, fc.array(reason, { minLength: 1, maxLength: 2 }))
        .map(([type, number, codes]) => answer(speaker, type, number, codes)),
    },
    { weight: 1, arbitrary: fc.constant(pingresp) },
    { weight: 1, arbitrary: fc.tuple(fc.nat(1), reason, limits).map(([present, code, given]) => connack(speaker, present, code, given)) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(0, 0x8b, 0x8e, 0x9c), reasons).map(([code, given]) => disconnect(speaker, code, given)) },
    { weight: version === 5 ? 1 : 0, arbitrary: fc.constantFrom(0, 0x18).map((code) => auth(code, [[21, 'm']])) },
  )
}

/** A packet of a client. */
export function clientPacket(version: Version): fc.Arbitrary<Uint8Array> {
  const speaker = { version }
  return fc.oneof(
    { weight: 3, arbitrary: published(version) },
    { weight: 3, arbitrary: acknowledged(version) },
    {
      weight: 2,
      arbitrary: fc.tuple(text, byte, pairs).map(([name, flags, given]) => connect(speaker, name, flags, 30, given, join(0, 1, 120, 0, 1, 121))),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(id, fc.array(fc.tuple(filter, fc.nat(63)), { minLength: 1, maxLength: 3 }))
        .map(([number, list]) => subscribe(speaker, number, list)),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(id, fc.array(filter, { minLength: 1, maxLength: 3 })).map(([number, list]) => unsubscribe(speaker, number, list)),
    },
    { weight: 1, arbitrary: fc.constant(pingreq) },
    { weight: 1, arbitrary: fc.tuple(fc.constantFrom(0, 4), reasons).map(([code, given]) => disconnect(speaker, code, given)) },
    { weight: version === 5 ? 1 : 0, arbitrary: fc.constantFrom(0x18, 0x19).map((code) => auth(code, [[21, 'm']])) },
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
  return ([bytes, list]) => new Input(list.reduce((input, each) => mutate(input, header, each), bytes))
}

/** Inputs of the target `wire`. */
export const wireInputs: fc.Arbitrary<Input> = fc
  .tuple(version, fc.boolean(), fc.nat(3), byte)
  .chain(([speaks, isClient, limit, seed]) => {
    const packet = isClient ? clientPacket(speaks) : serverPacket(speaks)
    const flags = (speaks === 4 ? 1 : 0) | (isClient ? 2 : 0) | (limit << 2)
    return fc.tuple(
      fc.array(packet, { maxLength: 12 }).map((packets) => join(flags, seed, ...packets)),
      mutations,
    )
  })
  .map(changed(2))

/** Inputs of the target `session`. */
export const sessionInputs: fc.Arbitrary<Input> = version
  .chain((speaks) =>
    fc.tuple(
      fc
        .tuple(byte, fc.tuple(byte, byte, byte, byte, byte), fc.array(serverPacket(speaks), { maxLength: 30 }))
        .map(([first, more, packets]) => join((first & 0xfe) | (speaks === 4 ? 1 : 0), more, ...packets)),
      mutations,
    ),
  )
  .map(changed(headerLength))

const small = fc.oneof({ weight: 4, arbitrary: fc.nat(7) }, { weight: 1, arbitrary: byte })
const numbers = [...operationNumbers.values()]
const raw = operationNumbers.get('bytes') ?? 0

const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(fc.constantFrom(...numbers), fc.boolean(), fc.array(small, { maxLength: 5 }))
      .map(([number, hasty, given]) => join(number | (hasty ? 0x80 : 0), given)),
  },
  { weight: 2, arbitrary: fc.constantFrom('answer all', 'wait').map((name) => join(operationNumbers.get(name) ?? 0, name === 'wait' ? 2 : [])) },
  {
    weight: 2,
    arbitrary: version.chain(serverPacket).map((packet) => join(raw, Math.min(31, packet.length - 1), packet.subarray(0, 32))),
  },
)

const setting = fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: byte }), {
  minLength: setupLength,
  maxLength: setupLength,
})
const begins = join(operationNumbers.get('connect') ?? 0, 0, operationNumbers.get('wait') ?? 0, 2)

/** Inputs of the target `client`: most connect first. */
export const clientInputs: fc.Arbitrary<Input> = fc
  .tuple(
    fc
      .tuple(setting, fc.constantFrom(begins, begins, begins, new Uint8Array(0)), fc.array(operation, { maxLength: 40 }))
      .map(([setup, start, list]) => join(setup, start, ...list)),
    fc.array(mutation, { maxLength: 2 }),
  )
  .map(changed(setupLength))
