/** Scanner against Decoder: the same packets, the same errors, however the stream is cut. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { encode, type Packet, type PacketInput, WireError } from '../../../src/wire/index.js'
import { Scanner, type ScanOptions } from '../../../src/wire/scanner.js'
import { instantiate } from '../wasm/scanner.js'
import { thrown } from './hex.js'
import {
  bytesOf,
  decodeChunks,
  drip,
  type Outcome,
  plain,
  readVectors,
  senderOf,
  shownError,
  splits,
} from './vector-files.js'

/** Waits until it is collected, or could have been. */
async function collected(memory: WeakRef<object>): Promise<void> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let round = 0; round < 10 && memory.deref() !== undefined; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
}

const roomy = new Uint8Array(400_000)

/** `window`: each chunk lies at the beginning of a larger array that is overwritten as soon as it is read. */
function scanned(
  chunks: Iterable<Uint8Array>,
  options: ScanOptions,
  window: Uint8Array = roomy,
): Outcome {
  const scanner = new Scanner(options)
  const packets: Packet[] = []
  try {
    for (const chunk of chunks) {
      window.set(chunk)
      scanner.push(window, chunk.length)
      while (scanner.next()) {
        expect(scanner.type).toBe(scanner.packet().type)
        packets.push(scanner.packet())
      }
      // Ours again, and as it was.
      expect(Buffer.compare(window.subarray(0, chunk.length), chunk)).toBe(0)
      window.fill(0xee, 0, chunk.length)
    }
  } catch (error) {
    expect(() => scanner.next()).toThrow(error as Error)
    expect(() => scanner.push(new Uint8Array(2))).toThrow(error as Error)
    return { packets: packets.map(plain), error: shownError(error), pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: scanner.pending }
}

/** Whole, byte by byte, and cut in two at every place. */
function expectSame(stream: Uint8Array, options: ScanOptions): void {
  const whole = decodeChunks([stream], options)
  const size = Math.max(stream.length, 100)
  for (const window of [
    new Uint8Array(size),
    Buffer.alloc(size),
    Buffer.alloc(size + 9).subarray(9),
  ]) {
    expect(scanned([stream], options, window)).toEqual(whole)
    if (stream.length < 5000) expect(scanned(drip(stream), options, window)).toEqual(whole)
    let count = 0
    for (const chunks of splits(stream)) {
      // Of long ones where their headers end, and a few places more.
      count += 1
      if (stream.length >= 5000 && count >= 12 && count % 20 !== 0) continue
      expect(scanned(chunks, options, window)).toEqual(whole)
    }
  }
}

describe.each([
  ['5.0', 5, '../../rules/vectors.json'],
  ['3.1.1', 4, './vectors-311.json'],
] as const)('shared vectors of %s', (_name, protocolVersion, file) => {
  const vectors = readVectors(file).filter((vector) => vector.fill === undefined)

  it.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
    const bytes = bytesOf(vector)
    const from = senderOf(vector)
    expectSame(bytes, { from, protocolVersion })
    expectSame(bytes, { from, protocolVersion, maximumPacketSize: Math.max(1, bytes.length - 1) })
    expectSame(bytes, { from: from === 'client' ? 'server' : 'client', protocolVersion })
  })
})

describe('streams', () => {
  const server = { from: 'server', protocolVersion: 5 } as const
  const chunkings = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 })

  function chunksOf(stream: Uint8Array, sizes: readonly number[]): Uint8Array[] {
    const chunks: Uint8Array[] = []
    for (let at = 0; at < stream.length; ) {
      const size = sizes[chunks.length % sizes.length] ?? stream.length
      chunks.push(stream.subarray(at, at + size))
      at += size
    }
    return chunks
  }

  it('of PUBLISH that share topics, with a byte that is wrong', () => {
    const publish = fc.record({
      topic: fc.constantFrom('a', 'ab', 'a/b/c', 'sensor/1', 'größe', 'x'.repeat(300)),
      payload: fc.uint8Array({ maxLength: 30 }),
      packetId: fc.integer({ min: 1, max: 9 }),
    })
    const packets = fc.array(publish, { minLength: 2, maxLength: 12 })
    fc.assert(
      fc.property(packets, fc.nat(), fc.nat(255), chunkings, (list, place, byte, sizes) => {
        const bytes = Buffer.concat(
          list.map((item) => encode({ type: 'publish', qos: 1, ...item } as PacketInput)),
        )
        const stream = new Uint8Array(bytes)
        stream[place % bytes.length] = byte
        expect(scanned(chunksOf(stream, sizes), server)).toEqual(decodeChunks([stream], server))
      }),
      { numRuns: 2000 },
    )
  })

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
        for (const window of [roomy, Buffer.alloc(size * 5)]) {
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

  it('gives packets that stay, whatever becomes of the chunk', () => {
    const scanner = new Scanner({ from: 'server' })
    const chunk = publish.slice()
    scanner.push(chunk)
    scanner.next()
    const packet = scanner.packet()
    chunk.fill(0)
    expect(packet).toMatchObject({ type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2, 3) })
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

  it('takes the version that a CONNECT names', () => {
    const scanner = new Scanner({ from: 'client' })
    const connect = encode({ type: 'connect', protocolVersion: 4, clientId: 'c' })
    const old = encode({ type: 'publish', topic: 'a' }, { protocolVersion: 4 })
    scanner.push(new Uint8Array([...connect, ...old]))
    expect([scanner.next(), scanner.type]).toEqual([true, 'connect'])
    expect([scanner.next(), scanner.type]).toEqual([true, 'publish'])
    expect(scanner.packet()).toMatchObject({ topic: 'a', payload: new Uint8Array(0) })
  })

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
