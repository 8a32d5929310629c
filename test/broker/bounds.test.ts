/** What piles up in the broker in memory has a bound. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encode, type PacketInput, type Properties } from '../../src/wire/index.js'
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

  it('timers: none is left behind', async () => {
    const { join, broker, clock } = world()
    for (let i = 0; i < 50; i++) {
      const will = { topic: 'w', properties: { willDelayInterval: 30 } }
      const client = await join(`c${i}`, {
        keepAlive: 60,
        properties: { sessionExpiryInterval: 60 },
        will,
      })
      if (i % 2 === 0) await client.cut()
      else await client.send({ type: 'disconnect' })
    }
    await clock.advance(61_000)
    expect([clock.pending, broker.sessions.size]).toEqual([0, 0])
  })
})

const packetId = fc.integer({ min: 1, max: 4 })
const qos = fc.integer({ min: 0, max: 2 })
const payload = fc.constantFrom('', 'x', 'yy').map((value) => new TextEncoder().encode(value))
const publish = fc
  .record({
    topic: fc.constantFrom('a', 'a/b', '$x', 'b'),
    payload,
    qos,
    packetId,
    dup: fc.boolean(),
    retain: fc.boolean(),
  })
  .map((fields) => ({
    ...fields,
    type: 'publish',
    ...(fields.qos > 0 ? {} : { dup: false, packetId: undefined }),
  }))
const subscription = fc.record({
  filter: fc.constantFrom('#', 'a/+', 'b', '$share/g/#', '$share/g/a'),
  qos,
  retainHandling: qos,
})
const anyPacket = fc.oneof(
  publish,
  fc.record({ type: fc.constantFrom('puback', 'pubrec', 'pubrel', 'pubcomp'), packetId }),
  fc.record({
    type: fc.constant('subscribe'),
    packetId,
    subscriptions: subscription.map((each) => [each]),
  }),
  fc.record({
    type: fc.constant('unsubscribe'),
    packetId,
    filters: fc.constantFrom(['a/+'], ['#', 'b']),
  }),
  fc.constant({ type: 'pingreq' }),
  fc.record({ type: fc.constant('disconnect'), reasonCode: fc.constantFrom(0, 4) }),
  fc.constant({ type: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'x' } }),
)

const client = fc.integer({ min: 0, max: 2 })
const step = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ client, packets: fc.array(anyPacket, { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ client, bytes: fc.uint8Array({ maxLength: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ client, cut: fc.constant(true) }) },
  { weight: 1, arbitrary: fc.record({ time: fc.integer({ min: 0, max: 40_000 }) }) },
  { weight: 1, arbitrary: fc.record({ restart: fc.boolean() }) },
)

const fault = fc
  .record({
    packet: fc.constantFrom(
      ...(['*', 'publish', 'puback', 'pubrec', 'pubrel', 'connack'] as const),
    ),
    direction: fc.constantFrom(...(['in', 'out'] as const)),
    nth: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constant('every' as const)),
    action: fc.constantFrom(
      ...([
        'drop',
        'delay',
        'twice',
        'reorder',
        'close-before',
        'close-after',
        'restart-keep',
        'restart-lose',
      ] as const),
      ...[{ reasonCode: 0x97 }, { reasonCode: 0x80 }],
    ),
  })
  // Not every packet can say every code.
  .filter(
    ({ packet, direction, action }) =>
      typeof action === 'string' || packet === '*' || (packet === 'publish' && direction === 'in'),
  )

/** What 3.1.1 has of a packet. */
function in311(packet: PacketInput): PacketInput[] {
  if (packet.type === 'auth') return []
  if (packet.type === 'disconnect') return [{ type: 'disconnect' }]
  return [
    packet.type === 'subscribe'
      ? {
          ...packet,
          subscriptions: packet.subscriptions.map(({ filter, qos: wanted }) => ({
            filter,
            qos: wanted,
          })),
        }
      : packet,
  ]
}

type Step = {
  client?: number
  packets?: PacketInput[]
  bytes?: Uint8Array
  cut?: boolean
  time?: number
  restart?: boolean
}

async function play(
  steps: readonly Step[],
  faults: Parameters<typeof world>[0],
): Promise<number[][]> {
  const { dial, broker, clock } = world({ ...faults, maxQueuedMessages: 5, receiveMaximum: 3 })
  const clients: ReturnType<typeof dial>[] = []
  const heard: number[][] = []
  for (const { client: index = 0, packets, bytes, cut, time, restart } of steps) {
    if (clients[index] === undefined || clients[index].ended !== undefined) {
      const client = dial(index === 2 ? 4 : 5)
      clients[index] = client
      heard.push(client.bytes)
      const properties =
        index === 2 ? {} : { properties: { sessionExpiryInterval: 20, receiveMaximum: 2 } }
      const settings = {
        cleanStart: false,
        keepAlive: 20,
        will: { topic: 'a', qos: 1 },
        protocolVersion: client.version,
        ...properties,
      }
      await client.sendBytes(encode({ type: 'connect', clientId: `c${index}`, ...settings }))
    }
    const client = clients[index] as ReturnType<typeof dial>
    if (packets !== undefined) {
      const allowed = client.version === 5 ? packets : packets.flatMap(in311)
      await client.sendBytes(
        ...allowed.map((packet) => encode(packet, { protocolVersion: client.version })),
      )
    } else if (bytes !== undefined) await client.sendBytes(bytes)
    else if (cut) await client.cut()
    else if (time !== undefined) await clock.advance(time)
    else if (restart !== undefined) broker.restart({ keepSessions: restart })
    for (const session of broker.sessions.values()) expect(session.queued).toBeLessThanOrEqual(5)
  }
  broker.close()
  await clock.advance(100_000)
  expect([broker.sessions.size, broker.clients.size, clock.pending]).toEqual([0, 0, 0])
  return heard
}

describe('any packets, bytes, cuts, times and faults', () => {
  it('nothing escapes, nothing stays behind, and every run is the same again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.array(fault, { maxLength: 3 }),
        async (steps, faults) => {
          const first = await play(steps as Step[], { faults })
          expect(await play(steps as Step[], { faults })).toEqual(first)
        },
      ),
      { numRuns: 300 },
    )
  }, 60_000)
})
