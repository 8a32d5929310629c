/** Calls into the client from inside its own callbacks: defined, in order, and nothing stays pending. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents } from '../../../src/client/api/index.js'
import { Client } from '../../../src/client/node.js'
import type { QoS } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { agreed, publish, subscribe } from './incoming.js'
import { ack, StubWorld, stubbed, watched } from './stub.js'

describe('publish inside handlers', () => {
  it.each([0, 1, 2] as const)('awaited in the body of `for await`, QoS %i: no deadlock, order kept', async (qos) => {
    const world = await connected({ receiveMaximum: 2 }, (packet) =>
      packet.type === 'connect' ? accepting({ receiveMaximum: 1 })(packet) : agreeable(packet),
    )
    const subscribing = world.client.subscribe('in/#', { qos: 1 })
    await world.settle()
    const subscription = await subscribing
    const loop = (async () => {
      let count = 0
      for await (const message of subscription) {
        await world.client.publish(`out/${message.topic}`, message.payload, { qos })
        count += 1
        if (count === 10) break
      }
      return count
    })()
    for (let index = 0; index < 10; index += 2)
      await world.send(
        { type: 'publish', topic: `in/${index}`, qos: 1, packetId: index + 1, payload: Uint8Array.of(index) },
        { type: 'publish', topic: `in/${index + 1}`, qos: 1, packetId: index + 2, payload: Uint8Array.of(index) },
      )
    await world.settle()
    expect(await loop).toBe(10)
    expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(Array.from({ length: 10 }, (_, index) => `out/in/${index}`))
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual(Array.from({ length: 10 }, (_, index) => index + 1))
  })

  it.each([0, 1, 2] as const)('awaited in a `listen` handler, QoS %i', async (qos) => {
    const world = await connected({}, agreeable)
    const listening = world.client.listen('in', (message) => world.client.publish('out', message.payload, { qos }), { qos: 2 })
    await world.settle()
    await listening
    for (let id = 1; id <= 3; id++) await world.send({ type: 'publish', topic: 'in', qos: 2, packetId: id, payload: Uint8Array.of(id) })
    expect(world.peer.all('publish').map((packet) => [...packet.payload])).toEqual([[1], [2], [3]])
    expect(world.peer.all('pubrec')).toHaveLength(3)
  })

  it('a publish in the continuation of another is sent, also when it takes the last place', async () => {
    const world = await stubbed({}, { receiveMaximum: 1 })
    const order: string[] = []
    const chain = world.client.publish('t', 'a', { qos: 1 }).then(async () => {
      order.push('a')
      await world.client.publish('t', 'c', { qos: 1 })
      order.push('c')
    })
    world.client.publish('t', 'b', { qos: 1 }).then(() => order.push('b'))
    await world.settle()
    for (let id = 1; id <= 3; id++) await world.deliver(ack('puback', id))
    await chain
    expect(order).toEqual(['a', 'b', 'c'])
    expect(world.stub.payloads).toEqual(['a', 'b', 'c'])
  })
})

describe('publish inside events', () => {
  const types = ['state', 'dial', 'connect', 'connecterror', 'disconnect', 'serverdisconnect', 'drop', 'packet', 'unclaimed'] as const

  it.each(types)('in `%s`: every promise settles and the client works on', async (type) => {
    const world = new World({}, {}, 2)
    const calls: ReturnType<typeof watched>[] = []
    let left = 20
    world.client.on(type, () => {
      if (left-- > 0) for (const qos of [0, 1, 2] as QoS[]) calls.push(watched(world.client.publish(`from/${type}`, 'x', { qos })))
    })
    // The first endpoint refuses, the second accepts.
    world.answer = (packet) =>
      packet.type === 'connect' && world.peers.length === 1
        ? { type: 'connack', sessionPresent: false, reasonCode: 0x88, properties: {} }
        : agreeable(packet)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const own = watched(world.client.publish('own', 'x', { qos: 1 }))
    await world.settle()
    expect(own.state).toBe('fulfilled')
    await world.send({ type: 'publish', topic: 'nobody', qos: 1, packetId: 1, payload: Uint8Array.of(1) })
    world.client.publish('', 'x', { qos: 1 })
    await world.settle()
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} })
    expect(world.client.state).toBe('closed')
    expect(calls.length).toBeGreaterThan(0)
    expect(calls.every((one) => one.settled === 1)).toBe(true)
    expect(world.clock.pending).toBe(0)
  })

  it('a `drop` listener that publishes again stays within the limit of the queue', async () => {
    const world = new StubWorld({ outbound: { maxQueuedMessages: 3, overflow: 'drop-oldest' } })
    let again = 5
    const calls: ReturnType<typeof watched>[] = []
    world.client.on('drop', () => {
      if (again-- > 0) calls.push(watched(world.client.publish('t', `again ${again}`, { qos: 1 })))
    })
    for (let index = 0; index < 10; index++) calls.push(watched(world.client.publish('t', `${index}`, { qos: 1 })))
    await world.settle()
    expect(world.client.outbound.size).toBe(3)
    expect(calls.filter((one) => one.state === 'pending')).toHaveLength(3)
    expect(calls.every((one) => one.settled <= 1)).toBe(true)
  })

  it.each([
    ['at once', (again: () => void) => again()],
    ['a microtask later', (again: () => void) => void Promise.resolve().then(again)],
  ])('`drop` listeners that report each failure with a publish that fails %s keep nothing from its turn', async (_name, later) => {
    const client = new Client('mqtt://127.0.0.1:1')
    let told = 0
    for (let listeners = 0; listeners < 2; listeners++) {
      client.on('drop', ({ count }) => {
        told += count
        later(() => void client.publish('reports/failure', 'x'))
      })
    }
    client.publish('t', 'x').catch(() => undefined)
    expect(told).toBe(0)
    // Each turn has twice as many as the one before: how many there are in so many milliseconds is up to the machine.
    for (let turns = 0; told <= 100 && turns < 1000; turns++) await new Promise((resolve) => setTimeout(resolve, 5))
    client.destroy()
    expect(told).toBeGreaterThan(100)
  })

  it('a `drop` listener that publishes while the queue is cleared starts a new queue', async () => {
    const world = new StubWorld()
    let again = 50
    world.client.on('drop', () => {
      if (again-- > 0) world.client.publish('t', 'new', { qos: 1 })
    })
    for (let index = 0; index < 3; index++) world.client.publish('t', 'old', { qos: 1 })
    world.client.outbound.clear()
    await world.settle()
    expect(world.client.outbound.size).toBe(3)
  })

  it('a `packet` listener that publishes comes after the packet it was told of', async () => {
    const world = await stubbed()
    const on = (event: ClientEvents['packet']): void => {
      if (event.direction === 'out' && event.packet.type === 'publish' && event.packet.topic === 'first')
        world.client.publish('second', 'b', { qos: 1 })
    }
    world.client.on('packet', on)
    world.client.publish('first', new Uint8Array(40_000).fill(0x61), { qos: 1 })
    world.client.publish('third', 'c', { qos: 1 })
    await world.settle()
    expect(world.stub.packets.map((packet) => (packet.type === 'publish' ? packet.topic : ''))).toEqual(['first', 'second', 'third'])
  })
})

describe('ending inside events', () => {
  it.each(['destroy', 'disconnect'] as const)('%s in the `packet` event of a publish: that publish settles too', async (how) => {
    for (const [payload, options] of [
      ['x', { qos: 1 }],
      ['x', { qos: 2 }],
      ['x', { flush: true }],
      [new Uint8Array(40_000), {}],
    ] as const) {
      const world = await stubbed()
      world.client.on('packet', ({ packet }) => {
        if (packet.type !== 'publish') return
        if (how === 'destroy') world.client.destroy()
        else world.client.disconnect({ timeout: 0 })
      })
      const call = watched(world.client.publish('t', payload, options))
      await world.clock.advance(2000)
      expect(world.client.state).toBe('closed')
      expect(call.settled).toBe(1)
      expect(world.clock.pending).toBe(0)
    }
  })

  it('destroy in the `packet` event of a publish that waited: that one and the rest settle', async () => {
    const world = await stubbed({}, { receiveMaximum: 1 })
    const calls = ['a', 'b', 'c'].map((topic) => watched(world.client.publish(topic, 'x', { qos: 1, ackTimeout: 60_000 })))
    await world.settle()
    world.client.on('packet', ({ packet }) => {
      if (packet.type === 'publish' && packet.topic === 'b') world.client.destroy()
    })
    await world.deliver(ack('puback', 1))
    expect(calls.map((one) => one.settled)).toEqual([1, 1, 1])
    expect(calls.map((one) => (one.error as { outcome?: string } | undefined)?.outcome)).toEqual([undefined, expect.any(String), 'not-sent'])
    expect(world.clock.pending).toBe(0)
  })

  it.each(['puback', 'pubrec', 'connack', 'suback', 'publish'] as const)('destroy in the `packet` event of an incoming %s', async (type) => {
    const world = new World()
    world.answer = agreeable
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'in' && packet.type === type) world.client.destroy()
    })
    const all: ReturnType<typeof watched<unknown>>[] = [watched<unknown>(world.client.connect())]
    await world.settle()
    if (world.client.state === 'connected') {
      all.push(watched<unknown>(world.client.publish('t', 'x', { qos: 1 })), watched<unknown>(world.client.publish('t', 'x', { qos: 2 })))
      const subscription = world.client.subscription('s')
      all.push(watched<unknown>(subscription.ready), watched<unknown>(subscription.next()))
      await world.settle()
      if (type === 'publish') await world.send({ type: 'publish', topic: 's', payload: Uint8Array.of(1) })
    }
    await world.settle()
    expect(world.client.state).toBe('closed')
    expect(all.map((one) => one.settled)).toEqual(all.map(() => 1))
    expect(world.clock.pending).toBe(0)
  })

  it.each([undefined, 7])('destroy in the `packet` event of a message with identifier %s: nothing is done with it', async (id) => {
    const world = await agreed({ stats: true })
    await subscribe(world, 'a', { qos: 1 })
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'in' && packet.type === 'publish') world.client.destroy()
    })
    await world.send(publish('a', '1', id))
    expect(world.client.stats()).toMatchObject({ received: 0, dropped: 0, packetsReceived: 3 })
  })

  it('destroy in a `drop` listener while the queue overflows', async () => {
    const world = new StubWorld({ outbound: { maxQueuedMessages: 2, overflow: 'drop-oldest' } })
    world.client.on('drop', () => world.client.destroy())
    const calls = [0, 1, 2, 3].map(() => watched(world.client.publish('t', 'x', { qos: 1 })))
    await world.settle()
    expect(calls.map((one) => one.settled)).toEqual([1, 1, 1, 1])
    expect(world.client.outbound.size).toBe(0)
  })

  it('disconnect in the continuation of a publish', async () => {
    const world = await connected({}, agreeable)
    const done = watched(world.client.publish('t', 'x', { qos: 2 }).then(() => world.client.disconnect()))
    await world.settle()
    expect(done.state).toBe('fulfilled')
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })
})
