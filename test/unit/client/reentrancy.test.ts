/** Calls into the client from inside its own callbacks, and two calls that meet: defined, in order, and nothing stays pending. The last few were found by random programs (`npm run lab -- world programs`). */
import { expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import type { Sink } from '../../../src/transport/transport.js'
import type { QoS } from '../../../src/wire/packets.js'
import { agreeable, connected, World } from './harness.js'
import { agreed, publish, subscribe } from './incoming.js'
import { rigged, story, within } from './rig.js'
import { ack, StubWorld, stubbed, watched } from './stub.js'

type Watched = ReturnType<typeof watched<unknown>>
const settledOf = (calls: readonly Watched[]) => calls.map((call) => call.settled)
const once = (calls: readonly Watched[]) => calls.map(() => 1)
const queue = { outbound: { maxQueuedMessages: 3, overflow: 'drop-oldest' } } as const

/** Runs `act` at the first packets of a type that come or leave. */
function onPacket(
  world: Pick<World, 'client'>,
  direction: 'in' | 'out',
  type: string,
  act: () => unknown,
): void {
  world.client.on(
    'packet',
    (event) => void (event.direction === direction && event.packet.type === type && act()),
  )
}

it('a publish in the continuation of another is sent, also when it takes the last place', async () => {
  const world = await stubbed({}, { receiveMaximum: 1 })
  const order: string[] = []
  const send = (text: string) =>
    world.client.publish('t', text, { qos: 1 }).then(() => order.push(text))
  const chain = send('a').then(() => send('c'))
  send('b')
  await world.settle()
  for (let id = 1; id <= 3; id++) await world.deliver(ack('puback', id))
  await chain
  expect([order, world.stub.payloads]).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
})

it.each([
  ...(['state', 'dial', 'connect', 'connecterror', 'disconnect'] as const),
  ...(['serverdisconnect', 'drop', 'packet', 'unclaimed'] as const),
])('in `%s`: every promise settles and the client works on', async (type) => {
  const world = new World({}, {}, 2)
  const { client } = world
  const calls: Watched[] = []
  let left = 20
  client.on(type, () => {
    if (left-- > 0)
      for (const qos of [0, 1, 2] as QoS[])
        calls.push(watched(client.publish('from', 'x', { qos })))
  })
  // The first endpoint refuses, the second accepts.
  world.answer = (packet) =>
    packet.type === 'connect' && world.peers.length === 1
      ? { type: 'connack', sessionPresent: false, reasonCode: 0x88 }
      : agreeable(packet)
  const connecting = client.connect()
  await world.settle()
  await connecting
  const own = watched(client.publish('own', 'x', { qos: 1 }))
  await world.settle()
  expect(own.state).toBe('fulfilled')
  await world.send(publish('nobody', '1', 1))
  client.publish('', 'x', { qos: 1 })
  await world.settle()
  await world.send({ type: 'disconnect', reasonCode: 0x8b })
  expect(client.state).toBe('closed')
  expect(calls.length).toBeGreaterThan(0)
  expect(settledOf(calls)).toEqual(once(calls))
  expect(world.clock.pending).toBe(0)
})

it('a `drop` listener that publishes again stays within the limit of the queue', async () => {
  const world = new StubWorld(queue)
  let again = 5
  const calls: Watched[] = []
  const send = () => calls.push(watched(world.client.publish('t', 'x', { qos: 1 })))
  world.client.on('drop', () => again-- > 0 && send())
  for (let index = 0; index < 10; index++) send()
  await world.settle()
  expect(world.client.outbound.size).toBe(3)
  expect(settledOf(calls).sort()).toEqual([0, 0, 0, ...once(calls.slice(3))])
})

it.each([
  ['at once', (again: () => void) => again()],
  ['a microtask later', (again: () => void) => void Promise.resolve().then(again)],
])(
  '`drop` listeners that report each failure with a publish that fails %s keep nothing from its turn',
  async (_name, later) => {
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
    for (let turns = 0; told <= 100 && turns < 1000; turns++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    client.destroy()
    expect(told).toBeGreaterThan(100)
  },
)

it('a `drop` listener that publishes while the queue is cleared starts a new queue', async () => {
  const world = new StubWorld()
  let again = 50
  const send = (text: string) => world.client.publish('t', text, { qos: 1 })
  world.client.on('drop', () => again-- > 0 && send('new'))
  for (let index = 0; index < 3; index++) send('old')
  world.client.outbound.clear()
  await world.settle()
  expect(world.client.outbound.size).toBe(3)
})

it('a `packet` listener that publishes comes after the packet it was told of', async () => {
  const world = await stubbed()
  let first = true
  onPacket(world, 'out', 'publish', () => {
    if (!first) return
    first = false
    world.client.publish('second', 'b', { qos: 1 })
  })
  world.client.publish('first', new Uint8Array(40_000).fill(0x61), { qos: 1 })
  world.client.publish('third', 'c', { qos: 1 })
  await world.settle()
  expect(world.stub.packets).toMatchObject(['first', 'second', 'third'].map((topic) => ({ topic })))
})

it.each(['destroy', 'disconnect'] as const)('%s in its `packet` event: it settles', async (how) => {
  for (const [payload, options] of [
    ['x', { qos: 1 }],
    ['x', { qos: 2 }],
    ['x', { flush: true }],
    [new Uint8Array(40_000), {}],
  ] as const) {
    const world = await stubbed()
    const { client } = world
    onPacket(world, 'out', 'publish', () =>
      how === 'destroy' ? client.destroy() : client.disconnect({ timeout: 0 }),
    )
    const call = watched(client.publish('t', payload, options))
    await world.clock.advance(2000)
    expect([client.state, call.settled, world.clock.pending]).toEqual(['closed', 1, 0])
  }
})

it('destroy in the `packet` event of a publish that waited: that one and the rest settle', async () => {
  const world = await stubbed({}, { receiveMaximum: 1 })
  const options = { qos: 1, ackTimeout: 60_000 } as const
  const calls = ['a', 'b', 'c'].map((topic) =>
    watched<unknown>(world.client.publish(topic, 'x', options)),
  )
  await world.settle()
  onPacket(world, 'out', 'publish', () => world.client.destroy())
  await world.deliver(ack('puback', 1))
  expect(settledOf(calls)).toEqual([1, 1, 1])
  const outcomes = calls.map((call) => (call.error as { outcome?: string } | undefined)?.outcome)
  expect(outcomes).toEqual([undefined, expect.any(String), 'not-sent'])
  expect(world.clock.pending).toBe(0)
})

it.each(['puback', 'pubrec', 'connack', 'suback', 'publish'] as const)(
  'destroy in the `packet` event of an incoming %s',
  async (type) => {
    const world = new World()
    const { client } = world
    world.answer = agreeable
    onPacket(world, 'in', type, () => client.destroy())
    const calls: Watched[] = [watched<unknown>(client.connect())]
    await world.settle()
    if (client.state === 'connected') {
      for (const qos of [1, 2] as const)
        calls.push(watched<unknown>(client.publish('t', 'x', { qos })))
      const subscription = client.subscription('s')
      calls.push(watched<unknown>(subscription.ready), watched<unknown>(subscription.next()))
      await world.settle()
      if (type === 'publish') await world.send(publish('s', 'x'))
    }
    await world.settle()
    expect([client.state, settledOf(calls), world.clock.pending]).toEqual([
      'closed',
      once(calls),
      0,
    ])
  },
)

it.each([undefined, 7])('destroy at a message with identifier %s', async (id) => {
  const world = await agreed({ stats: true })
  await subscribe(world, 'a', { qos: 1 })
  onPacket(world, 'in', 'publish', () => world.client.destroy())
  await world.send(publish('a', '1', id))
  expect(world.client.stats()).toMatchObject({ received: 0, dropped: 0, packetsReceived: 3 })
})

it('destroy in a `drop` listener while the queue overflows', async () => {
  const world = new StubWorld(queue)
  world.client.on('drop', () => world.client.destroy())
  const calls = [0, 1, 2, 3, 4].map(() =>
    watched<unknown>(world.client.publish('t', 'x', { qos: 1 })),
  )
  await world.settle()
  expect([settledOf(calls), world.client.outbound.size]).toEqual([once(calls), 0])
})

const nothing = (): void => undefined

it('setBrokers() in the turn of connect(): no dial is told, and none made, to an endpoint that is not in the list', async () => {
  const rig = rigged()
  const told: string[] = []
  rig.client.on('dial', ({ endpoint }) => told.push(new URL(endpoint).hostname))
  const connecting = rig.client.connect()
  rig.client.setBrokers([rig.endpoint('b')])
  await within(rig, 5000, connecting)
  expect([told, story(rig).hosts]).toEqual([['b'], 'b'])
})

it('reconnect({ force }) before a publish with `flush` was written: the connection was lost, and the client is not closed', async () => {
  let broken = false
  let end: Sink['closed'] = nothing
  const world = new World({ reconnect: true }, {}, 1, (_index, open) => {
    const transport = open()
    const { write, open: begin } = transport
    transport.open = (sink) => {
      end = (cause) => sink.closed(cause)
      begin.call(transport, sink)
    }
    transport.write = (bytes, written) => !broken && write.call(transport, bytes, written)
    return transport
  })
  await world.up(agreeable)
  broken = true
  const published = world.client.publish('a', 'b', { flush: true })
  world.client.reconnect({ force: true })
  // It had broken before, and says so now.
  end(new Error('reset'))
  const error = { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' }
  expect(await world.outcome(published)).toMatchObject({ state: 'rejected', error })
  expect(world.client.state).not.toBe('closed')
  world.client.destroy()
})

it('listen() with an `until` that has aborted, on a filter that is granted already: it is done', async () => {
  const world = await connected({}, agreeable)
  await Promise.all([world.client.listen('a', nothing), world.settle()])
  const ended = world.client.listen('a', nothing, { until: AbortSignal.abort(), retainHandling: 1 })
  await world.settle()
  const { done } = await ended
  expect(await world.outcome(done)).toEqual({ state: 'fulfilled', value: undefined })
})

it('unsubscribe() from one filter of a subscription that waits for its grant: it rejects, and is given nothing', async () => {
  const world = new World()
  world.answer = agreeable
  const seen: string[] = []
  const listening = world.client.listen(['a', 'b'], ({ topic }) => seen.push(topic))
  const left = world.client.unsubscribe('b')
  expect(await world.outcome(listening)).toMatchObject({
    state: 'rejected',
    error: { code: 'ERR_ABORTED' },
  })
  await left
  await world.up()
  await world.send(publish('a', 'x'))
  expect([seen, world.peer.all('subscribe')]).toEqual([[], []])
})
