import { describe, expect, it } from 'vitest'
import type { ClientOptions, Stats } from '../../../src/client/api/index.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { agreeable, failure } from './harness.js'
import { down, Rig, refusing, welcoming } from './rig.js'

const counted: ClientOptions = { stats: true, clientId: 'c', cleanStart: false }

const message = (packetId: number, topic = 't', dup = false): PacketInput => ({
  type: 'publish',
  topic,
  payload: new Uint8Array(3),
  qos: 1,
  retain: false,
  dup,
  packetId,
  properties: {},
})

/** The numbers that are not zero. */
function told(stats: Stats): Record<string, unknown> {
  return Object.fromEntries(Object.entries(stats).filter(([name, value]) => value !== 0 && value !== undefined && name !== 'failures'))
}

describe('stats()', () => {
  it('all zero and frozen while the option is off, whatever happens', async () => {
    const rig = await new Rig({ clientId: 'c', cleanStart: false }).up()
    await Promise.all([rig.client.publish('t', 'x', { qos: 1 }), rig.settle()])
    await rig.cut()
    await rig.advance(1000)
    const stats = rig.client.stats()
    expect(told(stats)).toEqual({})
    expect(Object.keys(stats.failures)).toEqual([])
    expect(Object.isFrozen(stats)).toBe(true)
    expect(Object.isFrozen(stats.failures)).toBe(true)
    await rig.finish()
  })

  it('has the same fields on and off, and every one that is promised', () => {
    const fields = Object.keys(new Rig().client.stats()).sort()
    expect(Object.keys(new Rig({ stats: true }).client.stats()).sort()).toEqual(fields)
    for (const name of [
      'connects',
      'disconnects',
      'failures',
      'reconnectAttempts',
      'subscribes',
      'unsubscribes',
      'refusals',
      'publishesSent',
      'publishesAcked',
      'publishesInFlight',
      'publishesDropped',
      'received',
      'delivered',
      'dropped',
      'duplicates',
      'unclaimed',
      'unsolicitedAcks',
      'bytesSent',
      'bytesReceived',
      'packetsSent',
      'packetsReceived',
      'pings',
      'pingTimeouts',
      'pingRoundTrip',
    ])
      expect(fields).toContain(name)
  })

  it('is a copy: it does not change any more, and nobody can change it', async () => {
    const rig = new Rig(counted)
    const before = rig.client.stats()
    await rig.up()
    expect(before.connects).toBe(0)
    expect(() => {
      ;(rig.client.stats() as { connects: number }).connects = 5
    }).toThrow(TypeError)
    expect(rig.client.stats().connects).toBe(1)
    await rig.finish()
  })

  it('connects, disconnects, reconnect attempts, failures by kind', async () => {
    const rig = await new Rig(counted).up()
    rig.behave = (_host, dial) => (dial === 2 ? down : dial === 3 ? refusing(0x88) : welcoming({}, true))
    await rig.cut()
    await rig.advance(1000 + 2000 + 4000)
    await rig.goodbye(0x8b)
    await rig.advance(8000)
    expect(rig.client.stats()).toMatchObject({ connects: 3, disconnects: 2, reconnectAttempts: 4, refusals: 1, sessionsLost: 0 })
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
    expect(rig.client.stats()).toMatchObject({ connects: 4, disconnects: 4 })
  })

  it('every attempt after a connection counts, however it came about', async () => {
    const rig = await new Rig(counted).up()
    rig.behave = () => welcoming({}, true)
    await rig.cut()
    await Promise.all([rig.client.reconnect(), rig.settle()])
    expect(rig.client.stats()).toMatchObject({ connects: 2, reconnectAttempts: 1 })
    await Promise.all([rig.client.reconnect({ force: true }), rig.advance(1500)])
    expect(rig.client.stats()).toMatchObject({ connects: 3, reconnectAttempts: 2 })
    await rig.finish()
  })

  it('one that a listener asks for counts too', async () => {
    const rig = await new Rig(counted).up()
    await rig.advance(60_000)
    rig.client.on('disconnect', () => {
      rig.client.reconnect().catch(() => undefined)
    })
    await rig.cut()
    await rig.advance(1000)
    expect(rig.client.stats()).toMatchObject({ connects: 2, reconnectAttempts: 1 })
    await rig.finish()
  })

  it('one that a reference leads to counts too', async () => {
    const rig = await new Rig({ ...counted, serverReferences: ['b:1'] }, { hosts: ['a:1'] }).up()
    rig.behave = (host) => (host === 'a:1' ? refusing(0x9c, { serverReference: 'b:1' }) : agreeable)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.hosts).toEqual(['a:1', 'a:1', 'b:1'])
    expect(rig.client.stats()).toMatchObject({ connects: 2, reconnectAttempts: 2 })
    await rig.finish()
  })

  it('a session that was lost', async () => {
    const rig = await new Rig(counted).up()
    await rig.cut()
    await rig.advance(1000)
    expect(rig.seen('sessionlost')).toHaveLength(1)
    expect(rig.client.stats().sessionsLost).toBe(1)
    await rig.finish()
  })

  it('subscribes, unsubscribes, refusals of filters', async () => {
    const rig = new Rig(counted, {
      behave: () => (packet) => {
        if (packet.type === 'subscribe')
          return {
            type: 'suback',
            packetId: packet.packetId,
            reasonCodes: packet.subscriptions.map(({ filter }) => (filter === 'no' ? 0x87 : 0)),
            properties: {},
          }
        return agreeable(packet)
      },
    })
    await rig.up()
    await Promise.all([rig.client.subscribe('a'), rig.client.subscribe(['b', 'no']), rig.settle()])
    await Promise.all([failure(rig.client.subscribe('no')), rig.settle()])
    await Promise.all([rig.client.unsubscribe('a'), rig.settle()])
    expect(rig.client.stats().refusals).toBe(2)
    expect(rig.client.stats().subscribes).toBeGreaterThanOrEqual(3)
    expect(rig.client.stats().unsubscribes).toBe(1)
    await rig.finish()
  })

  it('publishes: sent, acknowledged, in flight, queued, refused, dropped, replayed', async () => {
    const rig = new Rig(
      { ...counted, outbound: { maxInflight: 2 } },
      { behave: () => (packet) => (packet.type === 'publish' && packet.topic === 'held' ? undefined : agreeable(packet)) },
    )
    await rig.up()
    await Promise.all([
      rig.client.publish('t', 'x'),
      rig.client.publish('t', 'x', { qos: 1 }),
      rig.client.publish('t', 'x', { qos: 2 }),
      rig.settle(),
    ])
    expect(rig.client.stats()).toMatchObject({ publishesSent: 3, publishesAcked: 2, publishesInFlight: 0, publishesQueued: 0 })
    const held = [1, 2, 3].map(() => rig.client.publish('held', 'x', { qos: 1 }).catch(() => undefined))
    await rig.settle()
    expect(rig.client.stats()).toMatchObject({ publishesSent: 5, publishesAcked: 2, publishesInFlight: 2, publishesQueued: 1, publishesReplayed: 0 })
    rig.client.outbound.clear()
    await rig.settle()
    expect(rig.client.stats()).toMatchObject({ publishesQueued: 0, publishesDropped: 1 })
    rig.behave = () => welcoming({}, true)
    await rig.cut()
    await rig.advance(1000)
    expect(rig.client.stats()).toMatchObject({ publishesReplayed: 2, publishesInFlight: 0, publishesAcked: 4 })
    await Promise.all(held)
    await rig.finish()
  })

  it('messages: received, delivered, unread, dropped, duplicates, unclaimed', async () => {
    const rig = await new Rig(counted).up()
    const subscription = await Promise.all([rig.client.subscribe('t', { qos: 1, ack: 'manual' }), rig.settle()]).then(([made]) => made)
    rig.peer.send(message(1), message(2))
    await rig.settle()
    expect(rig.client.stats()).toMatchObject({ received: 2, delivered: 0, unread: 2, duplicates: 0 })
    const first = await subscription.next()
    expect(rig.client.stats()).toMatchObject({ received: 2, delivered: 1, unread: 1 })
    rig.behave = () => welcoming({}, true)
    await rig.cut()
    await rig.advance(1000)
    rig.peer.send(message(1, 't', true))
    await rig.settle()
    expect(rig.client.stats()).toMatchObject({ duplicates: 1 })
    first?.ack()
    rig.peer.send(message(3, 'nobody'))
    await rig.settle()
    expect(rig.client.stats()).toMatchObject({ unclaimed: 1 })
    await rig.finish()
  })

  it('messages that were dropped', async () => {
    const rig = await new Rig(counted).up()
    await Promise.all([rig.client.subscribe('t', { qos: 1, ack: 'on-receive', buffer: 2 }), rig.settle()])
    for (let id = 1; id <= 5; id++) {
      rig.peer.send(message(id))
      await rig.settle()
    }
    expect(rig.client.stats()).toMatchObject({ received: 5, dropped: 3, unread: 2 })
    await rig.finish()
  })

  it('bytes and packets both ways, exactly', async () => {
    const rig = await new Rig(counted).up()
    await Promise.all([rig.client.subscribe('t'), rig.client.publish('t', 'x', { qos: 1 }), rig.settle()])
    const stats = rig.client.stats()
    expect(stats.bytesSent).toBe(rig.peer.bytes.length)
    expect(stats.packetsSent).toBe(rig.peer.received.length)
    // CONNACK, SUBACK and PUBACK of 5, 6 and 4 bytes.
    expect(stats.packetsReceived).toBe(3)
    expect(stats.bytesReceived).toBe(5 + 6 + 4)
    await rig.finish()
  })

  it('pings, their round trip, and those that nobody answered', async () => {
    const rig = await new Rig({ ...counted, keepAlive: 10, pingTimeout: 5000 }).up()
    expect(rig.client.stats().pingRoundTrip).toBeUndefined()
    rig.peer.answer = (packet) => {
      if (packet.type === 'pingreq') rig.clock.setTimer(() => rig.peer.send({ type: 'pingresp' }), 70)
      return undefined
    }
    await rig.advance(11_000)
    expect(rig.client.stats()).toMatchObject({ pings: 1, pingTimeouts: 0, pingRoundTrip: 70 })
    rig.peer.answer = () => undefined
    await rig.advance(16_000)
    expect(rig.client.stats()).toMatchObject({ pings: 2, pingTimeouts: 1, disconnects: 1 })
    expect(rig.client.stats().failures['ERR_KEEPALIVE_TIMEOUT']).toBe(1)
    await rig.finish()
  })

  it('acknowledgements for what does not exist', async () => {
    const rig = await new Rig(counted).up()
    rig.peer.send({ type: 'puback', packetId: 77, reasonCode: 0, properties: {} })
    await rig.settle()
    expect(rig.client.stats().unsolicitedAcks).toBe(1)
    await rig.finish()
  })

  it('failures are a bare record: no code of a server can meet a prototype', async () => {
    const rig = new Rig(counted)
    expect(Object.getPrototypeOf(rig.client.stats().failures)).toBeNull()
  })

  it.each([1, 'yes', null])('%s for the option is refused', (stats) => {
    expect(() => new Rig({ stats: stats as unknown as boolean })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'stats' }) as Error,
    )
  })
})
