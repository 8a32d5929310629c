import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import type { BaseClient } from '../../../src/client/client.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { publish, series } from './incoming.js'
import { Ledger } from './ledger.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'
import { unhandledInFile } from './unhandled.js'

const unhandled = unhandledInFile()
const never = () => new Promise<never>(() => undefined)

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
  let own: Subscription | undefined
  ledger.add('ready', () => {
    own = client.subscription(['s/4', 's/5'])
    return own.ready
  })
  // A client that has ended makes none.
  if (own === undefined) return
  const subscription = own
  const iterated = client.subscription('s/6')
  const batched = client.subscription('s/7', { ack: 'manual' })
  ledger.add('next', () => subscription.next())
  ledger.add('iterator', () => consume(iterated))
  ledger.add('batches', () => batched.batches().next())
  ledger.add('next manual', () => batched.next({ timeout: 60_000 }))
  ledger.add('unsubscribe of a subscription', () => client.subscription('s/8').unsubscribe())
  ledger.add('dispose', () => client.subscription('s/9')[Symbol.asyncDispose]())
}

/** A client with a message in hand, and a server that answers nothing any more. */
async function reading(): Promise<World> {
  const world = await connected({}, agreeable)
  const subscription = world.client.subscription('u', { qos: 1 })
  await world.send(publish('u', '', 10))
  await subscription.next()
  world.answer = accepting()
  return world
}

/** States of a client beside those of `lifecycle-settle.test.ts`, and how to get there. */
const situations: Record<string, () => Promise<World>> = {
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
    const world = await reading()
    world.answer = agreeable
    world.client.listen('t', never, { qos: 1 }).catch(() => undefined)
    const manual = world.client.subscription('v', { qos: 1, ack: 'manual' })
    await world.send(...series('t', 3), publish('v', '', 11))
    await manual.next()
    world.answer = accepting()
    return world
  },
  'disconnecting, held up by a turn': async () => {
    const world = await reading()
    world.client.disconnect({ timeout: 60_000 })
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    return world
  },
}

/** Nothing waits, and what was rejected is typed. */
function expectSettled(ledger: Ledger, world: World): void {
  const { pending, untyped } = ledger
  expect({ pending, untyped, timers: world.clock.pending }).toEqual({
    pending: [],
    untyped: [],
    timers: 0,
  })
}

describe('every promise settles, typed, and nothing is left', () => {
  const rows = Object.keys(situations).flatMap((name) =>
    [0, 200].map((timeout) => [name, timeout] as const),
  )
  it.each(rows)('%s: within 50 ms of disconnect({ timeout: %i })', async (name, timeout) => {
    const world = (await situations[name]?.()) as World
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    ledger.add('disconnect', () => world.client.disconnect({ timeout }))
    callEverything(ledger, world.client)
    await world.clock.advance(timeout + 50)
    expect([ledger.pending, world.client.state]).toEqual([[], 'closed'])
    await world.clock.advance(1000)
    expectSettled(ledger, world)
  })

  it.each<[string, (world: World) => unknown, string]>([
    ['cut', (world) => world.peer.cut(), 'ERR_CONNECTION_LOST'],
    ['end', (world) => world.peer.end(), 'ERR_CONNECTION_LOST'],
    ['server DISCONNECT', (world) => world.peer.sendBytes('e0 02 89 00'), 'ERR_SERVER_DISCONNECT'],
    ['bad bytes', (world) => world.peer.sendBytes('00 00'), 'ERR_MALFORMED_PACKET'],
    ['silence', (world) => world.clock.advance(40_000), 'ERR_KEEPALIVE_TIMEOUT'],
  ])('a lost connection: %s', async (_name, lose, code) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    const ended = lose(world)
    await world.settle()
    await ended
    expectSettled(ledger, world)
    const waiting = [
      'publish 1',
      'publish 2',
      'subscribe',
      'listen',
      'unsubscribe',
      'ready',
      'next',
    ]
    for (const entry of [...waiting, 'iterator', 'batches', 'next manual'])
      expect(ledger.codes.filter((line) => line === `${entry}: ${code}`)).toHaveLength(2)
  })

  it('a handler that never ends does not keep `done` of its handling from settling', async () => {
    const world = await connected({}, agreeable)
    const starting = world.client.listen('a', never, { qos: 1 })
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

  it.each(Object.keys(abortable))('%s: before it was sent, and after', async (name) => {
    for (const sent of [true, false]) {
      const world = await connected({})
      const controller = new AbortController()
      const cause = new Error('enough')
      const call = abortable[name]?.(world.client, controller.signal) as Promise<unknown>
      call.catch(() => undefined)
      if (sent) await world.settle()
      controller.abort(cause)
      const error = { code: 'ERR_ABORTED', name: 'AbortError', cause }
      expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error })
      expect(world.client.state).toBe('connected')
      world.answer = agreeable
      const publishing = world.client.publish('b', 'x', { qos: 1 })
      await world.settle()
      await publishing
    }
  })

  it.each(Object.keys(abortable))('%s: aborted before it began: nothing is sent', async (name) => {
    const world = await connected({})
    const call = abortable[name]?.(world.client, AbortSignal.abort()) as Promise<unknown>
    expect(await world.outcome(call)).toMatchObject({
      state: 'rejected',
      error: { code: 'ERR_ABORTED' },
    })
    if (name !== 'next')
      expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
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
