/** The session expires while there is no connection: the client ends it itself, and pending work settles. */
import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, carried, forgets, lasting, lose, send, steady, willing } from './across.js'
import { connected, failure, type World } from './harness.js'
import { publish, subscribe, taken } from './incoming.js'

const hour = 3_600_000
const days = 24 * hour
const lostUnknown = { code: 'ERR_SESSION_LOST', outcome: 'unknown' }

/** A client that comes back after an hour. */
const patient = (
  sessionExpiryInterval: number,
  more?: ClientOptions,
  answer?: Answer,
): Promise<World> =>
  connected(
    { keepAlive: false, reconnect: { backoff: constant(hour) }, sessionExpiryInterval, ...more },
    answer,
  )

it('is counted from the loss of the connection: `sessionlost` tells it, QoS 2 rejects, QoS 1 waits to be republished', async () => {
  const world = await patient(100)
  const [one] = send(world, 1, 'one')
  const two = failure(world.client.publish('t', 'two', { qos: 2 }))
  await world.settle()
  await lose(world)
  await world.clock.advance(99_999)
  expect(world.seen('sessionlost')).toEqual([])
  await world.clock.advance(1)
  const event = {
    cause: 'expired',
    republished: [{ packetId: 1 }],
    rejected: [{ packetId: 2 }],
    stale: 0,
  }
  expect(world.seen('sessionlost')).toMatchObject([event])
  expect(await two).toMatchObject(lostUnknown)
  expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
  expect(world.client.state).toBe('reconnecting')
  world.answer = willing(false)
  await world.clock.advance(hour)
  expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=one q1 #\d+$/)])
  await expect(one).resolves.toMatchObject({ reasonCode: 0 })
  // It is told once, not again with Session Present 0.
  expect(world.seen('sessionlost')).toHaveLength(1)
})

it('the server’s value counts where it gave one', async () => {
  const world = await patient(1000, {}, forgets({ sessionExpiryInterval: 5 }))
  await lose(world)
  await world.clock.advance(5000)
  expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
})

it('a connection in time stops the count; the next loss begins it again', async () => {
  const world = await steady({ sessionExpiryInterval: 1 })
  for (let round = 0; round < 5; round++) {
    await again(world)
    await world.clock.advance(900)
  }
  await world.clock.advance(100_000)
  expect(world.seen('sessionlost')).toEqual([])
})

it('4,294,967,295 is for ever: not even 50 days of attempts that fail end it', async () => {
  const world = await patient(4_294_967_295)
  await lose(world)
  world.answer = () => undefined
  await world.clock.advance(50 * days)
  expect(world.seen('sessionlost')).toEqual([])
})

it('intervals beyond what a timer can wait for are honoured', async () => {
  const world = await patient(30 * 24 * 3600, { reconnect: { backoff: constant(2_147_483_647) } })
  world.answer = () => undefined
  await lose(world)
  await world.clock.advance(30 * days - 1)
  expect(world.seen('sessionlost')).toEqual([])
  await world.clock.advance(1)
  expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
})

it('incoming messages of it are stale', async () => {
  const world = await patient(10, {}, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
  await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
  const [one, two] = [taken(subscription), taken(subscription)]
  await lose(world)
  expect(one.ack()).toBe(true)
  await world.clock.advance(10_000)
  expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired', stale: 2 }])
  expect([one.ack(), two.ack()]).toEqual([false, false])
})

it('on the next connection the session is ended by Clean Start 1, should the server have kept it, and subscriptions are made again', async () => {
  const world = await patient(10, {}, willing(false))
  await subscribe(world, ['a', 'b'], { qos: 1 })
  await lose(world)
  await world.clock.advance(hour)
  expect(world.peers.map((peer) => peer.last('connect').cleanStart)).toEqual([true, true])
  expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe a,b #\d+$/)])
  expect(world.client.state).toBe('connected')
})

it('is checked on the wall clock: a machine that slept past it finds the session expired', async () => {
  const world = await connected({
    ...lasting,
    reconnect: { backoff: constant(1000) },
    sessionExpiryInterval: 60,
  })
  const two = failure(world.client.publish('t', 'two', { qos: 2 }))
  await world.settle()
  await lose(world)
  world.clock.jump(8 * hour)
  world.answer = forgets()
  await world.clock.advance(1000)
  expect(await two).toMatchObject(lostUnknown)
  expect(world.seen('sessionlost')).toHaveLength(1)
})

it('the end of the client ends the count', async () => {
  const world = await patient(10)
  await lose(world)
  await world.client.disconnect({ timeout: 0 })
  expect(world.clock.pending).toBe(0)
  await world.clock.advance(100_000)
  expect(world.seen('sessionlost')).toEqual([])
})
