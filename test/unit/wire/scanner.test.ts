/** What a Scanner shows of a packet, and for how long; that it reads as a Decoder does is in `vectors.test.ts` and `test/fuzz`. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { encode, WireError } from '../../../src/wire/index.js'
import { Scanner } from '../../../src/wire/scanner.js'
import { instantiate } from '../wasm/scanner.js'
import { thrown } from './hex.js'
import { decodeChunks, scanned } from './vector-files.js'

/** Waits until it is collected, or could have been. */
async function collected(memory: WeakRef<object>): Promise<void> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let round = 0; round < 10 && memory.deref() !== undefined; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
}

describe('streams', () => {
  const server = { from: 'server', protocolVersion: 5 } as const

  function chunksOf(stream: Uint8Array, sizes: readonly number[]): Uint8Array[] {
    const chunks: Uint8Array[] = []
    for (let at = 0; at < stream.length; ) {
      const size = sizes[chunks.length % sizes.length] ?? stream.length
      chunks.push(stream.subarray(at, at + size))
      at += size
    }
    return chunks
  }

  it.each([15_000, 16_384, 16_500, 100_000])(
    'of large packets, %i bytes of payload, cut anywhere',
    (size) => {
      const payload = Uint8Array.from({ length: size }, (_, index) => index & 0xff)
      const properties = { contentType: 'x'.repeat(200) }
      const message = { type: 'publish', topic: 'a/b', payload, properties } as const
      const sure = encode({ ...message, qos: 1, packetId: 7 })
      const parts = [encode(message), sure, Uint8Array.of(0xd0, 0), sure]
      const stream = new Uint8Array(Buffer.concat(parts))
      const whole = decodeChunks([stream], server)
      expect(whole.packets.length).toBe(4)
      for (const sizes of [
        [1],
        [7],
        [1000],
        [1023, 1024, 1025],
        [1030],
        [4096],
        [65_536],
        [3, 60_000],
      ]) {
        if (sizes[0] === 1 && size > 20_000) continue
        for (const window of [new Uint8Array(400_000), Buffer.alloc(size * 5)]) {
          expect(scanned(chunksOf(stream, sizes), server, window)).toEqual(whole)
        }
      }
    },
  )
})

describe('Scanner', () => {
  const payload = Uint8Array.of(1, 2, 3)
  const publish = encode({ type: 'publish', topic: 'a/b', payload, qos: 1, packetId: 9 })

  it('shows a PUBLISH where it lies, and the same record for the same topic', () => {
    const scanner = new Scanner({ from: 'server' })
    const chunk = new Uint8Array([...publish, ...publish])
    scanner.push(chunk)
    expect(scanner.next()).toBe(true)
    const { record, topicStart, payloadStart, payloadEnd } = scanner.publish
    expect([record?.name, topicStart, scanner.publish.packetId]).toEqual(['a/b', 4, 9])
    expect(scanner.publish.bytes).toBe(chunk)
    expect([...chunk.subarray(payloadStart, payloadEnd)]).toEqual([1, 2, 3])
    expect(scanner.next()).toBe(true)
    expect(scanner.publish.record).toBe(record)
    expect(scanner.next()).toBe(false)
    expect([scanner.publish.bytes.length, scanner.publish.record]).toEqual([0, undefined])
  })

  it.each([
    ['in the properties', '30080001620226ff0000'],
    ['in the topic', '30060003622b6200'],
    ['in the header', '3600'],
    ['of another type', '40020000'],
  ])(
    'shows nothing of any packet, and holds nothing of the chunk, once it threw: an error %s',
    async (_name, hex) => {
      const scanner = new Scanner({ from: 'server' })
      let chunk: Uint8Array | undefined = new Uint8Array([...publish, ...Buffer.from(hex, 'hex')])
      const memory = new WeakRef(chunk)
      scanner.push(chunk)
      expect([scanner.next(), scanner.publish.topic()]).toEqual([true, 'a/b'])
      chunk = undefined
      const error = thrown(() => scanner.next())
      expect(error).toBeInstanceOf(WireError)
      const { publish: view } = scanner
      expect([view.topic(), view.payload().length, view.bytes.length]).toEqual(['', 0, 0])
      expect([view.record, view.properties()]).toEqual([undefined, {}])
      expect(() => scanner.packet()).toThrow(error as Error)
      await collected(memory)
      expect(memory.deref()).toBeUndefined()
    },
  )

  it('shows nothing of the last packet once the chunk is read', () => {
    const scanner = new Scanner({ from: 'server' })
    scanner.push(new Uint8Array([...publish, 0xd0, 0]))
    expect([scanner.next(), scanner.next(), scanner.type]).toEqual([true, true, 'pingresp'])
    expect([scanner.next(), scanner.type, scanner.publish.topic()]).toEqual([false, 'publish', ''])
    expect(scanner.publish.payload()).toHaveLength(0)
  })

  it.each(['3003000080', '300400018000', '3004000161ff', '300700016103030005', '40030001'])(
    'tells of an error in %s where it is, never beyond the packet',
    (hex) => {
      const bytes = new Uint8Array(Buffer.from(hex, 'hex'))
      for (const chunk of [bytes, new Uint8Array([...bytes, ...bytes, ...bytes])]) {
        for (const protocolVersion of [4, 5] as const) {
          const options = { from: 'server', protocolVersion } as const
          const { error } = scanned([chunk], options)
          expect(decodeChunks([chunk], options).error).toEqual(error)
          expect(error?.offset ?? 0).toBeLessThanOrEqual(bytes.length)
        }
      }
      if (hex !== '3003000080') return
      const { error } = scanned([bytes], { from: 'server' })
      expect(error).toMatchObject({ kind: 'malformed', offset: 5 })
    },
  )

  it.each([
    [undefined, 'options'],
    [{ from: 'nobody' }, 'from'],
    [{ from: 'server', protocolVersion: 3 }, 'protocolVersion'],
    [{ from: 'server', maximumPacketSize: 0 }, 'maximumPacketSize'],
    [{ from: 'server', scanner: {} }, 'scanner'],
    [{ from: 'client', scanner: { frames: () => undefined } }, 'scanner'],
  ])('refuses the options %o', (options, option) => {
    const invalid = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option })
    expect(() => new Scanner(options as never)).toThrow(invalid)
  })

  it.each([-1, 3, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '2'])(
    'refuses %s bytes of a chunk of two',
    (length) => {
      const scanner = new Scanner({ from: 'server' })
      const invalid = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'length' })
      expect(() => scanner.push(new Uint8Array(2), length as number)).toThrow(invalid)
      expect(() => scanner.push('ab' as never)).toThrow(MqttError)
      scanner.push(Uint8Array.of(0xd0, 0, 0xee), 2)
      expect([scanner.next(), scanner.type, scanner.next()]).toEqual([true, 'pingresp', false])
    },
  )

  it('a scanner that fails by itself ends nothing for good', () => {
    const frames = { next: () => fail(), clear: () => undefined, push: () => undefined }
    const fail = (): never => {
      throw new RangeError('broken')
    }
    const given = { window: undefined, frames: () => frames } as never
    const scanner = new Scanner({ from: 'server', scanner: given })
    expect(() => scanner.next()).toThrow(RangeError)
    expect(() => scanner.push(new Uint8Array(2))).not.toThrow()
  })

  it('reads with WebAssembly as it does without', () => {
    const memory = instantiate()
    const frames = (options: ConstructorParameters<typeof WasmFrames>[1]) =>
      new WasmFrames(memory, options)
    const scanner = { window: memory.window, frames }
    const parts = Array.from({ length: 200 }, (_, index) => {
      const own = { payload: Uint8Array.of(index), packetId: index + 1 }
      return encode({ type: 'publish', topic: `t/${index % 7}`, qos: 1, ...own })
    })
    const stream = new Uint8Array(Buffer.concat([...parts, Uint8Array.of(0xd0, 0, 0x30, 1, 0)]))
    const plain = decodeChunks([stream], { from: 'server' })
    expect(scanned([stream], { from: 'server', scanner })).toEqual(plain)
    expect(scanned([stream], { from: 'server', scanner }, memory.window.bytes)).toEqual(plain)
    expect(plain.packets.length).toBe(201)
    expect(plain.error).toMatchObject({ kind: 'malformed' })
  })
})
