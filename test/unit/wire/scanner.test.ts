/** Scanner against Decoder: the same packets, the same errors, however the stream is cut. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import { Decoder, encode, type Packet, type PacketInput, WireError } from '../../../src/wire/index.js'
import { Scanner, type ScanOptions } from '../../../src/wire/scanner.js'
import { instantiate } from '../wasm/scanner.js'
import { type Sample, samples } from './arbitrary-packets.js'
import { bytesOf, drip, plain, readVectors, senderOf, splits } from './vector-files.js'

/** Waits until it is collected, or could have been. */
async function collected(memory: WeakRef<object>): Promise<void> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let round = 0; round < 10 && memory.deref() !== undefined; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    gc()
  }
}

interface Story {
  readonly packets: unknown[]
  readonly error: unknown
  readonly pending: number
}

function told(error: unknown): unknown {
  if (!(error instanceof WireError)) return error
  const { kind, code, reasonCode, message, offset } = error
  return { kind, code, reasonCode, message, offset }
}

function decoded(chunks: Iterable<Uint8Array>, options: ScanOptions): Story {
  const decoder = new Decoder(options)
  const packets: Packet[] = []
  try {
    for (const chunk of chunks) for (const packet of decoder.push(chunk.slice())) packets.push(packet)
  } catch (error) {
    return { packets: packets.map(plain), error: told(error), pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: decoder.pending }
}

const roomy = new Uint8Array(400_000)

/** `window`: each chunk lies at the beginning of a larger array that is overwritten as soon as it is read. */
function scanned(chunks: Iterable<Uint8Array>, options: ScanOptions, window: Uint8Array = roomy): Story {
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
      if (Buffer.compare(window.subarray(0, chunk.length), chunk) !== 0) throw new Error('somebody wrote into the chunk')
      window.fill(0xee, 0, chunk.length)
    }
  } catch (error) {
    expect(() => scanner.next()).toThrow(error as Error)
    expect(() => scanner.push(new Uint8Array(2))).toThrow(error as Error)
    return { packets: packets.map(plain), error: told(error), pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: scanner.pending }
}

/** Whole, byte by byte, and cut in two at every place. */
function expectSame(stream: Uint8Array, options: ScanOptions): void {
  const whole = decoded([stream], options)
  const size = Math.max(stream.length, 100)
  for (const window of [new Uint8Array(size), Buffer.alloc(size), Buffer.alloc(size + 9).subarray(9)]) {
    expect(scanned([stream], options, window)).toEqual(whole)
    if (stream.length < 5000) expect(scanned(drip(stream), options, window)).toEqual(whole)
    let count = 0
    for (const chunks of splits(stream)) {
      // Of long ones where their headers end, and a few places more.
      count += 1
      if (stream.length < 5000 || count < 12 || count % 20 === 0) expect(scanned(chunks, options, window)).toEqual(whole)
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
  const chunkings = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 })
  const sides = fc.record({ from: fc.constantFrom('client' as const, 'server' as const), protocolVersion: fc.constantFrom(4 as const, 5 as const) })

  function chunksOf(stream: Uint8Array, sizes: readonly number[]): Uint8Array[] {
    const chunks: Uint8Array[] = []
    let at = 0
    for (let index = 0; at < stream.length; index++) {
      const size = sizes.length === 0 ? stream.length : (sizes[index % sizes.length] as number)
      chunks.push(stream.subarray(at, at + size))
      at += size
    }
    return chunks
  }

  it('of valid packets', () => {
    fc.assert(
      fc.property(fc.array(samples, { minLength: 1, maxLength: 6 }), chunkings, (list, sizes) => {
        const { from, protocolVersion } = list[0] as Sample
        const stream = list.filter((sample) => sample.from === from && sample.protocolVersion === protocolVersion)
        const bytes = new Uint8Array(Buffer.concat(stream.map(({ packet }) => encode(packet as PacketInput, { protocolVersion }))))
        const options = { from, protocolVersion }
        expect(scanned(chunksOf(bytes, sizes), options)).toEqual(decoded([bytes], options))
      }),
      { numRuns: 300 },
    )
  })

  it('of PUBLISH that share topics, with a byte that is wrong', () => {
    const publish = fc.record({
      topic: fc.constantFrom('a', 'ab', 'a/b/c', 'sensor/1', 'größe', 'x'.repeat(300)),
      payload: fc.uint8Array({ maxLength: 30 }),
      packetId: fc.integer({ min: 1, max: 9 }),
    })
    fc.assert(
      fc.property(
        fc.array(publish, { minLength: 2, maxLength: 12 }),
        fc.nat(),
        fc.integer({ min: 0, max: 255 }),
        chunkings,
        (list, place, byte, sizes) => {
          const options = { from: 'server', protocolVersion: 5 } as const
          const packets = list.map((item) => encode({ type: 'publish', qos: 1, ...item } as PacketInput))
          const bytes = new Uint8Array(Buffer.concat(packets))
          bytes[place % bytes.length] = byte
          expect(scanned(chunksOf(bytes, sizes), options)).toEqual(decoded([bytes], options))
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), chunkings, sides, (bytes, sizes, side) => {
        expect(scanned(chunksOf(bytes, sizes), side)).toEqual(decoded([bytes], side))
      }),
      { numRuns: 2000 },
    )
  })

  it.each([15_000, 16_384, 16_500, 100_000])('of large packets, %i bytes of payload, cut anywhere', (size) => {
    const options = { from: 'server', protocolVersion: 5 } as const
    const payload = Uint8Array.from({ length: size }, (_, index) => index & 0xff)
    const publish = (qos: 0 | 1) =>
      encode(
        { type: 'publish', topic: 'a/b', payload, qos, packetId: qos === 0 ? undefined : 7, properties: { contentType: 'x'.repeat(200) } },
        options,
      )
    const stream = new Uint8Array(Buffer.concat([publish(0), publish(1), encode({ type: 'pingresp' }, options), publish(1)]))
    const whole = decoded([stream], options)
    expect(whole.packets.length).toBe(4)
    for (const sizes of [[1], [7], [1000], [1023, 1024, 1025], [1030], [4096], [65_536], [3, 60_000]]) {
      if (sizes[0] === 1 && size > 20_000) continue
      for (const window of [roomy, Buffer.alloc(size * 5)]) expect(scanned(chunksOf(stream, sizes), options, window)).toEqual(whole)
    }
  })
})

describe('Scanner', () => {
  const publish = encode({ type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2, 3), qos: 1, packetId: 9 })

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
  ])('shows nothing of any packet, and holds nothing of the chunk, once it threw: an error %s', async (_name, hex) => {
    const scanner = new Scanner({ from: 'server' })
    let chunk: Uint8Array | undefined = new Uint8Array([...publish, ...Buffer.from(hex, 'hex')])
    const memory = new WeakRef(chunk)
    scanner.push(chunk)
    expect([scanner.next(), scanner.publish.topic()]).toEqual([true, 'a/b'])
    chunk = undefined
    let thrown: unknown
    try {
      scanner.next()
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(WireError)
    const { publish: view } = scanner
    expect([view.topic(), view.payload().length, view.bytes.length, view.record, view.properties()]).toEqual(['', 0, 0, undefined, {}])
    expect(() => scanner.packet()).toThrow(thrown as Error)
    await collected(memory)
    expect(memory.deref()).toBeUndefined()
  })

  it('shows nothing of the last packet once the chunk is read', () => {
    const scanner = new Scanner({ from: 'server' })
    scanner.push(new Uint8Array([...publish, 0xd0, 0]))
    expect([scanner.next(), scanner.next(), scanner.type, scanner.next()]).toEqual([true, true, 'pingresp', false])
    expect([scanner.publish.topic(), scanner.publish.payload().length, scanner.type]).toEqual(['', 0, 'publish'])
  })

  it.each(['3003000080', '300400018000', '3004000161ff', '300700016103030005', '40030001'])(
    'tells of an error in %s where it is, never beyond the packet',
    (hex) => {
      const bytes = new Uint8Array(Buffer.from(hex, 'hex'))
      for (const chunk of [bytes, new Uint8Array([...bytes, ...bytes, ...bytes])]) {
        for (const protocolVersion of [4, 5] as const) {
          const { error } = scanned([chunk], { from: 'server', protocolVersion })
          expect(decoded([chunk], { from: 'server', protocolVersion }).error).toEqual(error)
          if (error !== undefined) expect((error as WireError).offset).toBeLessThanOrEqual(bytes.length)
        }
      }
      expect(scanned([Uint8Array.from(Buffer.from('3003000080', 'hex'))], { from: 'server' }).error).toMatchObject({ kind: 'malformed', offset: 5 })
    },
  )

  it('takes the version that a CONNECT names', () => {
    const scanner = new Scanner({ from: 'client' })
    const connect = encode({ type: 'connect', protocolVersion: 4, clientId: 'c', cleanStart: true, keepAlive: 0 } as PacketInput)
    const old = encode({ type: 'publish', topic: 'a', payload: new Uint8Array(0) }, { protocolVersion: 4 })
    scanner.push(new Uint8Array([...connect, ...old]))
    expect([scanner.next(), scanner.type, scanner.next(), scanner.type]).toEqual([true, 'connect', true, 'publish'])
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
    expect(() => new Scanner(options as never)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option }))
  })

  it.each([-1, 3, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '2'])('refuses %s bytes of a chunk of two', (length) => {
    const scanner = new Scanner({ from: 'server' })
    expect(() => scanner.push(new Uint8Array(2), length as number)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'length' }))
    expect(() => scanner.push('ab' as never)).toThrow(MqttError)
    scanner.push(Uint8Array.of(0xd0, 0, 0xee), 2)
    expect([scanner.next(), scanner.type, scanner.next()]).toEqual([true, 'pingresp', false])
  })

  it('a scanner that fails by itself ends nothing for good', () => {
    const frames = { next: () => fail(), clear: () => undefined, push: () => undefined }
    const fail = (): never => {
      throw new RangeError('broken')
    }
    const scanner = new Scanner({ from: 'server', scanner: { window: undefined, frames: () => frames } as never })
    expect(() => scanner.next()).toThrow(RangeError)
    expect(() => scanner.push(new Uint8Array(2))).not.toThrow()
  })

  it('reads with WebAssembly as it does without', () => {
    const memory = instantiate()
    const scanner = { window: memory.window, frames: (options: ConstructorParameters<typeof WasmFrames>[1]) => new WasmFrames(memory, options) }
    const parts = Array.from({ length: 200 }, (_, index) =>
      encode({ type: 'publish', topic: `t/${index % 7}`, payload: Uint8Array.of(index), qos: 1, packetId: index + 1 }),
    )
    const stream = new Uint8Array(Buffer.concat([...parts, encode({ type: 'pingresp' }), Uint8Array.of(0x30, 1, 0)]))
    const plain = decoded([stream], { from: 'server' })
    expect(scanned([stream], { from: 'server', scanner })).toEqual(plain)
    expect(scanned([stream], { from: 'server', scanner }, memory.window.bytes)).toEqual(plain)
    expect(plain.packets.length).toBe(201)
    expect(plain.error).toMatchObject({ kind: 'malformed' })
  })
})
