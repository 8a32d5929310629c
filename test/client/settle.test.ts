import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { constant } from '../../src/client/api/backoff.js'
import type { Subscription } from '../../src/client/api/index.js'
import type { BaseClient } from '../../src/client/client.js'
import { MqttError } from '../../src/errors.js'
import type { Answer, ScriptedPeer } from '../../src/testing/scripted-peer.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { publish, series } from './incoming.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'

const unhandled: unknown[] = []
const note = (error: unknown): void => {
  unhandled.push(error)
}

beforeAll(() => {
  process.on('unhandledRejection', note)
})

afterAll(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

/** Promises with a name, and how each came out. */
class Ledger {
  readonly #entries: { readonly name: string; state: 'pending' | 'fulfilled' | 'rejected'; error: unknown }[] = []

  add(name: string, make: () => unknown): void {
    const entry: { readonly name: string; state: 'pending' | 'fulfilled' | 'rejected'; error: unknown } = { name, state: 'pending', error: undefined }
    this.#entries.push(entry)
    let promise: Promise<unknown>
    try {
      promise = Promise.resolve(make())
    } catch (error) {
      promise = Promise.reject(error)
    }
    promise.then(
      () => {
        entry.state = 'fulfilled'
      },
      (error: unknown) => {
        entry.state = 'rejected'
        entry.error = error
      },
    )
  }

  get pending(): string[] {
    return this.#entries.filter((entry) => entry.state === 'pending').map((entry) => entry.name)
  }

  /** Rejections that are no MqttError. */
  get untyped(): unknown[] {
    return this.#entries.filter((entry) => entry.state === 'rejected' && !MqttError.is(entry.error)).map((entry) => [entry.name, entry.error])
  }

  get codes(): string[] {
    return this.#entries.map((entry) => `${entry.name}: ${entry.state === 'rejected' ? (entry.error as MqttError).code : entry.state}`)
  }
}

async function consume(subscription: Subscription): Promise<void> {
  for await (const message of subscription) message.text()
}

/** One call of every kind that may wait, on a client in any state. */
function callEverything(ledger: Ledger, client: BaseClient): void {
  ledger.add('publish 0', () => client.publish('a', 'x'))
  ledger.add('publish 0 flush', () => client.publish('a', 'x', { flush: true }))
  ledger.add('publish 0 large', () => client.publish('a', new Uint8Array(40_000)))
  ledger.add('publish 1', () => client.publish('a', 'x', { qos: 1 }))
  ledger.add('publish 2', () => client.publish('a', 'x', { qos: 2 }))
  ledger.add('subscribe', () => client.subscribe('s/1'))
  ledger.add('listen', () => client.listen('s/2', () => undefined))
  ledger.add('unsubscribe', () => client.unsubscribe('s/3'))
  ledger.add('flush', () => client.flush())
  ledger.add('writable', () => client.writable)
  ledger.add('closed', () => client.closed)
  let subscription: Subscription | undefined
  ledger.add('ready', () => {
    subscription = client.subscription(['s/4', 's/5'])
    return subscription.ready
  })
  if (subscription === undefined) return
  const own = subscription
  ledger.add('next', () => own.next())
  const iterated = client.subscription('s/6')
  ledger.add('iterator', () => consume(iterated))
  const batched = client.subscription('s/7', { ack: 'manual' })
  ledger.add('batches', () => batched.batches().next())
  ledger.add('next manual', () => batched.next({ timeout: 60_000 }))
  ledger.add('unsubscribe of a subscription', () => client.subscription('s/8').unsubscribe())
  ledger.add('dispose', () => client.subscription('s/9')[Symbol.asyncDispose]())
}

/** States of a client, and how to get there. */
const situations: Record<string, () => Promise<World>> = {
  idle: async () => new World(),
  'waiting for credentials': async () => {
    const world = new World({ credentials: () => new Promise(() => undefined) })
    world.client.connect().catch(() => undefined)
    await world.settle()
    return world
  },
  dialling: async () => {
    const world = new World({}, {}, 1, () => new Promise<never>(() => undefined))
    world.client.connect().catch(() => undefined)
    await world.settle()
    return world
  },
  'waiting for CONNACK': async () => {
    const world = new World()
    world.client.connect().catch(() => undefined)
    await world.settle()
    return world
  },
  'in the middle of CONNACK': async () => {
    const world = new World()
    world.client.connect().catch(() => undefined)
    await world.settle()
    await world.sendBytes('20 03 00')
    return world
  },
  connected: () => connected(),
  'connected to a peer that is deaf': async () => {
    const transport = new StalledTransport(100)
    const world = new World({}, {}, 1, () => transport)
    world.client.connect().catch(() => undefined)
    await world.settle()
    transport.feed(plainConnack)
    await world.settle()
    return world
  },
  'connected, a large packet half in': async () => {
    const world = await connected()
    await world.sendBytes('30 ff 7f 00 01 61 00 61 61')
    return world
  },
  'connected, with a turn that never ends': async () => {
    const world = await connected({}, agreeable)
    world.client.listen('t', () => new Promise(() => undefined), { qos: 1 }).catch(() => undefined)
    const subscription = world.client.subscription('u', { qos: 1 })
    const manual = world.client.subscription('v', { qos: 1, ack: 'manual' })
    await world.send(...series('t', 3), publish('u', '', 10), publish('v', '', 11))
    await subscription.next()
    await manual.next()
    world.answer = accepting()
    return world
  },
  'disconnecting, held up by a turn': async () => {
    const world = await connected({}, agreeable)
    const subscription = world.client.subscription('u', { qos: 1 })
    await world.send(publish('u', '', 10))
    await subscription.next()
    world.answer = accepting()
    world.client.disconnect({ timeout: 60_000 })
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    return world
  },
  closed: async () => {
    const world = await connected()
    world.client.destroy()
    await world.settle()
    return world
  },
}

describe('pain 6 every promise settles within 50 ms of disconnect({ timeout: 0 }), typed', () => {
  it.each(Object.keys(situations))('%s', async (name) => {
    const world = (await situations[name]?.()) as World
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    ledger.add('disconnect', () => world.client.disconnect({ timeout: 0 }))
    callEverything(ledger, world.client)
    await world.clock.advance(50)
    expect(ledger.pending).toEqual([])
    expect(ledger.untyped).toEqual([])
    expect(world.client.state).toBe('closed')
    await world.clock.advance(1000)
    expect(world.clock.pending).toBe(0)
  })
})

describe('pain 23 disconnect({ timeout: 200 }) resolves within 250 ms, and nothing is left', () => {
  it.each(Object.keys(situations))('%s', async (name) => {
    const world = (await situations[name]?.()) as World
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    ledger.add('disconnect', () => world.client.disconnect({ timeout: 200 }))
    await world.clock.advance(250)
    expect(ledger.pending).toEqual([])
    expect(world.client.state).toBe('closed')
    expect(world.clock.pending).toBe(0)
  })

  it('at each byte of CONNECT and CONNACK', async () => {
    for (let drop = 0; drop <= 40; drop++) {
      const world = new World({}, { forward: { drop: drop === 0 ? undefined : drop }, split: 1 })
      world.answer = agreeable
      const ledger = new Ledger()
      ledger.add('connect', () => world.client.connect())
      await world.clock.advance(1)
      ledger.add('disconnect', () => world.client.disconnect({ timeout: 200 }))
      await world.clock.advance(250)
      expect(ledger.pending).toEqual([])
      expect(ledger.untyped).toEqual([])
      expect(world.clock.pending).toBe(0)
    }
    for (let length = 0; length <= 5; length++) {
      const world = new World()
      const ledger = new Ledger()
      ledger.add('connect', () => world.client.connect())
      await world.settle()
      await world.sendBytes([0x20, 3, 0, 0, 0].slice(0, length))
      ledger.add('disconnect', () => world.client.disconnect({ timeout: 200 }))
      await world.clock.advance(250)
      expect(ledger.pending).toEqual([])
      expect(world.clock.pending).toBe(0)
    }
  })
})

describe('M10 I5 a lost connection settles everything, typed, with what is known of its fate', () => {
  const losses: Record<string, [(world: World) => unknown, string]> = {
    cut: [(world) => world.peer.cut(), 'ERR_CONNECTION_LOST'],
    end: [(world) => world.peer.end(), 'ERR_CONNECTION_LOST'],
    'server DISCONNECT': [(world) => world.peer.sendBytes('e0 02 89 00'), 'ERR_SERVER_DISCONNECT'],
    'bad bytes': [(world) => world.peer.sendBytes('00 00'), 'ERR_MALFORMED_PACKET'],
    silence: [(world) => world.clock.advance(40_000), 'ERR_KEEPALIVE_TIMEOUT'],
  }

  it.each(Object.keys(losses))('%s', async (name) => {
    const [lose, code] = losses[name] as (typeof losses)[string]
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    const ended = lose(world)
    await world.settle()
    await ended
    expect(ledger.pending).toEqual([])
    expect(ledger.untyped).toEqual([])
    const waiting = ['publish 1', 'publish 2', 'subscribe', 'listen', 'unsubscribe', 'ready', 'next', 'iterator', 'batches', 'next manual']
    for (const entry of waiting)
      expect(ledger.codes.filter((line) => line.startsWith(`${entry}:`))).toEqual([`${entry}: ${code}`, `${entry}: ${code}`])
    expect(world.clock.pending).toBe(0)
  })

  it('M07 a handler that never ends does not keep `done` of its handling from settling', async () => {
    const world = await connected({}, agreeable)
    const starting = world.client.listen('a', () => new Promise(() => undefined), { qos: 1 })
    await world.settle()
    const { done } = await starting
    await world.send(publish('a', '', 1))
    const ledger = new Ledger()
    ledger.add('done', () => done)
    ledger.add('disconnect', () => world.client.disconnect({ timeout: 0 }))
    await world.clock.advance(50)
    expect(ledger.pending).toEqual([])
  })
})

describe('pain 6 D37 a signal aborts each call, and the link is not affected', () => {
  const abortable: Record<string, (client: BaseClient, signal: AbortSignal) => Promise<unknown>> = {
    'publish 1': (client, signal) => client.publish('a', 'x', { qos: 1, signal }),
    'publish 2': (client, signal) => client.publish('a', 'x', { qos: 2, signal }),
    subscribe: (client, signal) => client.subscribe('a', { signal }),
    'subscription.ready': (client, signal) => client.subscription('a', { signal }).ready,
    listen: (client, signal) => client.listen('a', () => undefined, { signal }),
    unsubscribe: (client, signal) => client.unsubscribe('a', { signal }),
    next: (client, signal) => client.subscription('a').next({ signal }),
  }

  it.each(Object.keys(abortable).flatMap((name) => [true, false].map((sent) => [name, sent] as const)))('%s, sent: %s', async (name, sent) => {
    const world = await connected({})
    const controller = new AbortController()
    const reason = new Error('enough')
    const ledger = new Ledger()
    let error: unknown
    ledger.add(name, () =>
      abortable[name]?.(world.client, controller.signal).catch((thrown: unknown) => {
        error = thrown
        throw thrown
      }),
    )
    if (sent) await world.settle()
    expect(ledger.pending).toEqual([name])
    controller.abort(reason)
    await world.settle()
    expect(ledger.codes).toEqual([`${name}: ERR_ABORTED`])
    expect(error).toMatchObject({ name: 'AbortError', cause: reason })
    expect(world.client.state).toBe('connected')
    world.answer = agreeable
    const publishing = world.client.publish('b', 'x', { qos: 1 })
    await world.settle()
    await publishing
  })

  it.each(Object.keys(abortable))('%s: aborted before it began: nothing is sent', async (name) => {
    const world = await connected({})
    const ledger = new Ledger()
    ledger.add(name, () => abortable[name]?.(world.client, AbortSignal.abort()))
    await world.settle()
    expect(ledger.codes).toEqual([`${name}: ERR_ABORTED`])
    if (name !== 'next') expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })
})

it('pain 22 what nobody awaits is no unhandled rejection: closed, ready, writable, done, publish', async () => {
  const world = await connected({}, agreeable)
  world.client.publish('a', 'x', { qos: 1, properties: { contentType: 5 as never } })
  world.client.publish('a', 'x', { qos: 1, signal: AbortSignal.abort() })
  world.client.publish('a/#', 'x')
  world.client.subscription('a')
  const starting = world.client.listen('b', () => Promise.reject(new Error('mine')), { qos: 1 })
  await world.settle()
  void (await starting).done
  void world.client.closed
  void world.client.writable
  world.answer = undefined
  world.client.publish('a', 'x', { qos: 2 })
  world.client.subscription('c')
  await world.send(publish('b', '', 1))
  world.peer.cut()
  await world.clock.advance(100_000)
  world.client.publish('a', 'x')
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled).toEqual([])
})

/** Repeatable randomness: mulberry32. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Answers now and then, in its own way. */
function moody(random: (below: number) => number): Answer {
  return (packet) => {
    if (packet.type === 'connect') return random(8) === 0 ? undefined : agreeable(packet)
    return random(3) === 0 ? undefined : agreeable(packet)
  }
}

/** One random life, of one connection or several; gives what is left pending at its end. */
async function randomLife(seed: number, lasting = false): Promise<{ pending: string[]; untyped: unknown[]; world: World }> {
  const random = generator(seed)
  const pick = <T>(items: readonly T[]): T => items[random(items.length)] as T
  const options = {
    keepAlive: 5,
    pingTimeout: 1000,
    reconnect: lasting ? { backoff: constant(20), maxAttempts: 1 + random(5) } : false,
    outbound: { maxQueuedMessages: 3 + random(5), overflow: pick(['wait', 'reject', 'drop-newest', 'drop-oldest'] as const) },
  }
  const world = new World(options, { split: 1 + random(20), latency: random(3) * 5 }, 1 + random(2), (_index, open) => {
    if (random(10) === 0) throw new Error('down')
    return open()
  })
  world.answer = moody(random)
  const { client } = world
  const ledger = new Ledger()
  const subscriptions: Subscription[] = []
  const aborts: AbortController[] = []
  const signal = (): { signal?: AbortSignal } => {
    if (random(4) > 0) return {}
    const controller = new AbortController()
    aborts.push(controller)
    return { signal: controller.signal }
  }
  const topic = (): string => pick(['a', 'b', 'c/d', 'e'])
  const filter = (): string => pick(['a', 'b', '#', 'c/+', '$share/g/a'])
  const on = (act: (subscription: Subscription) => unknown) => (): unknown => (subscriptions.length === 0 ? undefined : act(pick(subscriptions)))
  const peer = (act: (peer: ScriptedPeer) => void) => (): void => {
    const last = world.peers.at(-1)
    if (last !== undefined && last.ended === undefined) act(last)
  }
  let packetId = 0
  const operations: [name: string, act: () => unknown][] = [
    ['connect', () => client.connect(signal())],
    ['connect', () => client.connect(signal())],
    ['publish', () => client.publish(topic(), 'x'.repeat(random(50)), { qos: random(3) as 0 | 1 | 2, ...signal() })],
    ['publish', () => client.publish(topic(), 'x', { qos: random(3) as 0 | 1 | 2, flush: true, ackTimeout: 10 + random(100) })],
    ['publish large', () => client.publish(topic(), new Uint8Array(33_000), { qos: random(3) as 0 | 1 | 2 })],
    ['post', () => client.post(topic(), 'x')],
    ['subscribe', () => client.subscribe(filter(), { qos: random(3) as 0 | 1 | 2, ...signal() }).then((made) => subscriptions.push(made))],
    [
      'subscription',
      () =>
        subscriptions.push(
          client.subscription([filter(), filter()], { qos: 1, ack: pick(['auto', 'manual', 'on-receive']), onExit: pick(['detach', 'unsubscribe']) }),
        ),
    ],
    ['ready', on((subscription) => subscription.ready)],
    ['next', on((subscription) => subscription.next(signal()))],
    ['next timeout', on((subscription) => subscription.next({ timeout: random(50) }))],
    ['iterate', on((subscription) => consume(subscription))],
    ['leave', on((subscription) => subscription[Symbol.asyncIterator]().return?.())],
    ['unsubscribe own', on((subscription) => subscription.unsubscribe())],
    ['detach', on((subscription) => subscription.detach())],
    [
      'listen',
      () => client.listen(filter(), () => (random(3) === 0 ? Promise.reject(new Error('mine')) : undefined), { qos: 1, concurrency: 1 + random(3) }),
    ],
    ['unsubscribe', () => client.unsubscribe([filter()], signal())],
    ['flush', () => client.flush()],
    ['writable', () => client.writable],
    ['clear', () => client.outbound.clear()],
    ['message', peer((last) => last.send(publish(topic(), 'm', random(2) === 0 ? undefined : ++packetId)))],
    ['abort', () => (aborts.length === 0 ? undefined : pick(aborts).abort())],
    ['time', () => undefined],
  ]
  const rare: [name: string, act: () => unknown][] = [
    ['cut', peer((last) => last.cut())],
    ['end', peer((last) => last.end())],
    ['bad bytes', peer((last) => last.sendBytes('00 00'))],
    ['goodbye', peer((last) => last.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} }))],
    ['disconnect', () => client.disconnect({ timeout: random(3) * 50, ...signal() })],
    ['destroy', () => client.destroy()],
  ]
  if (lasting) rare.push(['drain', () => client.drain({ timeout: random(4) * 50, ...signal() })])
  for (let step = 5 + random(25); step > 0; step--) {
    const [name, act] = random(14) === 0 ? pick(rare) : pick(operations)
    ledger.add(name, act)
    if (random(2) === 0) await world.clock.advance(pick([0, 0, 5, 20, 200, 3000]))
  }
  ledger.add('closed', () => client.closed)
  ledger.add('last disconnect', () => client.disconnect({ timeout: 0 }))
  await world.clock.advance(50)
  return {
    pending: ledger.pending,
    untyped: ledger.untyped,
    world,
  }
}

const long = process.env['MQWIRE_LONG'] !== undefined

// 10,000 in `npm run pains`.
describe(`pain 6 ${long ? '10,000' : 300} random orders of calls: nothing stays pending, no timer stays`, () => {
  const rounds = long ? 400 : 12
  it.each(Array.from({ length: 25 }, (_, block) => block))('block %s', { timeout: long ? 600_000 : 20_000 }, async (block) => {
    for (let round = 0; round < rounds; round++) {
      const seed = block * rounds + round + 1
      const { pending, untyped, world } = await randomLife(seed)
      expect({ seed, pending, untyped, state: world.client.state }).toEqual({ seed, pending: [], untyped: [], state: 'closed' })
      await world.clock.advance(2000)
      expect({ seed, timers: world.clock.pending }).toEqual({ seed, timers: 0 })
      const states = world.seen('state').map(({ state }) => state)
      expect({ seed, states: new Set(states).size }).toEqual({ seed, states: states.length })
      expect({ seed, ends: world.seen('disconnect').length }).toEqual({ seed, ends: states.includes('connected') ? 1 : 0 })
    }
    expect(unhandled).toEqual([])
  })

  it.each(Array.from({ length: 10 }, (_, block) => block))(
    'lives of several connections, block %s',
    { timeout: long ? 600_000 : 20_000 },
    async (block) => {
      for (let round = 0; round < rounds; round++) {
        const seed = 1_000_000 + block * rounds + round
        const { pending, untyped, world } = await randomLife(seed, true)
        expect({ seed, pending, untyped, state: world.client.state }).toEqual({ seed, pending: [], untyped: [], state: 'closed' })
        await world.clock.advance(2000)
        expect({ seed, timers: world.clock.pending }).toEqual({ seed, timers: 0 })
        const states = world.seen('state').map(({ state }) => state)
        const from = states.includes('disconnecting') ? states.indexOf('disconnecting') : states.length - 1
        // Nothing comes between the beginning of the end and the end.
        expect({ seed, states: states.slice(from).filter((state) => state !== 'disconnecting') }).toEqual({ seed, states: ['closed'] })
        expect({ seed, ends: world.seen('disconnect').length }).toEqual({ seed, ends: world.seen('connect').length })
      }
      expect(unhandled).toEqual([])
    },
  )
})

describe('every end, begun before, with and after every other', () => {
  const ends: Record<string, (world: World) => unknown> = {
    'disconnect()': ({ client }) => client.disconnect(),
    'disconnect({ timeout: 0 })': ({ client }) => client.disconnect({ timeout: 0 }),
    'disconnect() that is aborted': ({ client }) => client.disconnect({ signal: AbortSignal.abort() }),
    'drain()': ({ client }) => client.drain({ timeout: 300 }),
    'destroy()': ({ client }) => client.destroy(),
    'end of the block': ({ client }) => client[Symbol.asyncDispose](),
    'a lost connection': ({ peer }) => peer.ended ?? peer.cut(),
    'DISCONNECT of the server': ({ peer }) => peer.ended ?? peer.send({ type: 'disconnect', reasonCode: 0x8b, properties: {} }),
  }
  const names = Object.keys(ends)

  /** Turns that take 50 ms, readers of every kind, a group, publishes in flight and queued, UNSUBSCRIBE without an answer. */
  async function full(reconnect: boolean): Promise<{ world: World; ledger: Ledger }> {
    const quiet: Answer = (packet) => (packet.type === 'publish' || packet.type === 'unsubscribe' ? undefined : agreeable(packet))
    const world = await connected({ reconnect: reconnect && { backoff: constant(20) } }, quiet)
    const ledger = new Ledger()
    const { client, clock } = world
    const pause = (): Promise<void> => new Promise((resolve) => clock.setTimer(resolve, 50))
    const starting = ['a', '$share/g/b'].map((filter) => client.listen(filter, pause, { qos: 1 }))
    for (const filter of ['c', '$share/g/d', 'e']) {
      const subscription = client.subscription(filter, { qos: 1 })
      ledger.add(`loop over ${filter}`, async () => {
        for await (const _ of subscription) await pause()
      })
    }
    const waiting = client.subscription('$share/g/f')
    ledger.add('next', () => waiting.next())
    client.subscription('$share/g/h')
    await world.settle()
    for (const handling of starting) ledger.add('done', async () => (await handling).done)
    await world.send(...['a', 'b', 'c', 'd', 'e', 'h'].flatMap((topic, index) => series(topic, 3, 1 + 3 * index)))
    ledger.add('publish', () => client.publish('x', 'y', { qos: 1 }))
    ledger.add('unsubscribe', () => client.unsubscribe('e'))
    ledger.add('closed', () => client.closed)
    return { world, ledger }
  }

  const rows = names.flatMap((first) => names.map((second) => [first, second] as const))
  it.each(rows)('%s, and %s', async (first, second) => {
    for (const reconnect of [true, false]) {
      for (const delay of [undefined, 30, 400]) {
        const { world, ledger } = await full(reconnect)
        ledger.add('first', () => ends[first]?.(world))
        if (delay !== undefined) await world.clock.advance(delay)
        ledger.add('second', () => ends[second]?.(world))
        ledger.add('last', () => world.client.disconnect({ timeout: 1000 }))
        await world.clock.advance(3000)
        const at = { reconnect, delay }
        expect({ ...at, pending: ledger.pending, untyped: ledger.untyped, timers: world.clock.pending }).toEqual({
          ...at,
          pending: [],
          untyped: [],
          timers: 0,
        })
        expect(world.seen('state').filter(({ state }) => state === 'closed')).toHaveLength(1)
        expect(world.seen('state').at(-1)?.state).toBe('closed')
        expect(world.seen('disconnect')).toHaveLength(world.seen('connect').length)
      }
    }
  })
})
