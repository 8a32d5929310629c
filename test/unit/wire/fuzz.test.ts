import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput } from '../../../src/wire/index.js'
import { Decoder, decode, encode, WireError } from '../../../src/wire/index.js'
import type { Sample } from './arbitrary-packets.js'
import { samples } from './arbitrary-packets.js'
import { byteForms, formNames, type Lend } from './byte-forms.js'
import { plain } from './vector-files.js'

const kinds = ['malformed', 'protocol', 'too-large']
const limit = 2000

interface Result {
  packets: unknown[]
  error: unknown
}

/** Everything that can be asked of the Decoder for any bytes, checked at each step. */
function run(bytes: Uint8Array, sizes: number[], options: { from: 'client' | 'server'; protocolVersion: 4 | 5 }, form = 'a Uint8Array'): Result {
  const decoder = new Decoder({ ...options, maximumPacketSize: limit })
  const packets: Packet[] = []
  const lend = (byteForms[form] as () => Lend)()
  let at = 0
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes.length === 0 ? bytes.length : Math.max(1, sizes[i % sizes.length] as number)
    const loan = lend(bytes.slice(at, at + size))
    try {
      for (const packet of decoder.push(loan.bytes)) packets.push(packet)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      if (!kinds.includes(error.kind) || error.fault !== 'remote' || error.reasonCode === undefined || error.reasonName === undefined) {
        throw new Error(`incomplete error: ${JSON.stringify(error)}`)
      }
      if (error.offset < 0 || error.offset > Math.min(limit, bytes.length)) throw new Error(`bad offset ${error.offset}`)
      return { packets: packets.map(plain), error: [error.kind, error.reasonCode, error.message, error.offset] }
    }
    loan.back()
    if (decoder.pending > limit) throw new Error(`holds ${decoder.pending} bytes`)
    at += size
  }
  return { packets: packets.map(plain), error: undefined }
}

const sides = fc.record({ from: fc.constantFrom('client' as const, 'server' as const), protocolVersion: fc.constantFrom(4 as const, 5 as const) })
const chunkings = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 6 })
const forms = fc.constantFrom(...formNames)

function encodeSample({ packet, protocolVersion }: Sample): Uint8Array {
  return encode(packet as PacketInput, { protocolVersion })
}

describe('any valid packet', () => {
  it('survives encode and decode, unchanged', () => {
    fc.assert(
      fc.property(samples, (sample) => {
        const bytes = encodeSample(sample)
        const again = decode(bytes, sample)
        expect(plain(again)).toEqual(plain(sample.packet))
        expect(encode(again as PacketInput, sample)).toEqual(bytes)
      }),
      { numRuns: 4000 },
    )
  })

  it('comes out of a stream of them however it is cut', () => {
    fc.assert(
      fc.property(fc.array(samples, { minLength: 1, maxLength: 6 }), chunkings, forms, (list, sizes, form) => {
        const first = list[0] as Sample
        // A CONNECT of the other version would change how the rest is read.
        const stream = list.filter((sample) => sample.from === first.from && sample.protocolVersion === first.protocolVersion)
        const bytes = Buffer.concat(stream.map(encodeSample))
        const expected = { packets: stream.map(({ packet }) => plain(packet)), error: undefined }
        expect(run(bytes, sizes, first, form)).toEqual(expected)
        expect(run(bytes, [], first)).toEqual(expected)
        expect(run(bytes, [1], first)).toEqual(expected)
      }),
      { numRuns: 1000 },
    )
  })

  it('is incomplete at each cut, never wrong', () => {
    fc.assert(
      fc.property(samples, (sample) => {
        const bytes = encodeSample(sample)
        for (let length = 0; length < Math.min(bytes.length, 60); length++) {
          try {
            decode(bytes.subarray(0, length), sample)
            expect.unreachable()
          } catch (error) {
            expect(error).toMatchObject({ kind: 'incomplete', reasonCode: undefined })
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('any bytes', () => {
  it('decode or raise a WireError, the same for every chunking; nothing else escapes, and little is held', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), chunkings, sides, forms, (bytes, sizes, side, form) => {
        const whole = run(bytes, [], side)
        expect(run(bytes, sizes, side, form)).toEqual(whole)
        expect(run(bytes, [1], side)).toEqual(whole)
      }),
      { numRuns: 5000 },
    )
  })

  it('that begin like a packet, too', () => {
    const firsts = [0x10, 0x20, 0x30, 0x31, 0x32, 0x35, 0x3b, 0x40, 0x50, 0x62, 0x70, 0x82, 0x90, 0xa2, 0xb0, 0xe0, 0xf0]
    fc.assert(
      fc.property(fc.constantFrom(...firsts), fc.uint8Array({ maxLength: 100 }), chunkings, sides, forms, (first, body, sizes, side, form) => {
        const bytes = Uint8Array.of(first, body.length, ...body)
        expect(run(bytes, sizes, side, form)).toEqual(run(bytes, [], side))
      }),
      { numRuns: 5000 },
    )
  })

  it('made from valid packets by mutation, too', () => {
    const mutation = fc.record({ at: fc.nat(), value: fc.integer({ min: 0, max: 255 }), kind: fc.constantFrom('set', 'insert', 'remove', 'flip') })
    fc.assert(
      fc.property(samples, fc.array(mutation, { minLength: 1, maxLength: 4 }), chunkings, forms, (sample, mutations, sizes, form) => {
        const bytes = [...encodeSample(sample)]
        for (const { at, value, kind } of mutations) {
          const index = at % (bytes.length + 1)
          if (kind === 'set') bytes[index] = value
          else if (kind === 'flip') bytes[index] = (bytes[index] ?? 0) ^ (1 << (value & 7))
          else if (kind === 'insert') bytes.splice(index, 0, value)
          else bytes.splice(index, 1)
        }
        const mutated = Uint8Array.from(bytes)
        const whole = run(mutated, [], sample)
        expect(run(mutated, sizes, sample, form)).toEqual(whole)
        expect(run(mutated, [1], sample)).toEqual(whole)
      }),
      { numRuns: 5000 },
    )
  })

  it('that decode can be encoded again, and decode to the same', () => {
    fc.assert(
      fc.property(samples, fc.nat(), fc.integer({ min: 0, max: 255 }), (sample, at, value) => {
        const bytes = encodeSample(sample)
        bytes[at % bytes.length] = value
        let packet: Packet
        try {
          packet = decode(bytes, sample)
        } catch {
          return
        }
        expect(plain(decode(encode(packet as PacketInput, sample), sample))).toEqual(plain(packet))
      }),
      { numRuns: 5000 },
    )
  })
})
