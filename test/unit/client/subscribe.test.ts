/** SUBSCRIBE: what leaves, what comes back, what is refused here, how a call ends; and merging while offline, answers that cross, calls from inside callbacks. */
import { describe, expect, it, vi } from 'vitest'
import type { Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { keeps } from './across.js'
import { accepting, agreeable, coded, connected, failure, times, type World } from './harness.js'
import {
  acks,
  agreed,
  answer,
  answering,
  obliging,
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
import { refusing } from './rig.js'
import { idle, settled } from './steps.js'

const ids = (world: World) => world.peer.all('subscribe').map(({ packetId }) => packetId)

const refused = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote' }

const grants = ({ granted }: Subscription) =>
  granted.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)

it('also seen: brokers that limit the filters of one SUBSCRIBE: more filters than maxFiltersPerSubscribe: several packets, one identifier, one answer for the caller', async () => {
  const world = await connected({ maxFiltersPerSubscribe: 2 })
  const promise = world.client.subscribe(['a', 'b', 'c', 'd', 'e'], { qos: 1 })
  await world.settle()
  expect(subscribes(world)).toEqual(['a b', 'c d', 'e'])
  const [first = 0, second = 0, third = 0] = ids(world)
  expect(new Set(ids(world)).size).toBe(3)
  const identifiers = world.peer
    .all('subscribe')
    .flatMap(({ properties }) => properties.subscriptionIdentifiers ?? [])
  expect(new Set(identifiers).size).toBe(1)
  // Answered in another order.
  await world.send({ type: 'suback', packetId: third, reasonCodes: [0] })
  await world.send({ type: 'suback', packetId: first, reasonCodes: [1, 0x87] })
  expect(await world.outcome(promise)).toEqual({ state: 'pending' })
  await world.send({ type: 'suback', packetId: second, reasonCodes: [1, 1] })
  expect(grants(await promise)).toEqual(['a 1', 'b 135', 'c 1', 'd 1', 'e 0'])
})

it('a wrong filter: subscription() throws at once, and leaves nothing behind', async () => {
  const world = await agreed()
  expect(() => world.client.subscription('a#')).toThrow(coded('ERR_INVALID_TOPIC'))
  await world.settle()
  expect(subscribes(world)).toEqual([])
})

describe('the answer', () => {
  const answered = (...reasonCodes: number[]) => connected({}, answering('subscribe', reasonCodes))

  it('[MQTT-3.8.4-7] granted lower than asked: resolves, and the grant shows', async () => {
    const { granted } = await subscribe(await answered(0), 'a', { qos: 2 })
    expect(granted).toMatchObject([{ filter: 'a', qos: 0, reasonCode: 0, error: undefined }])
  })

  it('requireQos refuses a downgrade and leaves nothing on the broker, and accepts what was asked', async () => {
    const world = await answered(1, 0)
    const promise = world.client.subscribe(['a', 'b'], { qos: 1, requireQos: true })
    expect(await settled(world, failure(promise))).toMatchObject(refused)
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a', 'b']])
    expect(grants(await subscribe(await answered(1), 'a', { qos: 1, requireQos: true }))).toEqual([
      'a 1',
    ])
  })

  it('[MQTT-3.8.4-6] of two filters one is refused; only that one fails, with a typed error', async () => {
    const world = await answered(0, 0x87)
    const subscription = await subscribe(world, ['good', 'bad'])
    const error = { ...refused, reasonCode: 0x87 }
    expect(subscription.granted).toMatchObject([
      { filter: 'good', qos: 0, error: undefined },
      { filter: 'bad', qos: undefined, reasonCode: 0x87, reasonName: 'Not authorized', error },
    ])
    const reading = read(subscription)
    await world.send(publish('good', 'yes'), publish('bad', 'no'))
    expect(reading.texts).toEqual(['yes'])
    expect(world.seen('unclaimed')).toHaveLength(1)
  })

  it.each([0x80, 0x91, 0xa2])(
    '[MQTT-3.9.3-2] every filter refused with %i: rejects, ends, sends no UNSUBSCRIBE',
    async (reasonCode) => {
      const world = await answered(reasonCode)
      const subscription = world.client.subscription('a')
      const reading = read(subscription)
      await world.settle()
      const error = { ...refused, reasonCode }
      await expect(subscription.ready).rejects.toMatchObject(error)
      expect(reading.end).toMatchObject({ state: 'failed', error })
      expect(world.peer.all('unsubscribe')).toEqual([])
      expect(world.client.state).toBe('connected')
      // Nothing is left: the next call is a first one. A Packet Identifier that is in use gets a second try.
      quiet(world.client.subscribe('a'))
      await world.settle()
      expect(subscribes(world)).toHaveLength(reasonCode === 0x91 ? 4 : 2)
    },
  )
})

it('subscription() before connect() is sent after CONNACK and gets what comes', async () => {
  const { world, connect } = idle()
  const subscription = world.client.subscription('a', { qos: 1 })
  expect(subscription.granted).toEqual([])
  const reading = read(subscription)
  await connect()
  expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe'])
  expect(await subscription.ready).toBe(subscription)
  expect(grants(subscription)).toEqual(['a 1'])
  await world.send(publish('a', 'x', 1))
  expect(reading.texts).toEqual(['x'])
})

it('subscription() before a connect() that fails, or to a server that does not offer it: ready rejects, the reader ends', async () => {
  for (const [answer, code] of [
    [refusing(0x87), 'ERR_CONNECT_REFUSED'],
    [accepting({ sharedSubscriptionAvailable: 0 }), 'ERR_SHARED_SUBS_UNSUPPORTED'],
  ] as const) {
    const { world, connect } = idle(answer)
    const subscription = world.client.subscription('$share/g/a')
    const reading = read(subscription)
    await connect()
    expect(await failure(subscription.ready)).toMatchObject({ code })
    expect([reading.end.state, subscribes(world)]).toEqual(['failed', []])
  }
})

it('inside a connect listener and inside a message handler', async () => {
  const { world, connect } = idle(obliging)
  const inside: Promise<unknown>[] = []
  world.client.on('connect', () => void inside.push(world.client.subscribe('in/connect')))
  await connect()
  const handler = async (): Promise<void> => {
    inside.push(world.client.subscribe('in/handler'))
    await inside.at(-1)
  }
  quiet(world.client.listen('a', handler, { qos: 1 }))
  await world.settle()
  await world.send(publish('a', 'x', 1))
  expect(await Promise.all(inside)).toHaveLength(2)
  expect(subscribes(world)).toEqual(['in/connect', 'a', 'in/handler'])
  expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([1])
})

it('after the end: ERR_CLOSED', async () => {
  const world = await agreed()
  await Promise.all([world.client.disconnect(), world.settle()])
  expect(await failure(world.client.subscribe('a'))).toMatchObject({ code: 'ERR_CLOSED' })
  expect(() => world.client.subscription('a')).toThrow(coded('ERR_CLOSED'))
})

describe('messages of a resumed session that wait for a subscription', () => {
  async function holding(): Promise<World> {
    const world = await connected({ clientId: 'service', cleanStart: false }, keeps())
    await world.send(publish('jobs/1', 'one', 1), publish('jobs/2', 'two', 2))
    return world
  }

  it('survive a subscribe that is aborted before its grant', async () => {
    const world = await holding()
    const abort = new AbortController()
    const failed = failure(world.client.subscribe('jobs/#', { qos: 1, signal: abort.signal }))
    await world.settle()
    abort.abort()
    expect(await settled(world, failed)).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    expect([acks(world), world.peer.all('unsubscribe')]).toEqual([[], []])
    const next = quiet(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await answer(world, 'subscribe', 1)
    expect(takenTexts(await next)).toEqual(['one', 'two'])
  })

  it('survive a refusal [0x87]', async () => {
    const world = await holding()
    const failed = failure(world.client.subscribe('jobs/#', { qos: 1 }))
    await world.settle()
    await answer(world, 'subscribe', 0x87)
    expect(await settled(world, failed)).toMatchObject({
      code: 'ERR_SUBSCRIBE_REFUSED',
      reasonCode: 0x87,
    })
    expect(acks(world)).toEqual([])
  })
})

it('requireQos on a filter that is there already leaves no dead reader behind', async () => {
  const world = await connected({}, answering('subscribe', [0]))
  const readers = [
    await subscribe(world, 'a', { retainHandling: 2 }),
    await subscribe(world, 'a', { retainHandling: 2, requireQos: true }),
  ]
  const lowered = failure(world.client.subscribe('a', { qos: 1, requireQos: true }))
  expect(await settled(world, lowered)).toMatchObject(refused)
  await world.send(publish('a', 'x'))
  expect(readers.map(takenTexts)).toEqual([['x'], ['x']])
})

it('an identifier of the caller for a filter that has another is a conflict, not ignored', async () => {
  const world = await agreed()
  await subscribe(world, 'a')
  const call = world.client.subscribe('a', { properties: { subscriptionIdentifier: 7 } })
  expect(await failure(call)).toMatchObject({ code: 'ERR_SUBSCRIPTION_CONFLICT' })
})

it('UNSUBSCRIBE in several packets waits for identifiers, and ends', async () => {
  const outbound = { maxQueuedMessages: 70_000, maxQueuedBytes: 1e9 }
  const world = await connected({ maxFiltersPerSubscribe: 1, outbound })
  for (let count = 0; count < 65_534; count++) quiet(world.client.publish('t', 'x', { qos: 1 }))
  await world.settle()
  const call = quiet(world.client.unsubscribe(['a', 'b']))
  await world.settle()
  expect(unsubscribes(world)).toEqual(['a'])
  for (const reasonCode of [0, 0x11]) await answer(world, 'unsubscribe', reasonCode)
  expect((await call).map((result) => result.reasonCode)).toEqual([0, 0x11])
})

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

it('answers that cross: the first SUBSCRIBE is refused, that of a joiner granted: only the joiner gets messages', async () => {
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

it('answers that cross: an UNSUBACK refusal after the loop was left: messages do not pile up', async () => {
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

it('a signal: of hundreds of calls that wait for the connection, those that nobody aborted are sent, in order', async () => {
  const { world, connect } = idle()
  const filters = times(300, (index) => `a/${index}`)
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

it('a signal: that aborts before the grant: outcome unknown, UNSUBSCRIBE follows, a late SUBACK changes nothing', async () => {
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

it('a signal: that aborts before the grant leaves those alone who share the filter', async () => {
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

it('a signal: that has aborted: nothing is sent, and reading ends with the error', async () => {
  const world = await agreed()
  const subscription = world.client.subscription('a', { signal: AbortSignal.abort() })
  const error = await failure(subscription.ready)
  expect(error).toMatchObject({ code: 'ERR_ABORTED' })
  expect(await world.outcome(subscription.next())).toEqual({ state: 'rejected', error })
  expect(subscribes(world)).toEqual([])
})

it('a signal: is let go of with the grant, and does nothing after it', async () => {
  const world = await agreed()
  const { signal, abort, listeners } = counted()
  const reading = read(await subscribe(world, 'a', { signal }))
  expect(listeners()).toBe(0)
  abort()
  await world.send(publish('a', 'x'))
  expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
})

it('a signal: of next() is let go of with its answer', async () => {
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

it.each([
  ['unsubscribe', ['a']],
  ['detach', []],
] as const)('until: ends the subscription as onExit says: %s', async (onExit, left) => {
  const world = await agreed()
  const { signal, abort } = counted()
  const reading = read(await subscribe(world, 'a', { until: signal, onExit }))
  abort()
  await world.settle()
  expect(reading.end.state).toBe('done')
  expect(unsubscribes(world)).toEqual(left)
})

it('until: that has aborted: the subscription is over before it began', async () => {
  const world = await agreed()
  const subscription = world.client.subscription('a', { until: AbortSignal.abort() })
  const reading = read(subscription)
  await world.settle()
  expect(reading.end.state).toBe('done')
  expect(await failure(subscription.ready)).toMatchObject({ code: 'ERR_ABORTED' })
  expect(subscribes(world)).toEqual([])
})

it.each(['unsubscribe', 'detach', 'break', 'destroy'])('until: is let go of: %s', async (how) => {
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

it('until: in the middle of a message: the turn goes on, what is buffered follows onExit', async () => {
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
