/** Hooks of the broker in memory: they allow, refuse, change and swallow, and fail closed. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { BrokerEvents, BrokerHooks, MemoryBrokerOptions } from '../../src/testing/index.js'
import { memoryPair } from '../../src/transport/memory.js'
import type { PacketInput } from '../../src/wire/index.js'
import {
  bytes,
  durable,
  hexOfCode,
  joined,
  RawClient,
  text,
  type World,
  world,
} from './raw-client.js'
import { play, said } from './scenes.js'

beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => undefined))
afterEach(() => void vi.restoreAllMocks())

const failing = (): never => {
  throw new Error('down')
}

/** Verdicts that a hook of a program in JavaScript may give, with the code that each refuses with. */
const refusals: [string, () => unknown, number][] = [
  ...[false, undefined, null, 'yes', {}, { reasonCode: true }, 1.5, -1, Number.NaN, 256].map(
    (verdict): [string, () => unknown, number] => [
      typeof verdict === 'object' ? JSON.stringify(verdict) : String(verdict),
      () => verdict,
      0x87,
    ],
  ),
  ...[false, undefined, 'yes'].map((verdict): [string, () => unknown, number] => [
    `a promise of ${verdict}`,
    async () => verdict,
    0x87,
  ]),
  [
    'another kind of promise',
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried
    () => ({ then: (settle: (value: unknown) => void) => settle(false) }),
    0x87,
  ],
  ['a code', () => 0x99, 0x99],
  ['a promise of a code', async () => 0x99, 0x99],
  ['a code that cannot be said', () => 0x8e, 0x80],
  ['a throw', failing, 0x80],
  ['a rejection', async () => failing(), 0x80],
]

const welcomes: [string, () => unknown][] = [
  ['true', () => true],
  ['0', () => 0],
  ['a promise of true', async () => true],
  ['a promise of 0', async () => 0],
]

const hook = (run: () => unknown) => run as never
const publish1: PacketInput = {
  type: 'publish',
  topic: 't',
  payload: bytes('x'),
  qos: 1,
  packetId: 1,
}

async function allClear(clock: World['clock']): Promise<void> {
  for (let i = 0; i < 3; i++) await clock.settle()
}

it.each(refusals)(
  'what is no verdict: %s refuses a publish, a filter and a client, on 5.0 and on 3.1.1',
  async (_name, run, code) => {
    const { client, broker } = await joined({
      authorizePublish: hook(run),
      authorizeSubscribe: hook(run),
    })
    broker.publish({ topic: 't', payload: 'kept', retain: true })
    const said1 = hexOfCode(code)
    expect(await said(client, 'P1:1:t=x P2:2:t=x P:t=x')).toBe(`PA:1:${said1} PR:2:${said1}`)
    // SUBACK has fewer codes.
    expect(await said(client, 'S:1:t:2')).toBe(`SA:1:${code === 0x99 ? 80 : said1}`)
    const { unreleased, subscriptions } = broker.sessions.get('a') ?? {}
    expect([broker.accepted, unreleased, subscriptions]).toEqual([[], [], []])
    const closed = world({ authenticate: hook(run) })
    expect(await closed.dial().connect()).toMatchObject({ reasonCode: code })
    expect(await closed.dial(4).connect()).toMatchObject({ reasonCode: code === 0x87 ? 5 : 3 })
    expect([closed.broker.clients.size, closed.broker.sessions.size]).toEqual([0, 0])
  },
)

it.each(welcomes)(
  'a verdict, and a promise of one: %s lets all of them pass',
  async (_name, run) => {
    const given = hook(run)
    const hooks = { authorizePublish: given, authorizeSubscribe: given, authenticate: given }
    const { client, broker } = await joined(hooks)
    expect(await said(client, 'P1:1:t=x S:1:t:2')).toBe('PA:1:n SA:1:2')
    expect([broker.accepted.length, broker.hookErrors]).toEqual([1, []])
  },
)

it('a hook that passes the memory of a payload on disturbs no other message', async () => {
  const { client, broker } = await joined({
    authorizePublish: async (_client, { topic, payload }) => {
      const buffer = payload.buffer as ArrayBuffer
      if (topic === 'passed') structuredClone(buffer, { transfer: [buffer] })
      return true
    },
  })
  for (const packet of ['P:a=x', 'P:passed=y', 'P:b=z']) await said(client, packet)
  expect(broker.accepted.map(({ payload }) => text(payload))).toEqual(['x', '', 'z'])
})

it('authorizePublish: by client and topic; on 3.1.1 a refusal looks like success', async () => {
  const { client, join, broker } = await joined({
    authorizePublish: ({ clientId }, { topic }) =>
      topic === 'open' ? true : clientId === 'a' ? 0x99 : false,
  })
  const old = await join('b', {}, 4)
  expect([await said(client, 'P1:1:t=x'), await said(old, 'P1:1:t=x')]).toEqual(['PA:1:99', 'PA:1'])
  expect(broker.accepted).toEqual([])
  await said(old, 'P:open=x')
  expect(broker.accepted).toHaveLength(1)
})

it.each([false, true])(
  'authorizePublish: a will waits for its promise, and the end of everything forgets it: %s',
  async (end) => {
    let allow = (_verdict: boolean): void => undefined
    const { client, broker, clock } = await joined(
      { authorizePublish: () => new Promise<boolean>((resolve) => (allow = resolve)) },
      { will: { topic: 'w' } },
    )
    await client.cut()
    if (end) broker.restart({ keepSessions: false })
    allow(true)
    await clock.settle()
    expect(broker.accepted).toHaveLength(end ? 0 : 1)
  },
)

describe('authorizeSubscribe and authenticate', () => {
  it('each filter has its own verdict, whichever promise is first', async () => {
    const later = (verdict: true | number, delay: number) =>
      new Promise<true | number>((resolve) => clock.setTimer(() => resolve(verdict), delay))
    const { client, clock } = await joined({
      authorizeSubscribe: ({ clientId }, { filter }) =>
        filter === 'now' ? clientId === 'a' : filter === 'late' ? later(0x97, 50) : later(true, 10),
    })
    await said(client, 'S:1:late:1,now:1,soon:1')
    await clock.advance(60)
    expect(await said(client)).toBe('SA:1:97,1,1')
  })

  const connect: PacketInput = {
    type: 'connect',
    clientId: 'a',
    properties: { authenticationMethod: 'm' },
  }
  const never = () => new Promise<never>(() => undefined)
  const exchange = (start: () => never | object) => ({
    auth: { m: { start, continue: () => ({}) } },
  })

  it.each<[string, MemoryBrokerOptions, number]>([
    ['a verdict', { ...exchange(() => ({})), authenticate: never }, 1],
    ['a step of an exchange', exchange(never), 1],
    ['the answer of the client', exchange(() => ({ reasonCode: 0x18 })), 0],
  ])('%s that never comes ends with the connect timeout', async (_what, options, errors) => {
    const { dial, broker, clock } = world({ ...options, connectTimeout: 3000 })
    const client = dial()
    await client.send({ ...connect, keepAlive: 1 })
    await clock.advance(2900)
    expect(client.gone).toBe(false)
    await clock.advance(200)
    expect(client.received.at(-1)).toMatchObject({ type: 'connack', reasonCode: 0x80 })
    expect(broker.hookErrors).toHaveLength(errors)
    await clock.advance(10_000)
    expect([client.gone, clock.pending]).toEqual([true, 0])
  })

  it.each([
    ...[undefined, null, true, 'yes', { data: 'text' }, Promise.resolve(undefined)],
    ...[1000, '0', Number.NaN].map((reasonCode) => ({ reasonCode })),
  ])('a step of an exchange that is none refuses, and is reported: %j', async (step) => {
    const { dial, broker, clock } = world({
      auth: { m: { start: () => step as never, continue: () => ({}) } },
    })
    const client = dial()
    await client.send(connect)
    await allClear(clock)
    expect(client.received).toMatchObject([{ type: 'connack', reasonCode: 0x87 }])
    expect(broker.hookErrors).toMatchObject([{ hook: 'auth', clientId: 'a' }])
  })
})

describe('intercept', () => {
  it('sees, changes and swallows, both ways', async () => {
    const seen: string[] = []
    const { client, broker } = await joined({
      intercept(direction, packet, from) {
        seen.push(`${direction} ${packet.type} ${from?.clientId}`)
        if (packet.type === 'publish' && direction === 'in')
          return { ...packet, topic: `seen/${packet.topic}` }
        return packet.type === 'pingresp' ? false : undefined
      },
    })
    expect(await client.send({ type: 'pingreq' })).toEqual([])
    await client.publish('t', 'x')
    expect(broker.accepted.map(({ topic }) => topic)).toEqual(['seen/t'])
    expect(seen).toEqual([
      'in connect undefined',
      'out connack a',
      'in pingreq a',
      'out pingresp a',
      'in publish a',
    ])
  })

  it('what is published inside it waits its turn, and no longer', async () => {
    const { client, join, broker } = await joined(
      {
        intercept(direction, packet) {
          if (direction === 'out' && packet.type === 'publish' && packet.topic === 't')
            broker.publish({ topic: 'echo', payload: text(packet.payload) })
          return undefined
        },
      },
      durable,
    )
    await client.subscribe('#')
    await client.cut()
    for (const payload of ['1', '2']) broker.publish({ topic: 't', payload, qos: 1 })
    expect((await join('a', durable)).takeMessages().sort()).toEqual([
      'echo 1',
      'echo 2',
      't 1',
      't 2',
    ])
  })

  it.each([true, 'text', 5, { type: 'nonsense' }, []])(
    'that gives what is no packet ends the connection, and is reported: %j',
    async (other) => {
      let on = false
      const { client, broker, clock } = await joined({
        intercept: (direction) => (on && direction === 'in' ? other : undefined) as never,
      })
      on = true
      await client.publish('t', 'x')
      await clock.settle()
      expect([client.gone, broker.accepted]).toEqual([true, []])
      expect(broker.hookErrors).toMatchObject([{ hook: 'intercept', clientId: 'a' }])
    },
  )

  it('is awaited in both directions, with everything in order', async () => {
    const { dial, broker, clock } = world({
      intercept: (direction, packet) =>
        new Promise((resolve) =>
          clock.setTimer(
            () => resolve(packet.type === 'pingresp' ? false : undefined),
            direction === 'in' ? 5 : 7,
          ),
        ),
    })
    const client = dial()
    await client.send(
      { type: 'connect', clientId: 'a' },
      { type: 'subscribe', packetId: 1, subscriptions: [{ filter: '#', qos: 1 }] },
    )
    const ids = Array.from({ length: 20 }, (_, index) => index + 1)
    await client.send(
      ...ids.map(
        (packetId): PacketInput => ({ ...publish1, payload: bytes(String(packetId)), packetId }),
      ),
      { type: 'pingreq' },
    )
    await clock.advance(2000)
    await client.send({ type: 'disconnect' })
    await clock.advance(100)
    expect(client.ended).toEqual({ cause: undefined })
    expect(client.received.map(({ type }) => type).slice(0, 2)).toEqual(['connack', 'suback'])
    expect(client.publishes.map(({ payload }) => Number(text(payload)))).toEqual(ids)
    expect(
      client.received.flatMap((packet) => (packet.type === 'puback' ? [packet.packetId] : [])),
    ).toEqual(ids)
    expect([
      broker.accepted.length,
      client.received.some(({ type }) => type === 'pingresp'),
    ]).toEqual([20, false])
  })

  it('that is asked about a refusal does not lose it', async () => {
    const { dial, clock } = world({
      authenticate: () => false,
      intercept: (direction) => (direction === 'out' ? Promise.resolve(undefined) : undefined),
    })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a' })
    await clock.settle()
    expect(client.received).toMatchObject([{ type: 'connack', reasonCode: 0x87 }])
    expect(client.ended).toEqual({ cause: undefined })
  })
})

describe('while a hook thinks', () => {
  /** Publishes are allowed one after the other, each when the test says so. */
  function slow(options: MemoryBrokerOptions = {}) {
    const asked: string[] = []
    const waiting: (() => void)[] = []
    const made = world({
      ...options,
      authorizePublish: (_client, { topic }) => {
        asked.push(topic)
        return new Promise((resolve) => waiting.push(() => resolve(true)))
      },
    })
    const allow = async (): Promise<void> => {
      waiting.shift()?.()
      await made.clock.settle()
    }
    return { ...made, asked, allow }
  }

  it('what the same client sends waits, in order; what others send does not', async () => {
    const { join, broker, allow, asked } = slow()
    const reader = await join('reader')
    await reader.subscribe('#')
    const client = await join('a')
    expect([await said(client, 'P:1=x P1:1:2=x U:2:t Q'), asked, await said(reader, 'Q')]).toEqual([
      '',
      ['1'],
      'R',
    ])
    await allow()
    expect([await said(client), asked]).toEqual(['', ['1', '2']])
    await allow()
    expect([await said(client), await said(reader), broker.violations]).toEqual([
      'PA:1 UA:2:11 R',
      'P:1=x P1:1:2=x',
      [],
    ])
  })

  it.each([true, false])(
    'a client that says goodbye, or is gone, has published all the same what it sent before: %s',
    async (goodbye) => {
      const { join, broker, allow } = slow()
      const client = await join('a', { ...durable, will: { topic: 'will' } })
      await said(client, `P:1=x P:2=x ${goodbye ? 'D' : ''}`)
      client.transport.close()
      for (let i = 0; i < 4; i++) await allow()
      expect(broker.accepted.map(({ topic }) => topic)).toEqual(
        goodbye ? ['1', '2'] : ['1', '2', 'will'],
      )
      expect([broker.clients.size, broker.sessions.get('a')?.connected]).toEqual([0, false])
    },
  )

  it('a takeover does not wait for it', async () => {
    const { join, broker, allow } = slow()
    const old = await join('a', durable)
    await said(old, 'P:1=x P:2=x')
    const next = await join('a', durable)
    expect(old.goodbye).toBe(0x8e)
    for (let i = 0; i < 2; i++) await allow()
    expect(broker.accepted).toEqual([])
    expect(await said(next, 'Q')).toBe('R')
  })

  it('the keep alive does not run, and begins again with the verdict', async () => {
    const { join, clock, broker, allow } = slow()
    const client = await join('a', { keepAlive: 1 })
    await said(client, 'P1:1:t=x')
    await clock.advance(5000)
    expect([client.ended, broker.violations]).toEqual([undefined, []])
    await allow()
    expect(await said(client)).toBe('PA:1:n')
    await clock.advance(1400)
    expect(client.ended).toBeUndefined()
    await clock.advance(200)
    expect(client.goodbye).toBe(0x8d)
  })

  it('a client that sends more than 64 KiB meanwhile is not read until most of it is done', async () => {
    const { broker, clock, allow } = slow()
    const [near, far] = memoryPair({
      schedule: (callback, delay) => clock.setTimer(callback, delay),
    })
    const calls: string[] = []
    const pausing = { pause: () => calls.push('pause'), resume: () => calls.push('resume') }
    broker.accept(Object.assign(far, pausing))
    const client = new RawClient(clock, near, 5)
    await client.connect()
    const seen: string[] = []
    for (let i = 0; i < 6; i++) {
      await client.publish('t', 'x'.repeat(20_000))
      seen.push(calls.join())
    }
    expect(seen).toEqual(['', '', '', '', 'pause', 'pause'])
    for (let i = 0; i < 6; i++) await allow()
    expect([calls, broker.accepted.length]).toEqual([['pause', 'resume'], 6])
  })

  it('what waits is bounded: 0x97', async () => {
    const { join, broker } = slow({ maxBacklog: 10_000 })
    const client = await join('a')
    for (let i = 0; i < 20; i++) await client.publish('t', 'x'.repeat(1000))
    expect(client.goodbye).toBe(0x97)
    expect([broker.clients.size, broker.accepted, broker.violations]).toEqual([0, [], []])
  })

  it('one that never settles is given up after hookTimeout, refuses and is reported', async () => {
    const { join, broker, clock, asked } = slow({ hookTimeout: 700 })
    const client = await join('a')
    await said(client, 'P1:1:t=x P1:2:2=x')
    await clock.advance(800)
    expect([await said(client), asked]).toEqual(['PA:1:80', ['t', '2']])
    expect(broker.hookErrors).toMatchObject([
      { hook: 'authorizePublish', clientId: 'a', time: 700 },
    ])
    expect(String(broker.hookErrors[0]?.error)).toMatch(/700/)
    await clock.advance(10_000)
    expect([client.take().length, broker.accepted.length, clock.pending]).toEqual([1, 0, 0])
  })

  it('a broker that was closed asks no more and takes nothing', async () => {
    const { join, broker, clock, allow } = slow()
    await said(await join('a'), 'P:1=x P:2=x')
    void broker.close()
    await allow()
    await clock.advance(30_000)
    expect([broker.accepted, broker.clients.size, clock.pending]).toEqual([[], 0, 0])
  })

  it.each<[string, (broker: World['broker']) => unknown]>([
    ['publish', (broker) => broker.publish({ topic: 'echo', payload: 'y', qos: 1 })],
    ['restart', (broker) => broker.restart({ keepSessions: true })],
    ['disconnect', (broker) => broker.disconnect('a')],
    ['close', (broker) => broker.close()],
  ])('it may call the broker back: %s', async (name, call) => {
    const { client, broker, clock } = await joined({
      authorizePublish: async () => {
        await Promise.resolve()
        call(broker)
        return true
      },
    })
    await said(client, 'S:1:#:2 P1:1:t=x')
    await allClear(clock)
    expect([!client.gone, broker.accepted.length]).toEqual([
      name === 'publish',
      name === 'publish' ? 1 : 0,
    ])
  })
})

describe('a hook that fails is reported', () => {
  it.each<[string, BrokerHooks, string]>([
    ['authorizePublish', { authorizePublish: failing }, 'P1:1:t=x'],
    ['authorizePublish', { authorizePublish: async () => failing() }, 'P1:1:t=x'],
    ['authorizeSubscribe', { authorizeSubscribe: failing }, 'S:1:t:0'],
    ['authorizeDelivery', { authorizeDelivery: failing }, 'S:1:t:0 P:t=x'],
    [
      'intercept',
      { intercept: (_direction, { type }) => (type === 'pingreq' ? failing() : undefined) },
      'Q',
    ],
    [
      'intercept',
      { intercept: (_direction, { type }) => (type === 'pingresp' ? failing() : undefined) },
      'Q',
    ],
  ])('%s: by an event and in hookErrors', async (name, hooks, words) => {
    const { client, broker, clock } = await joined(hooks)
    const events: BrokerEvents['hookerror'][] = []
    broker.on('hookerror', (event) => events.push(event))
    await said(client, words)
    await clock.settle()
    expect(events).toEqual([{ hook: name, clientId: 'a', time: 0, error: new Error('down') }])
    expect(broker.hookErrors).toEqual(events)
    expect(console.error).not.toHaveBeenCalled()
  })

  it('to the console where there is no listener, once for each hook', async () => {
    const { client } = await joined({ authorizePublish: failing, authorizeSubscribe: failing })
    await said(client, 'P:t=x P:t=x P:t=x S:1:t:0')
    const hooks = [
      expect.stringMatching(/authorizePublish/),
      expect.stringMatching(/authorizeSubscribe/),
    ]
    expect(vi.mocked(console.error).mock.calls.map(([line]) => line)).toEqual(hooks)
  })

  it('a refusal that an authentication method throws on purpose is none', async () => {
    const start = () => Promise.reject(Object.assign(new Error('no'), { reasonCode: 0x8a }))
    const { dial, broker } = world({ auth: { m: { start, continue: () => ({}) } } })
    expect(await dial().connect({ properties: { authenticationMethod: 'm' } })).toMatchObject({
      reasonCode: 0x8a,
    })
    expect(broker.hookErrors).toEqual([])
  })

  it('a Response Information that fails is left out, and one that is promised is awaited', async () => {
    const settings = { properties: { requestResponseInformation: 1 } } as const
    const failed = world({ responseInformation: failing })
    const connack = await failed.dial().connect(settings)
    expect([connack.reasonCode, connack.properties.responseInformation]).toEqual([0, undefined])
    expect(failed.broker.hookErrors).toMatchObject([{ hook: 'responseInformation' }])
    const late = world({ responseInformation: async ({ clientId }) => `replies/${clientId}` })
    expect(await late.dial().connect(settings)).toMatchObject({
      properties: { responseInformation: 'replies/a' },
    })
  })

  it('and so is the replacement of a fault', async () => {
    const { client, broker } = await joined({
      faults: [{ packet: 'pingresp', direction: 'out', nth: 1, action: { replace: failing } }],
    })
    await said(client, 'Q')
    expect([client.gone, broker.hookErrors]).toMatchObject([true, [{ hook: 'faults' }]])
  })
})

it('authorizeDelivery: keeps a message from one receiver and not from another', async () => {
  const scene =
    '> PX1:secret=kept; a> S:1:#:0; a< SA:1:0 PX:secret=kept; b> S:1:#:0; b< SA:1:0; ' +
    '> P:secret=0 P1:secret=1 P2:secret=2 P1:open=x; a< P:secret=0 P:secret=1 P:secret=2 P:open=x; b< P:open=x'
  const { broker } = await play(scene, 5, {
    authorizeDelivery: ({ clientId }, { topic }) =>
      clientId === 'b' && topic === 'secret' ? 'discard' : true,
  })
  const discarded = ['a', 'b'].map((name) => broker.sessions.get(name)?.discarded)
  expect([discarded, broker.hookErrors]).toEqual([[0, 4], []])
})

it.each([undefined, null, 0, 1, 'yes', {}])(
  'authorizeDelivery: anything but true and discard discards, and is reported: %j',
  async (verdict) => {
    const { client, broker } = await joined({ authorizeDelivery: () => verdict as never })
    await client.subscribe('#')
    broker.publish({ topic: 't', payload: 'x' })
    expect(await client.messages()).toEqual([])
    expect(broker.hookErrors).toMatchObject([{ hook: 'authorizeDelivery' }])
  },
)

it('authorizeDelivery: is awaited in order, and asked again on the next connection', async () => {
  const waiting: ((verdict: true | 'discard') => void)[] = []
  const asked: string[] = []
  const { client, join, broker, clock } = await joined(
    {
      authorizeDelivery: (_client, { payload }) => {
        asked.push(text(payload))
        return new Promise((resolve) => waiting.push(resolve))
      },
    },
    durable,
  )
  const decide = async (verdict: true | 'discard'): Promise<void> => {
    waiting.shift()?.(verdict)
    await clock.settle()
  }
  await client.subscribe('#')
  for (const payload of ['1', '2', '3']) broker.publish({ topic: 't', payload, qos: 1 })
  expect(asked).toEqual(['1'])
  await decide(true)
  expect([client.takeMessages(), asked]).toEqual([['t 1'], ['1', '2']])
  await client.cut()
  const again = await join('a', durable)
  // What was sent is sent again without a question.
  expect([again.takeMessages(), asked]).toEqual([['t 1'], ['1', '2', '2']])
  // The answer for the lost connection counts no more.
  await decide('discard')
  expect(again.takeMessages()).toEqual([])
  await decide(true)
  await decide('discard')
  expect(again.takeMessages()).toEqual(['t 2'])
  expect(broker.sessions.get('a')).toMatchObject({ queued: 0, discarded: 1, inflight: 2 })
})

describe('events and views', () => {
  it('report everything once, in order', async () => {
    const { join, broker } = world()
    const seen: string[] = []
    const note = <K extends keyof BrokerEvents>(
      type: K,
      say: (event: BrokerEvents[K]) => unknown[],
    ) => broker.on(type, (event) => seen.push([type, ...say(event)].join(' ')))
    note('connect', ({ client, sessionPresent }) => [client.clientId, sessionPresent])
    note('disconnect', ({ client, by, reasonCode }) => [client.clientId, by, String(reasonCode)])
    note('publish', ({ message }) => [String(message.from), message.topic, text(message.payload)])
    note('subscribe', ({ client, subscriptions, reasonCodes }) => [
      client.clientId,
      subscriptions[0]?.filter,
      reasonCodes,
    ])
    const stop = note('unsubscribe', ({ client, filters, reasonCodes }) => [
      client.clientId,
      filters,
      reasonCodes,
    ])
    note('violation', ({ clientId, text: rule }) => [clientId, rule])
    const a = await join('a', durable)
    await said(a, 'S:1:t:2 P:t=x U:4:t,u')
    stop()
    await said(a, 'U:4:t')
    broker.publish({ topic: 'in', payload: 'y' })
    await said(a, 'D4')
    await (await join('a', durable)).cut()
    await join('a', durable)
    broker.disconnect('a', 0x89)
    await said(await join('b'), 'C:b')
    expect(seen).toEqual([
      ...[
        'connect a false',
        'subscribe a t 2',
        'publish a t x',
        'unsubscribe a t,u 0,17',
        'publish undefined in y',
        'disconnect a client 4',
      ],
      ...[
        'connect a true',
        'disconnect a network undefined',
        'connect a true',
        'disconnect a broker 137',
        'connect b false',
      ],
      ...['violation b a second CONNECT [MQTT-3.1.0-2]', 'disconnect b broker 130'],
    ])
  })

  it('clients know their bytes and settings', async () => {
    const { join, broker } = world()
    const client = await join('a', { username: 'u', keepAlive: 9 }, 4)
    await client.send({ type: 'pingreq' })
    const settings = {
      clientId: 'a',
      username: 'u',
      protocolVersion: 4,
      keepAlive: 9,
      remote: undefined,
    }
    expect(broker.clients.get('a')).toMatchObject({ ...settings, bytesIn: 18 + 2, bytesOut: 4 + 2 })
  })

  it('show no password', async () => {
    const { join, broker } = world()
    const seen: unknown[] = []
    broker.on('connect', (event) => seen.push(event))
    await join('a', { username: 'u', password: bytes('canary') })
    const { inspect } = await import('node:util')
    const shown = inspect([seen, broker.clients, broker.sessions], {
      depth: 20,
      showHidden: true,
      getters: true,
    })
    expect(shown).toContain("'u'")
    expect(shown).not.toMatch(/canary|password|99, ?97, ?110/)
  })

  it('a listener may end everything', async () => {
    const { join, broker } = world()
    broker.on('publish', () => broker.restart({ keepSessions: false }))
    const client = await join('a')
    await client.subscribe('t')
    expect(await client.publish('t', 'x', { qos: 2, packetId: 1 })).toEqual([])
    expect(client.ended).toBeDefined()
    expect(broker.sessions.size).toBe(0)
  })

  it('a listener that throws disturbs no other, and its error is heard of', async () => {
    const errors: string[] = []
    const real = queueMicrotask
    vi.stubGlobal('queueMicrotask', (run: () => void) =>
      real(() => {
        try {
          run()
        } catch (error) {
          errors.push((error as Error).message)
        }
      }),
    )
    try {
      const { client, broker } = await joined()
      broker.on('publish', failing)
      expect([await said(client, 'P1:1:t=x'), errors]).toEqual(['PA:1:n', ['down']])
    } finally {
      vi.unstubAllGlobals()
    }
  })

  it.each(['connect', 'disconnect'] as const)(
    'a listener of %s may end everything while a client comes in',
    async (type) => {
      const { dial, broker, clock } = await joined()
      broker.on(type, () => broker.close())
      const late = dial()
      await late.send({ type: 'connect', clientId: 'a', ...durable })
      expect([late.gone, broker.sessions.size, broker.clients.size]).toEqual([true, 0, 0])
      await clock.advance(20_000)
      expect(clock.pending).toBe(0)
    },
  )
})
