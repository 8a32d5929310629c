/** The output buffers: whose they are and when, what leaves together, and where it stops. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mostWrites } from '../../../src/client/connection/packet-writer.js'
import { giveBuffer, largeBuffer, sliceBuffer, smallBuffer, takeBuffer } from '../../../src/client/memory/write-buffers.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { ack, type StubWorld, stubbed, watched } from './stub.js'

const payload = new Uint8Array(1000).fill(7)

/** Posts until it is refused; how many were taken. */
function fill(world: StubWorld, bytes = payload): number {
  for (let count = 0; count < 100_000; count++) if (!world.client.post('t', bytes)) return count
  throw new Error('there is no end to it')
}

describe('what leaves together', () => {
  it('one write for a turn, acknowledgements and data in it', async () => {
    const world = await stubbed()
    void world.client.publish('t', 'q', { qos: 2 })
    await world.settle()
    world.forget()
    world.client.post('t', 'a')
    void world.client.publish('t', 'b', { qos: 1 })
    expect(world.stub.writes).toEqual([])
    world.stub.deliver(ack('pubrec', 1))
    expect(world.stub.writes.length).toBe(1)
    expect(world.stub.packets.map(({ type }) => type)).toEqual(['publish', 'publish', 'pubrel'])
    await world.settle()
    expect(world.stub.writes.length).toBe(1)
  })

  it('also seen: publishes glued into one huge frame: no write is longer than 64 KiB, and none cuts a packet', async () => {
    const world = await stubbed()
    for (let i = 0; i < 200; i++) world.client.post('t', payload)
    await world.settle()
    expect(world.stub.packets.length).toBe(200)
    expect(world.stub.writes.length).toBe(4)
    expect(Math.max(...world.stub.writes.map((bytes) => bytes.length))).toBeLessThanOrEqual(largeBuffer)
  })

  it('no write is longer than 64 KiB where long topics make the difference', async () => {
    const world = await stubbed()
    for (let i = 0; i < 60; i++) world.client.post(`${i}/${'t'.repeat(10_000)}`, 'x')
    await world.settle()
    expect(world.stub.packets.length).toBe(60)
    expect(Math.max(...world.stub.writes.map((bytes) => bytes.length))).toBeLessThanOrEqual(largeBuffer)
  })

  it('a few bytes come in a small buffer, many in a large one', async () => {
    const world = await stubbed()
    world.client.post('t', 'x')
    await world.settle()
    expect(world.stub.arrays[0]?.buffer.byteLength).toBe(smallBuffer)
    for (let i = 0; i < 5; i++) world.client.post('t', payload)
    await world.settle()
    expect(world.stub.arrays[1]?.buffer.byteLength).toBe(largeBuffer)
    expect(world.stub.payloads.length).toBe(6)
  })

  it('acknowledgements that pile up for a blocked transport leave in full buffers', async () => {
    const world = await stubbed()
    world.stub.holds = true
    world.stub.takes = false
    const pubrecs = Buffer.concat(Array.from({ length: 9000 }, (_, at) => Buffer.from([0x50, 2, (at + 1) >> 8, (at + 1) & 255])))
    for (let read = 0; read < 120; read++) {
      world.stub.sink?.chunk(pubrecs)
      await world.settle()
    }
    expect(world.stub.packets.filter(({ type }) => type === 'pubrel').length).toBeGreaterThan(900_000)
    expect(Math.max(...world.stub.writes.map((bytes) => bytes.length))).toBeLessThanOrEqual(largeBuffer)
    expect(Math.max(...world.stub.arrays.map((bytes) => bytes.buffer.byteLength))).toBe(largeBuffer)
  })

  it('and what is left over behind a full buffer waits for more', async () => {
    const world = await stubbed()
    world.stub.holds = true
    world.stub.takes = false
    const pubrecs = Buffer.concat(Array.from({ length: 3000 }, (_, at) => Buffer.from([0x50, 2, (at + 1) >> 8, (at + 1) & 255])))
    for (let read = 0; read < mostWrites + 20; read++) {
      world.stub.sink?.chunk(pubrecs)
      await world.settle()
    }
    // Those under way at first are smaller.
    const later = world.stub.writes.slice(mostWrites).map((bytes) => bytes.length)
    expect(later.length).toBeGreaterThan(1)
    expect(Math.min(...later)).toBeGreaterThan(largeBuffer - 16)
  })

  it.each([-30, -10, 0, 10])('a payload of 128 KiB and %i bytes: no write is longer than that', async (more) => {
    const world = await stubbed()
    void world.client.publish('t', new Uint8Array(sliceBuffer + more), { qos: 1 })
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ payload: { length: sliceBuffer + more } }])
    expect(Math.max(...world.stub.writes.map((bytes) => bytes.length))).toBeLessThanOrEqual(sliceBuffer)
  })

  it('a large payload leaves in slices also behind properties that are larger than one', async () => {
    const world = await stubbed()
    const userProperties = Array.from({ length: 3 }, (): [string, string] => ['k', 'v'.repeat(50_000)])
    void world.client.publish('t', new Uint8Array(300_000).fill(7), { qos: 1, properties: { userProperties } })
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ payload: { length: 300_000 } }])
    const [head, ...slices] = world.stub.writes.map((bytes) => bytes.length)
    expect(head).toBeLessThan(150_100)
    expect(slices).toEqual([sliceBuffer, sliceBuffer, 300_000 - 2 * sliceBuffer])
  })

  it('a packet that no buffer holds leaves whole', async () => {
    const world = await stubbed()
    const userProperties = Array.from({ length: 60 }, (_, index): [string, string] => ['k'.repeat(1000), `${index}`.padEnd(1000)])
    world.client.post('t', 'before')
    void world.client.publish('t', 'x', { properties: { userProperties } })
    await world.settle()
    expect((world.stub.packets[1] as PublishPacket).properties.userProperties).toEqual(userProperties)
  })
})

describe('whose a buffer is', () => {
  it('the transport has it until it says that the bytes have left', async () => {
    const world = await stubbed()
    world.stub.holds = true
    for (let i = 0; i < 40; i++) {
      world.client.post('t', new Uint8Array(500).fill(i))
      await world.settle()
    }
    expect(world.stub.arrays.map((bytes, index) => Buffer.compare(bytes, world.stub.writes[index] ?? bytes.subarray(1)))).toEqual(
      new Array(40).fill(0),
    )
    expect(new Set(world.stub.arrays.map((bytes) => bytes.buffer)).size).toBe(40)
  })

  it('and no longer: it is used again', async () => {
    const world = await stubbed()
    for (let i = 0; i < 20; i++) {
      world.client.post('t', 'x')
      await world.settle()
    }
    expect(new Set(world.stub.arrays.map((bytes) => bytes.buffer)).size).toBeLessThanOrEqual(2)
  })

  it('a transport that says so twice gives it back once', async () => {
    const world = await stubbed()
    const twice: (() => void)[] = []
    const { stub } = world
    stub.write = (bytes, written) => {
      stub.writes.push(bytes.slice())
      stub.arrays.push(bytes)
      if (written !== undefined) twice.push(written)
      return true
    }
    for (const text of ['a', 'b']) {
      world.client.post('t', text)
      await world.settle()
    }
    for (const written of [...twice, ...twice]) written()
    for (const text of ['c', 'd', 'e', 'f']) {
      world.client.post('t', text)
      await world.settle()
    }
    expect(new Set(stub.arrays.slice(2).map((bytes) => bytes.buffer)).size).toBe(4)
    expect(stub.payloads).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  it('one that did not leave is not used again: it may still be on its way', async () => {
    const world = await stubbed()
    const failing: ((error?: unknown) => void)[] = []
    const { stub } = world
    stub.write = (bytes, written) => {
      stub.arrays.push(bytes)
      if (written !== undefined) failing.push(written)
      return true
    }
    world.client.post('t', 'x')
    await world.settle()
    for (const written of failing) written(new Error('cut'))
    const [lost] = stub.arrays
    expect(Array.from({ length: 2000 }, () => takeBuffer(1)).some((bytes) => bytes.buffer === lost?.buffer)).toBe(false)
  })

  it('what a refused packet was written to is no longer held', async () => {
    const world = await stubbed({}, { maximumPacketSize: 20 })
    const before = takeBuffer(1)
    giveBuffer(before)
    expect(() => world.client.post('t', 'x'.repeat(30))).toThrow(expect.objectContaining({ code: 'ERR_PACKET_TOO_LARGE' }))
    await world.settle()
    expect(takeBuffer(1)).toBe(before)
    giveBuffer(before)
    expect(world.stub.writes).toEqual([])
  })

  it('one that holds what was never handed over comes back when the connection ends', async () => {
    const world = await stubbed()
    const before = takeBuffer(1)
    giveBuffer(before)
    world.client.post('t', 'x')
    world.client.destroy()
    await world.settle()
    expect(takeBuffer(1)).toBe(before)
    giveBuffer(before)
  })

  it('only so many are kept, and only of the three sizes', () => {
    const odd = new Uint8Array(100)
    giveBuffer(odd)
    const made = new Set<Uint8Array>(Array.from({ length: 500 }, () => new Uint8Array(largeBuffer)))
    for (const bytes of made) giveBuffer(bytes)
    const kept = Array.from({ length: 500 }, () => takeBuffer(largeBuffer)).filter((bytes) => made.has(bytes))
    expect(kept.length).toBeLessThanOrEqual(32)
    expect(takeBuffer(50)).not.toBe(odd)
    const slices = new Set<Uint8Array>(Array.from({ length: 50 }, () => new Uint8Array(sliceBuffer)))
    for (const bytes of slices) giveBuffer(bytes)
    expect(Array.from({ length: 50 }, () => takeBuffer(largeBuffer + 1)).filter((bytes) => slices.has(bytes)).length).toBeLessThanOrEqual(8)
    expect(takeBuffer(largeBuffer + 1).length).toBe(sliceBuffer)
    expect(takeBuffer(sliceBuffer + 1).length).toBe(sliceBuffer + 1)
  })
})

describe('a transport that takes all and tells late what has left', () => {
  it('is given a mebibyte at a time, and nobody is told that it reads nothing', async () => {
    const world = await stubbed({ memoryBudget: 2 * 1024 * 1024 })
    world.stub.holds = true
    const taken = fill(world)
    expect(taken * payload.length).toBeGreaterThan(900_000)
    expect(taken * payload.length).toBeLessThan(1_200_000)
    const waiting = watched(world.client.writable)
    await world.settle()
    expect(waiting.state).toBe('pending')
    expect(world.client.state).toBe('connected')
    world.stub.release()
    await world.settle()
    expect(waiting.state).toBe('fulfilled')
    expect(world.client.post('t', payload)).toBe(true)
  })

  it('what was published meanwhile leaves in order, without drain()', async () => {
    const world = await stubbed()
    world.stub.holds = true
    fill(world)
    const { stub } = world
    const sink = stub.sink
    if (sink !== undefined) stub.sink = { ...sink, drain: () => undefined, closed: (cause: unknown) => sink.closed(cause) } as typeof sink
    const outcomes = ['a', 'b', 'c'].map((text) => watched(world.client.publish('t', text)))
    await world.settle()
    expect(outcomes.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending'])
    stub.release()
    await world.settle()
    expect(outcomes.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(stub.payloads.slice(-3)).toEqual(['a', 'b', 'c'])
  })

  it('may be destroyed by whoever is told that bytes have left', async () => {
    const world = await stubbed()
    world.stub.holds = true
    fill(world)
    void world.client.flush().then(() => world.client.destroy())
    const queued = watched(world.client.publish('t', 'x', { qos: 1 }))
    world.stub.release()
    await world.settle()
    expect(world.client.state).toBe('closed')
    expect(queued.state).toBe('rejected')
  })
})

describe('what is posted as text', () => {
  it('arrives as the platform encodes it, whatever it holds', async () => {
    const world = await stubbed({}, { topicAliasMaximum: 2 })
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ maxLength: 300 }),
          fc.string({ unit: 'binary', maxLength: 300 }),
          fc.constantFrom('\ud800', 'a\udfff', 'ü'.repeat(20_000), '\0'),
        ),
        fc.constantFrom('t', 'u', 'v'),
        async (text, topic) => {
          world.forget()
          expect(world.client.post(topic, text)).toBe(true)
          await world.settle()
          const [packet] = world.stub.packets as PublishPacket[]
          expect(Buffer.compare(packet?.payload ?? new Uint8Array(0), new TextEncoder().encode(text))).toBe(0)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('is watched as bytes', async () => {
    const world = await stubbed()
    const seen: unknown[] = []
    world.client.on('packet', ({ packet }) => seen.push(packet))
    world.client.post('t', 'hi')
    expect(seen).toMatchObject([{ type: 'publish', topic: 't', payload: Uint8Array.of(0x68, 0x69), qos: 0, packetId: undefined, properties: {} }])
  })
})

describe('a listener of packets that publishes', () => {
  it('while the output is flushed, comes behind what it saw', async () => {
    const world = await stubbed()
    let count = 0
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'publish' && count++ < 5) world.client.post('t', `more ${count}`)
    })
    world.client.post('t', new Uint8Array(40_000).fill(1))
    for (let i = 0; i < 100; i++) world.client.post('u', payload)
    await world.settle()
    expect(world.stub.packets.length).toBe(106)
    expect(world.stub.payloads.filter((text) => text.startsWith('more'))).toEqual(['more 1', 'more 2', 'more 3', 'more 4', 'more 5'])
  })
})

describe('a topic alias', () => {
  it('is none for an empty topic, which is refused as without aliases', async () => {
    const world = await stubbed({}, { topicAliasMaximum: 4 })
    for (let round = 0; round < 2; round++) {
      for (const topic of ['', 'a/#', '\0']) {
        expect(() => world.client.post(topic, 'x')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }))
      }
    }
    await world.settle()
    expect(world.stub.writes).toEqual([])
  })
})
