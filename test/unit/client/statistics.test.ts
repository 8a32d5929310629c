/** What a client shows of itself: `stats()`, and the `packet` event with everything in both directions, as plain objects. */
import { expect, it, onTestFinished } from 'vitest'
import type { ClientEvents, ClientOptions, Stats } from '../../../src/client/options/index.js'
import { agreeable, failure } from './harness.js'
import { obliging, publish, quiet, subscribe, takenTexts } from './incoming.js'
import { down, Rig, type RigOptions, refusing, welcoming } from './rig.js'
import { idle, settled } from './steps.js'
import { StubWorld, stubbed } from './stub.js'

/** A connected client that counts, and is ended with its test. */
async function counting(options: ClientOptions = {}, rigOptions: RigOptions = {}): Promise<Rig> {
  const rig = await new Rig(
    { stats: true, clientId: 'c', cleanStart: false, ...options },
    rigOptions,
  ).up()
  onTestFinished(() => rig.finish())
  return rig
}

const has = (rig: Rig, stats: Partial<Stats>): void =>
  expect(rig.client.stats()).toMatchObject(stats)

it('stats(): all zero and frozen while the option is off, whatever happens', async () => {
  const rig = await counting({ stats: false })
  await Promise.all([rig.client.publish('t', 'x', { qos: 1 }), rig.settle()])
  await rig.again()
  const stats = rig.client.stats()
  expect(Object.entries(stats).filter(([, value]) => value)).toEqual([['failures', {}]])
  expect([Object.isFrozen(stats), Object.isFrozen(stats.failures)]).toEqual([true, true])
  const fields = Object.keys(new Rig({ stats: true }).client.stats()).sort()
  expect(Object.keys(stats).sort()).toEqual(fields)
})

it('stats(): is a copy: it does not change any more, and nobody can change it', async () => {
  const rig = new Rig({ stats: true })
  const before = rig.client.stats()
  // No code of a server can meet a prototype.
  expect(Object.getPrototypeOf(before.failures)).toBeNull()
  await rig.up()
  expect(before.connects).toBe(0)
  expect(() => Object.assign(rig.client.stats(), { connects: 5 })).toThrow(TypeError)
  has(rig, { connects: 1 })
  await rig.finish()
})

it('connects, disconnects, reconnect attempts, failures by kind', async () => {
  const rig = await counting()
  rig.behave = (_host, dial) =>
    dial === 2 ? down : dial === 3 ? refusing(0x88) : welcoming({}, true)
  await rig.cut()
  await rig.advance(1000 + 2000 + 4000)
  await rig.goodbye(0x8b)
  await rig.advance(8000)
  has(rig, { connects: 3, disconnects: 2, reconnectAttempts: 4, refusals: 1, sessionsLost: 0 })
  expect({ ...rig.client.stats().failures }).toEqual({
    ERR_CONNECTION_LOST: 1,
    ERR_CONNECT_FAILED: 1,
    ERR_CONNECT_REFUSED: 1,
    ERR_SERVER_DISCONNECT: 1,
  })
  await rig.cut()
  await rig.advance(16_000)
  expect(rig.client.stats().failures['ERR_CONNECTION_LOST']).toBe(2)
  await rig.finish()
  has(rig, { connects: 4, disconnects: 4 })
})

it('every attempt after a connection counts, however it came about', async () => {
  const rig = await counting()
  rig.behave = () => welcoming({}, true)
  await rig.cut()
  await Promise.all([rig.client.reconnect(), rig.settle()])
  has(rig, { connects: 2, reconnectAttempts: 1 })
  await Promise.all([rig.client.reconnect({ force: true }), rig.advance(1500)])
  has(rig, { connects: 3, reconnectAttempts: 2 })
})

it('one that a listener asks for counts too', async () => {
  const rig = await counting()
  await rig.advance(60_000)
  rig.client.on('disconnect', () => void quiet(rig.client.reconnect()))
  await rig.again()
  has(rig, { connects: 2, reconnectAttempts: 1 })
})

it('one that a reference leads to counts too', async () => {
  const rig = await counting({ serverReferences: ['b:1'] }, { hosts: ['a:1'] })
  rig.behave = (host) => (host === 'a:1' ? refusing(0x9c, { serverReference: 'b:1' }) : agreeable)
  await rig.again()
  expect(rig.hosts).toEqual(['a:1', 'a:1', 'b:1'])
  has(rig, { connects: 2, reconnectAttempts: 2 })
})

it('a session that was lost', async () => {
  const rig = await counting()
  await rig.again()
  expect(rig.seen('sessionlost')).toHaveLength(1)
  has(rig, { sessionsLost: 1 })
})

it('pings, their round trip, and those that nobody answered', async () => {
  const rig = await counting({ keepAlive: 10, pingTimeout: 5000 })
  has(rig, { pingRoundTrip: undefined })
  rig.peer.answer = (packet) => {
    if (packet.type === 'pingreq') rig.clock.setTimer(() => rig.peer.send({ type: 'pingresp' }), 70)
    return undefined
  }
  await rig.advance(11_000)
  has(rig, { pings: 1, pingTimeouts: 0, pingRoundTrip: 70 })
  rig.peer.answer = () => undefined
  await rig.advance(16_000)
  has(rig, { pings: 2, pingTimeouts: 1, disconnects: 1 })
  expect(rig.client.stats().failures['ERR_KEEPALIVE_TIMEOUT']).toBe(1)
})

it('bytes and packets both ways, exactly', async () => {
  const rig = await counting()
  await Promise.all([
    rig.client.subscribe('t'),
    rig.client.publish('t', 'x', { qos: 1 }),
    rig.settle(),
  ])
  // CONNACK, SUBACK and PUBACK of 5, 6 and 4 bytes.
  const received = { packetsReceived: 3, bytesReceived: 5 + 6 + 4 }
  has(rig, {
    bytesSent: rig.peer.bytes.length,
    packetsSent: rig.peer.received.length,
    ...received,
  })
})

it.each([1, 2] as const)(
  'a `packet` listener that ends the client sees acknowledgements at QoS %i that have taken effect',
  async (qos) => {
    const rig = await counting()
    const last = qos === 1 ? 'puback' : 'pubcomp'
    rig.client.on('packet', ({ direction, packet }) => {
      if (direction === 'in' && packet.type === last) rig.client.destroy()
    })
    const sent = quiet(rig.client.publish('t', 'x', { qos }))
    await rig.settle()
    await expect(sent).resolves.toMatchObject({ reasonCode: 0 })
    expect(rig.client.state).toBe('closed')
  },
)

it('Subscription Identifiers that belong to no matching subscription', async () => {
  const rig = await counting()
  await Promise.all([rig.client.subscribe('t'), rig.settle()])
  const [own = 0] = rig.peer.all('subscribe')[0]?.properties.subscriptionIdentifiers ?? []
  for (const subscriptionIdentifiers of [[own], [own, own + 1, own + 2]])
    rig.peer.send(publish('t', 'x', undefined, { properties: { subscriptionIdentifiers } }))
  await rig.settle()
  has(rig, { received: 2, unknownIdentifiers: 2 })
})

it('subscribes, unsubscribes, refusals of filters', async () => {
  const rig = await counting()
  const { client } = rig
  rig.peer.answer = (packet) => {
    if (packet.type !== 'subscribe') return agreeable(packet)
    const reasonCodes = packet.subscriptions.map(({ filter }) => (filter === 'no' ? 0x87 : 0))
    return { type: 'suback', packetId: packet.packetId, reasonCodes }
  }
  await Promise.all([client.subscribe('a'), client.subscribe(['b', 'no']), rig.settle()])
  await Promise.all([failure(client.subscribe('no')), rig.settle()])
  await Promise.all([client.unsubscribe('a'), rig.settle()])
  has(rig, { refusals: 2, unsubscribes: 1 })
  expect(client.stats().subscribes).toBeGreaterThanOrEqual(3)
})

it('publishes: sent, acknowledged, in flight, queued, refused, dropped, replayed', async () => {
  const rig = await counting({ outbound: { maxInflight: 2 } })
  rig.peer.answer = (packet) =>
    packet.type === 'publish' && packet.topic === 'held' ? undefined : agreeable(packet)
  await Promise.all([
    ...([0, 1, 2] as const).map((qos) => rig.client.publish('t', 'x', { qos })),
    rig.settle(),
  ])
  has(rig, { publishesSent: 3, publishesAcked: 2, publishesInFlight: 0, publishesQueued: 0 })
  const held = [1, 2, 3].map(() =>
    rig.client.publish('held', 'x', { qos: 1 }).catch(() => undefined),
  )
  await rig.settle()
  has(rig, {
    publishesSent: 5,
    publishesAcked: 2,
    publishesInFlight: 2,
    publishesQueued: 1,
    publishesReplayed: 0,
  })
  rig.client.outbound.clear()
  await rig.settle()
  has(rig, { publishesQueued: 0, publishesDropped: 1 })
  rig.behave = () => welcoming({}, true)
  await rig.again()
  has(rig, { publishesReplayed: 2, publishesInFlight: 0, publishesAcked: 4 })
  await Promise.all(held)
})

it('messages: received, delivered, unread, duplicates, unclaimed; acknowledgements for what does not exist', async () => {
  const rig = await counting()
  const [subscription] = await Promise.all([
    rig.client.subscribe('t', { qos: 1, ack: 'manual' }),
    rig.settle(),
  ])
  const send = async (...packets: Parameters<typeof rig.peer.send>): Promise<void> => {
    rig.peer.send(...packets)
    await rig.settle()
  }
  await send(publish('t', 'one', 1), publish('t', 'two', 2))
  has(rig, { received: 2, delivered: 0, unread: 2, duplicates: 0 })
  const first = await subscription.next()
  has(rig, { received: 2, delivered: 1, unread: 1 })
  rig.behave = () => welcoming({}, true)
  await rig.again()
  await send(publish('t', 'one', 1, { dup: true }))
  has(rig, { duplicates: 1 })
  first?.ack()
  await send(publish('nobody', 'x', 3), {
    type: 'puback',
    packetId: 77,
    reasonCode: 0,
  })
  has(rig, { unclaimed: 1, unsolicitedAcks: 1 })
})

it('messages that were dropped', async () => {
  const rig = await counting()
  await Promise.all([
    rig.client.subscribe('t', { qos: 1, ack: 'on-receive', buffer: 2 }),
    rig.settle(),
  ])
  for (let id = 1; id <= 5; id++) {
    rig.peer.send(publish('t', 'x', id))
    await rig.settle()
  }
  has(rig, { received: 5, dropped: 3, unread: 2 })
})

type Seen = ClientEvents['packet']

async function watchedWorld(options: ClientOptions = {}) {
  const world = new StubWorld(options)
  const seen: Seen[] = []
  world.client.on('packet', (event) => seen.push(event))
  await world.connect()
  return { world, seen }
}

it('packet event: reports each packet of a conversation, in order', async () => {
  const { world, connect } = idle(obliging, { keepAlive: 10 })
  const seen: string[] = []
  world.client.on('packet', ({ direction, packet }) => seen.push(`${direction} ${packet.type}`))
  await connect()
  await settled(world, world.client.publish('t', 'x', { qos: 2 }))
  const subscription = await subscribe(world, 's', { qos: 2 })
  await world.send(publish('s', 'x', 7, { qos: 2 }))
  takenTexts(subscription)
  await world.clock.advance(10_000)
  await settled(world, world.client.disconnect())
  expect(seen.join(', ')).toBe(
    [
      'out connect, in connack, out publish, in pubrec, out pubrel, in pubcomp, out subscribe, in suback',
      'in publish, out pubrec, in pubrel, out pubcomp, out pingreq, in pingresp, out disconnect',
    ].join(', '),
  )
})

it('packet event: has every field of the packet, QoS 0 and posts and large payloads included', async () => {
  const { world, seen } = await watchedWorld()
  seen.length = 0
  world.client.publish('a', 'x', { retain: true, properties: { contentType: 'c' } })
  world.client.publish('b', 'y', { qos: 1 })
  world.client.post('c', 'z')
  world.client.publish('d', new Uint8Array(40_000), { qos: 1 })
  await world.settle()
  expect(seen.map(({ packet }) => packet)).toEqual(
    world.stub.packets.map((packet) => ({ ...packet, properties: expect.anything() })),
  )
  const first = {
    type: 'publish',
    dup: false,
    qos: 0,
    retain: true,
    packetId: undefined,
    properties: { contentType: 'c' },
    topic: 'a',
  }
  expect(seen[0]?.packet).toEqual({ ...first, payload: Uint8Array.of(0x78) })
})

it('packet event: what a listener does to the packet does not reach the wire', async () => {
  const world = new StubWorld({
    clientId: 'a',
    username: 'u',
    password: 'p',
    userProperties: [['a', 'b']],
  })
  world.client.on('packet', ({ packet }) => {
    Object.assign(packet, {
      clientId: 'changed',
      topic: 'changed',
      packetId: 77,
      reasonCode: 0x80,
    })
  })
  const connecting = world.client.connect()
  await world.settle()
  expect(world.stub.packets[0]).toMatchObject({ clientId: 'a', username: 'u' })
  world.stub.deliver({ type: 'connack', sessionPresent: false, reasonCode: 0 })
  await connecting
  world.client.publish('t', 'x', { qos: 1 })
  await world.settle()
  expect(world.client.state).toBe('connected')
  expect(world.stub.packets.at(-1)).toMatchObject({ type: 'publish', topic: 't', packetId: 1 })
})

it('packet event: stops when the listener is removed', async () => {
  const world = await stubbed()
  const seen: Seen[] = []
  const stop = world.client.on('packet', (event) => seen.push(event))
  world.client.publish('t', 'x')
  stop()
  world.client.publish('t', 'y')
  await world.settle()
  expect([seen.length, world.stub.payloads]).toEqual([1, ['x', 'y']])
})

it('packet event: a broken packet is not told as a good one', async () => {
  const { world, seen } = await watchedWorld()
  seen.length = 0
  world.stub.sink?.chunk(Uint8Array.of(0x30, 4, 0, 1, 0x2b, 0))
  await world.settle()
  expect(seen.map(({ direction, packet }) => `${direction} ${packet.type}`)).toEqual([
    'out disconnect',
  ])
})
