/**
 * Ours against a second decoder: the same bytes are taken, with the same fields, or refused by both.
 *
 * The bytes are put together from fields that fit, nearly fit, or do not: most packets have the right lengths, so that what is wrong lies deep.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput } from '../../../src/wire/index.js'
import { decode, encode, WireError } from '../../../src/wire/index.js'
import { weighted } from '../../fuzz/arbitraries.js'
import { samples } from './arbitrary-packets.js'
import { hexOf, type Sender, senders, uint, type Version, varint } from './hex.js'
import { referenceDecode } from './reference-decoder.js'
import { plain } from './vector-files.js'

type Hex = fc.Arbitrary<string>

function ours(bytes: Uint8Array, from: Sender, protocolVersion: Version): Packet | undefined {
  try {
    return decode(bytes, { from, protocolVersion })
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

function reference(bytes: Uint8Array, from: Sender, version: Version): unknown {
  try {
    return referenceDecode(bytes, from, version)
  } catch {
    return undefined
  }
}

/** Both say the same; what they take can be encoded, and is then the same packet. Gives whether it was taken. */
function compare(bytes: Uint8Array, from: Sender, version: Version): boolean {
  const packet = ours(bytes, from, version)
  const expected = reference(bytes, from, version)
  const shown = Buffer.from(bytes).toString('hex')
  const found = packet === undefined ? undefined : plain(packet)
  if (!isDeepStrictEqual(found, expected))
    expect(found, `${shown} from a ${from}`).toEqual(expected)
  if (packet === undefined) return false
  const again = encode(packet as PacketInput, { protocolVersion: version })
  const second = plain(decode(again, { from, protocolVersion: version }))
  if (!isDeepStrictEqual(second, expected)) expect(second, shown).toEqual(expected)
  if (again.length > bytes.length) expect(hexOf(again), 'no longer').toBe(shown)
  return true
}

const choice = (...values: string[]): Hex => fc.constantFrom(...values)
const words = (texts: string[]): Hex =>
  fc.constantFrom(...texts).map((text) => hexOf(Buffer.from(text)))
const mostly = (...parts: [weight: number, arbitrary: Hex][]): Hex => weighted(...parts)

/** A field with its length in front: mostly the right one. */
const prefixed = (content: Hex): Hex =>
  fc.tuple(content, fc.integer({ min: -1, max: 30 })).map(([hex, slip]) => {
    const off = slip === 0 ? 1 : Math.min(slip, 0)
    return uint(2, Math.max(0, hex.length / 2 + off)) + hex
  })

const block = (content: Hex): Hex =>
  fc.tuple(content, fc.integer({ min: 0, max: 40 })).map(([hex, slip]) => {
    return (slip === 1 ? '8000' : varint(hex.length / 2 + (slip === 0 ? 1 : 0))) + hex
  })

const usual = ['a', '', 'a/b', '/', '+', '#', 'a+', 'a/#', 'ü', '日/+', '😀', 'MQTT']
const shared = ['$share/g/a', '$share/g', '$share/+/a', '$share//a', '$share/g/', '$share']
const wild = [
  '+a',
  '#/a',
  'a/#/b',
  '$SYS/#',
  '$sharea/+',
  '+/+',
  'a\nb',
  '\ufeff',
  '\u0001',
  '\uffff',
]
const wildShares = ['$share/g/#', '$share/g#/a', '$share/g/a#', '$share/g//']
const spoiled =
  '00 6100 c080 eda080 edbfbf ff c3 f4908080 e282 80 f0808080 f8888080 c1bf e08080'.split(' ')
const good = words([...usual, ...shared])
const text: Hex = prefixed(
  mostly([8, good], [3, words([...wild, ...wildShares])], [1, choice(...spoiled)]),
)
const simple: Hex = mostly([9, choice('000161', '0000', '0002c3bc')], [1, text])
const binary: Hex = prefixed(fc.uint8Array({ maxLength: 4 }).map(hexOf))
const byte: Hex = fc.integer({ min: 0, max: 255 }).map((value) => uint(1, value))
const packetId: Hex = mostly([12, choice('0001', 'ffff', '1234')], [1, choice('0000', '00', '')])
const number = (size: number): Hex =>
  choice(uint(size, 0), uint(size, 1), uint(size, 2), 'ff'.repeat(size))
const identifier: Hex = choice('01', '7f', '8001', 'ffffff7f', '00', '8100', '8080808001', '80')

const flag: Hex = mostly([6, choice('00', '01')], [1, choice('02', '03', 'ff')])
const pair = fc.tuple(simple, simple).map((both) => both.join(''))
const kinds: Record<number, Hex> = { 8: text, 11: identifier, 38: pair }
for (const id of [1, 23, 25, 36, 37, 40, 41, 42]) kinds[id] = flag
for (const id of [19, 33, 34, 35]) kinds[id] = number(2)
for (const id of [2, 17, 24, 39]) kinds[id] = number(4)
for (const id of [3, 18, 21, 26, 28, 31]) kinds[id] = simple
for (const id of [9, 22]) kinds[id] = binary

/** The identifiers that fit a packet, mostly; sometimes any. */
function properties(...fitting: number[]): Hex {
  const any = fc.constantFrom(...Object.keys(kinds).map(Number))
  const known = weighted([25, fc.constantFrom(...fitting, 38)], [1, any])
  const one = known.chain((id) => (kinds[id] as Hex).map((value) => uint(1, id) + value))
  const odd = choice('00', '04', '7f00', 'a60100', '2b01')
  return block(
    fc.array(mostly([60, one], [1, odd]), { maxLength: 3 }).map((parts) => parts.join('')),
  )
}

const sequence = (...parts: Hex[]): Hex => fc.tuple(...parts).map((hexes) => hexes.join(''))
const nothing = fc.constant('')
const rarely = (part: Hex, weight = 15): Hex => mostly([weight, nothing], [1, part])
const sometimes = (part: Hex): Hex => fc.oneof(nothing, part)
const several = (part: Hex): Hex =>
  fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''))

/** A property block, which 3.1.1 has not. */
const five = (version: Version, ...fitting: number[]): Hex =>
  version === 5 ? properties(...fitting) : nothing
/** Flags with a body that they announce. */
function connect(version: Version): Hex {
  const usualFlags = fc.constantFrom(0x02, 0x00, 0x82, 0xc2, 0x06, 0x0e, 0x36, 0xe6)
  const flags = weighted([6, usualFlags], [1, fc.nat(255)])
  const otherNames = choice(
    '00044d51545403',
    '00044d51545406',
    '00064d514973647003',
    '00044d51545805',
  )
  const name = mostly([30, fc.constant(`00044d515454${uint(1, version)}`)], [1, otherNames])
  return flags.chain((bits) => {
    const will = (bits & 4) > 0 ? [five(version, 1, 2, 3, 8, 9, 24), text, binary] : []
    const credentials = [(bits & 0x80) > 0 ? simple : nothing, (bits & 0x40) > 0 ? binary : nothing]
    const own = five(version, 17, 21, 22, 23, 25, 33, 34, 39)
    const head = [name, fc.constant(uint(1, bits)), number(2), own, simple]
    return sequence(...head, ...will, ...credentials)
  })
}

const code: Hex = mostly([3, choice('00', '80', '87', '92', '97', '10', '04', '8e')], [2, byte])
const fourCode: Hex = choice('00', '01', '02', '80', '03', '05', '06', '81')
const options: Hex = mostly(
  [5, choice('00', '01', '02')],
  [2, byte],
  [1, choice('2e', '1d', '04', '29')],
)
const reason = properties(31)
const connackProperties = properties(17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 39, 40, 41, 42)

const answers = sequence(reason, several(code))
const acknowledged = [packetId, sequence(packetId, code), sequence(packetId, code, reason)]
const connacks = {
  4: sequence(choice('00', '01'), fourCode),
  5: sequence(choice('00', '00', '01', '02'), code, connackProperties),
}
const authProperties = properties(21, 21, 21, 22, 31)

/** By kind of packet: the first byte, and bodies. */
const bodies: Record<string, (version: Version) => [first: readonly number[], body: Hex]> = {
  connect: (version) => [[0x10], connect(version)],
  connack: (version) => [[0x20], connacks[version]],
  publish: (version) => [
    Array.from({ length: 16 }, (_, low) => 0x30 + low),
    sequence(text, sometimes(packetId), five(version, 1, 2, 3, 8, 9, 11, 35), rarely(byte, 1)),
  ],
  acknowledgement: (version) => [
    [0x40, 0x50, 0x62, 0x70],
    version === 4 ? packetId : fc.oneof(...acknowledged),
  ],
  subscribe: (version) => [
    [0x82],
    sequence(packetId, five(version, 11), several(sequence(text, options))),
  ],
  unsubscribe: (version) => [[0xa2], sequence(packetId, five(version, 38), several(text))],
  suback: (version) => [
    [0x90, 0xb0],
    sequence(packetId, version === 5 ? answers : sometimes(several(fourCode))),
  ],
  disconnect: () => [[0xe0], fc.oneof(nothing, code, sequence(code, properties(17, 28, 31)))],
  auth: () => [
    [0xf0],
    mostly([1, nothing], [8, sequence(choice('00', '18', '19'), authProperties)]),
  ],
  ping: () => [[0xc0, 0xd0], nothing],
}

/** A packet of a kind: as it should be framed, or with a wrong flag, a byte more, a byte less. */
function framed(kind: string, version: Version): fc.Arbitrary<Uint8Array> {
  const [firsts, body] = (bodies[kind] as (typeof bodies)[string])(version)
  const first = fc.constantFrom(...firsts)
  return fc
    .tuple(first, body, rarely(byte, 30), fc.integer({ min: 0, max: 60 }))
    .map(([byte0, hex, tail, slip]) => {
      const content = hex + tail
      const kept = slip === 0 ? content.slice(0, -2) : content
      return Uint8Array.from(
        Buffer.from(
          uint(1, slip === 1 ? byte0 ^ 1 : byte0) + varint(kept.length / 2) + kept,
          'hex',
        ),
      )
    })
}

describe('a second decoder', () => {
  for (const version of [5, 4] as const) {
    for (const kind of Object.keys(bodies)) {
      it(`agrees on ${kind} of version ${version}, byte for byte and field for field`, () => {
        let taken = 0
        fc.assert(
          fc.property(framed(kind, version), fc.constantFrom(...senders), (bytes, from) => {
            if (compare(bytes, from, version)) taken++
          }),
          { numRuns: 1000 },
        )
        // Or what is taken was not tried at all.
        const exists = !(version === 4 && kind === 'auth')
        expect(taken > 0).toBe(exists)
      })
    }
  }

  it('agrees on every packet whose body has no more than one byte, and on every first byte', () => {
    for (const from of senders) {
      for (let first = 0; first < 256; first++) {
        for (const version of [4, 5] as const) compare(Uint8Array.of(first, 0), from, version)
        const step = [0x40, 0xc0, 0xd0, 0xe0, 0xf0].includes(first) ? 1 : 51
        for (let body = 0; body < 256; body += step) compare(Uint8Array.of(first, 1, body), from, 5)
      }
    }
  })
})

describe('any valid packet', () => {
  it('is incomplete at each cut, never wrong', () => {
    fc.assert(
      fc.property(samples, (sample) => {
        const bytes = encode(sample.packet as PacketInput, sample)
        for (let length = 0; length < Math.min(bytes.length, 60); length++) {
          const incomplete = expect.objectContaining({ kind: 'incomplete', reasonCode: undefined })
          expect(() => decode(bytes.subarray(0, length), sample)).toThrow(incomplete)
        }
      }),
      { numRuns: 500 },
    )
  })
})
