/** One write per flush, what happens when the transport takes no more, Receive Maximum and packet identifiers (sections 2.2.1, 4.9). */
import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { constant } from '../../../src/client/options/backoff.js'
import { lose } from './across.js'
import { accepting, connected, failure, times, World } from './harness.js'
import { publish, quiet } from './incoming.js'
import { ack, type StubWorld, stubbed, watched } from './stub.js'

/** A client whose transport has just said that it wants no more. */
async function blocked(...args: Parameters<typeof stubbed>): Promise<StubWorld> {
  const world = await stubbed(...args)
  world.stub.takes = false
  world.stub.holds = true
  world.client.post('fill', '')
  await world.settle()
  expect(world.stub.writes).toHaveLength(1)
  world.forget()
  return world
}

/** Watches promises, and lets them settle as far as they do. */
async function settled<T extends readonly Promise<unknown>[]>(
  world: StubWorld | World,
  ...promises: T
) {
  const all = promises.map((promise) => watched(promise))
  await world.settle()
  return all as unknown as { [K in keyof T]: ReturnType<typeof watched<Awaited<T[K]>>> }
}

const incoming = publish('s', 'x', 9)
const numbers = (count: number): string[] => times(count, (index) => `${index}`)

describe('one write per flush', () => {
  it('a lone publish leaves in the turn of the call', async () => {
    const world = await stubbed()
    world.client.publish('t', 'x', { qos: 1 })
    await Promise.resolve()
    expect(world.stub.writes).toHaveLength(1)
  })

  it('awaited QoS 0 publishes are not held back', async () => {
    const world = await stubbed()
    for (const text of numbers(3)) await world.client.publish('t', text)
    await world.settle()
    expect(world.stub.payloads).toEqual(numbers(3))
  })

  it('the answers to one read leave in one write, and the publishes that they let go with them', async () => {
    const world = await stubbed({}, { receiveMaximum: 3 })
    for (const text of numbers(6)) world.client.publish('t', text, { qos: 2 })
    await world.settle()
    for (const [type, writes] of [
      ['pubrec', 2],
      ['pubcomp', 3],
    ] as const) {
      await world.deliver(ack(type, 1), ack(type, 2), ack(type, 3))
      expect(world.stub.writes).toHaveLength(writes)
    }
    expect(world.stub.payloads).toEqual(numbers(6))
  })
})

it('a large QoS 0 payload settles when it was written, not before, and so does a small one with flush: true', async () => {
  const world = await stubbed()
  world.stub.holds = true
  const { client } = world
  const [small, large, flushed] = await settled(
    world,
    client.publish('t', new Uint8Array(32_767)),
    client.publish('t', new Uint8Array(32_768)),
    client.publish('t', 'x', { flush: true }),
  )
  expect([small.state, large.state, flushed.state]).toEqual(['fulfilled', 'pending', 'pending'])
  world.stub.release()
  await world.settle()
  for (const { value } of [large, flushed])
    expect(value).toMatchObject({ reasonCode: 0, packetId: undefined })
})

describe('a transport that takes no more', () => {
  it('publishes of every QoS wait, and leave in order when it drains', async () => {
    const world = await blocked()
    const levels = [0, 1, 2, 0, 1] as const
    const calls = levels.map((qos, index) => world.client.publish('t', `${index}`, { qos }))
    const all = await settled(world, ...calls)
    expect([world.stub.writes, world.client.outbound.size]).toEqual([[], 5])
    expect(all.every((one) => one.state === 'pending')).toBe(true)
    world.stub.release()
    await world.settle()
    const isQos0 = (text: string): boolean => text === '0' || text === '3'
    expect(world.stub.payloads.filter(isQos0)).toEqual(['0', '3'])
    expect(world.stub.payloads.filter((text) => !isQos0(text))).toEqual(['1', '2', '4'])
    expect([world.stub.writes.length, world.client.outbound.size]).toEqual([1, 0])
    expect([all[0]?.state, all[3]?.state]).toEqual(['fulfilled', 'fulfilled'])
  })

  it('acknowledgements, PUBREL and DISCONNECT go past the user data that waits', async () => {
    const world = await stubbed()
    const exchange = watched(world.client.publish('t', 'a', { qos: 2 }))
    const subscription = world.client.subscription('s', { qos: 1, ack: 'manual' })
    await world.settle()
    const id = world.stub.packets.find((packet) => packet.type === 'subscribe')?.packetId as number
    await world.deliver({ type: 'suback', packetId: id, reasonCodes: [1] })
    world.stub.takes = false
    world.client.post('fill', '')
    await world.settle()
    world.forget()
    const waiting = watched(world.client.publish('t', 'waits', { qos: 1 }))
    await world.deliver(ack('pubrec', 1), incoming)
    ;(await subscription.next())?.ack()
    await world.settle()
    expect(world.stub.packets.map((packet) => packet.type)).toEqual(['pubrel', 'puback'])
    await world.deliver(ack('pubcomp', 1))
    expect(exchange.state).toBe('fulfilled')
    await settled(world, world.client.disconnect({ timeout: 0 }))
    expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
    expect(waiting.error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })

  it('PINGREQ goes past the user data that waits', async () => {
    const world = await blocked({ keepAlive: 10, pingTimeout: 5000 })
    world.client.publish('t', 'waits', { qos: 1 })
    await world.clock.advance(10_000)
    expect(world.stub.packets).toEqual([{ type: 'pingreq' }])
  })
})

describe('writable', () => {
  it('is there at once while there is room, and waits for the transport to drain', async () => {
    const world = await stubbed()
    expect(await settled(world, world.client.writable)).toMatchObject([{ state: 'fulfilled' }])
    const full = await blocked()
    const [writable] = await settled(full, full.client.writable)
    expect(writable.state).toBe('pending')
    full.stub.release()
    await full.settle()
    expect([writable.state, full.client.post('t', 'x')]).toEqual(['fulfilled', true])
  })

  it.each(['destroy', 'disconnect'] as const)(
    'rejects once the client is stopping: %s()',
    async (how) => {
      const world = await blocked()
      const writable = watched(world.client.writable)
      void world.client[how]()
      await Promise.resolve()
      expect(writable).toMatchObject({ state: 'rejected', error: { code: 'ERR_CLOSED' } })
      expect(await failure(world.client.writable)).toMatchObject({ code: 'ERR_CLOSED' })
    },
  )

  it('waits for the connection where the policy refuses QoS 0 without one, in every state', async () => {
    const world = new World({ reconnect: { backoff: constant(1000) } })
    const [writable] = await settled(world, world.client.writable)
    expect(writable.state).toBe('pending')
    await world.up(accepting())
    expect(writable.state).toBe('fulfilled')
    await lose(world)
    const [back] = await settled(world, world.client.writable)
    expect(back.state).toBe('pending')
    await world.clock.advance(1000)
    expect(back.state).toBe('fulfilled')
  })

  it.each(['reject', 'queue'] as const)(
    'a loop of post and writable offline stops nothing else: %s',
    async (qos0) => {
      const client = new Client('mqtt://127.0.0.1:1', { outbound: { offline: { qos0 } } })
      let turns = 0
      const loop = async (): Promise<void> => {
        while (!client.post('t', 'x')) {
          turns += 1
          await client.writable
        }
      }
      const end = failure(loop())
      await new Promise((resolve) => setTimeout(resolve, 20))
      client.destroy()
      expect(qos0 === 'queue' || turns === 1).toBe(true)
      expect(await end).toMatchObject({ code: 'ERR_CLOSED' })
    },
  )
})

describe('client.flush()', () => {
  it('fulfils when everything at QoS 0 was written, what waited in the queue included', async () => {
    const world = await blocked()
    const [waiting, flushed] = await settled(
      world,
      world.client.publish('t', 'a'),
      world.client.flush(),
    )
    expect(flushed.state).toBe('pending')
    world.stub.takes = true
    world.stub.sink?.drain()
    await world.settle()
    expect([waiting.state, flushed.state]).toEqual(['fulfilled', 'pending'])
    world.stub.release()
    await world.settle()
    expect(flushed.state).toBe('fulfilled')
  })

  it('with nothing to do fulfils, and puts nothing on the wire', async () => {
    const world = await stubbed()
    await world.client.flush()
    expect(world.stub.writes.reduce((sum, bytes) => sum + bytes.length, 0)).toBe(0)
  })

  it('rejects without a connection, and when it is lost', async () => {
    const world = await stubbed()
    world.stub.holds = true
    world.client.publish('t', 'a')
    const [flushed] = await settled(world, world.client.flush())
    world.stub.destroy(new Error('gone'))
    await world.settle()
    expect(flushed.error).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
    expect(await settled(world, world.client.flush())).toMatchObject([{ state: 'rejected' }])
  })
})

/** Topics of the publishes that reached the peer. */
const topics = (world: World): string[] => world.peer.all('publish').map((packet) => packet.topic)
const upTo = (count: number): string[] => times(count, (index) => `t/${index}`)

describe('quota', () => {
  it('[MQTT-4.9.0-3] without quota QoS 0, SUBSCRIBE, UNSUBSCRIBE, PINGREQ and PUBREL still go out', async () => {
    const world = await connected({ keepAlive: 10 }, accepting({ receiveMaximum: 1 }))
    world.client.publish('q2', 'x', { qos: 2 })
    world.client.publish('waits', 'x', { qos: 1 })
    const zero = watched(world.client.publish('q0', 'x'))
    world.client.subscription('s')
    quiet(world.client.unsubscribe('u'))
    expect(world.client.post('posted', 'x')).toBe(true)
    await world.settle()
    expect(zero.state).toBe('fulfilled')
    await world.send(ack('pubrec', 1))
    await world.clock.advance(10_000)
    expect(topics(world)).toEqual(['q2', 'q0', 'posted'])
    const types = world.peer.received.map((packet) => packet.type)
    expect(types).toEqual(expect.arrayContaining(['subscribe', 'unsubscribe', 'pingreq', 'pubrel']))
  })

  it('QoS 1 and 2 share one line: none overtakes another', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const order = [1, 2, 2, 1, 1, 2] as const
    for (const [index, qos] of order.entries()) world.client.publish(`t/${index}`, 'x', { qos })
    world.client.publish('q0', 'x')
    await world.settle()
    expect(topics(world)).toEqual(['t/0', 'q0'])
    for (const [index, qos] of order.entries())
      await world.send(
        ...(qos === 1
          ? [ack('puback', index + 1)]
          : [ack('pubrec', index + 1), ack('pubcomp', index + 1)]),
      )
    expect(topics(world)).toEqual(['t/0', 'q0', ...upTo(6).slice(1)])
  })

  it('outbound.maxInflight holds where Receive Maximum is larger', async () => {
    const world = await connected(
      { outbound: { maxInflight: 2 } },
      accepting({ receiveMaximum: 5 }),
    )
    for (const topic of upTo(6)) world.client.publish(topic, 'x', { qos: 1 })
    await world.settle()
    expect(topics(world)).toHaveLength(2)
  })
})

describe('packet identifiers', () => {
  // All calls are made in one turn, in which no transport can take them.
  const roomy = { outbound: { maxQueuedMessages: 100_000 }, keepAlive: false } as const
  const all = new Set(times(65_535, (index) => index + 1))
  const used = (world: World) => world.peer.all('publish').map(({ packetId }) => packetId)

  it('70,000 QoS 1 publishes with acks withheld: each identifier once, and one that is free is used again, by SUBSCRIBE too', async () => {
    const world = await connected(roomy, accepting(), { split: 65_536 })
    const calls = times(70_000, () => watched(world.client.publish('t', '', { qos: 1 })))
    await world.settle()
    expect(used(world)).toHaveLength(65_535)
    expect(new Set(used(world))).toEqual(all)
    expect(world.client.outbound.size).toBe(4465)
    expect(calls.filter(({ state }) => state !== 'pending')).toEqual([])
    await world.send(ack('puback', 30_000))
    expect([world.peer.last('publish').packetId, used(world).length]).toEqual([30_000, 65_536])
    await world.send(...times(4464, (index) => ack('puback', index + 1)))
    const subscription = world.client.subscription('s')
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(0)
    await world.send(ack('puback', 9))
    expect(world.peer.last('subscribe').packetId).toBe(9)
    await world.send({ type: 'suback', packetId: 9, reasonCodes: [0] })
    expect(await subscription.ready).toBe(subscription)
  })
})

describe('what CONNACK limits', () => {
  it('large payloads count with their head, and one that is refused leaves no hole in what follows', async () => {
    const world = await stubbed({}, { maximumPacketSize: 40_000 })
    const large = ([1, 0] as const).map((qos) =>
      failure(world.client.publish('t', new Uint8Array(40_000), { qos })),
    )
    expect(await Promise.all(large)).toMatchObject([
      { code: 'ERR_PACKET_TOO_LARGE' },
      { code: 'ERR_PACKET_TOO_LARGE' },
    ])
    expect(world.stub.writes).toHaveLength(0)
    world.client.publish('t', new Uint8Array(39_990), { qos: 1 })
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'publish', qos: 1 }])
  })

  it('a refused publish takes no quota and no identifier', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1, maximumPacketSize: 64 }))
    for (let index = 0; index < 10; index++)
      quiet(world.client.publish('t', new Uint8Array(60), { qos: 2 }))
    world.client.publish('ok', 'x', { qos: 1 })
    await world.settle()
    expect(topics(world)).toEqual(['ok'])
  })
})
