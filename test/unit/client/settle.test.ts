import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { Subscription } from '../../../src/client/options/index.js'
import { accepting, agreeable, connected, type World } from './harness.js'
import { publish } from './incoming.js'
import { Ledger } from './ledger.js'
import { loop } from './steps.js'
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
  ledger.add('iterator', () => loop(iterated))
  ledger.add('batches', () => batched.batches().next())
  ledger.add('next manual', () => batched.next({ timeout: 60_000 }))
  ledger.add('unsubscribe of a subscription', () => client.subscription('s/8').unsubscribe())
  ledger.add('dispose', () => client.subscription('s/9')[Symbol.asyncDispose]())
}

it.each<[string, (world: World) => unknown, string]>([
  ['cut', (world) => world.peer.cut(), 'ERR_CONNECTION_LOST'],
  ['end', (world) => world.peer.end(), 'ERR_CONNECTION_LOST'],
  ['server DISCONNECT', (world) => world.peer.sendBytes('e0 02 89 00'), 'ERR_SERVER_DISCONNECT'],
  ['bad bytes', (world) => world.peer.sendBytes('00 00'), 'ERR_MALFORMED_PACKET'],
  ['silence', (world) => world.clock.advance(40_000), 'ERR_KEEPALIVE_TIMEOUT'],
])(
  'every promise settles, typed, and nothing is left: a lost connection: %s',
  async (_name, lose, code) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const ledger = new Ledger()
    callEverything(ledger, world.client)
    await world.settle()
    callEverything(ledger, world.client)
    const ended = lose(world)
    await world.settle()
    await ended
    const { pending, untyped } = ledger
    expect([pending, untyped, world.clock.pending]).toEqual([[], [], 0])
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
  },
)

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
