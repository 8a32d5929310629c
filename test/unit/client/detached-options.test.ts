/** A filter that was detached from: without readers, so the next subscription may ask for other options, and the server is told. */
import { describe, expect, it } from 'vitest'
import type { SubscribeOptions } from '../../../src/client/options/index.js'
import type { BrokerSubscription } from '../../../src/client/subscribe/broker-subscription.js'
import { Identifiers } from '../../../src/client/subscribe/subscribe-packets.js'
import { lose, willing } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { acks, pubacks, publish, read, subscribe } from './incoming.js'

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
