/**
 * Subscriptions that join while another one is being brought back, and what comes of it when that fails.
 */
import { expect, test } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { QoS } from '../../../src/wire/packets.js'
import { again, comeBack, forgets, keeps, lose, steady, willing } from './across.js'
import { agreeable, type World } from './harness.js'

const suback = (packetId: number, ...reasonCodes: number[]) => ({ type: 'suback', packetId, reasonCodes, properties: {} }) as const

/** A client whose subscription to `in/#` has its grant. */
async function granted(qos: QoS): Promise<[World, Subscription]> {
  const world = await steady()
  const subscribed = world.client.subscribe('in/#', { qos })
  await world.settle()
  await world.send(suback(world.peer.last('subscribe').packetId, qos))
  return [world, await subscribed]
}

/** On the next connection a second one joins as soon as it is up. It is wrapped, so that nobody waits for its grant. */
async function joinedOnReturn(world: World, answer: Answer): Promise<{ readonly grant: Promise<unknown> }> {
  let grant: Promise<unknown> = Promise.reject(new Error('it was not up'))
  grant.catch(() => undefined)
  const stop = world.client.on('state', ({ state }) => {
    if (state !== 'connected') return
    grant = world.client.subscribe('in/#', { qos: 1 })
    grant.catch(() => undefined)
  })
  await again(world, answer)
  stop()
  return { grant }
}

test('a subscriber that joins a filter while it is being brought back is granted, though that SUBSCRIBE is lost', async () => {
  const [world] = await granted(1)
  // Session lost: in/# is asked for again.
  await again(world, forgets())
  expect(world.peer.all('subscribe')).toHaveLength(1)
  const second = world.client.subscribe('in/#', { qos: 1, retainHandling: 2 })
  second.catch(() => undefined)
  await world.settle()
  // It breaks before SUBACK.
  await again(world, willing(true))
  expect(await world.outcome(second)).toMatchObject({ state: 'fulfilled' })
})

test('… and joins before that SUBSCRIBE has left', async () => {
  const [world] = await granted(0)
  const { grant } = await joinedOnReturn(world, forgets())
  await again(world, willing(true))
  expect(await world.outcome(grant)).toMatchObject({ state: 'fulfilled' })
})

test('… or that the server cannot bring back: the joiner is told', async () => {
  const [world, first] = await granted(0)
  const reader = first.next().catch((error: unknown) => error)
  const { grant } = await joinedOnReturn(world, forgets({ wildcardSubscriptionAvailable: 0 }))
  await world.clock.advance(1000)
  expect(await reader).toMatchObject({ code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' })
  expect(await world.outcome(grant)).toMatchObject({ state: 'rejected' })
})

test('… or whose SUBACK makes no sense: the joiner is not left waiting', async () => {
  const [world] = await granted(1)
  await again(world, forgets())
  const second = world.client.subscribe('in/#', { qos: 1, retainHandling: 2 })
  second.catch(() => undefined)
  await world.settle()
  world.answer = (packet) => (packet.type === 'connect' ? keeps()(packet) : agreeable(packet))
  await world.send(suback(world.peer.last('subscribe').packetId, 1, 1))
  await world.clock.advance(1000)
  expect(await world.outcome(second)).not.toMatchObject({ state: 'pending' })
})

test('stalled is told also on a later connection, where the server repeats what is in hand', async () => {
  const world = await steady({ cleanStart: false, clientId: 'c', receiveMaximum: 1 })
  const subscribing = world.client.subscribe('#', { qos: 1 })
  await world.settle()
  await world.send(suback(world.peer.last('subscribe').packetId, 1))
  const subscription = await subscribing
  const message = { type: 'publish', topic: 't', payload: new Uint8Array(1), qos: 1, retain: false, packetId: 1, properties: {} } as const
  await world.send({ ...message, dup: false })
  await subscription.next()
  await lose(world)
  await comeBack(world, keeps())
  // The watch of the first connection has stopped meanwhile.
  await lose(world)
  await world.clock.advance(5)
  await comeBack(world, keeps())
  await world.clock.advance(2000)
  await world.send({ ...message, dup: true })
  await world.clock.advance(60_000)
  expect(world.seen('stalled')).toHaveLength(1)
})

test('a joiner whose SUBSCRIBE another server cannot take does not leave the older reader waiting', async () => {
  const world = await steady()
  const first = world.client.subscribe('in/#', { qos: 1 })
  await world.settle()
  await world.send(suback(world.peer.last('subscribe').packetId, 1))
  const reader = (await first).next().catch((error: unknown) => error)
  await again(world, forgets())
  const second = world.client.subscribe('in/#', { qos: 1, retainHandling: 2 })
  second.catch(() => undefined)
  await world.settle()
  await again(world, forgets({ wildcardSubscriptionAvailable: 0 }))
  await world.clock.advance(1000)
  expect(await world.outcome(second)).toMatchObject({ state: 'rejected' })
  expect(await world.outcome(reader as Promise<unknown>)).toMatchObject({ state: 'fulfilled', value: { code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' } })
})
