/** Leaving the loop: what happens to the broker's subscription and to messages that are not acknowledged. */
import { describe, expect, it } from 'vitest'
import type { SubscribeOptions, Subscription } from '../../../src/client/options/index.js'
import type { BrokerSubscription } from '../../../src/client/subscribe/broker-subscription.js'
import { Identifiers } from '../../../src/client/subscribe/subscribe-packets.js'
import { lose, willing } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import {
  acked,
  acks,
  agreed,
  pubacks,
  publish,
  read,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { settled } from './steps.js'

type Leave = (subscription: Subscription) => Promise<unknown>

const leaveByBreak: Leave = async (subscription) => {
  for await (const _ of subscription) break
}
const ways: Readonly<Record<string, Leave>> = {
  break: leaveByBreak,
  'dispose with a message in hand': (subscription) =>
    subscription.next().then(() => subscription[Symbol.asyncDispose]()),
  'await using': async (subscription) => {
    await using mine = subscription
    await mine.next()
  },
  'break out of batches': async (subscription) => {
    for await (const _ of subscription.batches(1)) break
  },
}

const unsubscribed = (world: World): string[] =>
  world.peer.all('unsubscribe').flatMap(({ filters }) => filters)

/** What the next subscription on `a` gets, and acknowledges. */
async function next(world: World, qos: 0 | 1 = 1): Promise<string[]> {
  const texts = takenTexts(await subscribe(world, 'a', { qos }))
  await world.settle()
  return texts
}

/** A subscription that gets three messages and is left. */
async function left(
  options: SubscribeOptions,
  leave: Leave = leaveByBreak,
  filter = 'a',
  session = {},
) {
  const world = await agreed(session)
  const subscription = await subscribe(world, filter, { qos: 1, ...options })
  await world.send(...series('a', 3))
  await settled(world, leave(subscription))
  await world.settle()
  return { world, subscription }
}

describe.each(Object.entries(ways))('%s', (_what, leave) => {
  it("onExit 'unsubscribe' acknowledges what is in hand and buffered, counts it, and unsubscribes", async () => {
    const dropped: string[] = []
    const { world, subscription } = await left(
      { onExit: 'unsubscribe', onDrop: (message) => dropped.push(message.text()) },
      leave,
    )
    expect(acks(world)).toEqual(pubacks(1, 3))
    expect(unsubscribed(world)).toEqual(['a'])
    expect([dropped, subscription.dropped]).toEqual([['2', '3'], 2])
    expect(world.seen('drop').length).toBeGreaterThanOrEqual(1)
    expect(await subscription.next()).toBeUndefined()
  })

  it("onExit 'detach' leaves the broker's subscription and every unacknowledged message alone", async () => {
    const { world, subscription } = await left({ onExit: 'detach' }, leave)
    expect([acks(world), unsubscribed(world), subscription.dropped]).toEqual([[], [], 0])
    expect(await next(world)).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('under manual acks leaving acknowledges only what was never handed out', async () => {
    const { world } = await left({ onExit: 'unsubscribe', ack: 'manual' }, leave)
    expect([unsubscribed(world), acks(world)]).toEqual([['a'], []])
  })
})

describe('which way', () => {
  it.each<[string, string, SubscribeOptions, object, number]>([
    ['unsubscribe for a session of this connection', 'a', {}, {}, 1],
    ['detach for $share', '$share/g/a', {}, {}, 0],
    ['detach for a durable session', 'a', {}, { clientId: 'c', cleanStart: false }, 0],
    ['what onExit says', '$share/g/a', { onExit: 'unsubscribe' }, {}, 1],
  ])('the default is %s', async (_what, filter, options, session, packets) => {
    const { world } = await left(options, leaveByBreak, filter, session)
    expect(unsubscribed(world)).toEqual(packets === 0 ? [] : [filter])
    if (packets === 0) expect(acks(world)).toEqual([])
  })

  it('ack() and break finishes the one in hand', async () => {
    const { world } = await left({ onExit: 'detach' }, async (subscription) => {
      for await (const message of subscription) if (message.ack()) break
    })
    expect(acks(world)).toEqual(['puback 1'])
    expect(await next(world)).toEqual(['2', '3'])
  })

  it('unsubscribes only when it was the last on its filter', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    await settled(world, leaveByBreak(first))
    expect([unsubscribed(world), acks(world)]).toEqual([[], []])
    taken(second).ack()
    expect(await acked(world)).toEqual(['puback 1'])
  })

  it('a subscription that is left before its grant says so', async () => {
    const world = await agreed()
    const subscription = world.client.subscription('a')
    await subscription[Symbol.asyncDispose]()
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await world.settle()
    expect(world.peer.all('subscribe').length).toBe(world.peer.all('unsubscribe').length)
  })
})

describe('detached', () => {
  const detached = async (options: SubscribeOptions = {}): Promise<World> =>
    (await left({ onExit: 'detach', ...options }, async (subscription) => subscription.detach()))
      .world

  it('the next subscription on the filter gets them in order, those that came meanwhile last', async () => {
    const world = await detached()
    await world.send(...series('a', 2, 4))
    expect(acks(world)).toEqual([])
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 1, 6))
    expect(takenTexts(subscription)).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(await acked(world)).toEqual(pubacks(1, 6))
  })

  it('a message that was in hand is the first of them', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 3))
    const message = taken(subscription)
    subscription.detach()
    expect(await next(world)).toEqual(['1', '2', '3'])
    expect(message.ack()).toBe(false)
  })

  it.each([1, 0] as const)('one that is acknowledged is over: QoS %i', async (qos) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const message = taken(subscription)
    subscription.detach()
    expect(message.ack()).toBe(true)
    if (qos === 1) await world.settle()
    if (qos === 1) expect(acks(world)).toEqual(['puback 1'])
    expect(await next(world, qos)).toEqual(['2'])
  })

  it('QoS 0 is dropped while detached, and counted', async () => {
    const world = await detached()
    await world.send(publish('a', 'lost'))
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 1 }])
    expect(await next(world)).toEqual(['1', '2', '3'])
  })

  it('client.unsubscribe releases them, acknowledged in order', async () => {
    const world = await detached()
    await settled(world, world.client.unsubscribe('a'))
    expect(acks(world)).toEqual(pubacks(1, 3))
    await world.send(publish('a', 'x', 4))
    expect(acks(world)).toEqual(pubacks(1, 4))
    expect(await next(world)).toEqual([])
  })

  it('a new subscription on another filter gets none of them', async () => {
    const world = await detached()
    expect(takenTexts(await subscribe(world, '#', { qos: 1 }))).toEqual([])
    expect(acks(world)).toEqual([])
  })

  it('what one leaves unacknowledged is acknowledged where only a reader at QoS 0 stays, which had its copy', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 0 })
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual([])
    first.detach()
    expect([await acked(world), takenTexts(second)]).toEqual([pubacks(1, 1), ['x']])
  })

  it('a subscription that is detached with another on the filter gives up its share: the other decides, and nothing stalls', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    first.detach()
    expect(await acked(world)).toEqual([])
    taken(second).ack()
    expect([await acked(world), await next(world)]).toEqual([['puback 1'], []])
  })

  it('a next subscription that asks for QoS 0 does not delay the acks', async () => {
    const world = await detached()
    const subscription = await subscribe(world, 'a', { qos: 0 })
    expect([acks(world), takenTexts(subscription)]).toEqual([pubacks(1, 3), ['1', '2', '3']])
  })

  it('disconnect() leaves them unacknowledged', async () => {
    const world = await detached()
    await settled(world, world.client.disconnect())
    expect([acks(world), world.peer.received.at(-1)?.type]).toEqual([[], 'disconnect'])
  })
})

/** A client that has detached from `a`, with a message that waits. */
async function detached(options: SubscribeOptions = {}, waits = true): Promise<World> {
  const session = { clientId: 'c', cleanStart: false }
  const world = await connected({ ...session, reconnect: { backoff: () => 10 } }, agreeable)
  const first = await subscribe(world, 'a', { qos: 1, ...options })
  first.detach()
  if (waits) await world.send(publish('a', 'waited', 1))
  return world
}

/** What each SUBSCRIBE of the latest connection asked for. */
const asked = (world: World): unknown[] =>
  world.peer.all('subscribe').map(({ subscriptions, properties }) => {
    const [{ qos, noLocal, retainAsPublished } = {}] = subscriptions
    return { qos, noLocal, retainAsPublished, identifier: properties.subscriptionIdentifiers?.[0] }
  })

describe('after detach()', () => {
  const cases: readonly (readonly [string, SubscribeOptions, object])[] = [
    ['noLocal', { noLocal: true }, { noLocal: true }],
    ['retainAsPublished', { retainAsPublished: true }, { retainAsPublished: true }],
    ['subscriptionIdentifier', { properties: { subscriptionIdentifier: 7 } }, { identifier: 7 }],
  ]

  it.each(cases)(
    'another %s is one more SUBSCRIBE, no conflict',
    async (_name, options, expected) => {
      const world = await detached({ retainHandling: 2 })
      const second = await subscribe(world, 'a', { qos: 1, retainHandling: 2, ...options })
      expect(asked(world)).toMatchObject([{}, { qos: 1, ...expected }])
      expect(second.granted).toMatchObject([{ qos: 1 }])
      const reading = read(second)
      await world.send(publish('a', 'new', 2))
      // The last one is in hand.
      expect([reading.texts, acks(world)]).toEqual([['waited', 'new'], pubacks(1, 2)])
    },
  )

  it.each(cases)(
    'and is asked for again after a lost session: %s',
    async (_name, options, expected) => {
      const world = await detached({}, false)
      await subscribe(world, 'a', { qos: 1, ...options })
      expect(asked(world)[1]).toMatchObject(expected)
      world.peer.cut()
      await world.clock.advance(10)
      expect(asked(world)).toMatchObject([expected])
    },
  )

  it('the same options need no SUBSCRIBE, and those who read it still conflict with others', async () => {
    const world = await detached({ retainHandling: 2 }, false)
    await subscribe(world, 'a', { qos: 1, retainHandling: 2 })
    expect(asked(world)).toHaveLength(1)
    expect(await failure(world.client.subscribe('a', { noLocal: true }))).toMatchObject({
      code: 'ERR_SUBSCRIPTION_CONFLICT',
    })
  })

  it('offline: what is sent on the next connection is what was asked for last', async () => {
    const world = await detached({}, false)
    world.answer = willing(true)
    const back = await subscribe(world, 'a', { qos: 1 })
    await lose(world)
    back.detach()
    world.client.subscription('a', { qos: 1, noLocal: true }).detach()
    const third = world.client.subscription('a', { qos: 0, retainAsPublished: true })
    await world.clock.advance(10)
    await third.ready
    expect(asked(world).at(-1)).toMatchObject({ qos: 0, noLocal: false, retainAsPublished: true })
    expect(world.seen('error')).toEqual([])
  })

  it('a refusal leaves the subscription detached, with what waits for a reader', async () => {
    const world = await detached()
    world.peer.answer = (packet) =>
      packet.type === 'subscribe'
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x87] }
        : agreeable(packet)
    const error = failure(world.client.subscribe('a', { qos: 1, noLocal: true }))
    await world.settle()
    expect(await error).toMatchObject({ reasonCode: 0x87 })
    world.peer.answer = agreeable
    const third = read(await subscribe(world, 'a', { qos: 1 }))
    await world.settle()
    expect([third.texts, world.peer.all('unsubscribe')]).toEqual([['waited'], []])
  })

  it('aborted before it left: the filter and its messages stay for the next one', async () => {
    const world = await detached()
    const abort = new AbortController()
    const error = failure(
      world.client.subscribe('a', { qos: 1, noLocal: true, signal: abort.signal }),
    )
    abort.abort()
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED' })
    const third = read(await subscribe(world, 'a', { qos: 1 }))
    await world.settle()
    expect(third.texts).toEqual(['waited'])
    expect(asked(world).at(-1)).toMatchObject({ noLocal: false })
  })
})

it('an identifier that the application chose is not given out while a subscription has it, and may be once none has', () => {
  const entry = { identifier: 1 } as BrokerSubscription
  const identifiers = new Identifiers(1)
  for (let identifier = 2; identifier <= 1000; identifier++) identifiers.take(identifier, [entry])
  identifiers.take(1, [entry])
  const first = identifiers.fresh([entry])
  expect(first).toBeGreaterThan(1)
  expect(first).toBeLessThan(1000)
})
