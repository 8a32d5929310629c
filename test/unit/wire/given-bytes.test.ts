/** Bytes that callers hand in, whatever kind of array they come in: nothing is written into them, and nothing of them is kept; and errors that are not of the bytes pass as they are. Any packets in any of these forms: `test/lab/differential`. */

import { afterEach, describe, expect, it, vi } from 'vitest'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { Framer } from '../../../src/wire/framer.js'
import {
  Decoder,
  decode,
  encode,
  type Packet,
  type PacketInput,
  WireError,
} from '../../../src/wire/index.js'
import { PublishView } from '../../../src/wire/publish.js'
import { always, instantiate } from '../wasm/scanner.js'
import { formNames, inForm, transportForms } from './byte-forms.js'
import { thrown } from './hex.js'
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

const outOfMemory = new RangeError('Array buffer allocation failed')

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

/** What is thrown while no copy can be made of any bytes. */
function thrownWithoutMemory(attempt: () => unknown): unknown {
  const subarray = vi
    .spyOn(Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array, 'subarray')
    .mockImplementation(() => {
      throw outOfMemory
    })
  try {
    return thrown(attempt)
  } finally {
    subarray.mockRestore()
  }
}

describe('an error that the bytes are not to blame for', () => {
  it('leaves decode as it is, and is no WireError', () => {
    // AUTH with data, CONNECT with a password, PUBLISH with a payload: each is copied out.
    const packets: [hex: string, from: 'client' | 'server'][] = [
      ['f00a18081500016d16000178', 'server'],
      ['101100044d5154540542000000000163000178', 'client'],
      ['30050001610078', 'server'],
    ]
    for (const [hex, from] of packets) {
      expect(decode(Buffer.from(hex, 'hex'), { from })).toHaveProperty('type')
      expect(thrownWithoutMemory(() => decode(bytesOf(hex), { from }))).toBe(outOfMemory)
    }
  })

  it('leaves the view of a PUBLISH as it is, too', () => {
    const bytes = bytesOf('30050001610078')
    const view = new PublishView()
    view.read(bytes, 0, 2, 7, 5, 'server')
    expect(thrownWithoutMemory(() => view.payload())).toBe(outOfMemory)
  })

  it('leaves the Decoder as it is, while the peer’s errors come behind the packets before them', () => {
    const decoder = new Decoder({ from: 'server' })
    expect(thrownWithoutMemory(() => decoder.push(bytesOf('30050001610078')))).toBe(outOfMemory)
    const carrying = new Decoder({ from: 'server' })
    expect(thrownWithoutMemory(() => carrying.push(bytesOf('3005')))).toBe(outOfMemory)
    const peer = new Decoder({ from: 'server' })
    const packets = peer.push(bytesOf('d00000'))
    expect(thrown(() => [...packets])).toBeInstanceOf(WireError)
  })
})

afterEach(() => {
  vi.unstubAllGlobals()
  vi.resetModules()
})

it('text in memory that the TextDecoder of the platform refuses, as those of browsers do with memory that is shared, is read all the same', async () => {
  const Platform = TextDecoder
  vi.stubGlobal(
    'TextDecoder',
    class {
      readonly #decoder = new Platform('utf-8', { ignoreBOM: true })
      decode(bytes: Uint8Array): string {
        if (bytes.buffer instanceof SharedArrayBuffer)
          throw new TypeError('The provided ArrayBufferView value must not be shared.')
        return this.#decoder.decode(bytes)
      }
    },
  )
  vi.resetModules()
  const { decode, encode } = await import('../../../src/wire/index.js')
  const topic = 'ä'.repeat(100)
  const bytes = encode({ type: 'publish', topic, payload: new Uint8Array(3) })
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
  shared.set(bytes)
  expect(decode(shared, { from: 'client' })).toMatchObject({ topic })
})
