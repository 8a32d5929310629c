/** Subscriptions after a session was lost, or on every connection: what is sent again, in how few packets, and what refusals mean. */
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, carried, comeBack, forgets, keeps, lose, steady, willing } from './across.js'
import { failure, type World } from './harness.js'
import { acks, publish, read, subscribe, takenTexts } from './incoming.js'

const withoutIdentifiers = { subscriptionIdentifierAvailable: 0 }

/** Filters of each SUBSCRIBE of the latest connection. */
const subscribed = (world: World): string[][] => world.peer.all('subscribe').map((packet) => packet.subscriptions.map((item) => item.filter))

/** No session; these filters are refused with 0x87. */
const refusing =
  (...filters: string[]): Answer =>
  (packet) => {
    if (packet.type !== 'subscribe') return willing(false)(packet)
    const reasonCodes = packet.subscriptions.map((item) => (filters.includes(item.filter) ? 0x87 : item.qos))
    return { type: 'suback', packetId: packet.packetId, reasonCodes, properties: {} }
  }

describe('the session is lost', () => {
  it('every subscription is made again with its options, once, before anything else; readers go on', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, { filter: 'a/+', qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 })
    const two = await subscribe(world, ['b', 'c'], { qos: 1, retainHandling: 1 })
    const first = world.peer.all('subscribe')
    const peer = await again(world, willing(false))
    const second = peer.all('subscribe')
    expect(second.map(({ subscriptions }) => subscriptions)).toEqual(first.map(({ subscriptions }) => subscriptions))
    await world.send(publish('a/x', 'for one'), publish('b', 'for two'))
    expect([takenTexts(one), takenTexts(two)]).toEqual([['for one'], ['for two']])
  })

  it('one whose UNSUBSCRIBE was refused is made again, too: it goes on', async () => {
    const world = await steady({}, (packet) =>
      packet.type === 'unsubscribe' ? { type: 'unsuback', packetId: packet.packetId, reasonCodes: [0x87] } : willing(false)(packet),
    )
    const subscription = await subscribe(world, 'a')
    const refusal = failure(subscription.unsubscribe())
    await world.settle()
    expect(await refusal).toMatchObject({ code: 'ERR_UNSUBSCRIBE_REFUSED' })
    await again(world, willing(false))
    expect(subscribed(world)).toEqual([['a']])
    await world.send(publish('a', 'x'))
    expect(takenTexts(subscription)).toEqual(['x'])
  })

  it('retained messages of a SUBSCRIBE that a new reader asked for meanwhile are for all who read that filter', async () => {
    const world = await steady({}, willing(false))
    const first = await subscribe(world, 'a')
    await lose(world)
    const second = world.client.subscription('a')
    await comeBack(world, willing(false))
    expect(subscribed(world)).toEqual([['a']])
    await world.send(publish('a', 'kept', undefined, { retain: true }))
    expect([takenTexts(first), takenTexts(second)]).toEqual([['kept'], ['kept']])
  })

  it('keeps Subscription Identifiers and user properties, group by group', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, ['a', 'b'], { properties: { userProperties: [['who', 'me']] } })
    await subscribe(world, 'c', { properties: { subscriptionIdentifier: 77 } })
    const first = world.peer.all('subscribe').map(({ properties }) => properties)
    const peer = await again(world, willing(false))
    expect(subscribed(world)).toEqual([['a', 'b'], ['c']])
    expect(peer.all('subscribe').map(({ properties }) => properties)).toEqual(first)
  })

  it('takes one packet for all where the server has no Subscription Identifiers', async () => {
    const world = await steady({}, willing(false, withoutIdentifiers))
    for (const filter of ['a', 'b', 'c', 'd']) await subscribe(world, filter, { qos: 1 })
    await again(world, willing(false, withoutIdentifiers))
    expect(subscribed(world)).toEqual([['a', 'b', 'c', 'd']])
  })

  it('splits by `maxFiltersPerSubscribe`', async () => {
    const world = await steady({ maxFiltersPerSubscribe: 3 }, willing(false, withoutIdentifiers))
    for (let number = 1; number <= 8; number++) await subscribe(world, `f${number}`)
    await again(world, willing(false, withoutIdentifiers))
    expect(subscribed(world)).toEqual([
      ['f1', 'f2', 'f3'],
      ['f4', 'f5', 'f6'],
      ['f7', 'f8'],
    ])
  })

  it('splits by the Maximum Packet Size of the new server, and exceeds it never [MQTT-3.2.2-15]', async () => {
    const world = await steady({}, willing(false, withoutIdentifiers))
    const filters = Array.from({ length: 60 }, (_, index) => `some/rather/long/filter/number/${index}`)
    const limits = { ...withoutIdentifiers, maximumPacketSize: 200 }
    for (const filter of filters) await subscribe(world, filter)
    const peer = await again(world, willing(false, limits))
    expect(subscribed(world).flat()).toEqual(filters)
    // As few as fit: about 35 bytes for each filter.
    expect(peer.all('subscribe').length).toBeLessThanOrEqual(16)
    expect(world.client.state).toBe('connected')
    expect(world.seen('error')).toEqual([])
  })

  it('a filter that does not fit the new server by itself ends, the others come back', async () => {
    const world = await steady({}, willing(false, withoutIdentifiers))
    const large = await subscribe(world, 'x'.repeat(300))
    const small = await subscribe(world, 'small')
    const reading = read(large)
    await again(world, willing(false, { ...withoutIdentifiers, maximumPacketSize: 128 }))
    expect(subscribed(world)).toEqual([['small']])
    await world.settle()
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_PACKET_TOO_LARGE' } })
    await world.send(publish('small', 'here'))
    expect(takenTexts(small)).toEqual(['here'])
  })

  it('what was refused when it was asked for is not asked for again', async () => {
    const world = await steady({}, refusing('no'))
    const subscription = await subscribe(world, ['yes', 'no'])
    expect(subscription.granted.map(({ reasonCode }) => reasonCode)).toEqual([0, 0x87])
    await again(world, willing(false))
    expect(subscribed(world)).toEqual([['yes']])
  })

  it('what was unsubscribed from is not subscribed to again', async () => {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'one')
    await subscribe(world, 'two')
    const left = one.unsubscribe()
    await world.settle()
    await left
    await again(world, willing(false))
    expect(subscribed(world)).toEqual([['two']])
  })

  it('a filter that is refused now leaves the set; its reader ends with the error, after what it had; an `error` event tells', async () => {
    const world = await steady({}, willing(false))
    const gone = await subscribe(world, 'gone', { qos: 1 })
    const stays = await subscribe(world, 'stays', { qos: 1 })
    await world.send(publish('gone', 'unread'))
    const reading = read(gone)
    await again(world, refusing('gone'))
    expect(reading.texts).toEqual(['unread'])
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 } })
    expect(world.seen('error')).toMatchObject([{ error: { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 } }])
    await again(world, willing(false))
    expect(subscribed(world)).toEqual([['stays']])
    await world.send(publish('stays', 'x'))
    expect(takenTexts(stays)).toEqual(['x'])
    // It can be asked for again.
    const anew = await subscribe(world, 'gone')
    expect(anew.granted).toMatchObject([{ filter: 'gone', reasonCode: 0 }])
  })

  it('of several filters of one subscription only the refused one goes', async () => {
    const world = await steady({}, willing(false))
    const both = await subscribe(world, ['a', 'b'])
    const reading = read(both)
    await again(world, refusing('a'))
    await world.send(publish('b', 'still here'))
    expect(reading).toMatchObject({ texts: ['still here'], end: { state: 'running' } })
    await again(world, willing(false))
    expect(subscribed(world)).toEqual([['b']])
  })

  it('what the new server does not have is not sent: wildcards, shared subscriptions; the rest comes back', async () => {
    const world = await steady({}, willing(false))
    const wild = await subscribe(world, 'a/#')
    const shared = await subscribe(world, '$share/g/b')
    await subscribe(world, 'plain')
    const readings = [read(wild), read(shared)]
    await again(world, willing(false, { wildcardSubscriptionAvailable: 0, sharedSubscriptionAvailable: 0, subscriptionIdentifierAvailable: 0 }))
    expect(subscribed(world)).toEqual([['plain']])
    expect(readings.map(({ end }) => (end.error as { code?: string }).code)).toEqual(['ERR_WILDCARD_SUBS_UNSUPPORTED', 'ERR_SHARED_SUBS_UNSUPPORTED'])
    expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toBeUndefined()
  })

  it('a reader does not wait for a filter whose SUBSCRIBE for another reader, the only one on its way, does not fit the new server', async () => {
    const long = 'x'.repeat(100)
    const world = await steady({}, willing(false))
    const first = read(await subscribe(world, long))
    await lose(world)
    const joined = failure(world.client.subscribe(long, { qos: 1 }))
    await comeBack(world, willing(false, { maximumPacketSize: 64 }))
    expect(await joined).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
    expect(first.end).toMatchObject({ state: 'failed', error: { code: 'ERR_PACKET_TOO_LARGE' } })
  })

  it('a handler ends with the error too', async () => {
    const world = await steady({}, willing(false))
    const listening = world.client.listen('gone', () => undefined)
    await world.settle()
    const done = failure((await listening).done)
    await again(world, refusing('gone'))
    expect(await done).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 })
  })

  it('also seen: handlers added by each reconnect: adds no reader and no handler: each message comes once, after any number of losses', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't')
    for (let round = 0; round < 20; round++) await again(world, willing(false))
    expect(subscribed(world)).toEqual([['t']])
    await world.send(publish('t', 'once'))
    expect(takenTexts(subscription)).toEqual(['once'])
  })

  it('retained messages come to the readers again, as the server has just been asked for them', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, 't')
    await again(world, willing(false))
    await world.send(publish('t', 'retained', undefined, { retain: true }))
    expect(takenTexts(subscription)).toEqual(['retained'])
  })
})

describe('the session is kept', () => {
  it('no SUBSCRIBE is sent', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, ['a', 'b'])
    await again(world, willing(true))
    expect(carried(world.peer)).toEqual([])
  })

  it('`resubscribe: "always"` sends it with Retain Handling 1, or 2 where 2 was asked', async () => {
    const world = await steady({ resubscribe: 'always' }, willing(false))
    await subscribe(world, [
      { filter: 'a', retainHandling: 0 },
      { filter: 'b', retainHandling: 1 },
      { filter: 'c', retainHandling: 2 },
    ])
    const peer = await again(world, willing(true))
    expect(peer.last('subscribe').subscriptions.map(({ filter, retainHandling }) => [filter, retainHandling])).toEqual([
      ['a', 1],
      ['b', 1],
      ['c', 2],
    ])
    expect(peer.all('subscribe')).toHaveLength(1)
    // What is refused then is gone, as after a loss.
    await again(world, (packet) => (packet.type === 'connect' ? keeps()(packet) : refusing('a')(packet)))
    await again(world, willing(true))
    expect(subscribed(world)).toEqual([['b', 'c']])
  })

  it('a SUBSCRIBE that brings back a lost session and has no answer is made good on the next connection, though that has the session', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, 'a')
    await again(world, forgets())
    expect(subscribed(world)).toEqual([['a']])
    // The server kept the session that began there, but may not have seen the SUBSCRIBE.
    await again(world, willing(true))
    expect(subscribed(world)).toEqual([['a']])
    await again(world, willing(true))
    expect(subscribed(world)).toEqual([])
  })
})

describe('a flapping link', () => {
  it('carries each filter at most once per connection, and nothing piles up, whatever the answers', async () => {
    const world = await steady({ maxFiltersPerSubscribe: 7, stats: true }, willing(false, withoutIdentifiers))
    const filters = Array.from({ length: 40 }, (_, index) => `f${index}`)
    for (const filter of filters.slice(0, 30)) await subscribe(world, filter)
    for (const filter of filters.slice(30)) world.client.subscription(filter)
    for (let round = 0; round < 30; round++) {
      await again(world, round % 3 === 0 ? keeps(withoutIdentifiers) : forgets(withoutIdentifiers))
      const all = subscribed(world).flat()
      expect(all.length, `connection ${round}`).toBe(new Set(all).size)
      expect(all.length).toBeLessThanOrEqual(40)
    }
    await again(world, willing(false, withoutIdentifiers))
    expect(subscribed(world).flat().sort()).toEqual([...filters].sort())
    await again(world, willing(true, withoutIdentifiers))
    expect(subscribed(world)).toEqual([])
  })

  it('one publish and one subscribe that wait are on the wire at most once per connection', async () => {
    const never = { poisonAfter: Number.POSITIVE_INFINITY }
    const world = await steady({ outbound: never, subscriptions: never }, forgets())
    await lose(world)
    const promise = world.client.publish('t', 'x', { qos: 1 })
    promise.catch(() => undefined)
    const subscription = world.client.subscription('t')
    const pinged: Answer = (packet) => (packet.type === 'pingreq' ? { type: 'pingresp' } : keeps()(packet))
    for (let round = 0; round < 10; round++) {
      const peer = await comeBack(world, pinged)
      // A filter that has no answer yet waits for a second until the publish has one.
      await world.clock.advance(1000)
      expect(peer.all('publish')).toHaveLength(1)
      expect(peer.all('subscribe').length).toBeLessThanOrEqual(1)
      await lose(world)
    }
    await comeBack(world, willing(true))
    await world.clock.advance(5000)
    await expect(promise).resolves.toBeDefined()
    await expect(subscription.ready).resolves.toBe(subscription)
  })
})

describe('`resubscribe: "always"` on a session that goes on', () => {
  const always = { resubscribe: 'always' } as const
  const present =
    (answer: Answer): Answer =>
    (packet) =>
      packet.type === 'connect' ? willing(true)(packet) : answer(packet)
  const identified = (topic: string, text: string, packetId: number, identifier: number | undefined) =>
    publish(topic, text, packetId, { properties: { subscriptionIdentifiers: [identifier as number] } })

  it('a filter that is refused now ends on the server too: what the session still sends for it goes to nobody else', async () => {
    const world = await steady(always, willing(false))
    const narrow = read(await subscribe(world, 'a/b', { qos: 1 }))
    const wide = await subscribe(world, 'a/#', { qos: 1 })
    const [first, second] = world.peer.all('subscribe').map(({ properties }) => properties.subscriptionIdentifiers?.[0])
    await again(
      world,
      present((packet) => (packet.type === 'unsubscribe' ? undefined : refusing('a/b')(packet))),
    )
    expect(narrow.end).toMatchObject({ state: 'failed', error: { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 } })
    expect(world.peer.all('unsubscribe').map(({ filters }) => filters)).toEqual([['a/b']])
    await world.send(identified('a/b', 'narrow', 1, first), identified('a/b', 'wide', 2, second))
    expect(takenTexts(wide)).toEqual(['wide'])
    await world.clock.advance(100)
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0] })
    await again(world, willing(true))
    expect(subscribed(world)).toEqual([['a/#']])
  })

  it('so does what the new server says it does not have; what does not fit it cannot be told, and is dropped when it comes', async () => {
    const long = 'x'.repeat(100)
    const world = await steady(always, willing(false))
    const readings = [read(await subscribe(world, long, { qos: 1 })), read(await subscribe(world, 'a/+', { qos: 1 }))]
    await again(world, willing(true, { maximumPacketSize: 64, wildcardSubscriptionAvailable: 0 }))
    expect(readings.map(({ end }) => (end.error as { code?: string }).code)).toEqual(['ERR_PACKET_TOO_LARGE', 'ERR_WILDCARD_SUBS_UNSUPPORTED'])
    expect(world.peer.all('unsubscribe').map(({ filters }) => filters)).toEqual([['a/+']])
    await world.send(publish(long, 'late', 1))
    await world.clock.advance(100)
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('unclaimed')).toEqual([])
  })

  it('after a lost session there is nothing to tell the server', async () => {
    const world = await steady(always, willing(false))
    const reading = read(await subscribe(world, 'a'))
    await again(world, refusing('a'))
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_SUBSCRIBE_REFUSED' } })
    expect(world.peer.all('unsubscribe')).toEqual([])
  })
})
