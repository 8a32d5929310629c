/** Subscriptions after a session was lost, or on every connection: what is sent again, in how few packets, and what refusals mean. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Properties } from '../../../src/wire/packets.js'
import { again, comeBack, forgets, keeps, lose, steady, willing } from './across.js'
import { failure } from './harness.js'
import {
  acks,
  answer,
  answering,
  publish,
  read,
  subscribe,
  subscribes,
  takenTexts,
} from './incoming.js'

const withoutIdentifiers = { subscriptionIdentifierAvailable: 0 }
const always = { resubscribe: 'always' } as const
const refused = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 }
const failed = (error: object) => ({ state: 'failed', error })

/** Says yes, but for these filters, and has the session or not. */
const refusing =
  (filters: readonly string[], present = false): Answer =>
  (packet) =>
    packet.type === 'subscribe'
      ? answering(
          'subscribe',
          packet.subscriptions.map(({ filter, qos }) => (filters.includes(filter) ? 0x87 : qos)),
        )(packet)
      : willing(present)(packet)

/** A client that comes back, with a subscription at QoS 1 to each of these filters. */
async function reading(
  filters: readonly string[],
  options?: ClientOptions,
  properties?: Properties,
) {
  const world = await steady(options, willing(false, properties))
  const subscriptions: Subscription[] = []
  for (const filter of filters) subscriptions.push(await subscribe(world, filter, { qos: 1 }))
  const readings = () => subscriptions.map((subscription) => read(subscription))
  /** What each has got, of a message on each of these topics. */
  const texts = async (...topics: string[]) => {
    await world.send(...topics.map((topic) => publish(topic, `on ${topic}`)))
    return subscriptions.map(takenTexts)
  }
  return { world, subscriptions, readings, texts }
}

describe('the session is lost', () => {
  it('every subscription is made again with its options, once, before anything else; readers go on', async () => {
    const world = await steady({}, willing(false))
    const all = { qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 } as const
    const identifier = { subscriptionIdentifier: 77 }
    const one = await subscribe(world, 'a/+', { ...all, properties: identifier })
    const properties = { userProperties: [['who', 'me']] as [string, string][] }
    const two = await subscribe(world, ['b', 'c'], { qos: 1, retainHandling: 1, properties })
    const first = world.peer.all('subscribe').map((packet) => ({ ...packet, packetId: 0 }))
    const peer = await again(world, willing(false))
    expect(peer.all('subscribe').map((packet) => ({ ...packet, packetId: 0 }))).toEqual(first)
    expect(subscribes(world)).toEqual(['a/+', 'b c'])
    await world.send(publish('a/x', 'for one'), publish('b', 'for two'))
    expect([takenTexts(one), takenTexts(two)]).toEqual([['for one'], ['for two']])
  })

  it('retained messages of a SUBSCRIBE are for all who read that filter, also where a new reader asked meanwhile', async () => {
    for (const joins of [false, true]) {
      const { world, subscriptions } = await reading(['a'])
      await lose(world)
      if (joins) subscriptions.push(world.client.subscription('a'))
      await comeBack(world, willing(false))
      expect(subscribes(world)).toEqual(['a'])
      await world.send(publish('a', 'kept', undefined, { retain: true }))
      for (const subscription of subscriptions) expect(takenTexts(subscription)).toEqual(['kept'])
    }
  })

  it('splits by the Maximum Packet Size of the new server, and exceeds it never [MQTT-3.2.2-15]', async () => {
    const filters = Array.from({ length: 60 }, (_, index) => `rather/long/filter/number/${index}`)
    const { world } = await reading(filters, {}, withoutIdentifiers)
    const small = willing(false, { ...withoutIdentifiers, maximumPacketSize: 200 })
    const peer = await again(world, small)
    expect(subscribes(world).flatMap((line) => line.split(' '))).toEqual(filters)
    // As few as fit: about 35 bytes for each filter.
    expect(peer.all('subscribe').length).toBeLessThanOrEqual(16)
    expect([world.client.state, world.seen('error')]).toEqual(['connected', []])
  })

  it('a filter that does not fit the new server by itself ends, the others come back', async () => {
    const { world, readings } = await reading(['x'.repeat(300), 'small'], {}, withoutIdentifiers)
    const [large, small] = readings()
    await again(world, willing(false, { ...withoutIdentifiers, maximumPacketSize: 128 }))
    expect(subscribes(world)).toEqual(['small'])
    await world.send(publish('small', 'here'))
    expect(large?.end).toMatchObject(failed({ code: 'ERR_PACKET_TOO_LARGE' }))
    expect(small?.texts).toEqual(['here'])
  })

  it('what was refused, or unsubscribed from, is not asked for again', async () => {
    const world = await steady({}, refusing(['no']))
    const subscription = await subscribe(world, ['yes', 'no'])
    expect(subscription.granted.map(({ reasonCode }) => reasonCode)).toEqual([0, 0x87])
    const left = await subscribe(world, 'left')
    await Promise.all([left.unsubscribe(), world.settle()])
    await again(world, willing(false))
    expect(subscribes(world)).toEqual(['yes'])
  })

  it('a filter that is refused now leaves the set; its reader ends with the error, after what it had; an `error` event tells', async () => {
    const { world, subscriptions, readings } = await reading(['gone', 'stays'])
    const listening = world.client.listen('gone', () => undefined)
    await world.settle()
    const done = failure((await listening).done)
    await world.send(publish('gone', 'unread'))
    const [gone, stays] = readings()
    await again(world, refusing(['gone']))
    expect(gone).toMatchObject({ texts: ['unread'], end: failed(refused) })
    expect(await done).toMatchObject(refused)
    expect(world.seen('error')).toMatchObject([{ error: refused }])
    await again(world, willing(false))
    expect(subscribes(world)).toEqual(['stays'])
    await world.send(publish('stays', 'x'))
    expect(stays?.texts).toEqual(['x'])
    // It can be asked for again.
    subscriptions.push(await subscribe(world, 'gone'))
    expect(subscriptions[2]?.granted).toMatchObject([{ filter: 'gone', reasonCode: 0 }])
  })

  it('what the new server does not have is not sent: wildcards, shared subscriptions; the rest comes back', async () => {
    const { world, readings } = await reading(['a/#', '$share/g/b', 'plain'])
    const [wild, shared] = readings()
    const without = { wildcardSubscriptionAvailable: 0, sharedSubscriptionAvailable: 0 }
    await again(world, willing(false, { ...without, ...withoutIdentifiers }))
    expect(subscribes(world)).toEqual(['plain'])
    expect(wild?.end).toMatchObject(failed({ code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' }))
    expect(shared?.end).toMatchObject(failed({ code: 'ERR_SHARED_SUBS_UNSUPPORTED' }))
    expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toBeUndefined()
  })

  it('a reader does not wait for a filter whose SUBSCRIBE for another reader, the only one on its way, does not fit', async () => {
    const long = 'x'.repeat(100)
    const world = await steady({}, willing(false))
    const first = read(await subscribe(world, long))
    await lose(world)
    const joined = failure(world.client.subscribe(long, { qos: 1 }))
    await comeBack(world, willing(false, { maximumPacketSize: 64 }))
    expect(await joined).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
    expect(first.end).toMatchObject(failed({ code: 'ERR_PACKET_TOO_LARGE' }))
  })
})

describe('the session is kept', () => {
  it('`resubscribe: "always"` sends it with Retain Handling 1, or 2 where 2 was asked', async () => {
    const world = await steady(always, willing(false))
    await subscribe(
      world,
      ['a', 'b', 'c'].map((filter, index) => ({ filter, retainHandling: index as 0 | 1 | 2 })),
    )
    const peer = await again(world, willing(true))
    const sent = peer.all('subscribe').map(({ subscriptions }) => subscriptions)
    expect(sent).toMatchObject([
      [1, 1, 2].map((retainHandling, index) => ({ filter: 'abc'[index], retainHandling })),
    ])
    // What is refused then is gone, as after a loss.
    await again(world, refusing(['a'], true))
    await again(world, willing(true))
    expect(subscribes(world)).toEqual(['b c'])
  })

  it('a SUBSCRIBE that brings back a lost session and has no answer is made good on the next connection', async () => {
    const { world } = await reading(['a'])
    await again(world, forgets())
    expect(subscribes(world)).toEqual(['a'])
    // The server kept the session that began there, but may not have seen the SUBSCRIBE.
    await again(world, willing(true))
    expect(subscribes(world)).toEqual(['a'])
    await again(world, willing(true))
    expect(subscribes(world)).toEqual([])
  })
})

it('a flapping link carries each filter at most once per connection, and nothing piles up, whatever the answers', async () => {
  const filters = Array.from({ length: 40 }, (_, index) => `f${index}`)
  const few = { maxFiltersPerSubscribe: 7 }
  const { world } = await reading(filters.slice(0, 30), few, withoutIdentifiers)
  for (const filter of filters.slice(30)) world.client.subscription(filter)
  for (let round = 0; round < 30; round++) {
    await again(world, round % 3 === 0 ? keeps(withoutIdentifiers) : forgets(withoutIdentifiers))
    const all = subscribes(world).flatMap((line) => line.split(' '))
    expect(all.length, `connection ${round}`).toBe(new Set(all).size)
  }
  await again(world, willing(false, withoutIdentifiers))
  expect(
    subscribes(world)
      .flatMap((line) => line.split(' '))
      .sort(),
  ).toEqual([...filters].sort())
  await again(world, willing(true, withoutIdentifiers))
  expect(subscribes(world)).toEqual([])
})

describe('`resubscribe: "always"` on a session that goes on', () => {
  it('a filter that is refused now ends on the server too: what the session still sends for it goes to no other reader', async () => {
    const { world, subscriptions } = await reading(['a/b', 'a/#'], always)
    const [narrow, wide] = subscriptions as [Subscription, Subscription]
    const identifiers = world.peer
      .all('subscribe')
      .map(({ properties }) => properties.subscriptionIdentifiers ?? [])
    const end = read(narrow)
    await again(world, (packet) =>
      packet.type === 'unsubscribe' ? undefined : refusing(['a/b'], true)(packet),
    )
    expect(end).toMatchObject({ end: failed(refused) })
    expect(world.peer.all('unsubscribe')).toMatchObject([{ filters: ['a/b'] }])
    for (const [index, subscriptionIdentifiers] of identifiers.entries()) {
      const properties = { subscriptionIdentifiers }
      await world.send(publish('a/b', ['narrow', 'wide'][index] ?? '', index + 1, { properties }))
    }
    expect(takenTexts(wide)).toEqual(['wide'])
    await world.clock.advance(100)
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    await answer(world, 'unsubscribe', 0)
    await again(world, willing(true))
    expect(subscribes(world)).toEqual(['a/#'])
  })

  it('so does what the new server says it does not have; what does not fit it cannot be told, and is dropped when it comes', async () => {
    const long = 'x'.repeat(100)
    const { world, readings } = await reading([long, 'a/+'], always)
    const [large, wild] = readings()
    await again(world, willing(true, { maximumPacketSize: 64, wildcardSubscriptionAvailable: 0 }))
    expect(large?.end).toMatchObject(failed({ code: 'ERR_PACKET_TOO_LARGE' }))
    expect(wild?.end).toMatchObject(failed({ code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' }))
    expect(world.peer.all('unsubscribe')).toMatchObject([{ filters: ['a/+'] }])
    await world.send(publish(long, 'late', 1))
    await world.clock.advance(100)
    expect([acks(world), world.seen('unclaimed')]).toEqual([['puback 1'], []])
  })
})
