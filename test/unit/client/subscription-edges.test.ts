/** Corners of subscriptions: merging while offline, answers that cross, calls from inside callbacks, and signals. */
import { describe, expect, it, vi } from 'vitest'
import type { Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, failure, type World } from './harness.js'
import {
  acks,
  agreed,
  answer,
  publish,
  quiet,
  read,
  series,
  subscribe,
  subscribes,
  taken,
  takenTexts,
  unsubscribes,
} from './incoming.js'
import { idle } from './steps.js'

const silent: Answer = (packet) =>
  packet.type === 'subscribe' || packet.type === 'unsubscribe' ? undefined : agreeable(packet)

const types = (world: World) => world.peer.received.map((packet) => packet.type)

/** A signal that counts its listeners. */
function counted() {
  const controller = new AbortController()
  const { signal } = controller
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  const listeners = () => {
    const gone = new Set(removed.mock.calls.map(([, listener]) => listener))
    return added.mock.calls.filter(([, listener]) => !gone.has(listener)).length
  }
  return { signal, listeners, abort: (reason?: unknown) => controller.abort(reason) }
}

it('offline: subscribed, unsubscribed and subscribed again: only the last leaves', async () => {
  const { world, connect } = idle()
  const first = world.client.subscription('a', { qos: 1 })
  expect(await world.outcome(first.unsubscribe())).toMatchObject({ state: 'fulfilled' })
  expect(await failure(first.ready)).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
  const second = world.client.subscription('a', { qos: 2 })
  await connect()
  expect(types(world)).toEqual(['connect', 'subscribe'])
  expect(world.peer.last('subscribe').subscriptions[0]?.qos).toBe(2)
  await world.send(publish('a', 'x', 1))
  expect(takenTexts(second)).toEqual(['x'])
  expect(await first.next()).toBeUndefined()
})

describe('answers that cross', () => {
  it('the first SUBSCRIBE is refused, that of a joiner granted: only the joiner gets messages', async () => {
    const world = await connected({}, silent)
    const first = quiet(world.client.subscribe('a'))
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    const second = quiet(world.client.subscribe('a', { qos: 1 }))
    await world.settle()
    await world.send({ type: 'suback', packetId, reasonCodes: [0x97] })
    await answer(world, 'subscribe', 1)
    expect(await world.outcome(first)).toMatchObject({ state: 'rejected' })
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(await second)).toEqual(['x'])
    expect(unsubscribes(world)).toEqual([])
  })

  it('an UNSUBACK refusal after the loop was left: messages do not pile up', async () => {
    const world = await agreed({}, silent)
    const call = world.client.subscribe('a', { qos: 1 })
    await world.settle()
    await answer(world, 'subscribe', 0)
    await (await call)[Symbol.asyncDispose]()
    await world.settle()
    await answer(world, 'unsubscribe', 0x87)
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual(['puback 1'])
  })
})

it('onDrop detaches: the message that came is kept for the next subscription as well', async () => {
  const world = await agreed()
  const onDrop = (): void => subscription.detach()
  const subscription: Subscription = await subscribe(world, 'a', {
    qos: 1,
    buffer: 2,
    overflow: 'drop-oldest',
    onDrop,
  })
  for (const packet of series('a', 4)) await world.send(packet)
  expect(takenTexts(await subscribe(world, 'a', { qos: 1 })).at(-1)).toBe('4')
  await world.settle()
  expect(acks(world)).toHaveLength(4)
})

describe('a signal', () => {
  it('of hundreds of calls that wait for the connection, those that nobody aborted are sent, in order', async () => {
    const { world, connect } = idle()
    const filters = Array.from({ length: 300 }, (_, index) => `a/${index}`)
    const calls = filters.map((filter, index) => {
      const abort = new AbortController()
      const { ready } = world.client.subscription(filter, { signal: abort.signal })
      if (index % 3 > 0) abort.abort()
      return quiet(ready)
    })
    await connect()
    const wanted = filters.filter((_, index) => index % 3 === 0)
    expect(subscribes(world)).toEqual(wanted)
    const states = await Promise.allSettled(calls)
    expect(states.filter(({ status }) => status === 'fulfilled')).toHaveLength(wanted.length)
  })

  it('that aborts before the grant: outcome unknown, UNSUBSCRIBE follows, a late SUBACK changes nothing', async () => {
    const world = await connected()
    const { signal, abort } = counted()
    const call = quiet(world.client.subscribe('a', { signal }))
    await world.settle()
    abort()
    expect(await failure(call)).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.settle()
    expect(unsubscribes(world)).toEqual(['a'])
    await answer(world, 'subscribe', 0)
    await answer(world, 'unsubscribe', 0)
    expect(world.client.state).toBe('connected')
  })

  it('that aborts before the grant leaves those alone who share the filter', async () => {
    const world = await connected()
    const { signal, abort } = counted()
    quiet(world.client.subscribe('a', { signal }))
    const second = world.client.subscribe('a')
    await world.settle()
    abort()
    await answer(world, 'subscribe', 0)
    const reading = read(await second)
    await world.send(publish('a', 'x'))
    expect(reading.texts).toEqual(['x'])
    expect(unsubscribes(world)).toEqual([])
  })

  it('is let go of with the grant, and does nothing after it', async () => {
    const world = await agreed()
    const { signal, abort, listeners } = counted()
    const reading = read(await subscribe(world, 'a', { signal }))
    expect(listeners()).toBe(0)
    abort()
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it('of next() is let go of with its answer', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    const { signal, listeners } = counted()
    const waiting = subscription.next({ signal })
    expect(listeners()).toBe(1)
    await world.send(publish('a', 'x'))
    await waiting
    expect(listeners()).toBe(0)
    quiet(subscription.next({ signal, timeout: 10 }))
    await world.clock.advance(20)
    expect(listeners()).toBe(0)
  })
})

describe('until', () => {
  it.each([
    ['unsubscribe', ['a']],
    ['detach', []],
  ] as const)('ends the subscription as onExit says: %s', async (onExit, left) => {
    const world = await agreed()
    const { signal, abort } = counted()
    const reading = read(await subscribe(world, 'a', { until: signal, onExit }))
    abort()
    await world.settle()
    expect(reading.end.state).toBe('done')
    expect(unsubscribes(world)).toEqual(left)
  })

  it('that has aborted: the subscription is over before it began', async () => {
    const world = await agreed()
    const subscription = world.client.subscription('a', { until: AbortSignal.abort() })
    const reading = read(subscription)
    await world.settle()
    expect(reading.end.state).toBe('done')
    expect(await failure(subscription.ready)).toMatchObject({ code: 'ERR_ABORTED' })
    expect(subscribes(world)).toEqual([])
  })

  it.each(['unsubscribe', 'detach', 'break', 'destroy'])('is let go of: %s', async (how) => {
    const world = await agreed()
    const { signal, listeners } = counted()
    const subscription = await subscribe(world, 'a', { until: signal })
    expect(listeners()).toBe(1)
    if (how === 'unsubscribe') quiet(subscription.unsubscribe())
    else if (how === 'detach') subscription.detach()
    else if (how === 'break') await subscription[Symbol.asyncIterator]().return?.()
    else world.client.destroy()
    await world.settle()
    expect(listeners()).toBe(0)
  })

  it('in the middle of a message: the turn goes on, what is buffered follows onExit', async () => {
    const world = await agreed()
    const { signal, abort } = counted()
    const subscription = await subscribe(world, 'a', { qos: 1, until: signal, onExit: 'detach' })
    await world.send(...series('a', 3))
    const message = taken(subscription)
    abort()
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['2', '3'])
  })
})
