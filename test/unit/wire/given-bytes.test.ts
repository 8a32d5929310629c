/** Bytes that callers hand in stay theirs, whatever kind of array they come in: nothing is written into them, and nothing of them is kept. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { Framer } from '../../../src/wire/framer.js'
import type { FrameOptions } from '../../../src/wire/frames.js'
import { type DecodeOptions, Decoder, decode, encode, type Packet, type PacketInput, Scanner, WireError } from '../../../src/wire/index.js'
import { always, instantiate } from '../wasm/scanner.js'
import { samples } from './arbitrary-packets.js'
import { formNames, inForm, transportForms } from './byte-forms.js'
import { drip, plain } from './vector-files.js'

const memory = instantiate()
const scanner = { window: memory.window, frames: (options: FrameOptions) => new WasmFrames(memory, options, always) }

const never = { ...always, copied: Number.POSITIVE_INFINITY }

/** Ways to read a stream: the packets, with copies of everything, or the error. */
const readers: Record<string, (chunks: Iterable<Uint8Array>, options: DecodeOptions) => unknown[]> = {
  Decoder: (chunks, options) => {
    const decoder = new Decoder(options)
    const packets: Packet[] = []
    for (const chunk of chunks) packets.push(...decoder.push(chunk))
    return [...packets.map(plain), decoder.pending]
  },
  Scanner: (chunks, options) => scan(new Scanner(options), chunks),
  'Scanner with WebAssembly': (chunks, options) => scan(new Scanner({ ...options, ...(options.from === 'server' ? { scanner } : {}) }), chunks),
}

function scan(cursor: Scanner, chunks: Iterable<Uint8Array>): unknown[] {
  const packets: Packet[] = []
  for (const chunk of chunks) {
    cursor.push(chunk)
    while (cursor.next()) packets.push(cursor.packet())
  }
  return [...packets.map(plain), cursor.pending]
}

function outcome(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return [error.kind, error.message, error.offset]
  }
}

function cut(stream: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0, index = 0; at < stream.length; index++) {
    const size = sizes[index % sizes.length] ?? stream.length
    chunks.push(stream.slice(at, at + size))
    at += size
  }
  return chunks
}

const payload = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251)
const large = encode({ type: 'publish', topic: 'a/b', qos: 1, packetId: 7, payload, properties: { contentType: 'x'.repeat(300) } })
const small = encode({ type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2, 3) })

describe.each(Object.keys(readers))('%s', (name) => {
  const read = readers[name] as (typeof readers)[string]

  describe.each(formNames)('given %s', (form) => {
    it('gives the packets that were sent, of a large PUBLISH that comes in two or more chunks', () => {
      const stream = Uint8Array.from([...small, ...large, ...small, ...large, ...small])
      const whole = read([stream], { from: 'server' })
      expect(whole.length).toBe(6)
      expect(whole[1]).toMatchObject({ topic: 'a/b', payload: plain(payload) })
      for (const sizes of [[], [1000], [1300, 20_000], [small.length + 2000], [4096, 3], [30_000, 7]]) {
        expect(read(inForm(form, cut(stream, sizes)), { from: 'server' })).toEqual(whole)
      }
    })

    it('gives the same packets or the same error for any stream, cut anywhere', () => {
      const chunkings = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 8 })
      const damage = fc.option(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { nil: undefined })
      fc.assert(
        fc.property(fc.array(samples, { minLength: 1, maxLength: 4 }), chunkings, damage, (list, sizes, changed) => {
          const [{ from, protocolVersion }] = list as [(typeof list)[number]]
          const side = list.filter((sample) => sample.from === from && sample.protocolVersion === protocolVersion)
          const stream = new Uint8Array(Buffer.concat(side.map(({ packet }) => encode(packet as PacketInput, { protocolVersion }))))
          if (changed !== undefined) stream[changed[0] % stream.length] = changed[1]
          const options = { from, protocolVersion }
          const whole = outcome(() => read([stream], options))
          expect(outcome(() => read(inForm(form, cut(stream, sizes)), options))).toEqual(whole)
          expect(outcome(() => read(inForm(form, drip(stream)), options))).toEqual(whole)
        }),
        { numRuns: 60 },
      )
    })
  })
})

describe.each(formNames)('decode, given %s', (form) => {
  it('gives the packet, and the same error for one that is wrong', () => {
    fc.assert(
      fc.property(samples, fc.option(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { nil: undefined }), ({ packet, ...options }, changed) => {
        const bytes = encode(packet as PacketInput, options)
        if (changed !== undefined) bytes[changed[0] % bytes.length] = changed[1]
        const expected = outcome(() => plain(decode(bytes, options)))
        for (const given of inForm(form, [bytes])) expect(outcome(() => plain(decode(given, options)))).toEqual(expected)
      }),
      { numRuns: 200 },
    )
  })
})

describe.each(formNames)('encode, given %s', (form) => {
  it('writes the bytes that are there', () => {
    for (const size of [0, 1, 23, 24, 100, 20_000]) {
      const value = payload.slice(0, size)
      const make = (bytes: Uint8Array): PacketInput[] => [
        { type: 'publish', topic: 'a', payload: bytes },
        { type: 'publish', topic: 'a', properties: { correlationData: bytes as never } },
        { type: 'connect', username: 'u', password: bytes, will: { topic: 'w', payload: bytes } },
        { type: 'auth', properties: { authenticationMethod: 'm', authenticationData: bytes as never } },
      ]
      const expected = make(value).map((packet) => plain(encode(packet)))
      for (const given of inForm(form, [value])) expect(make(given).map((packet) => plain(encode(packet)))).toEqual(expected)
    }
  })
})

describe('the frames of a connection', () => {
  const makers = {
    Framer: (): Framer => new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize: 1 << 20, splits: true }),
    'WasmFrames, in the window': (): Framer => new WasmFrames(memory, { protocolVersion: 5, maximumPacketSize: 1 << 20, splits: true }, always),
    'WasmFrames, elsewhere': (): Framer => new WasmFrames(memory, { protocolVersion: 5, maximumPacketSize: 1 << 20, splits: true }, never),
  }
  describe.each(Object.entries(makers))('%s', (_name, make) => {
    it.each(transportForms)('keeps what is left of %s as a copy', (form) => {
      const frames = make()
      for (const chunk of inForm(form, [Uint8Array.from([...small, ...small, ...small.slice(0, 4)])])) {
        frames.push(chunk)
        expect(frames.next()).toBe(true)
        frames.keep()
      }
      expect(frames.next()).toBe(true)
      expect([...frames.bytes.subarray(frames.start, frames.end)]).toEqual([...small])
      expect([frames.next(), frames.pending]).toEqual([false, 4])
    })
  })
})
