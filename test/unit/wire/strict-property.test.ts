/**
 * Ours against a second decoder: the same bytes are taken, with the same fields, or refused by both.
 *
 * The bytes are put together from fields that fit, nearly fit, or do not: most packets have the right lengths, so that what is wrong lies deep.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput } from '../../../src/wire/index.js'
import { Decoder, decode, encode, WireError } from '../../../src/wire/index.js'
import { samples } from './arbitrary-packets.js'
import { referenceDecode } from './reference-decoder.js'
import { bytesOf, plain, readVectors, senderOf } from './vector-files.js'

type Sender = 'client' | 'server'
type Hex = fc.Arbitrary<string>

function ours(bytes: Uint8Array, from: Sender, protocolVersion: 4 | 5): Packet | undefined {
  try {
    return decode(bytes, { from, protocolVersion })
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

function reference(bytes: Uint8Array, from: Sender, version: 4 | 5): unknown {
  try {
    return referenceDecode(bytes, from, version)
  } catch {
    return undefined
  }
}

/** Both say the same; what they take can be encoded, and is then the same packet. Gives whether it was taken. */
function compare(bytes: Uint8Array, from: Sender, version: 4 | 5): boolean {
  const packet = ours(bytes, from, version)
  const expected = reference(bytes, from, version)
  const shown = Buffer.from(bytes).toString('hex')
  const found = packet === undefined ? undefined : plain(packet)
  if (!isDeepStrictEqual(found, expected)) expect(found, `${shown} from a ${from}, version ${version}`).toEqual(expected)
  if (packet === undefined) return false
  const again = encode(packet as PacketInput, { protocolVersion: version })
  const second = plain(decode(again, { from, protocolVersion: version }))
  if (!isDeepStrictEqual(second, expected) || again.length > bytes.length) expect([second, shown]).toEqual([expected, 'the same, and no longer'])
  return true
}

const hexOf = (bytes: Uint8Array | number[]): string => Buffer.from(bytes).toString('hex')
const uint = (size: number, value: number): string => value.toString(16).padStart(size * 2, '0')
const choice = (...values: string[]): Hex => fc.constantFrom(...values)

function varint(value: number): string {
  const bytes: number[] = []
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128)
  return hexOf([...bytes, value])
}

/** A field with its length in front: mostly the right one. */
const prefixed = (content: Hex): Hex =>
  fc
    .tuple(content, fc.integer({ min: -1, max: 30 }))
    .map(([hex, slip]) => uint(2, Math.max(0, hex.length / 2 + (slip === 0 ? 1 : slip < 0 ? -1 : 0))) + hex)

const block = (content: Hex): Hex =>
  fc
    .tuple(content, fc.integer({ min: 0, max: 40 }))
    .map(([hex, slip]) => (slip === 0 ? varint(hex.length / 2 + 1) : slip === 1 ? '8000' : varint(hex.length / 2)) + hex)

const words = [
  'a',
  '',
  'a/b',
  '/',
  '+',
  '#',
  'a+',
  'a/#',
  '$share/g/a',
  '$share/g',
  '$share/+/a',
  '$share//a',
  '$share/g/',
  '$share',
  'ü',
  '日/+',
  '😀',
  'MQTT',
]
const wild = [
  '+a',
  '#/a',
  'a/#/b',
  '$SYS/#',
  '$share/g/#',
  '$share/g#/a',
  '$share/g/a#',
  '$sharea/+',
  '$share/g//',
  '+/+',
  'a\nb',
  '\ufeff',
  '\u0001',
  '\uffff',
]
const spoiled = ['00', '6100', 'c080', 'eda080', 'edbfbf', 'ff', 'c3', 'f4908080', 'e282', '80', 'f0808080', 'f8888080', 'c1bf', 'e08080']
const text: Hex = prefixed(
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...words).map((word) => hexOf(Buffer.from(word))) },
    { weight: 3, arbitrary: fc.constantFrom(...wild).map((word) => hexOf(Buffer.from(word))) },
    { weight: 1, arbitrary: choice(...spoiled) },
  ),
)
const simple: Hex = fc.oneof({ weight: 9, arbitrary: choice('000161', '0000', '0002c3bc') }, { weight: 1, arbitrary: text })
const binary: Hex = prefixed(fc.uint8Array({ maxLength: 4 }).map(hexOf))
const byte: Hex = fc.integer({ min: 0, max: 255 }).map((value) => uint(1, value))
const packetId: Hex = fc.oneof({ weight: 12, arbitrary: choice('0001', 'ffff', '1234') }, { weight: 1, arbitrary: choice('0000', '00', '') })
const number = (size: number): Hex => choice(uint(size, 0), uint(size, 1), uint(size, 2), 'ff'.repeat(size))
const identifier: Hex = choice('01', '7f', '8001', 'ffffff7f', '00', '8100', '8080808001', '80')

const kinds: Record<number, Hex> = {}
for (const id of [1, 23, 25, 36, 37, 40, 41, 42])
  kinds[id] = fc.oneof({ weight: 6, arbitrary: choice('00', '01') }, { weight: 1, arbitrary: choice('02', '03', 'ff') })
for (const id of [19, 33, 34, 35]) kinds[id] = number(2)
for (const id of [2, 17, 24, 39]) kinds[id] = number(4)
for (const id of [3, 18, 21, 26, 28, 31]) kinds[id] = simple
for (const id of [9, 22]) kinds[id] = binary
kinds[8] = text
kinds[11] = identifier
kinds[38] = fc.tuple(simple, simple).map((pair) => pair.join(''))

/** The identifiers that fit a packet, mostly; sometimes any. */
function properties(...fitting: number[]): Hex {
  const known = fc.oneof(
    { weight: 25, arbitrary: fc.constantFrom(...fitting, 38) },
    { weight: 1, arbitrary: fc.constantFrom(...Object.keys(kinds).map(Number)) },
  )
  const one = known.chain((id) => (kinds[id] as Hex).map((value) => uint(1, id) + value))
  const odd = choice('00', '04', '7f00', 'a60100', '2b01')
  return block(fc.array(fc.oneof({ weight: 60, arbitrary: one }, { weight: 1, arbitrary: odd }), { maxLength: 3 }).map((parts) => parts.join('')))
}

const sequence = (...parts: Hex[]): Hex => fc.tuple(...parts).map((hexes) => hexes.join(''))
const rarely = (part: Hex, weight = 15): Hex => fc.oneof({ weight, arbitrary: fc.constant('') }, { weight: 1, arbitrary: part })
const sometimes = (part: Hex): Hex => fc.oneof(fc.constant(''), part)
const several = (part: Hex): Hex => fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''))

const willProperties = properties(1, 2, 3, 8, 9, 24)
const five = { connect: properties(17, 21, 22, 23, 25, 33, 34, 39), ack: properties(31) }
/** Flags with a body that they announce. */
const connect = (version: 4 | 5): Hex =>
  fc
    .tuple(fc.oneof({ weight: 6, arbitrary: fc.constantFrom(0x02, 0x00, 0x82, 0xc2, 0x06, 0x0e, 0x36, 0xe6) }, { weight: 1, arbitrary: fc.nat(255) }))
    .chain(([flags]) => {
      const will = (flags & 4) > 0 ? [version === 5 ? willProperties : fc.constant(''), text, binary] : []
      const credentials = [...((flags & 0x80) > 0 ? [simple] : []), ...((flags & 0x40) > 0 ? [binary] : [])]
      const name = fc.oneof(
        { weight: 30, arbitrary: fc.constant(`00044d515454${uint(1, version)}`) },
        { weight: 1, arbitrary: choice('00044d51545403', '00044d51545406', '00064d514973647003', '00044d51545805') },
      )
      return sequence(name, fc.constant(uint(1, flags)), number(2), version === 5 ? five.connect : fc.constant(''), simple, ...will, ...credentials)
    })

const acknowledgement = (version: 4 | 5): Hex =>
  version === 4 ? packetId : fc.oneof(packetId, sequence(packetId, code), sequence(packetId, code, five.ack))
const code: Hex = fc.oneof({ weight: 3, arbitrary: choice('00', '80', '87', '92', '97', '10', '04', '8e') }, { weight: 2, arbitrary: byte })
const fourCode: Hex = choice('00', '01', '02', '80', '03', '05', '06', '81')
const options: Hex = fc.oneof(
  { weight: 5, arbitrary: choice('00', '01', '02') },
  { weight: 2, arbitrary: byte },
  { weight: 1, arbitrary: choice('2e', '1d', '04', '29') },
)

const bodies: Record<string, (version: 4 | 5) => [first: fc.Arbitrary<number>, body: Hex]> = {
  connect: (version) => [fc.constant(0x10), connect(version)],
  connack: (version) => [
    fc.constant(0x20),
    version === 4
      ? sequence(choice('00', '01'), fourCode)
      : sequence(choice('00', '00', '01', '02'), code, properties(17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 39, 40, 41, 42)),
  ],
  publish: (version) => [
    fc.integer({ min: 0x30, max: 0x3f }),
    sequence(text, sometimes(packetId), version === 5 ? properties(1, 2, 3, 8, 9, 11, 35) : fc.constant(''), rarely(byte, 1)),
  ],
  acknowledgement: (version) => [fc.constantFrom(0x40, 0x50, 0x62, 0x70), acknowledgement(version)],
  subscribe: (version) => [fc.constant(0x82), sequence(packetId, version === 5 ? properties(11) : fc.constant(''), several(sequence(text, options)))],
  unsubscribe: (version) => [fc.constant(0xa2), sequence(packetId, version === 5 ? properties(38) : fc.constant(''), several(text))],
  suback: (version) => [
    fc.constantFrom(0x90, 0xb0),
    version === 5 ? sequence(packetId, five.ack, several(code)) : sequence(packetId, sometimes(several(fourCode))),
  ],
  disconnect: () => [fc.constant(0xe0), fc.oneof(fc.constant(''), code, sequence(code, properties(17, 28, 31)))],
  auth: () => [
    fc.constant(0xf0),
    fc.oneof({ weight: 1, arbitrary: fc.constant('') }, { weight: 8, arbitrary: sequence(choice('00', '18', '19'), properties(21, 21, 21, 22, 31)) }),
  ],
  ping: () => [fc.constantFrom(0xc0, 0xd0), fc.constant('')],
}

/** A packet of a kind: as it should be framed, or with a wrong flag, a byte more, a byte less. */
function framed(kind: string, version: 4 | 5): fc.Arbitrary<Uint8Array> {
  const [first, body] = (bodies[kind] as (version: 4 | 5) => [fc.Arbitrary<number>, Hex])(version)
  return fc.tuple(first, body, rarely(byte, 30), fc.integer({ min: 0, max: 60 })).map(([byte0, hex, tail, slip]) => {
    const content = hex + tail
    const kept = slip === 0 ? content.slice(0, -2) : content
    return Uint8Array.from(Buffer.from(uint(1, slip === 1 ? byte0 ^ 1 : byte0) + varint(kept.length / 2) + kept, 'hex'))
  })
}

const froms = ['client', 'server'] as const

describe('a second decoder', () => {
  for (const version of [5, 4] as const) {
    for (const kind of Object.keys(bodies)) {
      it(`agrees on ${kind} of version ${version}, byte for byte and field for field`, () => {
        let taken = 0
        fc.assert(
          fc.property(framed(kind, version), fc.constantFrom(...froms), (bytes, from) => {
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

  it('agrees on valid packets that were changed in one or two places', () => {
    const change = fc.record({ at: fc.nat(), value: fc.integer({ min: 0, max: 255 }), kind: fc.constantFrom('set', 'insert', 'remove') })
    let taken = 0
    fc.assert(
      fc.property(samples, fc.array(change, { minLength: 1, maxLength: 2 }), (sample, changes) => {
        const whole = encode(sample.packet as PacketInput, sample)
        let header = 2
        while ((whole[header - 1] as number) > 127) header++
        const body = [...whole.subarray(header)]
        for (const { at, value, kind } of changes) {
          if (kind === 'set') body[at % (body.length + 1)] = value
          else body.splice(at % (body.length + 1), kind === 'remove' ? 1 : 0, ...(kind === 'insert' ? [value] : []))
        }
        // The length is put right, so that the change is what is wrong.
        const bytes = Uint8Array.from(Buffer.from(uint(1, whole[0] as number) + varint(body.length) + hexOf(body), 'hex'))
        if (compare(bytes, sample.from, sample.protocolVersion)) taken++
      }),
      { numRuns: 3000 },
    )
    expect(taken).toBeGreaterThan(200)
  })

  it('agrees on every packet whose body has no more than one byte, and on every first byte', () => {
    for (const from of froms) {
      for (let first = 0; first < 256; first++) {
        for (const version of [4, 5] as const) compare(Uint8Array.of(first, 0), from, version)
        const step = [0x40, 0xc0, 0xd0, 0xe0, 0xf0].includes(first) ? 1 : 51
        for (let body = 0; body < 256; body += step) compare(Uint8Array.of(first, 1, body), from, 5)
      }
    }
  })

  it('agrees with the vectors, so that it can be believed', () => {
    for (const vector of readVectors('../../rules/vectors.json')) {
      if (vector.fill !== undefined || vector.name.startsWith('stream-') || vector.layer === 'session' || vector.error === 'Incomplete') continue
      const found = reference(bytesOf(vector), senderOf(vector), 5)
      expect(found, vector.name).toEqual(vector.valid ? vector.decoded : undefined)
    }
    for (const vector of readVectors('./vectors-311.json')) {
      const found = reference(bytesOf(vector), senderOf(vector), 4)
      expect(found, vector.name).toEqual(vector.valid ? vector.decoded : undefined)
    }
  })
})

describe('Decoder and decode', () => {
  it('say the same of every packet that is put together, and the Decoder goes on behind a good one', () => {
    const any = fc.constantFrom(...Object.keys(bodies)).chain((kind) => framed(kind, 5))
    fc.assert(
      fc.property(any, fc.constantFrom(...froms), (bytes, from) => {
        const packet = ours(bytes, from, 5)
        if (packet?.type === 'connect' && packet.protocolVersion === 4) return
        const decoder = new Decoder({ from })
        const publish = Buffer.from('300400016100', 'hex')
        const stream = Buffer.concat([publish, bytes, publish])
        const packets: Packet[] = []
        let error: unknown
        try {
          for (const one of decoder.push(stream)) packets.push(one)
        } catch (caught) {
          error = caught
        }
        if (packet !== undefined) expect([packets.length, plain(packets[1]), error]).toEqual([3, plain(packet), undefined])
        // A length that is wrong may hold what follows: then the Decoder sees a longer packet.
        else if (error !== undefined) expect(error).toBeInstanceOf(WireError)
        expect(plain(packets[0])).toEqual(plain(decode(publish, { from })))
      }),
      { numRuns: 1500 },
    )
  })
})
