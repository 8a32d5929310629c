/** What piles up in the broker in memory has a bound; a message for many receivers is encoded once, and each gets its own packet; packets that leave together. */
import { describe, expect, it } from 'vitest'
import { WriteBatch } from '../../src/testing/broker/common/write-batch.js'
import type { BrokerSession, MemoryBrokerOptions } from '../../src/testing/index.js'
import { decode, type Properties, type ProtocolVersion } from '../../src/wire/index.js'
import { type ConnectSettings, durable, joined, type RawClient, text, world } from './raw-client.js'
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

/** Receivers that differ in everything that a PUBLISH can differ in: settings, version, options, Subscription Identifier. */
const kinds: [
  ConnectSettings,
  ProtocolVersion,
  { qos: number; retainAsPublished?: boolean },
  number?,
][] = [
  ...[0, 1, 2].map((qos): [ConnectSettings, ProtocolVersion, { qos: number }] => [{}, 5, { qos }]),
  [{}, 4, { qos: 0 }],
  [{}, 4, { qos: 2 }],
  [{}, 5, { qos: 1 }, 7],
  [{}, 5, { qos: 2 }, 268_435_455],
  [{}, 5, { qos: 1, retainAsPublished: true }, 300],
  [{ properties: { topicAliasMaximum: 2 } }, 5, { qos: 1 }],
  [{ properties: { topicAliasMaximum: 1 } }, 5, { qos: 0 }, 20_000],
  [{ properties: { maximumPacketSize: 60, topicAliasMaximum: 5 } }, 5, { qos: 1 }],
]

const several: Properties = {
  payloadFormatIndicator: 1,
  messageExpiryInterval: 0xffff_ffff,
  responseTopic: 'r',
}
const messages: [topic: string, payload: string, qos: number, properties?: Properties][] = [
  ['a', 'x', 2],
  ['a/b/c', 'y'.repeat(20), 1],
  ['a/b/c', '', 0],
  ['ä/€', 'z'.repeat(200), 2, { messageExpiryInterval: 600, contentType: 'text' }],
  ['a', 'q'.repeat(20_000), 1, several],
  ['c', 'p', 2, { userProperties: [['k', 'v'.repeat(150)]], correlationData: Uint8Array.of(1, 2) }],
  ['a', 'again', 0, { messageExpiryInterval: 128 }],
]

async function deliveredBy(options: Parameters<typeof world>[0]): Promise<RawClient[]> {
  const { join, broker, clock } = world(options)
  const clients: RawClient[] = []
  for (const [at, [settings, version, subscription, identifier]] of kinds.entries()) {
    const client = await join(`c${at}`, settings, version)
    await client.subscribe({ filter: '#', ...subscription }, 1, identifier)
    clients.push(client)
  }
  for (const [at, [topic, payload, qos, properties]] of messages.entries()) {
    broker.publish({
      topic,
      payload,
      qos: qos as 0,
      retain: at === 0,
      ...(properties && { properties }),
    })
    await clock.advance(1500)
  }
  await clock.settle()
  return clients
}

it('a message for many: is to each receiver, byte by byte, what it is when each packet is encoded for itself', async () => {
  const shared = await deliveredBy({})
  // A hook that sees every packet has each of them made for itself.
  const single = await deliveredBy({ intercept: () => undefined })
  expect(shared.map(({ bytes }) => bytes)).toEqual(single.map(({ bytes }) => bytes))
  expect(shared.map(({ publishes }) => publishes.length)).toEqual([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4])
})

it('a message for many: is memory of its own for each: what one receiver writes into it, no other sees', async () => {
  const { join, broker, dial, clock } = world()
  const clients: RawClient[] = []
  const chunks: Uint8Array[] = []
  for (const name of ['a', 'b']) {
    const client = await join(name)
    await client.subscribe('#')
    clients.push(client)
  }
  const spoiler = dial()
  await spoiler.connect({ clientId: 'spoiler' })
  await spoiler.subscribe('#')
  const real = spoiler.chunk.bind(spoiler)
  spoiler.chunk = (bytes) => {
    chunks.push(bytes.slice())
    real(bytes)
    bytes.fill(0xff)
  }
  for (const topic of ['one', 'two']) broker.publish({ topic, payload: 'text', retain: true })
  await clock.settle()
  for (const client of clients) expect(client.takeMessages()).toEqual(['one text', 'two text'])
  expect(text(broker.retained.get('two')?.payload ?? new Uint8Array(0))).toBe('text')
  expect(
    chunks.map((chunk) => decode(chunk, { from: 'server' })).map((packet) => packet.type),
  ).toEqual(['publish', 'publish'])
})

it('what one read caused is one write to each client, in order', async () => {
  const { join, clock } = world()
  const [reader, client] = [await join('reader'), await join('a')]
  await reader.subscribe({ filter: '#', qos: 1 })
  let chunks = 0
  const real = reader.chunk.bind(reader)
  reader.chunk = (bytes) => {
    chunks++
    real(bytes)
  }
  const ids = Array.from({ length: 10 }, (_, index) => index + 1)
  const publishes = ids.map((packetId) => ({
    type: 'publish' as const,
    topic: String(packetId),
    qos: 1 as const,
    packetId,
  }))
  const answers = await client.send(...publishes, { type: 'pingreq' })
  expect(answers.map((packet) => ('packetId' in packet ? packet.packetId : packet.type))).toEqual([
    ...ids,
    'pingresp',
  ])
  await clock.settle()
  expect([chunks, reader.takeMessages()]).toEqual([1, publishes.map(({ topic }) => `${topic} `)])
})

it('what was said before the end is said before the end', async () => {
  const { join, broker } = world()
  const client = await join('a')
  const packets = await client.send(
    { type: 'pingreq' },
    { type: 'pingreq' },
    { type: 'connect', clientId: 'b' },
  )
  expect(packets.map(({ type }) => type)).toEqual(['pingresp', 'pingresp', 'disconnect'])
  expect([client.ended, broker.clients.size]).toEqual([{ cause: undefined }, 0])
})

it('the end of the outermost batch writes everything, once and in order', () => {
  const batch = new WriteBatch()
  const written: string[] = []
  batch.begin()
  batch.add({ flush: () => written.push('a') })
  batch.begin()
  batch.add({ flush: () => written.push('b') })
  batch.end()
  expect([written, batch.isOpen]).toEqual([[], true])
  batch.end()
  expect([written, batch.isOpen]).toEqual([['a', 'b'], false])
  batch.begin()
  batch.end()
  expect(written).toEqual(['a', 'b'])
})
