/** UNSUBSCRIBE: per-filter results, messages meanwhile, and packets on servers with a small Maximum Packet Size. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { encode } from '../../../src/wire/encode.js'
import { again, willing } from './across.js'
import { connected, failure, times, type World } from './harness.js'
import {
  acks,
  agreed,
  answer,
  answering,
  gate,
  pubacks,
  publish,
  quiet,
  read,
  series,
  subscribe,
  subscribes,
  takenTexts,
  unsubscribes,
} from './incoming.js'
import { deafTo, loop, settled } from './steps.js'
import { unhandledIn } from './unhandled.js'

/** Grants everything, and leaves UNSUBSCRIBE to the test. */
const granting = deafTo('unsubscribe')

const answered = (...reasonCodes: number[]) => connected({}, answering('unsubscribe', reasonCodes))

const refused = { code: 'ERR_UNSUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote' }

it('one packet for all filters of a subscription, but for those that others use', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, ['a', 'b', 'c'])
  await subscribe(world, 'b')
  await settled(world, subscription.unsubscribe())
  expect(unsubscribes(world)).toEqual(['a c'])
})

it('the answer: [MQTT-3.11.3-1] [MQTT-3.10.4-5] 0x00 and 0x11 per filter; 0x11 is no error', async () => {
  const world = await answered(0, 0x11)
  const [known, unknown] = await settled(world, world.client.unsubscribe(['a', 'never']))
  expect(known).toEqual({ filter: 'a', reasonCode: 0, reasonName: 'Success', error: undefined })
  const none = { reasonCode: 0x11, reasonName: 'No subscription existed', error: undefined }
  expect(unknown).toEqual({ filter: 'never', ...none })
})

it('the answer: [MQTT-3.11.3-2] a refusal is the result of its filter, or the error where it is the only one', async () => {
  const several = await answered(0, 0x91)
  const error = { ...refused, reasonCode: 0x91 }
  const results = await settled(several, several.client.unsubscribe(['a', 'b']))
  expect(results[1]).toMatchObject({ filter: 'b', reasonCode: 0x91, error })
  // The subscription whose UNSUBSCRIBE was refused goes on.
  const one = await answered(0x91)
  const subscription = await subscribe(one, 'a')
  const reading = read(subscription)
  expect(await settled(one, failure(subscription.unsubscribe()))).toMatchObject(error)
  await one.send(publish('a', 'x'))
  expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
})

it('the answer: the connection drops before it, or before SUBACK: rejected, outcome unknown', async () => {
  const world = await connected()
  const calls = [failure(world.client.unsubscribe('a')), failure(world.client.subscribe('b'))]
  await world.settle()
  world.peer.cut()
  const error = { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' }
  expect(await settled(world, Promise.all(calls))).toMatchObject([error, error])
})

it('a message between UNSUBSCRIBE and UNSUBACK is still delivered', async () => {
  const world = await connected({}, granting)
  const subscription = await subscribe(world, 'a', { qos: 1 })
  const reading = read(subscription)
  const call = quiet(subscription.unsubscribe())
  await world.settle()
  await world.send(publish('a', 'late', 1))
  expect(reading.texts).toEqual(['late'])
  await answer(world, 'unsubscribe', 0)
  await call
  expect(reading.end.state).toBe('done')
  expect(acks(world)).toEqual(['puback 1'])
})

it('what a reader has not read yet can still be read after UNSUBACK', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  const texts: string[] = []
  const first = gate()
  const done = loop(subscription, (message) =>
    texts.push(message.text()) === 1 ? first.promise : undefined,
  )
  await world.send(...series('a', 3))
  await settled(world, subscription.unsubscribe())
  first.open()
  await settled(world, done)
  expect(texts).toEqual(['1', '2', '3'])
  expect(acks(world)).toEqual(pubacks(1, 3))
})

it('what a reader leaves behind after UNSUBACK is for no later subscription: it is acknowledged, with an event each', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  quiet(loop(subscription, () => gate().promise))
  await world.send(...series('a', 3))
  await settled(world, subscription.unsubscribe())
  expect(acks(world)).toEqual([])
  subscription.detach()
  await world.settle()
  expect(acks(world)).toEqual(pubacks(1, 3))
  expect(world.seen('unclaimed').map(({ message }) => message.text())).toEqual(['1', '2', '3'])
})

it('nobody reads: what waits is acknowledged and counted at UNSUBACK', async () => {
  const world = await agreed()
  const dropped: string[] = []
  const subscription = await subscribe(world, 'a', {
    qos: 1,
    onDrop: (message) => dropped.push(message.text()),
  })
  await world.send(...series('a', 3))
  await settled(world, world.client.unsubscribe('a'))
  expect(acks(world)).toEqual(pubacks(1, 3))
  expect(subscription.dropped).toBe(3)
  expect(dropped).toEqual(['1', '2', '3'])
  expect(await subscription.next()).toBeUndefined()
})

it.each(['manual', 'auto'] as const)('a message in hand under %s acks', async (ack) => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1, ack })
  await world.send(publish('a', 'x', 1))
  const message = await subscription.next()
  await settled(world, subscription.unsubscribe())
  expect(acks(world)).toEqual(ack === 'manual' ? [] : ['puback 1'])
  expect(message?.ack()).toBe(ack === 'manual')
  await world.settle()
  expect(acks(world)).toEqual(['puback 1'])
})

describe('several', () => {
  it.each(['client', 'subscription'])(
    'a second, after that of the %s: one packet',
    async (first) => {
      const world = await connected({}, granting)
      const subscription = await subscribe(world, 'a')
      const reading = read(subscription)
      const one: Promise<unknown> =
        first === 'client' ? world.client.unsubscribe('a') : subscription.unsubscribe()
      const calls = [quiet(one), quiet<unknown>(subscription.unsubscribe())]
      for (const call of calls) expect(await world.outcome(call)).toEqual({ state: 'pending' })
      await world.send(publish('a', 'late'))
      expect(reading.texts).toEqual(['late'])
      await answer(world, 'unsubscribe', 0)
      // A third one, when all is over, is fulfilled as well.
      for (const call of [...calls, subscription.unsubscribe()])
        expect(await world.outcome<unknown>(call)).toMatchObject({ state: 'fulfilled' })
      expect(unsubscribes(world)).toEqual(['a'])
    },
  )

  it('one filter of two goes; the other one goes on', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, ['a', 'b']))
    await settled(world, world.client.unsubscribe('a'))
    await world.send(publish('b', 'x'), publish('a', 'y'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it.each([0, 0x87])('a new subscription meanwhile; UNSUBACK is %i', async (code) => {
    const world = await connected({}, granting)
    const old = await subscribe(world, 'a', { qos: 1 })
    const waiting = old.next()
    const call = quiet(old.unsubscribe())
    const fresh = await subscribe(world, 'a', { qos: 1 })
    expect([unsubscribes(world), subscribes(world)]).toEqual([['a'], ['a', 'a']])
    await answer(world, 'unsubscribe', code)
    expect((await world.outcome(call)).state).toBe(code === 0 ? 'fulfilled' : 'rejected')
    expect(await world.outcome(waiting)).toEqual({ state: 'fulfilled', value: undefined })
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(fresh)).toEqual(['x'])
    expect(await old.next()).toBeUndefined()
  })
})

it.each([
  ['client.unsubscribe', (world: World) => world.client.unsubscribe('a')],
  [
    'unsubscribe() of the reader',
    (_world: World, subscription: Subscription) => subscription.unsubscribe(),
  ],
])('an abort is about its caller alone: %s of another waits for UNSUBACK', async (_name, other) => {
  const world = await connected({}, granting)
  const subscription = await subscribe(world, 'a')
  const abort = new AbortController()
  const first = failure(world.client.unsubscribe('a', { signal: abort.signal }))
  const second = quiet<unknown>(other(world, subscription))
  await world.settle()
  abort.abort()
  expect(await first).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
  expect(await world.outcome(second)).toEqual({ state: 'pending' })
  for (const { packetId } of world.peer.all('unsubscribe'))
    await world.send({ type: 'unsuback', packetId, reasonCodes: [0] })
  expect(await world.outcome(second)).toMatchObject({ state: 'fulfilled' })
  expect(await subscription.next()).toBeUndefined()
})

it.each(['destroy', 'cut'])('unsubscribe() that nobody awaits is quiet: %s', async (how) => {
  const unhandled = await unhandledIn(async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a')
    if (how === 'destroy') world.client.unsubscribe('b')
    subscription.unsubscribe()
    await world.settle()
    if (how === 'destroy') world.client.destroy()
    else world.peer.cut()
    await world.settle()
    expect(world.client.state).toBe('closed')
  })
  expect(unhandled).toEqual([])
})

/** A server that takes so many bytes, and says yes to everything. */
const taking = (maximumPacketSize: number, sessionPresent = false): Answer =>
  willing(sessionPresent, { maximumPacketSize })

const durable: ClientOptions = {
  clientId: 'c',
  cleanStart: false,
  reconnect: { backoff: () => 10 },
}
const long = 'x'.repeat(200)
const filtersOf = (count: number): string[] =>
  times(count, (index) => `site/${index}/temperature/celsius`)
const sizesOf = (world: World): number[] =>
  world.peer.all('unsubscribe').map((packet) => encode(packet).length)
const unsubscribed = (world: World): string[] =>
  world.peer.all('unsubscribe').flatMap((packet) => packet.filters)
it.each([64, 256, 4096])('leaving a loop over 500 filters, %i bytes a packet', async (limit) => {
  const world = await connected({ clientId: 'c', cleanStart: false }, taking(limit))
  const subscription = await subscribe(world, filtersOf(500), { qos: 1, onExit: 'unsubscribe' })
  await world.send(publish('site/1/temperature/celsius', 'x', 1))
  for await (const _ of subscription) break
  await world.settle()
  expect(unsubscribed(world)).toEqual(filtersOf(500))
  expect(Math.max(...sizesOf(world))).toBeLessThanOrEqual(limit)
  // Close to as few packets as can be.
  const bytes = sizesOf(world).reduce((sum, size) => sum + size, 0)
  if (limit > 64) expect(sizesOf(world).length).toBeLessThanOrEqual(Math.ceil(bytes / (limit - 64)))
  expect(acks(world)).toEqual(['puback 1'])
})

it('client.unsubscribe of 500 filters gives a result for each, in the order asked', async () => {
  const codeOf = (filter: string): number => (filter.includes('/7') ? 0x11 : 0)
  const world = await connected({}, (packet) =>
    packet.type === 'unsubscribe'
      ? answering('unsubscribe', packet.filters.map(codeOf))(packet)
      : taking(512)(packet),
  )
  const userProperties: [string, string][] = [['reason', 'x'.repeat(100)]]
  const call = world.client.unsubscribe(filtersOf(500), { properties: { userProperties } })
  expect(await settled(world, call)).toMatchObject(
    filtersOf(500).map((filter) => ({ filter, reasonCode: codeOf(filter), error: undefined })),
  )
  // These count, too, and go with each packet.
  expect(Math.max(...sizesOf(world))).toBeLessThanOrEqual(512)
  for (const { properties } of world.peer.all('unsubscribe'))
    expect(properties).toEqual({ userProperties })
})

it('what a lost connection left unanswered is split anew for a server that takes less', async () => {
  const world = await connected(durable, granting)
  await subscribe(world, filtersOf(100))
  const call = world.client.unsubscribe(filtersOf(100))
  await world.settle()
  expect(sizesOf(world)).toHaveLength(1)
  await again(world, taking(256, true))
  expect(unsubscribed(world)).toEqual(filtersOf(100))
  expect(Math.max(...sizesOf(world))).toBeLessThanOrEqual(256)
  expect((await call).every((result) => result.error === undefined)).toBe(true)
})

it('maxFiltersPerSubscribe holds on the next connection too', async () => {
  const world = await connected({ ...durable, maxFiltersPerSubscribe: 3 }, granting)
  const call = world.client.unsubscribe(filtersOf(8))
  await world.settle()
  world.answer = taking(4096, true)
  // We end it ourselves: none of the filters may be the cause.
  quiet(world.client.reconnect({ force: true }))
  await world.clock.advance(1000)
  expect(world.peer.all('unsubscribe').map(({ filters }) => filters.length)).toEqual([3, 3, 2])
  expect(unsubscribed(world).sort()).toEqual(filtersOf(8).sort())
  expect(await call).toHaveLength(8)
})

it('not taken: user properties that are too large: the call rejects, and the subscription goes on', async () => {
  const world = await connected({}, taking(256))
  const reading = read(await subscribe(world, ['a', 'b'], { qos: 1 }))
  const properties = { userProperties: [['k', 'x'.repeat(300)]] as [string, string][] }
  const call = failure(world.client.unsubscribe(['a', 'b'], { properties }))
  expect(await call).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' })
  expect(unsubscribed(world)).toEqual([])
  await world.send(publish('a', '1', 1), publish('b', '2', 2))
  expect(reading.texts).toEqual(['1', '2'])
})

it('not taken: one filter of several is too long: the others are unsubscribed, and the result names it', async () => {
  const world = await connected({}, taking(128))
  const results = await settled(world, world.client.unsubscribe(['a', long, 'b']))
  expect(results.map(({ filter }) => filter)).toEqual(['a', long, 'b'])
  const codes = results.map(({ error }) => error?.code)
  expect(codes).toEqual([undefined, 'ERR_PACKET_TOO_LARGE', undefined])
  expect(unsubscribed(world)).toEqual(['a', 'b'])
})

it('not taken: messages of a filter that could not be unsubscribed are acknowledged and counted: nothing else waits for them', async () => {
  const world = await connected({ ...durable, receiveMaximum: 8 }, taking(4096))
  const leaving = await subscribe(world, [long, 'b'], { qos: 1, onExit: 'unsubscribe' })
  world.answer = taking(128, true)
  world.peer.cut()
  await world.settle()
  await leaving[Symbol.asyncDispose]()
  await world.clock.advance(10)
  expect(unsubscribed(world)).toEqual(['b'])
  expect(world.seen('error').map(({ error }) => error.code)).toEqual(['ERR_PACKET_TOO_LARGE'])
  const other = read(await subscribe(world, 'c', { qos: 1 }))
  for (let round = 0; round < 5; round++) {
    await world.send(...series(long, 8))
    // After a lost connection acknowledgements leave a few at a time.
    await world.clock.advance(100)
  }
  await world.send(publish('c', 'through', 1))
  await world.clock.advance(100)
  expect(acks(world)).toHaveLength(41)
  expect(other.texts).toEqual(['through'])
  await world.clock.advance(1000)
  expect(world.seen('drop').reduce((sum, { count }) => sum + count, 0)).toBe(40)
  expect(world.seen('stalled')).toEqual([])
})

it('not taken: UNSUBACK with the wrong number of codes fails its own filters only; the rest of the call goes on', async () => {
  const world = await connected({ ...durable, maxFiltersPerSubscribe: 2 }, granting)
  const call = world.client.unsubscribe(['a', 'b', 'c'])
  await world.settle()
  world.answer = taking(4096, true)
  await world.send({
    type: 'unsuback',
    packetId: world.peer.all('unsubscribe')[0]?.packetId as number,
    reasonCodes: [0],
  })
  await world.clock.advance(10)
  const outcomes = (await call).map(({ error }) => error?.outcome)
  expect(outcomes).toEqual(['unknown', 'unknown', undefined])
  expect(unsubscribed(world)).toEqual(['c'])
})
