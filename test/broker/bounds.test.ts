/** What piles up in the broker in memory has a bound. */
import { describe, expect, it } from 'vitest'
import type { Properties } from '../../src/wire/index.js'
import { durable, joined, text, world } from './raw-client.js'

describe('what clients can make the broker hold is bounded', () => {
  it('waiting messages, by number: the newest is dropped and counted', async () => {
    const { client, join, broker } = await joined({ maxQueuedMessages: 3 }, durable)
    await client.subscribe('t')
    await client.cut()
    for (let i = 0; i < 5; i++) broker.publish({ topic: 't', payload: String(i), qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 3, dropped: 2 })
    expect((await join('a', durable)).takeMessages()).toEqual(['t 0', 't 1', 't 2'])
  })

  it('or the oldest, and before both what has expired', async () => {
    const { client, join, broker, clock } = await joined(
      { maxQueuedMessages: 3, overflow: 'drop-oldest' },
      durable,
    )
    await client.subscribe('t')
    await client.cut()
    for (let i = 0; i < 4; i++) {
      const properties = i === 2 ? { messageExpiryInterval: 1 } : {}
      broker.publish({ topic: 't', payload: String(i), qos: 1, properties })
    }
    await clock.advance(1000)
    broker.publish({ topic: 't', payload: '4', qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 3, dropped: 1, expired: 1 })
    expect((await join('a', durable)).takeMessages()).toEqual(['t 1', 't 3', 't 4'])
  })

  it('bytes of messages, unacknowledged ones included', async () => {
    const { client, broker } = await joined({ maxQueuedBytes: 2500 })
    await client.subscribe('t')
    for (let i = 0; i < 4; i++) broker.publish({ topic: 't', payload: 'x'.repeat(1000), qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 2, queued: 0, dropped: 2 })
    await client.send({ type: 'puback', packetId: 1 }, { type: 'puback', packetId: 2 })
    for (let i = 0; i < 4; i++) broker.publish({ topic: 't', payload: 'x'.repeat(1000), qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 2, dropped: 4 })
  })

  it('messages for a client that does not read: the rest waits, then is dropped', async () => {
    const { dial, clock, broker } = world({ maxQueuedMessages: 10 })
    const client = dial(5, { highWaterMark: 1000 })
    await client.connect({ clientId: 'a' })
    await client.subscribe('t')
    // Nothing is delivered until the clock moves.
    for (let i = 0; i < 30; i++) broker.publish({ topic: 't', payload: String(i).padEnd(300, '.') })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 10, dropped: 16 })
    await clock.settle()
    expect(client.takeMessages().map((message) => Number.parseInt(message.slice(2), 10))).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
    ])
    expect(broker.sessions.get('a')).toMatchObject({ queued: 0 })
  })

  it('answers for a client that asks and does not read', async () => {
    const { dial, broker } = world({ maxBacklog: 1000 })
    const client = dial(5, { backward: { highWaterMark: 100, latency: 1_000_000 } })
    await client.send({ type: 'connect', clientId: 'a' })
    const pings = Array.from({ length: 1000 }, () => ({ type: 'pingreq' as const }))
    await client.send(...pings)
    expect([...broker.clients.keys()]).toEqual([])
    // Its end of the stream is far away: what counts is that the broker let go.
    expect(broker.violations).toEqual([])
  })

  it('one message may be larger than what a client may leave unread, and answers go behind it', async () => {
    const { dial, broker, clock } = world({ maxBacklog: 1000 })
    const client = dial(5, { backward: { highWaterMark: 100, latency: 10 } })
    await client.send({ type: 'connect', clientId: 'a' })
    await clock.advance(20)
    await client.send({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 't' }] })
    await clock.advance(20)
    await client.send(
      { type: 'publish', topic: 't', payload: new Uint8Array(5000) },
      { type: 'pingreq' },
    )
    await clock.advance(100)
    expect([...broker.clients.keys()]).toEqual(['a'])
    expect(client.take().map(({ type }) => type)).toContain('pingresp')
  })

  it('logs', async () => {
    const { client, broker } = await joined({ maxLog: 10 })
    for (let i = 0; i < 25; i++) await client.publish('t', String(i))
    expect(broker.accepted.length).toBeLessThanOrEqual(10)
    expect(text(broker.accepted.at(-1)?.payload ?? new Uint8Array(0))).toBe('24')
    const small = await joined({ maxLogBytes: 1000 })
    for (let i = 0; i < 25; i++) await small.client.publish('t', 'x'.repeat(100))
    expect(small.broker.accepted.length).toBeLessThanOrEqual(6)
    expect(small.broker.accepted.length).toBeGreaterThanOrEqual(2)
  })

  it.each([
    { contentType: 'x'.repeat(400) },
    { responseTopic: 'x'.repeat(400) },
    { correlationData: new Uint8Array(1200) },
    { userProperties: [['', 'x'.repeat(400)]] },
  ] as Properties[])('bytes of messages: properties count, %o', async (properties) => {
    const { client, broker } = await joined({ maxQueuedBytes: 2000 }, durable)
    await client.subscribe({ filter: 't', qos: 1 })
    await client.cut()
    for (let i = 0; i < 3; i++)
      broker.publish({ topic: 't', payload: String(i), qos: 1, properties })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 1, dropped: 2 })
  })
})
