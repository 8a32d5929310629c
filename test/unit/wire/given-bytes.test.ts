/**
 * Bytes that callers hand in stay theirs, whatever kind of array they come in: nothing is written into them, and nothing of them is kept.
 *
 * Any packets in any of these forms, right and wrong, cut anywhere: `test/lab/differential`.
 */
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { Framer } from '../../../src/wire/framer.js'
import type { FrameOptions } from '../../../src/wire/frames.js'
import {
  type DecodeOptions,
  Decoder,
  encode,
  type Packet,
  type PacketInput,
  Scanner,
} from '../../../src/wire/index.js'
import { always, instantiate } from '../wasm/scanner.js'
import { formNames, inForm, transportForms } from './byte-forms.js'
import { plain } from './vector-files.js'

const memory = instantiate()
const scanner = {
  window: memory.window,
  frames: (options: FrameOptions) => new WasmFrames(memory, options, always),
}

const never = { ...always, copied: Number.POSITIVE_INFINITY }

/** Ways to read a stream: the packets, with copies of everything, or the error. */
const readers: Record<string, (chunks: Iterable<Uint8Array>, options: DecodeOptions) => unknown[]> =
  {
    Decoder: (chunks, options) => {
      const decoder = new Decoder(options)
      const packets: Packet[] = []
      for (const chunk of chunks) packets.push(...decoder.push(chunk))
      return [...packets.map(plain), decoder.pending]
    },
    Scanner: (chunks, options) => scan(new Scanner(options), chunks),
    'Scanner with WebAssembly': (chunks, options) =>
      scan(new Scanner({ ...options, ...(options.from === 'server' ? { scanner } : {}) }), chunks),
  }

function scan(cursor: Scanner, chunks: Iterable<Uint8Array>): unknown[] {
  const packets: Packet[] = []
  for (const chunk of chunks) {
    cursor.push(chunk)
    while (cursor.next()) packets.push(cursor.packet())
  }
  return [...packets.map(plain), cursor.pending]
}

function cut(stream: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0; at < stream.length; ) {
    const size = sizes[chunks.length % sizes.length] ?? stream.length
    chunks.push(stream.slice(at, at + size))
    at += size
  }
  return chunks
}

const payload = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251)
const large = encode({
  type: 'publish',
  topic: 'a/b',
  qos: 1,
  packetId: 7,
  payload,
  properties: { contentType: 'x'.repeat(300) },
})
const small = encode({ type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2, 3) })

describe.each(Object.keys(readers))('%s', (name) => {
  const read = readers[name] as (typeof readers)[string]

  describe.each(formNames)('given %s', (form) => {
    it('gives the packets that were sent, of a large PUBLISH that comes in two or more chunks', () => {
      const stream = Uint8Array.from([...small, ...large, ...small, ...large, ...small])
      const whole = read([stream], { from: 'server' })
      expect(whole.length).toBe(6)
      expect(whole[1]).toMatchObject({ topic: 'a/b', payload: plain(payload) })
      for (const sizes of [
        [],
        [1000],
        [1300, 20_000],
        [small.length + 2000],
        [4096, 3],
        [30_000, 7],
      ]) {
        expect(read(inForm(form, cut(stream, sizes)), { from: 'server' })).toEqual(whole)
      }
    })
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
        {
          type: 'auth',
          properties: { authenticationMethod: 'm', authenticationData: bytes as never },
        },
      ]
      const expected = make(value).map((packet) => plain(encode(packet)))
      for (const given of inForm(form, [value]))
        expect(make(given).map((packet) => plain(encode(packet)))).toEqual(expected)
    }
  })
})

describe('the frames of a connection', () => {
  const options = { protocolVersion: 5, maximumPacketSize: 1 << 20, splits: true } as const
  const makers = {
    Framer: (): Framer => new Framer({ from: 'server', ...options }),
    'WasmFrames, in the window': (): Framer => new WasmFrames(memory, options, always),
    'WasmFrames, elsewhere': (): Framer => new WasmFrames(memory, options, never),
  }
  describe.each(Object.entries(makers))('%s', (_name, make) => {
    it.each(transportForms)('keeps what is left of %s as a copy', (form) => {
      const frames = make()
      for (const chunk of inForm(form, [
        Uint8Array.from([...small, ...small, ...small.slice(0, 4)]),
      ])) {
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
