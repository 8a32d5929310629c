import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import type { BaseClient } from '../../../src/client/client.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { publish, series } from './incoming.js'
import { Ledger } from './ledger.js'
import { consume, RandomLife } from './random-life.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'
import { unhandledInFile } from './unhandled.js'

const unhandled = unhandledInFile()

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

describe('every promise settles within 50 ms of disconnect({ timeout: 0 }), typed', () => {
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

describe('disconnect({ timeout: 200 }) resolves within 250 ms, and nothing is left', () => {
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

describe('a lost connection settles everything, typed, with what is known of its fate', () => {
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

  it('a handler that never ends does not keep `done` of its handling from settling', async () => {
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

describe('a signal aborts each call, and the link is not affected', () => {
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

it('what nobody awaits is no unhandled rejection: closed, ready, writable, done, publish', async () => {
  const world = await connected({}, agreeable)
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

const long = process.env['MQWIRE_LONG'] !== undefined

/** Nothing of a life is pending, and no timer stays; gives the states that it went through. */
async function settledStates(seed: number, { ledger, world }: RandomLife): Promise<string[]> {
  const { pending, untyped } = ledger
  expect({ seed, pending, untyped, state: world.client.state }).toEqual({ seed, pending: [], untyped: [], state: 'closed' })
  await world.clock.advance(2000)
  expect({ seed, timers: world.clock.pending }).toEqual({ seed, timers: 0 })
  return world.seen('state').map(({ state }) => state)
}

// 10,000 in `npm run lab -- fuzz long`.
describe(`${long ? '10,000' : 300} random orders of calls: nothing stays pending, no timer stays`, () => {
  const rounds = long ? 400 : 12
  it.each(Array.from({ length: 25 }, (_, block) => block))('block %s', { timeout: long ? 600_000 : 20_000 }, async (block) => {
    for (let round = 0; round < rounds; round++) {
      const seed = block * rounds + round + 1
      const life = await new RandomLife(seed).live()
      const { world } = life
      const states = await settledStates(seed, life)
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
        const life = await new RandomLife(seed, true).live()
        const { world } = life
        const states = await settledStates(seed, life)
        const from = states.includes('disconnecting') ? states.indexOf('disconnecting') : states.length - 1
        // Nothing comes between the beginning of the end and the end.
        expect({ seed, states: states.slice(from).filter((state) => state !== 'disconnecting') }).toEqual({ seed, states: ['closed'] })
        expect({ seed, ends: world.seen('disconnect').length }).toEqual({ seed, ends: world.seen('connect').length })
      }
      expect(unhandled).toEqual([])
    },
  )
})

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

describe('every end, begun before, with and after every other', () => {
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
