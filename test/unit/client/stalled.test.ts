/** The `stalled` event: when acknowledgements make no progress, whose fault it is, and that it comes once. */
import { expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/options/index.js'
import type { World } from './harness.js'
import { agreed, publish, series, subscribe, taken, takenTexts } from './incoming.js'

/** The subscriptions that events named. */
const named = (world: World): (Subscription | undefined)[] =>
  world.seen('stalled').map((event) => event.subscription)

it('an unread message: the event names the subscription and the age', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1))
  await world.clock.advance(5000)
  expect(named(world)).toEqual([])
  await world.clock.advance(10_000)
  expect(named(world)).toEqual([subscription])
  const age = world.seen('stalled')[0]?.age
  expect(age).toBeGreaterThanOrEqual(9000)
  expect(age).toBeLessThanOrEqual(15_000)
})

it('a message in hand that is never acknowledged; keep-alive goes on', async () => {
  const world = await agreed({ keepAlive: 10 })
  const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
  await world.send(publish('a', 'x', 1))
  taken(subscription)
  await world.clock.advance(60_000)
  expect(named(world)).toEqual([subscription])
  expect(world.peer.all('pingreq').length).toBeGreaterThanOrEqual(5)
  expect(world.client.state).toBe('connected')
})

it('a full window is reported sooner', async () => {
  const world = await agreed({ receiveMaximum: 2 })
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(4000)
  expect(named(world)).toEqual([subscription])
})

it('once per standstill: again only after progress', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(120_000)
  expect(named(world)).toHaveLength(1)
  taken(subscription)
  taken(subscription)
  await world.clock.advance(120_000)
  expect(named(world)).toHaveLength(2)
})

it.each(['b', 'a'])('that of the oldest is named, not one on %s that is read', async (filter) => {
  const world = await agreed()
  const innocent = await subscribe(world, filter, { qos: 1 })
  const guilty = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'zero'), publish('a', 'x', 1), publish('b', 'y', 2))
  takenTexts(innocent)
  await world.clock.advance(15_000)
  expect(named(world)).toEqual([guilty])
})

it.each(['after', 'before'])('a filter detached %s the message: none is named', async (when) => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  if (when === 'before') subscription.detach()
  await world.send(publish('a', 'x', 1))
  subscription.detach()
  await world.clock.advance(15_000)
  expect(named(world)).toEqual([undefined])
})

it('no event while acknowledgements move on, and no timer when nothing is owed', async () => {
  const world = await agreed({ keepAlive: false })
  const subscription = await subscribe(world, 'a', { qos: 1 })
  for (let id = 1; id <= 20; id++) {
    await world.send(publish('a', String(id), id))
    await world.clock.advance(3000)
    takenTexts(subscription)
  }
  await world.clock.advance(60_000)
  expect(named(world)).toEqual([])
  expect(world.clock.pending).toBe(0)
})
