/** What piles up in the broker in memory has a bound. */
import { describe, expect, it } from 'vitest'
import type { BrokerSession, MemoryBrokerOptions } from '../../src/testing/index.js'
import type { Properties } from '../../src/wire/index.js'
import { durable, joined, text, world } from './raw-client.js'
import { play } from './scenes.js'

describe('what clients can make the broker hold is bounded', () => {
  const away = 'a> C:a~ S:1:t:1; a< K:0 SA:1:1; a!; >'
  const large = 'x'.repeat(1000)
  it.each<[string, MemoryBrokerOptions, Partial<BrokerSession>, string]>([
    [
      'waiting messages, by number: the newest is dropped and counted',
      { maxQueuedMessages: 3 },
      { dropped: 2 },
      `${away} P1:t=0 P1:t=1 P1:t=2 P1:t=3 P1:t=4; a> C:a~; a< K:1 P1:1:t=0 P1:2:t=1 P1:3:t=2`,
    ],
    [
      'or the oldest, and before both what has expired',
      { maxQueuedMessages: 3, overflow: 'drop-oldest' },
      { dropped: 1, expired: 1 },
      `${away} P1:t=0 P1:t=1 PE1,1:t=2 P1:t=3; +1000; > P1:t=4; a> C:a~; a< K:1 P1:1:t=1 P1:2:t=3 P1:3:t=4`,
    ],
    [
      'bytes of messages, unacknowledged ones included',
      { maxQueuedBytes: 2500 },
      { dropped: 2, inflight: 1 },
      `a* t:1; > P1:t=${large} P1:t=${large} P1:t=3${large}; a< P1:1:t=${large} P1:2:t=${large}; a> PA:1 PA:2; ` +
        `> P1:t=${large} P1:t=${large}${large}; a< P1:3:t=${large}`,
    ],
  ])('%s', async (_what, options, counted, scene) => {
    const { broker } = await play(scene, 5, options)
    expect(broker.sessions.get('a')).toMatchObject({ queued: 0, ...counted })
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
