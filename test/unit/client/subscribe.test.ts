/** SUBSCRIBE: what leaves, what comes back, what is refused here, and how a call ends. */
import { describe, expect, it } from 'vitest'
import type { Filters, Subscription } from '../../../src/client/options/index.js'
import { keeps } from './across.js'
import { accepting, connected, failure, type World } from './harness.js'
import {
  acks,
  agreed,
  answer,
  answering,
  obliging,
  publish,
  quiet,
  read,
  subscribe,
  subscribes,
  takenTexts,
  unsubscribes,
} from './incoming.js'
import { refusing } from './rig.js'
import { idle, settled } from './steps.js'

const ids = (world: World) => world.peer.all('subscribe').map(({ packetId }) => packetId)

const refused = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote' }

const grants = ({ granted }: Subscription) =>
  granted.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)

describe('what leaves', () => {
  it('[MQTT-3.9.3-1] a list is one packet, options per filter, codes mapped by position', async () => {
    const world = await connected()
    const filters: Filters = [
      'a',
      { filter: 'b', qos: 2, noLocal: true },
      { filter: 'c/#', retainHandling: 1 },
    ]
    const promise = world.client.subscribe(filters, { qos: 1 })
    await world.settle()
    const defaults = { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }
    expect(world.peer.all('subscribe').map(({ subscriptions }) => subscriptions)).toEqual([
      [
        { ...defaults, filter: 'a' },
        { ...defaults, filter: 'b', qos: 2, noLocal: true },
        { ...defaults, filter: 'c/#', retainHandling: 1 },
      ],
    ])
    await answer(world, 'subscribe', 1, 2, 0)
    expect(grants(await promise)).toEqual(['a 1', 'b 2', 'c/# 0'])
  })

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
})

it('a wrong filter: subscription() throws at once, and leaves nothing behind', async () => {
  const world = await agreed()
  expect(() => world.client.subscription('a#')).toThrow(
    expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }),
  )
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

describe('when', () => {
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
    expect(() => world.client.subscription('a')).toThrow(
      expect.objectContaining({ code: 'ERR_CLOSED' }),
    )
  })
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
