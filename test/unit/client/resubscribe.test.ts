/** What was in flight or subscribed when a connection was lost: what is sent again, in which order, in how few packets, and what refusals mean. */
import { expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Properties } from '../../../src/wire/packets.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  keeps,
  lose,
  publishFrames,
  send,
  steady,
  willing,
} from './across.js'
import { failure, times } from './harness.js'
import {
  acks,
  answer,
  answering,
  publish,
  quiet,
  read,
  subscribe,
  subscribes,
  takenTexts,
} from './incoming.js'
import { ack } from './stub.js'

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

it('the session is lost: every subscription is made again with its options, once, before anything else; readers go on', async () => {
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

it('the session is lost: retained messages of a SUBSCRIBE are for all who read that filter, also where a new reader asked meanwhile', async () => {
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

it('the session is lost: splits by the Maximum Packet Size of the new server, and exceeds it never [MQTT-3.2.2-15]', async () => {
  const filters = times(60, (index) => `rather/long/filter/number/${index}`)
  const { world } = await reading(filters, {}, withoutIdentifiers)
  const small = willing(false, { ...withoutIdentifiers, maximumPacketSize: 200 })
  const peer = await again(world, small)
  expect(subscribes(world).flatMap((line) => line.split(' '))).toEqual(filters)
  // As few as fit: about 35 bytes for each filter.
  expect(peer.all('subscribe').length).toBeLessThanOrEqual(16)
  expect([world.client.state, world.seen('error')]).toEqual(['connected', []])
})

it('the session is lost: a filter that does not fit the new server by itself ends, the others come back', async () => {
  const { world, readings } = await reading(['x'.repeat(300), 'small'], {}, withoutIdentifiers)
  const [large, small] = readings()
  await again(world, willing(false, { ...withoutIdentifiers, maximumPacketSize: 128 }))
  expect(subscribes(world)).toEqual(['small'])
  await world.send(publish('small', 'here'))
  expect(large?.end).toMatchObject(failed({ code: 'ERR_PACKET_TOO_LARGE' }))
  expect(small?.texts).toEqual(['here'])
})

it('the session is lost: what was refused, or unsubscribed from, is not asked for again', async () => {
  const world = await steady({}, refusing(['no']))
  const subscription = await subscribe(world, ['yes', 'no'])
  expect(subscription.granted.map(({ reasonCode }) => reasonCode)).toEqual([0, 0x87])
  const left = await subscribe(world, 'left')
  await Promise.all([left.unsubscribe(), world.settle()])
  await again(world, willing(false))
  expect(subscribes(world)).toEqual(['yes'])
})

it('the session is lost: a filter that is refused now leaves the set; its reader ends with the error, after what it had; an `error` event tells', async () => {
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

it('the session is lost: what the new server does not have is not sent: wildcards, shared subscriptions; the rest comes back', async () => {
  const { world, readings } = await reading(['a/#', '$share/g/b', 'plain'])
  const [wild, shared] = readings()
  const without = { wildcardSubscriptionAvailable: 0, sharedSubscriptionAvailable: 0 }
  await again(world, willing(false, { ...without, ...withoutIdentifiers }))
  expect(subscribes(world)).toEqual(['plain'])
  expect(wild?.end).toMatchObject(failed({ code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' }))
  expect(shared?.end).toMatchObject(failed({ code: 'ERR_SHARED_SUBS_UNSUPPORTED' }))
  expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toBeUndefined()
})

it('the session is lost: a reader does not wait for a filter whose SUBSCRIBE for another reader, the only one on its way, does not fit', async () => {
  const long = 'x'.repeat(100)
  const world = await steady({}, willing(false))
  const first = read(await subscribe(world, long))
  await lose(world)
  const joined = failure(world.client.subscribe(long, { qos: 1 }))
  await comeBack(world, willing(false, { maximumPacketSize: 64 }))
  expect(await joined).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE' })
  expect(first.end).toMatchObject(failed({ code: 'ERR_PACKET_TOO_LARGE' }))
})

it('the session is kept: `resubscribe: "always"` sends it with Retain Handling 1, or 2 where 2 was asked', async () => {
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

it('the session is kept: a SUBSCRIBE that brings back a lost session and has no answer is made good on the next connection', async () => {
  const { world } = await reading(['a'])
  await again(world, forgets())
  expect(subscribes(world)).toEqual(['a'])
  // The server kept the session that began there, but may not have seen the SUBSCRIBE.
  await again(world, willing(true))
  expect(subscribes(world)).toEqual(['a'])
  await again(world, willing(true))
  expect(subscribes(world)).toEqual([])
})

it('a flapping link carries each filter at most once per connection, and nothing piles up, whatever the answers', async () => {
  const filters = times(40, (index) => `f${index}`)
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

it('`resubscribe: "always"`: a filter that is refused now ends on the server too: what the session still sends for it goes to no other reader', async () => {
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

it('`resubscribe: "always"`: so does what the new server says it does not have; what does not fit it cannot be told, and is dropped when it comes', async () => {
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

const never = { outbound: { poisonAfter: Number.POSITIVE_INFINITY } }

/** Repeated PUBLISH packets at QoS 1, with identifiers from 1. */
const repeats = (...texts: string[]) =>
  texts.map((text, index) => `publish t=${text} q1 #${index + 1} dup`)

it('what was in flight: the order stays over several connections, each cut in the middle of the replay', async () => {
  const world = await steady(never)
  send(world, 1, 'a', 'b', 'c', 'd')
  await world.settle()
  const order = repeats('a', 'b', 'c', 'd')
  for (const count of [2, 3])
    expect(carried(await again(world, keeps({ receiveMaximum: count })))).toEqual(
      order.slice(0, count),
    )
  await world.send(ack('puback', 2))
  expect(carried(await again(world))).toEqual(order.filter((line) => !line.includes('=b ')))
})

it('what was in flight: is byte for byte what was sent before, but for DUP (properties, large payloads, retain) [MQTT-3.3.1-1] [MQTT-4.4.0-1]', async () => {
  const world = await steady(never)
  const large = new Uint8Array(40_000).map((_, index) => index)
  const userProperties = ['b=2', 'a=1', 'b=2'].map((pair) => pair.split('=') as [string, string])
  const common = {
    payloadFormatIndicator: 1,
    messageExpiryInterval: 1000,
    responseTopic: 'answers/here',
  }
  const properties = {
    ...common,
    contentType: 'text/plain',
    correlationData: 'abc',
    userProperties,
  }
  for (const options of [
    { qos: 1, properties },
    { qos: 2, retain: true },
  ] as const) {
    quiet(world.client.publish('täst/ß', 'Grüße', options))
    quiet(world.client.publish('large', large, options))
  }
  // What the caller does with its own objects afterwards is its own affair, but for a payload that is in flight.
  properties.contentType = 'changed'
  userProperties.length = 0
  await world.settle()
  const first = publishFrames(world.peer)
  expect(first.map(({ dup }) => dup)).toEqual([false, false, false, false])
  await world.clock.advance(5000)
  for (let round = 0; round < 2; round++)
    expect(publishFrames(await again(world))).toEqual(
      first.map(({ rest }) => ({ dup: true, rest })),
    )
})

it('what was in flight: leaves before everything new, also before what a `connect` listener asks for', async () => {
  const world = await steady()
  send(world, 1, 'old')
  send(world, 2, 'older')
  await world.send(ack('pubrec', 2))
  await lose(world)
  world.client.subscription('late', { qos: 1 })
  world.client.on('connect', () => {
    world.client.post('t', 'quick')
    send(world, 1, 'new')
  })
  const lines = carried(await comeBack(world))
  const placeOf = (text: string): number => lines.findIndex((line) => line.startsWith(text))
  expect([lines[0], lines.length]).toEqual(['pubrel #2', 5])
  for (const text of ['publish t=new', 'publish t=quick'])
    expect(placeOf('publish t=old q1 #1 dup')).toBeLessThan(placeOf(text))
})

it('a publish that was sent and given up goes out as it was, also when the caller uses its bytes again', async () => {
  const world = await steady()
  const payloads = ['one', 'two'].map((text) => new TextEncoder().encode(text)) as [
    Uint8Array,
    Uint8Array,
  ]
  const abort = new AbortController()
  quiet(world.client.publish('t', payloads[0], { qos: 1, signal: abort.signal }))
  const late = failure(world.client.publish('t', payloads[1], { qos: 2, ackTimeout: 5 }))
  await world.settle()
  abort.abort()
  await world.clock.advance(6)
  expect(await late).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
  for (const payload of payloads) payload.fill(0)
  const peer = await again(world)
  send(world, 1, 'new')
  await world.settle()
  const sent = [...repeats('one'), 'publish t=two q2 #2 dup', 'publish t=new q1 #3']
  expect(carried(peer)).toEqual(sent)
})

it('out of order: each call gets its own result, before and after the drop', async () => {
  const world = await steady()
  const calls = send(world, 1, 'a', 'b', 'c', 'd')
  const refused = failure(calls[2] as Promise<unknown>)
  await world.send(ack('puback', 4, 0x10))
  await again(world)
  await world.send(ack('puback', 3, 0x87), ack('puback', 1))
  await world.send(ack('puback', 2, 0x10))
  for (const [index, reasonCode] of [0, 0x10, undefined, 0x10].entries())
    if (reasonCode !== undefined)
      await expect(calls[index]).resolves.toMatchObject({ packetId: index + 1, reasonCode })
  expect(await refused).toMatchObject({ reasonCode: 0x87, outcome: 'refused' })
})

it('the time of `ackTimeout` runs on over a drop: it is about the acknowledgement, not about the link', async () => {
  const world = await steady({ outbound: { ackTimeout: 5000 } })
  const one = failure(world.client.publish('t', 'one', { qos: 1 }))
  await world.clock.advance(3000)
  await again(world)
  await world.clock.advance(1990)
  expect(await one).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
})
