/**
 * Bytes that callers hand in stay theirs, whatever kind of array they come in: nothing is written into them, and nothing of them is kept.
 *
 * Any packets in any of these forms, right and wrong, cut anywhere: `test/lab/differential`.
 */
import { describe, expect, it } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { Framer } from '../../../src/wire/framer.js'
import { Decoder, encode, type Packet, type PacketInput } from '../../../src/wire/index.js'
import { always, instantiate } from '../wasm/scanner.js'
import { formNames, inForm, transportForms } from './byte-forms.js'
import { plain } from './vector-files.js'

const memory = instantiate()
const never = { ...always, copied: Number.POSITIVE_INFINITY }

const payload = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251)
const small = encode({ type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2, 3) })

describe.each(formNames)('bytes that are %s', (form) => {
  it('are read as what was sent, however they are cut', () => {
    const stream = Uint8Array.from([...small, ...small, ...small])
    const packets = [...new Decoder({ from: 'server' }).push(stream)]
    for (const size of [1, 5, stream.length]) {
      const chunks: Uint8Array[] = []
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.slice(at, at + size))
      const decoder = new Decoder({ from: 'server' })
      const read: Packet[] = []
      for (const chunk of inForm(form, chunks)) read.push(...decoder.push(chunk))
      expect(read).toEqual(packets)
    }
  })

  it('are written as they are', () => {
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
