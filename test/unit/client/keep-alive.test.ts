import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { publish } from './incoming.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'

const pings = (world: World): number => world.peer.all('pingreq').length

/** Connected to a peer that has stopped; what comes in is fed by the test. */
async function stalled(options: ClientOptions, room?: number): Promise<{ world: World; transport: StalledTransport }> {
  const transport = new StalledTransport(room)
  const world = new World(options, {}, 1, () => transport)
  const connecting = world.client.connect()
  await world.settle()
  transport.feed(plainConnack)
  await connecting
  return { world, transport }
}

it('an idle link: PINGREQ when the keep-alive has passed, and again after PINGRESP [MQTT-3.1.2-20]', async () => {
  const world = await connected({ keepAlive: 20 }, agreeable)
  await world.clock.advance(19_999)
  expect(pings(world)).toBe(0)
  await world.clock.advance(1)
  expect(pings(world)).toBe(1)
  await world.clock.advance(20_000)
  expect(pings(world)).toBe(2)
  await world.clock.advance(60_000)
  expect(pings(world)).toBe(5)
  expect(world.client.state).toBe('connected')
})

it('what is sent puts PINGREQ off', async () => {
  const world = await connected({ keepAlive: 20 }, agreeable)
  for (let round = 0; round < 10; round++) {
    await world.clock.advance(15_000)
    await Promise.all([world.client.publish('a', 'b', { qos: 1 }), world.settle()])
  }
  expect(pings(world)).toBe(0)
})

it('the keep-alive of the server goes over ours [MQTT-3.1.2-21]', async () => {
  const world = await connected({ keepAlive: 60 }, (packet) =>
    packet.type === 'connect' ? accepting({ serverKeepAlive: 5 })(packet) : agreeable(packet),
  )
  await world.clock.advance(5000)
  expect(pings(world)).toBe(1)
})

it.each([0, false] as const)('keep-alive %s: never PINGREQ', async (keepAlive) => {
  const world = await connected({ keepAlive })
  expect(world.peer.last('connect').keepAlive).toBe(0)
  await world.clock.advance(10 * 3_600_000)
  expect(pings(world)).toBe(0)
  expect(world.client.state).toBe('connected')
  expect(world.clock.pending).toBe(0)
})

it('the server turns it off', async () => {
  const world = await connected({ keepAlive: 10 }, accepting({ serverKeepAlive: 0 }))
  await world.clock.advance(3_600_000)
  expect(pings(world)).toBe(0)
  expect(world.client.state).toBe('connected')
})

it('traffic towards us only: PINGREQ is sent on time', async () => {
  const world = await connected({ keepAlive: 10 }, agreeable)
  for (let second = 0; second < 35; second++) {
    await world.clock.advance(1000)
    await world.send(publish('a', 'x'))
  }
  expect(pings(world)).toBe(3)
})

it('calls that send nothing do not count as sending [MQTT-3.1.2-20]', async () => {
  const world = await connected({ keepAlive: 10 }, agreeable)
  for (let second = 0; second < 35; second++) {
    await world.clock.advance(1000)
    await world.send(publish('a', 'x'))
    await Promise.all([world.client.flush(), world.settle()])
  }
  expect(pings(world)).toBe(3)
})

it('no PINGRESP: closed as keep-alive timeout after pingTimeout, everything pending settles', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 4000 })
  const publishing = failure(world.client.publish('a', 'b', { qos: 1 }))
  await world.clock.advance(13_999)
  expect(pings(world)).toBe(1)
  expect(world.client.state).toBe('connected')
  await world.clock.advance(1)
  expect(world.client.state).toBe('closed')
  const cause = await world.client.closed
  expect(cause).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', fault: 'remote' })
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(await publishing).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' })
  expect(world.peer.ended).toBeDefined()
  expect(world.clock.pending).toBe(0)
})

it('outgoing QoS 0 does not hide a peer that is silent', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  for (let second = 0; second < 15; second++) {
    world.client.post('a', 'x')
    await world.clock.advance(1000)
  }
  expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
})

it('a late timer neither doubles nor drifts', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 60_000 }, agreeable)
  world.clock.jump(35_000)
  await world.settle()
  expect(pings(world)).toBe(1)
  await world.clock.advance(9999)
  expect(pings(world)).toBe(1)
  await world.clock.advance(1)
  expect(pings(world)).toBe(2)
})

it('a late PINGRESP: one schedule goes on', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 4500 })
  await world.clock.advance(10_000)
  await world.clock.advance(4000)
  await world.send({ type: 'pingresp' })
  await world.clock.advance(9999)
  expect(pings(world)).toBe(1 + 1)
  expect(world.client.state).toBe('connected')
})

it('a packet that takes longer than the keep-alive: PINGREQs go out meanwhile, its bytes are life', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  const subscription = world.client.subscription('a')
  await world.sendBytes([0x30, 44, 0, 1, 0x61, 0])
  for (let at = 0; at < 40; at++) {
    await world.clock.advance(1000)
    await world.sendBytes([0x78])
  }
  expect(pings(world)).toBeGreaterThanOrEqual(3)
  expect(world.client.state).toBe('connected')
  expect(subscription.read()?.text()).toBe('x'.repeat(40))
})

it('a started packet that drips for ever is given up within max(2 × keep-alive, 60 s)', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  await world.sendBytes([0x30, 0xff, 0x7f, 0, 1, 0x61, 0])
  for (let second = 0; second < 61; second++) {
    await world.sendBytes([0x78])
    await world.clock.advance(1000)
  }
  expect(world.client.state).toBe('closed')
  expect(world.clock.pending).toBe(0)
})

it('a large packet that keeps 1 KiB/s is let through', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  const subscription = world.client.subscription('a')
  const length = 100 * 1024
  await world.sendBytes([0x30, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14, 0, 1, 0x61, 0])
  for (let second = 0; second < 100; second++) {
    await world.clock.advance(980)
    await world.sendBytes(new Uint8Array(second === 99 ? 1020 : 1024))
  }
  expect(world.client.state).toBe('connected')
  expect(subscription.read()?.payload.length).toBe(length - 4)
})

it('a flood of QoS 0 that lasts longer than the keep-alive: the link stays', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 2000 }, agreeable)
  for (let step = 0; step < 400; step++) {
    for (let index = 0; index < 20; index++) world.client.post('a', 'x')
    await world.clock.advance(100)
  }
  expect(world.client.state).toBe('connected')
  expect(world.peer.all('publish').length).toBe(8000)
  expect(pings(world)).toBeGreaterThanOrEqual(3)
})

it('a peer that stops reading: given up after keep-alive and pingTimeout, even if it still sends', async () => {
  const { world, transport } = await stalled({ keepAlive: 10, pingTimeout: 5000 }, 200)
  const publishing = failure(world.client.publish('a', new Uint8Array(1000), { qos: 1 }))
  await world.settle()
  const waiting = failure(world.client.publish('a', 'b'))
  for (let second = 0; second < 16; second++) {
    await world.clock.advance(1000)
    if (transport.destroyed === undefined) transport.feed('30 04 00 01 61 00')
  }
  await world.settle()
  expect(transport.destroyed).toBeDefined()
  expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  expect(await publishing).toMatchObject({ outcome: 'unknown' })
  expect(await waiting).toMatchObject({ outcome: 'not-sent' })
  expect(world.clock.pending).toBe(0)
})

it('a peer that reads again in time is kept', async () => {
  const { world, transport } = await stalled({ keepAlive: 10, pingTimeout: 5000 }, 200)
  failure(world.client.publish('a', new Uint8Array(1000), { qos: 1 }))
  await world.clock.advance(9000)
  transport.drain()
  for (let second = 0; second < 20; second++) {
    await world.clock.advance(1000)
    transport.feed('d0 00')
  }
  expect(world.client.state).toBe('connected')
})

it('a PINGRESP that nobody asked for is ignored', async () => {
  const world = await connected({ keepAlive: 10 }, agreeable)
  await world.send({ type: 'pingresp' }, { type: 'pingresp' })
  await world.clock.advance(25_000)
  expect(world.client.state).toBe('connected')
  expect(pings(world)).toBe(2)
})

it('keep-alive below 0, above 65,535, a fraction: refused', () => {
  for (const keepAlive of [-1, 65_536, 1.5, Number.NaN, '10', true, null] as never[])
    expect(() => new World({ keepAlive })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'keepAlive' }) as Error)
})

it('the keep-alive of one second is kept', async () => {
  const world = await connected({}, (packet) => (packet.type === 'connect' ? accepting({ serverKeepAlive: 1 })(packet) : agreeable(packet)))
  await world.clock.advance(10_000)
  expect(pings(world)).toBe(10)
})

it('a handler that is busy for five keep-alives: pings flow, no disconnect', async () => {
  const world = await connected({ keepAlive: 10 }, agreeable)
  const handling = world.client.listen('a', () => new Promise(() => undefined), { qos: 1 })
  await world.settle()
  await handling
  for (let second = 0; second < 50; second++) {
    await world.clock.advance(1000)
    await world.send(publish('a', 'x'))
  }
  expect(pings(world)).toBe(5)
  expect(world.client.state).toBe('connected')
})

it('a pingTimeout over half the keep-alive that is in force: half of it counts, told once where it was asked for', async () => {
  const lines: string[] = []
  const logger = { warn: (line: string) => void lines.push(line) }
  const asked = await connected({ keepAlive: 10, pingTimeout: 60_000, logger })
  expect(asked.client.negotiated?.pingTimeout).toBe(5000)
  expect(lines).toEqual([expect.stringContaining('5000 ms') as string])
  await asked.clock.advance(15_000)
  expect(await asked.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  lines.length = 0
  const usual = await connected({ keepAlive: 10, logger })
  const within = await connected({ keepAlive: 10, pingTimeout: 5000, logger })
  expect([usual.client.negotiated?.pingTimeout, within.client.negotiated?.pingTimeout, lines]).toEqual([5000, 5000, []])
})
