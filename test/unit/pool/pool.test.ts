/** Pools, on the virtual clock. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { Platform } from '../../../src/client/platform.js'
import { accessOf } from '../../../src/members/member.js'
import { poolOf } from '../../../src/pool/publisher-pool.js'
import type { Pool, PoolOptions } from '../../../src/pool/types.js'
import { openQueue } from '../../../src/queue/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import { channel } from '../../../src/typed/channel.js'
import { json } from '../../../src/typed/codec.js'
import { operation } from '../../../src/typed/operation.js'
import type { QoS } from '../../../src/wire/packets.js'
import { endOf as codeOf } from '../group/rig.js'

let world: VirtualWorld
beforeEach(() => {
  world = new VirtualWorld()
})
afterEach(() => world.close())

const makePool = (options?: PoolOptions): Pool =>
  poolOf((at, given) => new world.Client(at, given), 'mqtt://b', options)
/** A pool whose connections are up. */
async function upPool(options?: PoolOptions): Promise<Pool> {
  const pool = makePool(options)
  await pool.connect()
  await world.pass(1)
  return pool
}
const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index))
/** What a fallback needs besides its publish(). */
const taking = { ordered: true, writable: Promise.resolve() }
const clientIds = (pool: Pool) =>
  pool.members().map(({ client }) => (client as unknown as { clientId: string }).clientId)
async function reader(): Promise<{ readonly texts: string[]; readonly by: Map<string, string[]> }> {
  const texts: string[] = []
  const by = new Map<string, string[]>()
  const client = await world.connect('mqtt://b', { clientId: 'reader' })
  await client.listen('#', (message) => {
    texts.push(message.text())
    by.set(message.topic, [...(by.get(message.topic) ?? []), message.text()])
  })
  return { texts, by }
}

it('connects as often as asked, with client identifiers of its own', async () => {
  const pool = makePool({ size: 3, clientId: 'svc' })
  expect(pool.state).toBe('idle')
  await pool.connect()
  await world.pass(1)
  expect(pool.state).toBe('connected')
  const states = pool.members().map(({ name, state }) => `${name} ${state}`)
  expect(states).toEqual(['pub-1 connected', 'pub-2 connected', 'pub-3 connected'])
  expect(clientIds(pool)).toEqual(['svc-pub-1', 'svc-pub-2', 'svc-pub-3'])
  await pool.connect()
  await pool.disconnect()
  expect(pool.state).toBe('closed')
  expect(await codeOf(pool.publish('a', 'x'))).toBe('ERR_CLOSED')
  expect(await codeOf(pool.connect())).toBe('ERR_CLOSED')
  expect(pool.post('a', 'x')).toBe(false)
  expect(await codeOf(pool.writable)).toBe('ERR_CLOSED')
})

it('connects when somebody waits to publish, as a queue over it does', async () => {
  const { texts } = await reader()
  const store = memoryStore()
  const queue = await openQueue(makePool({ size: 2 }), { store })
  const { delivered } = await queue.publish('a', 'x')
  await world.until(delivered)
  expect(texts).toEqual(['x'])
  await queue.close()
  const pool = makePool({ size: 2 })
  await world.until(pool.writable)
  expect(pool.state).toBe('connected')
})

it('publishes by one after the other', async () => {
  const { texts: received } = await reader()
  const pool = await upPool({ size: 3, options: { stats: true } })
  await Promise.all(numbered(9).map((text) => pool.publish('a', text, { qos: 1 })))
  expect(pool.members().map(({ name }) => pool.stats().members[name]?.publishesSent)).toEqual([
    3, 3, 3,
  ])
  expect(received.sort()).toEqual(numbered(9))
  expect(pool.ordered).toBe(false)
})

it('publishes by that which has the fewest in flight', async () => {
  const pool = await upPool({
    size: 2,
    routing: 'least-in-flight',
    clientId: 'p',
    options: { stats: true },
  })
  const mend = world.cut('p-pub-1', { silently: true })
  const slow = pool.publish('a', 'slow', { qos: 1 })
  const slower = pool.publish('a', 'next', { qos: 1 })
  await slower
  for (let count = 0; count < 5; count++) await pool.publish('a', 'x', { qos: 1 })
  expect(pool.members().map(({ inFlight }) => inFlight)).toEqual([1, 0])
  mend()
  await world.until(slow)
})

it('by hash: the order of each topic holds through losses', async () => {
  const { by } = await reader()
  const pool = makePool({ size: 3, routing: 'hash', clientId: 'p' })
  expect(pool.ordered).toBe(true)
  await pool.connect()
  await world.pass(1)
  const all: Promise<unknown>[] = []
  for (let round = 0; round < 30; round++) {
    const mend = world.cut(`p-pub-${(round % 3) + 1}`, { silently: round % 2 === 0 })
    for (let topic = 0; topic < 5; topic++)
      all.push(pool.publish(`t/${topic}`, String(round), { qos: 1 }))
    await world.pass(300)
    mend()
  }
  await world.until(Promise.all(all))
  for (let topic = 0; topic < 5; topic++) {
    expect([...new Set(by.get(`t/${topic}`))]).toEqual(numbered(30))
  }
})

it('by hash, onLost: move: a topic with something in flight on a lost connection goes on by another one', async () => {
  const options = { keepAlive: 5 }
  const pool = await upPool({ size: 2, routing: 'hash', onLost: 'move', clientId: 'p', options })
  expect(pool.ordered).toBe(false)
  const publishAll = (text: string) =>
    Promise.all(numbered(10).map((n) => pool.publish(`t/${n}`, text, { qos: 1 })))
  const mend = world.cut('p-pub-1', { silently: true })
  const first = publishAll('1')
  await world.until(() => pool.stats().up === 1)
  expect(pool.members()[0]?.inFlight).toBeGreaterThan(0)
  expect(await world.until(publishAll('2'))).toHaveLength(10)
  mend()
  await world.until(first)
})

it('a queue over it goes on where a connection was taken out before the server had answered', async () => {
  const { texts } = await reader()
  const pool = await upPool({ size: 2, clientId: 'p' })
  const queue = await openQueue(pool, { store: memoryStore(), backoff: () => 1 })
  world.cut('p-pub-2', { silently: true })
  await Promise.all(['1', '2', '3', '4'].map((text) => queue.publish(`to/${text}`, text)))
  await expect.poll(() => texts.length).toBe(2)
  await Promise.all([pool.resize(1, { timeout: 1000 }), world.pass(5000)])
  await queue.publish('to/5', '5')
  // The queue has the time of the platform.
  const size = async (): Promise<number> => {
    await world.pass(100)
    return queue.size
  }
  await expect.poll(size, { timeout: 5000 }).toBe(0)
  expect([...new Set(texts)].sort()).toEqual(['1', '2', '3', '4', '5'])
  await queue.close()
})

it('publishes of the time before the first connection leave in their order, and before later ones', async () => {
  const { texts } = await reader()
  const pool = makePool({ size: 1 })
  const before = [pool.publish('a', '1'), pool.publish('a', '2')]
  const after = pool.connect().then(() => pool.publish('a', '3'))
  await Promise.all([...before, after])
  await world.pass(1)
  expect(texts).toEqual(['1', '2', '3'])
})

it('before the first connection, options are those of the call, and time runs', async () => {
  const mend = world.cut(undefined, { silently: true })
  const pool = makePool({ size: 1, options: { outbound: { ttl: 60_000 } } })
  const pairs: [string, string][] = [['n', '1']]
  const options = {
    qos: 1 as QoS,
    retain: false,
    properties: { userProperties: pairs, messageExpiryInterval: 30 },
  }
  const sent = pool.publish('t', 'x', options)
  Object.assign(options, { qos: 0, retain: true })
  pairs[0] = ['n', '2']
  const short = [{ ttl: 100 }, { properties: { messageExpiryInterval: 1 } }]
  const expired = short.map((given) => codeOf(pool.publish('t', 'short', given)))
  expect(await codeOf(pool.publish('t', 'x', { qos: 3 as QoS }))).toBe('ERR_INVALID_OPTION')
  const usual = codeOf(pool.publish('t', 'usual', { qos: 1 }))
  await world.pass(2500)
  expect(await Promise.all(expired)).toEqual(['ERR_EXPIRED', 'ERR_EXPIRED'])
  mend()
  await world.until(sent)
  const [message] = world.broker.accepted
  expect(message).toMatchObject({
    qos: 1,
    retain: false,
    properties: { userProperties: [['n', '1']] },
  })
  expect(message?.properties.messageExpiryInterval).toBeLessThan(29)
  expect([world.broker.accepted.length, await usual]).toEqual([2, 'fulfilled'])
})

it('drain(), called twice, sends what was published in the same turn, before there was a connection; disconnect() does not wait for it', async () => {
  const { texts } = await reader()
  const pool = makePool({ size: 2 })
  const sent = numbered(20).map((text) => codeOf(pool.publish('a', text, { qos: 1 })))
  const drained = Promise.all([pool.drain(), pool.drain()])
  const late = codeOf(pool.publish('a', 'late'))
  await world.pass(1000)
  expect(pool.state).toBe('closed')
  await drained
  expect(new Set(await Promise.all(sent))).toEqual(new Set(['fulfilled']))
  expect([await late, pool.state, texts.length]).toEqual(['ERR_CLOSED', 'closed', 20])
  const other = makePool({ size: 2 })
  const given = [other.publish('a', 'x'), other.writable].map(codeOf)
  await world.until(other.disconnect())
  expect(await Promise.all(given)).toEqual(['ERR_CLOSED', 'ERR_CLOSED'])
})

it('wrong options of resize() end nothing; what the server does not take a connection goes without', async () => {
  const pool = await upPool({ size: 2, options: { protocolVersion: 4 } })
  const [, second] = pool.members()
  expect(await codeOf(pool.resize(1, { timeout: -1 }))).toBe('ERR_INVALID_OPTION')
  expect([pool.size, second?.client.state]).toEqual([2, 'connected'])
  expect(await codeOf(pool.resize(1, { reasonString: 'bye' }))).toBe('ERR_UNSUPPORTED_OPTION')
  await world.pass(10)
  expect([pool.size, second?.client.state]).toEqual([1, 'closed'])
})

it.each(['round-robin', 'hash'] as const)(
  '%s: what is no topic is refused, before the first connection and behind it; others go on',
  async (routing) => {
    const pool = makePool({ size: 2, routing })
    for (const topic of ['a/#', '', 'a\0', undefined as never])
      expect([topic, await codeOf(pool.publish(topic, 'x'))]).toEqual([topic, 'ERR_INVALID_TOPIC'])
    expect(pool.stats().queued).toBe(0)
    expect(await world.until(codeOf(pool.publish('t', 'x', { qos: 1 })))).toBe('fulfilled')
    expect(await codeOf(pool.publish(undefined as never, 'x'))).toBe('ERR_INVALID_TOPIC')
    expect(() => pool.post(undefined as never, 'x')).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }),
    )
  },
)

it.each(['round-robin', 'hash'] as const)('%s: rejects as its fallback throws', async (routing) => {
  world.cut()
  const publish = (): never => {
    throw new Error('full')
  }
  const fallback = { ...taking, publish }
  const pool = makePool({ size: 2, routing, fallback })
  const early = ['a', 'b'].map((topic) =>
    pool.publish(topic, 'x').catch((error: Error) => error.message),
  )
  expect(await world.until(Promise.all(early))).toEqual(['full', 'full'])
  await expect(pool.publish('a', 'x')).rejects.toThrow('full')
})

it.each(['x', -1, Number.POSITIVE_INFINITY])('a timeout of %s ends nothing', async (timeout) => {
  const pool = makePool({ size: 2 })
  const sent = codeOf(pool.publish('t', 'x', { qos: 1 }))
  expect(await codeOf(pool.drain({ timeout: timeout as number }))).toBe('ERR_INVALID_OPTION')
  expect(await world.until(sent)).toBe('fulfilled')
  expect(await codeOf(pool.disconnect({ timeout: timeout as number }))).toBe('ERR_INVALID_OPTION')
  expect([pool.state, await codeOf(pool.publish('t', 'x', { qos: 1 }))]).toEqual([
    'connected',
    'fulfilled',
  ])
})

it('says who failed where no connection can be had, and goes on trying', async () => {
  const mend = world.cut()
  const pool = makePool({ size: 2, offline: 'reject' })
  const connecting = pool.connect()
  const early = codeOf(pool.publish('a', 'x', { qos: 1 }))
  await world.until(connecting.catch(() => undefined))
  await expect(connecting).rejects.toMatchObject({
    name: 'AggregateError',
    code: 'ERR_CONNECT_FAILED',
    message: expect.stringMatching(/pub-1: .*\npub-2: /s),
  })
  expect(await early).toBe('ERR_NO_HEALTHY_PUBLISHERS')
  mend()
  await world.until(() => pool.stats().up === 2)
  expect(await codeOf(pool.publish('a', 'x', { qos: 1 }))).toBe('fulfilled')
})

it.each([0, 1] as const)('QoS %i: publishes in a blip wait, in order', async (qos) => {
  const { texts } = await reader()
  const pool = await upPool({ size: 2, clientId: 'p' })
  const mends = ['p-pub-1', 'p-pub-2'].map((id) => world.cut(id))
  await world.pass(1)
  const sent = ['1', '2', '3'].map((text) => pool.publish('a', text, { qos }))
  const refused = codeOf(pool.publish('a', 'x', { qos, offline: 'reject' }))
  expect([await refused, pool.stats().queued]).toEqual(['ERR_NO_HEALTHY_PUBLISHERS', 3])
  mends[1]?.()
  await world.until(Promise.all(sent))
  await world.pass(1)
  expect([texts, pool.stats()]).toMatchObject([['1', '2', '3'], { queued: 0, up: 1 }])
  // As the clients' own options say.
  const outbound = { offline: { [`qos${qos}`]: 'reject' } }
  const other = await upPool({ size: 1, clientId: 'o', options: { outbound } })
  world.cut('o-pub-1')
  await world.pass(1)
  expect(await codeOf(other.publish('a', 'x', { qos }))).toBe('ERR_NO_HEALTHY_PUBLISHERS')
})

it.each([
  [{ maxQueuedBytes: 2048 }, undefined, [1500], 'ERR_QUEUE_FULL'],
  [{ maxQueuedMessages: 2 }, undefined, [1500, 700], 'ERR_QUEUE_FULL'],
  [{ maxQueuedBytes: 2048 }, 'drop-newest', [1500], 'ERR_DROPPED'],
  [{ maxQueuedBytes: 2048, overflow: 'drop-oldest' }, undefined, [700, 700], 'ERR_DROPPED'],
] as const)(
  'limits hold before there is a connection: %j, %s',
  async (limits, overflow, kept, code) => {
    const mend = world.cut()
    const pool = makePool({ size: 2, options: { outbound: limits } })
    const ends = Promise.all(
      [1500, 700, 700].map((size) =>
        codeOf(pool.publish('a', new Uint8Array(size), { qos: 1, overflow })),
      ),
    )
    expect(pool.stats().queued).toBe(kept.length)
    mend()
    expect(new Set(await world.until(ends))).toEqual(new Set(['fulfilled', code]))
    expect(world.broker.accepted.map(({ payload }) => payload.length)).toEqual(kept)
  },
)

it('what waits for a connection that leaves has the limits of a client', async () => {
  const pool = await upPool({
    size: 2,
    clientId: 'p',
    routing: 'hash',
    options: { outbound: { maxQueuedBytes: 1000 } },
  })
  world.cut('p-pub-2', { silently: true })
  const publish = (size: number) =>
    Array.from({ length: 10 }, (_, index) =>
      codeOf(pool.publish(`t/${index}`, new Uint8Array(size), { qos: 1 })),
    )
  const first = publish(1)
  await world.pass(1)
  void pool.resize(1, { timeout: 100 })
  const second = publish(600)
  expect(pool.stats().queued).toBe(1)
  await world.until(pool.disconnect({ timeout: 200 }))
  await Promise.all(first)
  expect(await Promise.all(second)).toContain('ERR_QUEUE_FULL')
})

it.each([
  ['timeout', 3000],
  ['signal', 100],
])('drain() waits for a connection, and no longer than its %s', async (end, delay) => {
  world.cut()
  const pool = makePool({ size: 2 })
  const sent = codeOf(pool.publish('a', 'x', { qos: 1 }))
  const abort = new AbortController()
  const since = world.now()
  const drained = codeOf(pool.drain({ timeout: 3000, signal: abort.signal }))
  await world.pass(delay)
  if (end === 'signal') abort.abort()
  await world.until(drained)
  expect([await sent, world.now() - since, pool.state]).toEqual(['ERR_CLOSED', delay, 'closed'])
})

it('reports each of the connections that end for good at the same time', async () => {
  const pool = await upPool({ size: 3, options: { reconnect: false } })
  const ended: string[] = []
  pool.on('error', ({ member }) => ended.push(member))
  world.cut()
  await world.pass(1)
  expect([ended, pool.state]).toEqual([['pub-1', 'pub-2', 'pub-3'], 'closed'])
  expect(await pool.closed).toBe(pool.members()[0]?.error)
})

it('replaces a connection that has ended for good while another one is up, later and later', async () => {
  const pool = makePool({ size: 2, clientId: 'p' })
  const ends: [string, string | undefined, number][] = []
  await pool.connect()
  await world.pass(1)
  const stop = pool.use({
    publish: (call, next) => next({ ...call, topic: `hooked/${call.topic}` }),
  })
  let since = world.now()
  pool.on('error', ({ member, error }) => {
    ends.push([member, error.code, world.now() - since])
    since = world.now()
  })
  for (let round = 0; round < 5; round++) {
    world.broker.disconnect('p-pub-1', 0x8e)
    await world.until(() => pool.members()[0]?.state === 'closed')
    expect([pool.size, pool.members()[0]?.error?.code, pool.state]).toEqual([
      2,
      'ERR_SESSION_TAKEN_OVER',
      'connected',
    ])
    expect(await codeOf(pool.publish('a', 'x', { qos: 1 }))).toBe('fulfilled')
    await world.until(() => pool.stats().up === 2)
  }
  expect(ends.map(([member, code]) => [member, code])).toEqual(
    Array(5).fill(['pub-1', 'ERR_SESSION_TAKEN_OVER']),
  )
  const delays = ends.map(([, , delay]) => delay).slice(1)
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(1000)
  expect(Math.max(...delays)).toBeGreaterThan(2000)
  expect(new Set(world.broker.accepted.map(({ topic }) => topic))).toEqual(new Set(['hooked/a']))
  stop()
  await pool.disconnect()
  expect([await pool.closed, world.clock.pending]).toEqual([undefined, 0])
})

it.each([
  ['is printed', false, 1],
  ['is not where the program waits for the end of the pool', true, 0],
])('a connection that has ended for good %s', async (_what, waits, count) => {
  const said: string[] = []
  const pool = poolOf(
    (at, given) => {
      const client = new world.Client(at, given)
      const { platform } = accessOf({ client } as never) as unknown as {
        platform: { report: Platform['report'] }
      }
      platform.report = (code, text) => void said.push(`${code} ${text().text}`)
      return client
    },
    'mqtt://b',
    { size: 2, clientId: 'p' },
  )
  await pool.connect()
  await world.pass(1)
  if (waits) void pool.closed
  world.broker.disconnect('p-pub-1', 0x8e)
  await world.until(() => pool.stats().up === 2)
  expect(said).toEqual(
    Array(count).fill(
      expect.stringMatching(/MQWIRE_NOT_CONNECTED.* connection pub-1 of the pool has ended/),
    ),
  )
  await pool.disconnect()
})

it.each<[string, () => number, number]>([
  ['its own', () => 700, 700],
  ['none', () => Number.NaN, 30_000],
  ['less than none', () => -1, 30_000],
  [
    'an error',
    () => {
      throw new Error('mine')
    },
    30_000,
  ],
])('a backoff that gives %s: the replacement comes after %s, %i ms', async (_, backoff, delay) => {
  const pool = await upPool({ size: 2, clientId: 'p', options: { reconnect: { backoff } } })
  world.broker.disconnect('p-pub-1', 0x8e)
  await world.pass(delay - 5)
  expect(pool.stats().up).toBe(1)
  await world.pass(10)
  expect(pool.stats().up).toBe(2)
})

it('the delays of replacements start again behind a connection that has lasted', async () => {
  const attempts: number[] = []
  const backoff = (attempt: number): number => {
    attempts.push(attempt)
    return 10
  }
  const reconnect = { backoff, stableAfter: 5000 }
  const pool = await upPool({ size: 2, clientId: 'p', options: { reconnect } })
  for (const lasted of [0, 0, 4000, 5000, 0]) {
    await world.pass(lasted)
    world.broker.disconnect('p-pub-1', 0x8e)
    await world.until(() => pool.stats().up === 1)
    await world.until(() => pool.stats().up === 2)
  }
  expect(attempts).toEqual([1, 2, 3, 1, 2])
})

it('a replacement that cannot be made is tried again; none is made while no connection is up', async () => {
  let fails = false
  const clientId = (n: number): string => {
    if (fails) throw new Error('mine')
    return `p${n}`
  }
  const reconnect = { backoff: () => 10 }
  const pool = await upPool({ size: 2, clientId, options: { reconnect } })
  fails = true
  world.broker.disconnect('p1', 0x8e)
  await world.pass(100)
  const error = { code: 'ERR_NOT_CONNECTED', message: expect.stringContaining('mine') }
  expect(pool.members()[0]).toMatchObject({ state: 'closed', error })
  fails = false
  const mend = world.cut('p2')
  await world.pass(1000)
  expect(pool.members().map(({ state }) => state)).toEqual(['closed', 'reconnecting'])
  mend()
  await world.pass(100)
  expect([pool.stats().up, clientIds(pool)]).toEqual([2, ['p1', 'p2']])
})

it('resize() takes those that have ended or are not up before healthy ones', async () => {
  const pool = await upPool({ size: 3, clientId: 'p' })
  world.broker.disconnect('p-pub-1', 0x8e)
  world.cut('p-pub-2')
  await world.pass(1)
  await world.until(pool.resize(1))
  expect(pool.members().map(({ name, state }) => [name, state])).toEqual([['pub-3', 'connected']])
  await world.pass(60_000)
  expect(pool.stats()).toMatchObject({ size: 1, up: 1 })
})

it('is closed with the last error when all connections are refused, and every call says so', async () => {
  world = new VirtualWorld({ broker: { authenticate: () => 0x87 } })
  const pool = makePool({ size: 2 })
  const connecting = pool.connect()
  const calls = [
    pool.publish('a', 'x', { qos: 1 }),
    pool.writable,
    pool.closed.then((error) => Promise.reject(error)),
  ].map(codeOf)
  await world.until(connecting.catch(() => undefined))
  await expect(connecting).rejects.toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x87 })
  expect(await world.until(Promise.all(calls))).toEqual([
    'ERR_CLOSED',
    'ERR_CLOSED',
    'ERR_CONNECT_REFUSED',
  ])
  expect(pool.state).toBe('closed')
  for (const call of [pool.publish('a', 'x'), pool.connect(), pool.writable, pool.resize(3)])
    await expect(call).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      cause: { code: 'ERR_CONNECT_REFUSED' },
      message: expect.stringContaining('new pool'),
    })
  await pool.drain()
  await pool.disconnect()
  expect(world.clock.pending).toBe(0)
})

it('what a pool cannot do is refused by name, typed too', async () => {
  const pool = makePool({ size: 1 })
  const typed = channel('t', json<unknown>()).on(pool as unknown as BaseClient)
  const answered = operation('t', json<unknown>(), json<unknown>()).on(
    pool as never,
  ) as unknown as Record<'call' | 'serve', (...given: unknown[]) => Promise<unknown>>
  const calls = [
    typed.subscribe(),
    typed.listen(() => undefined),
    answered.call(1),
    answered.serve(() => 1),
  ]
  for (const call of calls)
    await expect(call).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'client',
      message: expect.stringContaining('pools and queues only publish'),
    })
  for (const call of [() => typed.subscription(), () => typed.latest()])
    expect(call).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
  const drops: unknown[] = []
  pool.on('drop', ({ topic, error }) => drops.push([topic, error?.code]))
  expect(await codeOf(typed.publish(1n))).toBe('ERR_INVALID_PAYLOAD')
  await world.pass(1)
  expect(drops).toEqual([['t', 'ERR_INVALID_PAYLOAD']])
})

it('what it refuses before a client has it is reported as what a client refuses', async () => {
  world.cut()
  const pool = makePool({
    size: 2,
    offline: 'reject',
    options: { outbound: { maxQueuedMessages: 1 } },
  })
  const drops: (string | undefined)[] = []
  pool.on('drop', ({ error }) => drops.push(error?.code))
  const given = [
    pool.publish('a', 'x', { ttl: 5 }),
    pool.publish('a', 'x'),
    pool.publish(7 as never, 'x'),
    pool.publish('a', {} as never),
  ]
  await world.until(Promise.all(given.map(codeOf)))
  await world.until(codeOf(pool.publish('a', 'x')))
  await world.pass(1)
  expect(drops.sort().join(' ')).toBe(
    'ERR_INVALID_OPTION ERR_INVALID_TOPIC ERR_NO_HEALTHY_PUBLISHERS ERR_NO_HEALTHY_PUBLISHERS ERR_QUEUE_FULL',
  )
})

it('gives what comes while all are down to the fallback, counted', async () => {
  const taken: string[] = []
  const fallback = {
    ...taking,
    publish: async (topic: string) => void taken.push(topic),
  }
  const pool = await upPool({ size: 2, fallback, clientId: 'p' })
  const mend = [world.cut('p-pub-1'), world.cut('p-pub-2')]
  await world.pass(1)
  await pool.publish('a', 'x')
  await pool.writable
  expect([taken, pool.stats().fallback]).toEqual([['a'], 1])
  for (const one of mend) one()
  await world.until(() => pool.stats().up === 2)
  await pool.publish('b', 'x')
  expect([taken, pool.stats().fallback]).toEqual([['a'], 1])
})

it('grows, and shrinks when what is in flight is acknowledged', async () => {
  const { texts } = await reader()
  const pool = makePool({ size: 1, clientId: 'p' })
  await pool.connect()
  await pool.resize(3)
  await world.pass(1)
  expect(pool.stats()).toMatchObject({ size: 3, up: 3 })
  const mend = world.cut('p-pub-3', { silently: true })
  const publishes = numbered(3).map((text) => pool.publish('a', text, { qos: 1 }))
  const shrunk = pool.resize(1, { timeout: 600_000 })
  expect(pool.size).toBe(1)
  await world.pass(100)
  mend()
  await world.until(Promise.all(publishes))
  await world.until(shrunk)
  expect([...new Set(texts)].sort()).toEqual(['0', '1', '2'])
  expect(pool.members().map(({ name }) => name)).toEqual(['pub-1'])
  await pool.resize(2)
  // A number is never given twice.
  expect(pool.members().map(({ name }) => name)).toEqual(['pub-1', 'pub-4'])
})

it('gives what a client that ended has not sent to another one', async () => {
  const { texts } = await reader()
  const pool = await upPool({ size: 2, clientId: 'p', routing: 'hash', onLost: 'wait' })
  const [first] = pool.members()
  const cut = world.cut('p-pub-1', { silently: true })
  const sent = Array.from({ length: 40 }, (_, index) =>
    codeOf(pool.publish(`t/${index}`, `s${index}`, { qos: 1 })),
  )
  await world.pass(1)
  void first?.client.disconnect({ timeout: 0 })
  await world.until(Promise.all(sent))
  cut()
  const ends = await Promise.all(sent)
  // What was sent may have arrived, and is reported; nothing waits for ever.
  for (const [index, end] of ends.entries())
    if (end === 'fulfilled') expect(texts).toContain(`s${index}`)
  expect(ends.filter((end) => end === 'fulfilled').length).toBeGreaterThan(10)
  expect(await codeOf(pool.publish('t/0', 'x', { qos: 1 }))).toBe('fulfilled')
})

it('drain() sends what waits for a connection that leaves', async () => {
  const { by } = await reader()
  const pool = await upPool({ size: 2, clientId: 'p', routing: 'hash' })
  const mend = world.cut('p-pub-2', { silently: true })
  const topics = Array.from({ length: 10 }, (_, index) => `t/${index}`)
  const publishAll = (text: string) =>
    topics.map((topic) => codeOf(pool.publish(topic, text, { qos: 1 })))
  const first = publishAll('1')
  const shrunk = pool.resize(1, { timeout: 600_000 })
  const second = publishAll('2')
  const drained = pool.drain({ timeout: 500_000 })
  const late = [
    pool.post('a', 'late'),
    await codeOf(pool.publish('a', 'late')),
    await codeOf(pool.writable),
  ]
  expect(late).toEqual([false, 'ERR_CLOSED', 'ERR_CLOSED'])
  await world.pass(100)
  mend()
  const since = world.now()
  await world.until(Promise.all([drained, shrunk]))
  expect(world.now() - since).toBeLessThan(400_000)
  expect(new Set(await Promise.all([...first, ...second]))).toEqual(new Set(['fulfilled']))
  for (const topic of topics) expect([...new Set(by.get(topic))]).toEqual(['1', '2'])
})

it.each(['disconnect', 'drain'] as const)('%s() waits as long as its timeout', async (how) => {
  const pool = await upPool({ size: 2, clientId: 'p' })
  world.cut('p-pub-2', { silently: true })
  const open = [1, 2].map(() => codeOf(pool.publish('a', 'x', { qos: 1 })))
  await world.pass(1)
  const shrunk = pool.resize(1, { timeout: 600_000 })
  const since = world.now()
  await world.until(pool[how]({ timeout: 200 }))
  expect(world.now() - since).toBeLessThan(300)
  await shrunk
  expect(await Promise.all(open)).toEqual(['fulfilled', 'ERR_CLOSED'])
})

it('emits events with the name of the connection, those of later connections too', async () => {
  const pool = makePool({ size: 1 })
  const seen: string[] = []
  const stop = pool.on('connect', ({ member }) => seen.push(member))
  await pool.connect()
  await pool.resize(2)
  await world.pass(1)
  expect(seen).toEqual(['pub-1', 'pub-2'])
  stop()
  await pool.resize(3)
  await world.pass(1)
  expect(seen).toHaveLength(2)
  expect(() => pool.on('conect' as never, () => undefined)).toThrow(/did you mean connect/)
  const once: string[] = []
  pool.on('connect', ({ member }) => once.push(member), { once: true })
  await pool.resize(5)
  await world.pass(1)
  expect(once).toHaveLength(1)
})

it('a callback is refused; resize() alone connects nothing', async () => {
  const pool = makePool({ size: 1 })
  const { publish, post } = pool as unknown as Record<string, (...given: unknown[]) => unknown>
  await expect(publish?.call(pool, 'a', 'x', {}, () => undefined)).rejects.toThrow(/await/)
  expect(() => post?.call(pool, 'a', 'x', () => undefined)).toThrow(/no callback/)
  expect(() => post?.call(pool, 'a', 'x', {})).toThrow(/no options/)
  await pool.resize(2)
  await world.pass(1000)
  expect([pool.state, pool.size]).toEqual(['idle', 2])
})

it('what is wrong with many connections is said of the first ones', async () => {
  world.cut()
  const pool = makePool({ size: 6, offline: 'reject' })
  await world.until(codeOf(pool.connect()))
  await expect(pool.publish('a', 'x')).rejects.toThrow(/pub-4: [^\n]*\n…$/)
  await pool.resize(4)
  await expect(pool.publish('a', 'x')).rejects.toThrow(/pub-4: [^…]*$/)
})

it('posts by way of the fallback while all are down, and counts what that took', async () => {
  const takes = [false, true, false]
  const fallback = {
    ...taking,
    publish: async () => undefined,
    post: () => takes.shift() ?? false,
  }
  const pool = makePool({ size: 2, fallback: fallback as never })
  expect([1, 2, 3].map((number) => pool.post('a', `${number}`))).toEqual([false, true, false])
  expect(pool.stats().fallback).toBe(1)
})

it('posts, and says where it could not', async () => {
  const { texts } = await reader()
  const pool = makePool({ size: 2 })
  expect(pool.post('a', 'early')).toBe(false)
  await pool.connect()
  await world.pass(1)
  expect([pool.post('a', '1'), pool.post('a', '2')]).toEqual([true, true])
  await world.pass(1)
  expect(texts.sort()).toEqual(['1', '2'])
})

it.each([
  [{ size: 0 }, 'size'],
  [{ size: 1001 }, 'size'],
  [{ size: 1.5 }, 'size'],
  [{ routing: 'random' }, 'routing'],
  [{ onLost: 'drop' }, 'onLost'],
  [{ fallback: {} }, 'fallback'],
  [{ offline: 'wait' }, 'offline'],
  [{ clientId: 7 }, 'clientId'],
  [{ options: { clientId: 7 } }, 'options.clientId'],
  [{ option: 1 }, 'option'],
  [{ options: { keepAlive: -1 } }, 'keepAlive'],
  [null, 'options'],
])('refuses %j, and names the option', (options, option) => {
  expect(() => makePool(options as never)).toThrow(
    expect.objectContaining({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining(option),
    }),
  )
})

it('an aborted publish ends, whatever it waits for', async () => {
  const mend = world.cut(undefined, { silently: true })
  const pool = makePool({ size: 2 })
  const abort = new AbortController()
  const early = codeOf(pool.publish('a', 'x', { signal: abort.signal }))
  abort.abort()
  expect(await early).toBe('ERR_ABORTED')
  const waiting = codeOf(pool.connect({ signal: AbortSignal.abort() }))
  expect(await waiting).toBe('ERR_ABORTED')
  await world.until(pool.disconnect())
  mend()
})
