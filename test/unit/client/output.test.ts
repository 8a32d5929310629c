/** The output buffers: whose they are and when, what leaves together, and where it stops. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  giveBuffer,
  largeBuffer,
  sliceBuffer,
  smallBuffer,
  takeBuffer,
} from '../../../src/client/connection/outgoing-bytes.js'
import { mostWrites } from '../../../src/client/connection/packet-writer.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { coded, times } from './harness.js'
import { ack, type StubWorld, stubbed, watched } from './stub.js'

const payload = new Uint8Array(1000).fill(7)

/** Posts until it is refused; how many were taken. */
function fill(world: StubWorld): number {
  for (let count = 0; count < 100_000; count++) if (!world.client.post('t', payload)) return count
  throw new Error('there is no end to it')
}

async function postEach(world: StubWorld, ...payloads: (string | Uint8Array<ArrayBuffer>)[]) {
  for (const each of payloads) {
    world.client.post('t', each)
    await world.settle()
  }
}

const sizes = ({ stub }: StubWorld): number[] => stub.writes.map((bytes) => bytes.length)
const buffers = ({ stub }: StubWorld): ArrayBufferLike[] => stub.arrays.map((bytes) => bytes.buffer)
const properties = (count: number, size: number): [string, string][] =>
  times(count, (index) => ['k', `${index}`.padEnd(size)])

it('one write for a turn, acknowledgements and data in it', async () => {
  const world = await stubbed()
  void world.client.publish('t', 'q', { qos: 2 })
  await world.settle()
  world.forget()
  world.client.post('t', 'a')
  void world.client.publish('t', 'b', { qos: 1 })
  expect(world.stub.writes).toEqual([])
  world.stub.deliver(ack('pubrec', 1))
  expect(world.stub.packets.map(({ type }) => type)).toEqual(['publish', 'publish', 'pubrel'])
  await world.settle()
  expect(world.stub.writes).toHaveLength(1)
})

it.each([
  ['also seen: publishes glued into one huge frame', 200, () => 't', payload, 4],
  [
    'long topics make the difference',
    60,
    (index: number) => `${index}/${'t'.repeat(10_000)}`,
    'x',
    15,
  ],
] as const)('%s: no write is above 64 KiB', async (_title, count, topic, content, most) => {
  const world = await stubbed()
  for (let index = 0; index < count; index++) world.client.post(topic(index), content)
  await world.settle()
  expect(world.stub.packets).toHaveLength(count)
  expect(sizes(world).length).toBeLessThanOrEqual(most)
  expect(Math.max(...sizes(world))).toBeLessThanOrEqual(largeBuffer)
})

it('a few bytes come in a small buffer, many in a large one', async () => {
  const world = await stubbed()
  await postEach(world, 'x')
  for (let i = 0; i < 5; i++) world.client.post('t', payload)
  await world.settle()
  expect(buffers(world).map(({ byteLength }) => byteLength)).toEqual([smallBuffer, largeBuffer])
  expect(world.stub.payloads).toHaveLength(6)
})

it('acknowledgements that pile up for a blocked transport leave in full buffers, and what is left over waits for more', async () => {
  const world = await stubbed()
  world.stub.holds = true
  world.stub.takes = false
  const pubrecs = Buffer.concat(
    times(9000, (at) => Buffer.from([0x50, 2, (at + 1) >> 8, (at + 1) & 255])),
  )
  for (let read = 0; read < 120; read++) {
    // Reads that come to nothing in front of a full buffer, too.
    world.stub.sink?.chunk(read < mostWrites + 20 ? pubrecs.subarray(0, 12_000) : pubrecs)
    await world.settle()
  }
  const all = sizes(world)
  expect(world.stub.packets.filter(({ type }) => type === 'pubrel').length).toBeGreaterThan(500_000)
  expect(
    Math.max(...all, ...buffers(world).map(({ byteLength }) => byteLength)),
  ).toBeLessThanOrEqual(largeBuffer)
  // Those under way at first are smaller.
  expect(all.length).toBeGreaterThan(mostWrites + 1)
  expect(Math.min(...all.slice(mostWrites))).toBeGreaterThan(largeBuffer - 16)
})

it.each([-30, -10, 0, 10])('128 KiB and %i bytes: no longer write', async (more) => {
  const world = await stubbed()
  void world.client.publish('t', new Uint8Array(sliceBuffer + more), { qos: 1 })
  await world.settle()
  expect(world.stub.packets).toMatchObject([{ payload: { length: sliceBuffer + more } }])
  expect(Math.max(...sizes(world))).toBeLessThanOrEqual(sliceBuffer)
})

it('a large payload leaves in slices also behind properties that are larger than one', async () => {
  const world = await stubbed()
  void world.client.publish('t', new Uint8Array(300_000).fill(7), {
    qos: 1,
    properties: { userProperties: properties(3, 50_000) },
  })
  await world.settle()
  expect(world.stub.packets).toMatchObject([{ payload: { length: 300_000 } }])
  const [head, ...slices] = sizes(world)
  expect(head).toBeLessThan(150_100)
  expect(slices).toEqual([sliceBuffer, sliceBuffer, 300_000 - 2 * sliceBuffer])
})

it('a packet that no buffer holds leaves whole', async () => {
  const world = await stubbed()
  const userProperties = properties(60, 2000)
  world.client.post('t', 'before')
  void world.client.publish('t', 'x', { properties: { userProperties } })
  await world.settle()
  expect((world.stub.packets[1] as PublishPacket).properties.userProperties).toEqual(userProperties)
})

it('a buffer: the transport has it until it says that the bytes have left', async () => {
  const world = await stubbed()
  world.stub.holds = true
  await postEach(world, ...times(40, (index) => new Uint8Array(500).fill(index)))
  const { arrays, writes } = world.stub
  for (const [index, bytes] of arrays.entries())
    expect(Buffer.compare(bytes, writes[index] ?? bytes.subarray(1))).toBe(0)
  expect(new Set(buffers(world)).size).toBe(40)
})

it('a buffer: and no longer: it is used again', async () => {
  const world = await stubbed()
  await postEach(world, ...Array<string>(20).fill('x'))
  expect(new Set(buffers(world)).size).toBeLessThanOrEqual(2)
})

it('a buffer: a transport that says so twice gives it back once', async () => {
  const world = await stubbed()
  const twice: (() => void)[] = []
  const { stub } = world
  stub.write = (bytes, written = () => undefined) => {
    stub.writes.push(bytes.slice())
    stub.arrays.push(bytes)
    twice.push(written)
    return true
  }
  await postEach(world, 'a', 'b')
  for (const written of [...twice, ...twice]) written()
  await postEach(world, 'c', 'd', 'e', 'f')
  expect(new Set(buffers(world).slice(2)).size).toBe(4)
  expect(stub.payloads).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})

it('a buffer: one that did not leave is not used again: it may still be on its way', async () => {
  const world = await stubbed()
  const failing: ((error?: unknown) => void)[] = []
  world.stub.write = (bytes, written = () => undefined) => {
    world.stub.arrays.push(bytes)
    failing.push(written)
    return true
  }
  await postEach(world, 'x')
  for (const written of failing) written(new Error('cut'))
  const [lost] = buffers(world)
  expect(times(2000, () => takeBuffer(1)).some(({ buffer }) => buffer === lost)).toBe(false)
})

it.each<[string, (world: StubWorld) => unknown]>([
  [
    'is no longer held when the packet that was written to it is refused',
    ({ client }) =>
      expect(() => client.post('t', 'x'.repeat(30))).toThrow(coded('ERR_PACKET_TOO_LARGE')),
  ],
  [
    'comes back when the connection ends with what was never handed over',
    ({ client }) => [client.post('t', 'x'), client.destroy()],
  ],
])('a buffer: one %s', async (_title, happens) => {
  const world = await stubbed({}, { maximumPacketSize: 20 })
  const before = takeBuffer(1)
  giveBuffer(before)
  happens(world)
  await world.settle()
  expect(takeBuffer(1)).toBe(before)
  giveBuffer(before)
  expect(world.stub.payloads).toEqual([])
})

it('a buffer: only so many are kept, and only of the three sizes', () => {
  const odd = new Uint8Array(100)
  giveBuffer(odd)
  for (const [count, size, asked, most] of [
    [500, largeBuffer, largeBuffer, 32],
    [50, sliceBuffer, largeBuffer + 1, 8],
  ] as const) {
    const made = times(count, () => new Uint8Array(size))
    for (const bytes of made) giveBuffer(bytes)
    const kept = made
      .map(() => takeBuffer(asked))
      .filter((bytes) => made.includes(bytes as (typeof made)[number]))
    expect(kept.length).toBeLessThanOrEqual(most)
  }
  expect(takeBuffer(50)).not.toBe(odd)
  expect([takeBuffer(largeBuffer + 1).length, takeBuffer(sliceBuffer + 1).length]).toEqual([
    sliceBuffer,
    sliceBuffer + 1,
  ])
})

describe('a transport that takes all and tells late what has left', () => {
  it('is given a mebibyte at a time, and its silence about the rest is no fault', async () => {
    const world = await stubbed({ memoryBudget: 2 * 1024 * 1024 })
    world.stub.holds = true
    const taken = fill(world) * payload.length
    expect(taken).toBeGreaterThan(900_000)
    expect(taken).toBeLessThan(1_200_000)
    const waiting = watched(world.client.writable)
    await world.settle()
    expect([waiting.state, world.client.state]).toEqual(['pending', 'connected'])
    world.stub.release()
    await world.settle()
    expect([waiting.state, world.client.post('t', payload)]).toEqual(['fulfilled', true])
  })

  it('what was published meanwhile leaves in order, without drain()', async () => {
    const world = await stubbed()
    const { stub } = world
    stub.holds = true
    fill(world)
    const { sink } = stub
    if (sink !== undefined)
      stub.sink = {
        ...sink,
        drain: () => undefined,
        closed: (cause: unknown) => sink.closed(cause),
      } as typeof sink
    const outcomes = ['a', 'b', 'c'].map((text) => watched(world.client.publish('t', text)))
    await world.settle()
    expect(outcomes.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending'])
    stub.release()
    await world.settle()
    expect(outcomes.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(stub.payloads.slice(-3)).toEqual(['a', 'b', 'c'])
  })

  it('may be destroyed by what waits for bytes to leave', async () => {
    const world = await stubbed()
    world.stub.holds = true
    fill(world)
    void world.client.flush().then(() => world.client.destroy())
    const queued = watched(world.client.publish('t', 'x', { qos: 1 }))
    world.stub.release()
    await world.settle()
    expect([world.client.state, queued.state]).toEqual(['closed', 'rejected'])
  })
})

it('what is posted as text arrives as the platform encodes it, whatever it holds', async () => {
  const world = await stubbed({}, { topicAliasMaximum: 2 })
  const odd = fc.constantFrom('\ud800', 'a\udfff', 'ü'.repeat(20_000), '\0')
  const texts = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.string({ unit: 'binary', maxLength: 300 }),
    odd,
  )
  await fc.assert(
    fc.asyncProperty(texts, fc.constantFrom('t', 'u', 'v'), async (text, topic) => {
      world.forget()
      expect(world.client.post(topic, text)).toBe(true)
      await world.settle()
      const [packet] = world.stub.packets as PublishPacket[]
      expect(
        Buffer.compare(packet?.payload ?? new Uint8Array(0), new TextEncoder().encode(text)),
      ).toBe(0)
    }),
    { numRuns: 200 },
  )
})

it('an empty topic gets no alias, and is refused as without aliases', async () => {
  const world = await stubbed({}, { topicAliasMaximum: 4 })
  for (const topic of ['', 'a/#', '\0', '', 'a/#', '\0'])
    expect(() => world.client.post(topic, 'x')).toThrow(coded('ERR_INVALID_TOPIC'))
  await world.settle()
  expect(world.stub.writes).toEqual([])
})
