/** What comes in, a slice at a time, and what a connection says it holds, by which the memory budget for messages is less. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Connection } from '../../../src/client/connection/connection.js'
import { sliceLength } from '../../../src/client/connection/stream-reader.js'
import { encode } from '../../../src/wire/encode.js'
import { packet, properties, text, varint } from '../../lab/budgets/bytes.js'
import { willing } from './across.js'
import { agreeable, connected, times, World } from './harness.js'
import { agreed, publish, quiet } from './incoming.js'
import { patient } from './patient.js'
import { SlowLink } from './slow-link.js'
import { StalledTransport } from './stalled-transport.js'
import { over } from './steps.js'
import { PausableTransport } from './stub.js'

/** So many messages of six bytes. */
const flood = (count: number): Uint8Array =>
  new Uint8Array(Buffer.alloc(count * 6, Buffer.of(0x30, 4, 0, 1, 0x61, 0)))

async function fed(patient = true) {
  const transport = new PausableTransport(patient)
  const world = await over(transport, (connack) => transport.sink?.chunk(connack), { stats: true })
  return { world, transport, received: () => (world.client.stats().packetsReceived ?? 0) - 1 }
}

it('a slice of packets at a time: the rest waits for the next turn, and the transport meanwhile', async () => {
  const { world, transport, received } = await fed()
  const chunk = flood(3.5 * sliceLength)
  transport.sink?.chunk(chunk)
  const walked = received()
  expect(walked).toBeLessThanOrEqual(sliceLength)
  expect(transport.calls).toEqual(['pause'])
  // The memory is the transport's again.
  chunk.fill(0xff)
  const seen: number[] = []
  world.clock.setTimer(() => seen.push(received()), 0)
  await world.settle()
  expect(seen[0]).toBeLessThanOrEqual(2 * sliceLength)
  expect(received()).toBe(3.5 * sliceLength)
  expect(transport.calls).toEqual(['pause', 'resume'])
  expect(world.client.state).toBe('connected')
})

it('many small reads of one turn count together', async () => {
  const { world, transport, received } = await fed()
  for (let read = 0; read < 25; read++) transport.sink?.chunk(flood(sliceLength / 10))
  expect(received()).toBeLessThanOrEqual(sliceLength)
  await world.settle()
  expect(received()).toBe(2.5 * sliceLength)
})

it('control packets behind a flood are handled, and what arrives meanwhile comes after it', async () => {
  const { world, transport, received } = await fed()
  const publishing = world.client.publish('a', 'b', { qos: 1 })
  await world.settle()
  transport.sink?.chunk(flood(1.5 * sliceLength))
  transport.sink?.chunk(Uint8Array.from([0x40, 2, 0, 1]))
  transport.sink?.chunk(flood(10))
  await world.settle()
  await expect(publishing).resolves.toMatchObject({ packetId: 1 })
  expect(received()).toBe(1.5 * sliceLength + 11)
})

it('the end of the stream waits for what was read before it', async () => {
  const { world, transport, received } = await fed()
  const goodbye = encode({ type: 'disconnect', reasonCode: 0x8b })
  transport.sink?.chunk(Uint8Array.from([...flood(3 * sliceLength), ...goodbye]))
  expect(received()).toBeLessThanOrEqual(sliceLength)
  transport.sink?.closed(undefined)
  expect(world.seen('serverdisconnect')).toMatchObject([{ packet: { reasonCode: 0x8b } }])
  expect(received()).toBe(3 * sliceLength + 1)
})

it('a malformed packet behind a flood ends the connection with 0x81, once it is read', async () => {
  const { world, transport } = await fed()
  transport.writes.length = 0
  transport.sink?.chunk(Uint8Array.from([...flood(1.5 * sliceLength), 0x00, 0x00]))
  expect(world.client.state).toBe('connected')
  await world.settle()
  expect(transport.writes).toEqual([Uint8Array.of(0xe0, 1, 0x81)])
  expect(world.client.state).toBe('closed')
})

it('nothing is walked after the client was destroyed in between, and the transport is not left waiting', async () => {
  const { world, transport, received } = await fed()
  transport.sink?.chunk(flood(3 * sliceLength))
  const walked = received()
  world.client.destroy()
  await world.settle()
  expect(received()).toBe(walked)
  expect(transport.calls.at(-1)).toBe('resume')
})

it('where a transport knows no patience, a mebibyte waits at most', async () => {
  const { transport, received } = await fed(false)
  transport.sink?.chunk(flood(2 * sliceLength))
  expect(received()).toBeLessThanOrEqual(sliceLength)
  transport.sink?.chunk(flood(1024 * 100))
  expect(received()).toBeLessThanOrEqual(sliceLength)
  transport.sink?.chunk(flood(1024 * 155))
  expect(received()).toBe(2 * sliceLength + 1024 * 255)
})

it('five milliseconds of work are a slice as well', async () => {
  const world = await agreed({ stats: true })
  // Every packet costs time.
  world.client.on('packet', ({ packet }) => {
    if (packet.type === 'publish') world.clock.jump(1)
  })
  const before = world.client.stats().packetsReceived ?? 0
  const turns: number[] = []
  const tick = (): void => {
    turns.push((world.client.stats().packetsReceived ?? 0) - before)
    if ((turns.at(-1) ?? 0) < 600) world.clock.setTimer(tick, 0)
  }
  world.clock.setTimer(tick, 0)
  world.peer.sendBytes(flood(600))
  await world.clock.advance(5_000)
  expect(turns.at(-1)).toBe(600)
  const steps = turns.map((turn, index) => turn - (turns[index - 1] ?? 0))
  expect(Math.max(...steps)).toBeLessThanOrEqual(128)
})

it('five milliseconds of work over many small reads of one turn, too', async () => {
  const { world, transport, received } = await fed()
  world.client.on('packet', () => world.clock.jump(1))
  for (let read = 0; read < 100; read++) transport.sink?.chunk(flood(4))
  expect(received()).toBeLessThanOrEqual(64)
  await world.clock.advance(1000)
  expect(received()).toBe(400)
})

it.each([
  ['PUBACK', 0x40, 10_001],
  ['PUBREC', 0x50, 10_001],
  ['PUBREL', 0x62, 10_001],
  ['PUBCOMP', 0x70, 10_001],
  ['PINGRESP', 0xd0, 10_001],
  ['SUBACK', 0x90, 100_001],
  ['UNSUBACK', 0xb0, 100_001],
  ['DISCONNECT', 0xe0, 100_001],
  ['AUTH', 0xf0, 100_001],
])('%s above its cap is refused at the header, before its body came', async (_name, type, size) => {
  const world = await agreed()
  await world.sendBytes([type, ...varint(size - 1 - varint(size).length)])
  expect(world.peer.last('disconnect')).toMatchObject({ reasonCode: 0x95 })
  expect(world.seen('disconnect')).toMatchObject([
    { cause: { code: 'ERR_PACKET_TOO_LARGE', fault: 'remote' } },
  ])
})

it('PUBACK and DISCONNECT of exactly their cap are read', async () => {
  const world = await agreed()
  const puback = packet(0x40, [0, 9, 0], properties(0x1f, text('x'.repeat(9989))))
  const pair = [0x26, text(''), text('y'.repeat(39_984))] as const
  const disconnect = packet(0xe0, 0x8b, properties(0x1f, text('x'.repeat(60_000)), ...pair))
  expect([puback.length, disconnect.length]).toEqual([10_000, 100_000])
  await world.sendBytes(puback)
  expect(world.client.state).toBe('connected')
  await world.sendBytes(disconnect)
  expect(world.seen('serverdisconnect').map(({ packet }) => packet.reasonCode)).toEqual([0x8b])
})

const connack = '20 03 00 00 00'

it('nothing is written to a transport after it was destroyed, not even what the same turn had queued', async () => {
  const transport = new StalledTransport(0)
  const options = { memoryBudget: 3000, receiveMaximum: 65_535 }
  const world = await over(transport, () => transport.feed(connack), options)
  let late = 0
  const write = transport.write.bind(transport)
  transport.write = (bytes, written) => {
    if (transport.destroyed !== undefined) late += 1
    return write(bytes, written)
  }
  // Nobody reads the acknowledgements of a thousand messages.
  const message = (id: number): string => `32 06 00 01 61 ${id.toString(16).padStart(4, '0')} 00`
  transport.feed(times(900, (index) => message(index + 1)).join(' '))
  await world.settle()
  expect(world.client.state).toBe('closed')
  expect(transport.destroyed).toBeDefined()
  expect(late).toBe(0)
})

it('a payload larger than the memory budget is not held against the server: it is sent and acknowledged', async () => {
  const world = await connected({ memoryBudget: 3000 })
  const publishing = world.client.publish('t', new Uint8Array(40_000), { qos: 1 })
  await world.send({ type: 'pingresp' })
  expect(world.peer.last('publish').payload?.length).toBe(40_000)
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0 })
  await expect(publishing).resolves.toMatchObject({ packetId: 1 })
  expect(world.client.state).toBe('connected')
})

it('while it has not left, messages that come in are taken and acknowledged all the same', async () => {
  const transport = new StalledTransport(1000)
  const world = await over(transport, () => transport.feed(connack), { memoryBudget: 3000 })
  quiet(world.client.publish('t', new Uint8Array(40_000), { qos: 1 }))
  await world.settle()
  transport.written.length = 0
  transport.feed('32 06 00 01 61 00 09 00')
  await world.settle()
  expect(transport.written).toEqual([0x40, 2, 0, 9])
  expect(world.client.state).toBe('connected')
  world.client.destroy()
})

describe('a connection says that it holds', () => {
  let connection: Connection
  beforeEach(() => {
    const { pump } = Connection.prototype
    vi.spyOn(Connection.prototype, 'pump').mockImplementation(function (this: Connection) {
      connection = this
      pump.call(this)
    })
  })
  afterEach(() => void vi.restoreAllMocks())

  it('as much of a packet as came in, and nothing of it once the rest is there', async () => {
    const world = await connected()
    const before = connection.held
    const bytes = encode({ type: 'suback', packetId: 1, reasonCodes: new Array(2000).fill(0) })
    await world.sendBytes(bytes.subarray(0, 1500))
    expect(connection.held - before).toBeGreaterThanOrEqual(1500)
    expect(connection.held - before).toBeLessThan(16 * 1500)
  })

  it.each([
    ['topics that are remembered', {}, 't'.repeat(900)],
    ['topics under an alias', { topicAlias: 1 }, 'a'.repeat(2000)],
  ])('%s', async (_name, properties, topic) => {
    const world = await connected({ topicAliasMaximum: 5 })
    const before = connection.held
    // A topic is remembered when it comes again.
    for (let times = 0; times < 2; times++)
      await world.send(publish(topic, 'x', undefined, { properties }))
    expect(connection.held - before).toBeGreaterThanOrEqual(topic.length)
  })

  it('what came in behind a message that has no room', async () => {
    const options = { clientId: 'c', cleanStart: false, memoryBudget: 11_000 }
    const world = await new World(options, {}, 1, (_index, open) => patient(open())).up(
      willing(true),
    )
    const granted = world.client.listen('a', () => new Promise(() => undefined), { qos: 1 })
    await world.settle()
    await granted
    await world.send(...times(20, (index) => publish('a', 'x'.repeat(3000), index + 1)))
    expect(connection.held).toBeGreaterThan(15 * 3000)
  })

  it('what comes in behind a packet that is still to be judged, until it is', async () => {
    const world = await connected()
    const before = connection.held
    const { reader } = connection
    reader.hold(world)
    for (const id of [1, 2, 3]) await world.send(publish('a', 'x'.repeat(1000), id))
    expect(connection.held - before).toBeGreaterThan(3000)
    reader.release(world)
    expect(connection.held - before).toBeLessThan(1000)
  })

  it('output that has not left, but for large payloads, and never less than nothing', async () => {
    const connections: SlowLink[] = []
    const world: World = new World({ keepAlive: false }, {}, 1, () => {
      connections.push(new SlowLink(world.clock, { rate: 1_000_000, kernel: 1 }, agreeable))
      return connections[0] as SlowLink
    })
    await Promise.all([world.client.connect(), world.clock.advance(1000)])
    const before = connection.held
    world.client.post('a', new Uint8Array(40_000))
    expect(connection.held - before).toBeLessThan(1000)
    await world.clock.advance(1000)
    expect(connection.held - before).toBeLessThan(100)
    ;(connections[0] as SlowLink).rate = 0
    for (let count = 0; count < 10; count++) world.client.post('a', new Uint8Array(1000))
    expect(connection.held - before).toBeGreaterThan(10_000)
    await world.settle()
    expect(connection.held - before).toBeGreaterThan(10_000)
    const settled = world.client.publish('a', new Uint8Array(3_000_000)).catch(() => undefined)
    await world.settle()
    expect(connection.held - before).toBeLessThan(30_000)
    world.client.destroy()
    await settled
    expect(connection.held).toBeGreaterThanOrEqual(0)
  })
})
