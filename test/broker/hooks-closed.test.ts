/**
 * The broker in memory: hooks fail closed. What is no verdict refuses, promises are awaited in order, and a hook that fails is told.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { BrokerEvents, BrokerHooks, MemoryBrokerOptions } from '../../src/testing/index.js'
import type { PacketInput } from '../../src/wire/index.js'
import { bytes, durable, type RawClient, text, type World, world } from './raw-client.js'

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
})

afterEach(() => {
  vi.restoreAllMocks()
})

/** Verdicts that a hook of a program in JavaScript may give, with the code that each refuses with. */
const refusals: [string, () => unknown, number][] = [
  ['false', () => false, 0x87],
  ['undefined', () => undefined, 0x87],
  ['null', () => null, 0x87],
  ['a text', () => 'yes', 0x87],
  ['an empty object', () => ({}), 0x87],
  ['an object that says true', () => ({ reasonCode: true }), 0x87],
  ['1.5', () => 1.5, 0x87],
  ['-1', () => -1, 0x87],
  ['NaN', () => Number.NaN, 0x87],
  ['256', () => 256, 0x87],
  ['a promise of false', async () => false, 0x87],
  ['a promise of undefined', async () => undefined, 0x87],
  ['a promise of a text', async () => 'yes', 0x87],
  // biome-ignore lint/suspicious/noThenProperty: that is what is tried
  ['another kind of promise', () => ({ then: (settle: (value: unknown) => void) => settle(false) }), 0x87],
  ['a code', () => 0x99, 0x99],
  ['a promise of a code', async () => 0x99, 0x99],
  ['a code that cannot be said', () => 0x8e, 0x80],
  [
    'a throw',
    () => {
      throw new Error('down')
    },
    0x80,
  ],
  ['a rejection', async () => Promise.reject(new Error('down')), 0x80],
]

const welcomes: [string, () => unknown][] = [
  ['true', () => true],
  ['0', () => 0],
  ['a promise of true', async () => true],
  ['a promise of 0', async () => 0],
]

const hook = (run: () => unknown) => run as never

async function allClear(clock: World['clock']): Promise<void> {
  for (let i = 0; i < 3; i++) await clock.settle()
}

describe('authorizePublish lets nothing pass that it did not allow', () => {
  it.each(refusals)('%s refuses', async (_name, run, code) => {
    const { join, broker } = world({ authorizePublish: hook(run) })
    const client = await join('a')
    expect(await client.publish('t', 'x', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: code }])
    expect(await client.publish('t', 'x', { qos: 2, packetId: 2 })).toMatchObject([{ type: 'pubrec', reasonCode: code }])
    await client.publish('t', 'x')
    expect([broker.accepted, broker.sessions.get('a')?.unreleased]).toEqual([[], []])
  })

  it.each(welcomes)('%s lets it pass', async (_name, run) => {
    const { join, broker } = world({ authorizePublish: hook(run) })
    const client = await join('a')
    expect(await client.publish('t', 'x', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0x10 }])
    expect(broker.accepted).toHaveLength(1)
    expect(broker.hookErrors).toEqual([])
  })

  it.each([async () => false, () => undefined])('a will that was not allowed is not published: %s', async (run) => {
    const { join, broker, clock } = world({ authorizePublish: hook(run) })
    const client = await join('a', { will: { topic: 'w', payload: bytes('gone') } })
    await client.cut()
    await clock.settle()
    expect([broker.accepted, broker.retained.size]).toEqual([[], 0])
  })

  it('a will waits for its promise, and the end of everything forgets it', async () => {
    for (const end of [false, true]) {
      let allow = (_verdict: boolean): void => undefined
      const { join, broker, clock } = world({
        authorizePublish: () =>
          new Promise<boolean>((resolve) => {
            allow = resolve
          }),
      })
      const client = await join('a', { will: { topic: 'w', payload: bytes('gone') } })
      await client.cut()
      if (end) broker.restart({ keepSessions: false })
      allow(true)
      await clock.settle()
      expect(broker.accepted.map(({ topic }) => topic)).toEqual(end ? [] : ['w'])
    }
  })
})

describe('authorizeSubscribe lets nothing pass that it did not allow', () => {
  it.each(refusals.filter(([name]) => !name.includes('a code')))('%s refuses', async (_name, run, code) => {
    const { join, broker } = world({ authorizeSubscribe: hook(run) })
    broker.publish({ topic: 't', payload: 'kept', retain: true })
    const client = await join('a')
    expect(await client.subscribe('t')).toMatchObject([{ type: 'suback', reasonCodes: [code] }])
    broker.publish({ topic: 't', payload: 'x' })
    expect([await client.messages(), broker.sessions.get('a')?.subscriptions]).toEqual([[], []])
  })

  it.each(welcomes)('%s lets it pass', async (_name, run) => {
    const { join } = world({ authorizeSubscribe: hook(run) })
    expect(await (await join('a')).subscribe('t')).toMatchObject([{ type: 'suback', reasonCodes: [2] }])
  })

  it('each filter has its own verdict, whichever promise is first', async () => {
    const { join, clock } = world({
      authorizeSubscribe: ({ clientId }, { filter }) =>
        filter === 'now'
          ? clientId === 'a'
          : new Promise((resolve) => clock.setTimer(() => resolve(filter === 'late' ? 0x97 : true), filter === 'late' ? 50 : 10)),
    })
    const client = await join('a')
    await client.send({ type: 'subscribe', packetId: 1, subscriptions: ['late', 'now', 'soon'].map((filter) => ({ filter, qos: 1 })) })
    await clock.advance(60)
    expect(client.take()).toMatchObject([{ type: 'suback', reasonCodes: [0x97, 1, 1] }])
  })
})

describe('authenticate lets nobody in whom it did not allow', () => {
  it.each(refusals)('%s refuses, on 5.0 and on 3.1.1', async (_name, run, code) => {
    const { dial, broker } = world({ authenticate: hook(run) })
    const connack = code === 0x8e || code === 0x99 ? { reasonCode: 0x99 === code ? 0x99 : 0x80 } : { reasonCode: code }
    expect(await dial().connect()).toMatchObject({ type: 'connack', ...connack })
    expect((await dial(4).connect()) as object).toMatchObject({ type: 'connack', reasonCode: code === 0x87 ? 5 : 3 })
    expect([broker.clients.size, broker.sessions.size]).toEqual([0, 0])
  })

  it.each(welcomes)('%s lets in', async (_name, run) => {
    expect(
      await world({ authenticate: hook(run) })
        .dial()
        .connect(),
    ).toMatchObject({ reasonCode: 0 })
  })

  it('one that never settles ends with the connect timeout, and is told', async () => {
    const { dial, broker, clock } = world({ authenticate: () => new Promise(() => undefined), connectTimeout: 3000 })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a', keepAlive: 1 })
    await clock.advance(2900)
    expect(client.ended).toBeUndefined()
    await clock.advance(200)
    expect(client.take()).toMatchObject([{ type: 'connack', reasonCode: 0x80 }])
    expect(broker.hookErrors).toMatchObject([{ hook: 'authenticate', clientId: 'a' }])
    await clock.advance(10_000)
    expect([client.ended !== undefined, clock.pending]).toEqual([true, 0])
  })

  it('an exchange that nobody goes on with ends with the connect timeout', async () => {
    for (const start of [() => new Promise<never>(() => undefined), () => ({ reasonCode: 0x18 })]) {
      const { dial, clock } = world({ auth: { m: { start, continue: () => ({}) } }, connectTimeout: 3000 })
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', properties: { authenticationMethod: 'm' } })
      await clock.advance(3100)
      expect(client.received.at(-1)).toMatchObject({ type: 'connack', reasonCode: 0x80 })
      await clock.advance(6000)
      expect([client.ended !== undefined, clock.pending]).toEqual([true, 0])
    }
  })

  it('a step of an exchange that is none refuses, and is told', async () => {
    const steps = [
      undefined,
      null,
      true,
      'yes',
      { reasonCode: 1000 },
      { reasonCode: '0' },
      { reasonCode: Number.NaN },
      { data: 'text' },
      Promise.resolve(undefined),
    ]
    for (const step of steps) {
      const { dial, broker, clock } = world({ auth: { m: { start: () => step as never, continue: () => ({}) } } })
      const client = dial()
      await client.send({ type: 'connect', clientId: 'a', properties: { authenticationMethod: 'm' } })
      await allClear(clock)
      expect(client.received).toMatchObject([{ type: 'connack', reasonCode: 0x87 }])
      expect(broker.hookErrors).toMatchObject([{ hook: 'auth', clientId: 'a' }])
    }
  })
})

describe('intercept', () => {
  it.each([true, 'text', 5, { type: 'nonsense' }, []])('that gives what is no packet ends the connection, and is told: %j', async (other) => {
    let on = false
    const { join, broker, clock } = world({ intercept: (direction) => (on && direction === 'in' ? other : undefined) as never })
    const client = await join('a')
    on = true
    await client.publish('t', 'x')
    await clock.settle()
    expect([client.ended !== undefined, broker.accepted]).toEqual([true, []])
    expect(broker.hookErrors).toMatchObject([{ hook: 'intercept', clientId: 'a' }])
  })

  it('is awaited in both directions, with everything in order', async () => {
    const { dial, broker, clock } = world({
      intercept: (direction, packet) =>
        new Promise((resolve) => clock.setTimer(() => resolve(packet.type === 'pingresp' ? false : undefined), direction === 'in' ? 5 : 7)),
    })
    const client = dial()
    await client.send({ type: 'connect', clientId: 'a' }, { type: 'subscribe', packetId: 1, subscriptions: [{ filter: '#', qos: 1 }] })
    const publishes = Array.from(
      { length: 20 },
      (_, index): PacketInput => ({ type: 'publish', topic: 't', payload: bytes(String(index)), qos: 1, packetId: index + 1 }),
    )
    await client.send(...publishes, { type: 'pingreq' })
    await clock.advance(2000)
    await client.send({ type: 'disconnect' })
    await clock.advance(100)
    expect(client.ended).toEqual({ cause: undefined })
    expect(client.received.map(({ type }) => type).slice(0, 2)).toEqual(['connack', 'suback'])
    expect(client.received.flatMap((packet) => (packet.type === 'publish' ? [text(packet.payload)] : []))).toEqual(
      publishes.map((_, index) => String(index)),
    )
    expect(client.received.flatMap((packet) => (packet.type === 'puback' ? [packet.packetId] : []))).toEqual(publishes.map((_, index) => index + 1))
    expect([broker.accepted.length, client.received.some(({ type }) => type === 'pingresp')]).toEqual([20, false])
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
  function slow(options: MemoryBrokerOptions = {}): World & { readonly asked: string[]; allow(): Promise<void> } {
    const asked: string[] = []
    const waiting: (() => void)[] = []
    const made = world({
      ...options,
      authorizePublish: (_client, { topic }) => {
        asked.push(topic)
        return new Promise((resolve) => waiting.push(() => resolve(true)))
      },
    })
    return {
      ...made,
      asked,
      async allow() {
        waiting.shift()?.()
        await made.clock.settle()
      },
    }
  }

  it('what the same client sends waits, in order; what others send does not', async () => {
    const { join, broker, allow, asked } = slow()
    const reader = await join('reader')
    await reader.subscribe('#')
    const client = await join('a')
    await client.send(
      { type: 'publish', topic: '1', payload: bytes('') },
      { type: 'publish', topic: '2', payload: bytes(''), qos: 1, packetId: 1 },
      { type: 'unsubscribe', packetId: 2, filters: ['t'] },
      { type: 'pingreq' },
    )
    expect([client.take(), asked]).toEqual([[], ['1']])
    expect(await reader.send({ type: 'pingreq' })).toEqual([{ type: 'pingresp' }])
    await allow()
    expect([client.take(), asked]).toEqual([[], ['1', '2']])
    await allow()
    expect(client.take().map(({ type }) => type)).toEqual(['puback', 'unsuback', 'pingresp'])
    expect([reader.takeMessages(), broker.violations]).toEqual([['1 ', '2 '], []])
  })

  it('a client that says goodbye, or is gone, has published all the same what it sent before', async () => {
    for (const goodbye of [true, false]) {
      const { join, broker, allow } = slow()
      const client = await join('a', { ...durable, will: { topic: 'will' } })
      const publishes = ['1', '2'].map((topic): PacketInput => ({ type: 'publish', topic, payload: bytes('') }))
      await client.send(...publishes, ...(goodbye ? [{ type: 'disconnect' as const }] : []))
      client.transport.close()
      for (let i = 0; i < 4; i++) await allow()
      expect(broker.accepted.map(({ topic }) => topic)).toEqual(goodbye ? ['1', '2'] : ['1', '2', 'will'])
      expect(broker.clients.size).toBe(0)
      expect(broker.sessions.get('a')?.connected).toBe(false)
    }
  })

  it('a takeover does not wait for it', async () => {
    const { join, broker, allow } = slow()
    const old = await join('a', durable)
    await old.send({ type: 'publish', topic: '1', payload: bytes('') }, { type: 'publish', topic: '2', payload: bytes('') })
    const next = await join('a', durable)
    expect(old.goodbye).toBe(0x8e)
    await allow()
    await allow()
    expect(broker.accepted).toEqual([])
    expect(await next.send({ type: 'pingreq' })).toEqual([{ type: 'pingresp' }])
  })

  it('the keep alive does not run', async () => {
    const { join, clock, broker, allow } = slow()
    const client = await join('a', { keepAlive: 1 })
    await client.publish('t', '', { qos: 1, packetId: 1 })
    await clock.advance(5000)
    expect([client.ended, broker.violations]).toEqual([undefined, []])
    await allow()
    expect(client.take()).toMatchObject([{ type: 'puback' }])
    await clock.advance(1600)
    expect(client.goodbye).toBe(0x8d)
  })

  it('what waits is bounded: 0x97', async () => {
    const { join, broker } = slow({ maxBacklog: 10_000 })
    const client = await join('a')
    for (let i = 0; i < 20; i++) await client.publish('t', 'x'.repeat(1000))
    expect(client.goodbye).toBe(0x97)
    expect([broker.clients.size, broker.accepted, broker.violations]).toEqual([0, [], []])
  })

  it('one that never settles is given up after hookTimeout, refuses and is told', async () => {
    const { join, broker, clock, asked } = slow({ hookTimeout: 700 })
    const client = await join('a')
    await client.publish('1', '', { qos: 1, packetId: 1 })
    await client.publish('2', '', { qos: 1, packetId: 2 })
    await clock.advance(800)
    expect(client.take()).toMatchObject([{ type: 'puback', packetId: 1, reasonCode: 0x80 }])
    expect(asked).toEqual(['1', '2'])
    expect(broker.hookErrors).toMatchObject([{ hook: 'authorizePublish', clientId: 'a', time: 700 }])
    expect(String(broker.hookErrors[0]?.error)).toMatch(/700/)
    await clock.advance(10_000)
    expect([client.take().length, broker.accepted.length, clock.pending]).toEqual([1, 0, 0])
  })

  it('a broker that was closed asks no more and takes nothing', async () => {
    const { join, broker, clock, allow } = slow()
    const client = await join('a')
    await client.publish('1', '')
    await client.publish('2', '')
    void broker.close()
    await allow()
    await clock.advance(30_000)
    expect([broker.accepted, broker.clients.size, clock.pending]).toEqual([[], 0, 0])
  })

  it('it may call the broker back', async () => {
    const calls: Record<string, (broker: World['broker']) => void> = {
      publish: (broker) => broker.publish({ topic: 'echo', payload: 'y', qos: 1 }),
      restart: (broker) => broker.restart({ keepSessions: true }),
      disconnect: (broker) => broker.disconnect('a'),
      close: (broker) => broker.close(),
    }
    for (const [name, call] of Object.entries(calls)) {
      const seen: { world?: World } = {}
      const made = world({
        authorizePublish: async () => {
          await Promise.resolve()
          if (seen.world) call(seen.world.broker)
          return true
        },
      })
      seen.world = made
      const client = await made.join('a')
      await client.subscribe('#')
      await client.publish('t', 'x', { qos: 1, packetId: 1 })
      await allClear(made.clock)
      expect([name, client.ended === undefined, made.broker.accepted.length]).toEqual([name, name === 'publish', name === 'publish' ? 1 : 0])
    }
  })
})

describe('a hook that fails is told', () => {
  const failing = (): never => {
    throw new Error('the database is down')
  }

  it.each<[string, BrokerHooks, (client: RawClient) => Promise<unknown>]>([
    ['authorizePublish', { authorizePublish: failing }, (client) => client.publish('t', 'x', { qos: 1, packetId: 1 })],
    ['authorizePublish', { authorizePublish: async () => failing() }, (client) => client.publish('t', 'x', { qos: 1, packetId: 1 })],
    ['authorizeSubscribe', { authorizeSubscribe: failing }, (client) => client.subscribe('t')],
    ['authorizeDelivery', { authorizeDelivery: failing }, async (client) => [await client.subscribe('t'), await client.publish('t', 'x')]],
    [
      'intercept',
      { intercept: (_direction, packet) => (packet.type === 'pingreq' ? failing() : undefined) },
      (client) => client.send({ type: 'pingreq' }),
    ],
    [
      'intercept',
      { intercept: (_direction, packet) => (packet.type === 'pingresp' ? failing() : undefined) },
      (client) => client.send({ type: 'pingreq' }),
    ],
  ])('%s: by an event and in hookErrors', async (name, hooks, act) => {
    const { join, broker, clock } = world(hooks)
    const events: BrokerEvents['hookerror'][] = []
    broker.on('hookerror', (event) => events.push(event))
    const client = await join('a')
    await act(client)
    await clock.settle()
    expect(events).toEqual([{ hook: name, clientId: 'a', time: 0, error: new Error('the database is down') }])
    expect(broker.hookErrors).toEqual(events)
    expect(console.error).not.toHaveBeenCalled()
  })

  it('to the console where nobody listens, once for each hook', async () => {
    const { join } = world({ authorizePublish: failing, authorizeSubscribe: failing })
    const client = await join('a')
    for (let i = 0; i < 3; i++) await client.publish('t', 'x')
    await client.subscribe('t')
    expect(vi.mocked(console.error).mock.calls.map(([line]) => line)).toEqual([
      expect.stringMatching(/authorizePublish/),
      expect.stringMatching(/authorizeSubscribe/),
    ])
  })

  it('a refusal that an authentication method throws on purpose is none', async () => {
    const { dial, broker } = world({
      auth: { m: { start: () => Promise.reject(Object.assign(new Error('no'), { reasonCode: 0x8a })), continue: () => ({}) } },
    })
    expect(await dial().connect({ properties: { authenticationMethod: 'm' } })).toMatchObject({ reasonCode: 0x8a })
    expect(broker.hookErrors).toEqual([])
  })

  it('a Response Information that fails is left out, and one that is promised is awaited', async () => {
    const settings = { properties: { requestResponseInformation: 1 } } as const
    const failed = world({ responseInformation: failing })
    expect(await failed.dial().connect(settings)).toMatchObject({
      reasonCode: 0,
      properties: expect.not.objectContaining({ responseInformation: expect.anything() }),
    })
    expect(failed.broker.hookErrors).toMatchObject([{ hook: 'responseInformation' }])
    const late = world({ responseInformation: async ({ clientId }) => `replies/${clientId}` })
    expect(await late.dial().connect(settings)).toMatchObject({ properties: { responseInformation: 'replies/a' } })
  })

  it('and so does the replacement of a fault', async () => {
    const { join, broker } = world({ faults: [{ packet: 'pingresp', direction: 'out', nth: 1, action: { replace: failing } }] })
    const client = await join('a')
    await client.send({ type: 'pingreq' })
    expect(client.ended).toBeDefined()
    expect(broker.hookErrors).toMatchObject([{ hook: 'faults' }])
  })
})

describe('authorizeDelivery', () => {
  it('keeps a message from one receiver and not from another', async () => {
    const { join, broker } = world({ authorizeDelivery: ({ clientId }, { topic }) => (clientId === 'b' && topic === 'secret' ? 'discard' : true) })
    broker.publish({ topic: 'secret', payload: 'kept', retain: true, qos: 1 })
    const [a, b] = [await join('a'), await join('b')]
    expect((await a.subscribe('#')).map(({ type }) => type)).toEqual(['suback', 'publish'])
    expect((await b.subscribe('#')).map(({ type }) => type)).toEqual(['suback'])
    for (const qos of [0, 1, 2] as const) broker.publish({ topic: 'secret', payload: String(qos), qos })
    broker.publish({ topic: 'open', payload: 'x', qos: 1 })
    expect([await a.messages(), await b.messages()]).toEqual([['secret 0', 'secret 1', 'secret 2', 'open x'], ['open x']])
    expect([broker.sessions.get('a')?.discarded, broker.sessions.get('b')?.discarded]).toEqual([0, 4])
    expect(broker.hookErrors).toEqual([])
  })

  it.each([undefined, null, 0, 1, 'yes', {}])('anything but true and discard discards, and is told: %j', async (verdict) => {
    const { join, broker } = world({ authorizeDelivery: () => verdict as never })
    const client = await join('a')
    await client.subscribe('#')
    broker.publish({ topic: 't', payload: 'x' })
    expect(await client.messages()).toEqual([])
    expect(broker.hookErrors).toMatchObject([{ hook: 'authorizeDelivery' }])
  })

  it('is awaited in order, and asked again on the next connection', async () => {
    const waiting: ((verdict: true | 'discard') => void)[] = []
    const asked: string[] = []
    const { join, broker, clock } = world({
      authorizeDelivery: (_client, { payload }) => {
        asked.push(text(payload))
        return new Promise((resolve) => waiting.push(resolve))
      },
    })
    const client = await join('a', durable)
    await client.subscribe('#')
    for (const payload of ['1', '2', '3']) broker.publish({ topic: 't', payload, qos: 1 })
    expect(asked).toEqual(['1'])
    waiting.shift()?.(true)
    await clock.settle()
    expect(client.takeMessages()).toEqual(['t 1'])
    expect(asked).toEqual(['1', '2'])
    await client.cut()
    const again = await join('a', durable)
    // What was sent is sent again without a question.
    expect(again.takeMessages()).toEqual(['t 1'])
    expect(asked).toEqual(['1', '2', '2'])
    // That of the lost connection says nothing any more.
    waiting.shift()?.('discard')
    await clock.settle()
    expect(again.takeMessages()).toEqual([])
    waiting.shift()?.(true)
    await clock.settle()
    waiting.shift()?.('discard')
    await clock.settle()
    expect(again.takeMessages()).toEqual(['t 2'])
    expect(broker.sessions.get('a')).toMatchObject({ queued: 0, discarded: 1, inflight: 2 })
  })
})
