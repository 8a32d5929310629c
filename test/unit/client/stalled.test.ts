/** The `stalled` event: when acknowledgements make no progress, whose fault it is, and that it comes once. */
import { expect, it } from 'vitest'
import { agreed, publish, series, subscribe, taken, takenTexts } from './incoming.js'

it('an unread message: the event names the subscription and the age', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1))
  await world.clock.advance(5000)
  expect(world.seen('stalled')).toEqual([])
  await world.clock.advance(10_000)
  const [event, ...more] = world.seen('stalled')
  expect(more).toEqual([])
  expect(event?.subscription).toBe(subscription)
  expect(event?.age).toBeGreaterThanOrEqual(9000)
  expect(event?.age).toBeLessThanOrEqual(15_000)
})

it('a message in hand that is never acknowledged; keep-alive goes on', async () => {
  const world = await agreed({ keepAlive: 10 })
  const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
  await world.send(publish('a', 'x', 1))
  taken(subscription)
  await world.clock.advance(60_000)
  expect(world.seen('stalled').map((event) => event.subscription)).toEqual([subscription])
  expect(world.peer.all('pingreq').length).toBeGreaterThanOrEqual(5)
  expect(world.client.state).toBe('connected')
})

it('a full window is told sooner', async () => {
  const world = await agreed({ receiveMaximum: 2 })
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(4000)
  expect(world.seen('stalled')).toMatchObject([{ subscription }])
})

it('once per standstill: again only after progress', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(...series('a', 2))
  await world.clock.advance(120_000)
  expect(world.seen('stalled')).toHaveLength(1)
  taken(subscription)
  taken(subscription)
  await world.clock.advance(120_000)
  expect(world.seen('stalled')).toHaveLength(2)
})

it('the subscription of the oldest message is named, not one behind it, QoS 0 in front of it or not', async () => {
  const world = await agreed()
  const innocent = await subscribe(world, 'b', { qos: 1 })
  const guilty = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'zero'), publish('a', 'x', 1), publish('b', 'y', 2))
  takenTexts(innocent)
  await world.clock.advance(15_000)
  expect(world.seen('stalled').map((event) => event.subscription)).toEqual([guilty])
})

it('of several consumers of the message the one that holds it is named', async () => {
  const world = await agreed()
  const diligent = await subscribe(world, 'a', { qos: 1 })
  const guilty = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1))
  takenTexts(diligent)
  await world.clock.advance(15_000)
  expect(world.seen('stalled').map((event) => event.subscription)).toEqual([guilty])
})

it('a detached filter: the event names nobody', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', 'x', 1))
  subscription.detach()
  await world.clock.advance(15_000)
  expect(world.seen('stalled')).toMatchObject([{ subscription: undefined }])
})

it('a message that comes for a detached filter stalls too', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  subscription.detach()
  await world.send(publish('a', 'x', 1))
  await world.clock.advance(15_000)
  expect(world.seen('stalled')).toHaveLength(1)
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
  expect(world.seen('stalled')).toEqual([])
  expect(world.clock.pending).toBe(0)
})

it('settled right away: no timer is set', async () => {
  const world = await agreed({ keepAlive: false })
  await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
  await world.send(...series('a', 5))
  expect(world.clock.pending).toBe(0)
})
