import { describe, expect, it, onTestFinished } from 'vitest'
import type { ClientOptions, Stats } from '../../../src/client/options/index.js'
import { agreeable, failure } from './harness.js'
import { publish, quiet } from './incoming.js'
import { down, Rig, type RigOptions, refusing, welcoming } from './rig.js'

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

describe('stats()', () => {
  it('all zero and frozen while the option is off, whatever happens', async () => {
    const rig = await counting({ stats: false })
    await Promise.all([rig.client.publish('t', 'x', { qos: 1 }), rig.settle()])
    await rig.again()
    const stats = rig.client.stats()
    expect(Object.entries(stats).filter(([, value]) => value)).toEqual([['failures', {}]])
    expect([Object.isFrozen(stats), Object.isFrozen(stats.failures)]).toEqual([true, true])
    const fields = Object.keys(new Rig({ stats: true }).client.stats()).sort()
    expect(Object.keys(stats).sort()).toEqual(fields)
  })

  it('is a copy: it does not change any more, and nobody can change it', async () => {
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
})

describe('connections', () => {
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
      if (packet.type === 'pingreq')
        rig.clock.setTimer(() => rig.peer.send({ type: 'pingresp' }), 70)
      return undefined
    }
    await rig.advance(11_000)
    has(rig, { pings: 1, pingTimeouts: 0, pingRoundTrip: 70 })
    rig.peer.answer = () => undefined
    await rig.advance(16_000)
    has(rig, { pings: 2, pingTimeouts: 1, disconnects: 1 })
    expect(rig.client.stats().failures['ERR_KEEPALIVE_TIMEOUT']).toBe(1)
  })
})

describe('packets', () => {
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
})
