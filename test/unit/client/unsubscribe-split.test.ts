/** UNSUBSCRIBE on servers with a small Maximum Packet Size: in packets that fit, and what becomes of a filter that cannot be unsubscribed from. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { encode } from '../../../src/wire/encode.js'
import { again, willing } from './across.js'
import { connected, type World } from './harness.js'
import { acks, publish, quiet, read, series, subscribe } from './incoming.js'

/** A server that takes so many bytes, and says yes to everything. */
const taking = (maximumPacketSize: number, sessionPresent = false): Answer =>
  willing(sessionPresent, { maximumPacketSize })

/** The same, but UNSUBSCRIBE has no answer. */
const withholding: Answer = (packet) =>
  packet.type === 'unsubscribe' ? undefined : taking(4096)(packet)

const durable: ClientOptions = {
  clientId: 'c',
  cleanStart: false,
  reconnect: { backoff: () => 10 },
}
const long = 'x'.repeat(200)
const filtersOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `site/${index}/temperature/celsius`)
const sizesOf = (world: World): number[] =>
  world.peer.all('unsubscribe').map((packet) => encode(packet).length)
const unsubscribed = (world: World): string[] =>
  world.peer.all('unsubscribe').flatMap((packet) => packet.filters)
const settled = async <T>(world: World, call: Promise<T>): Promise<T> => {
  await world.settle()
  return call
}

describe('UNSUBSCRIBE in packets that the server takes', () => {
  it.each([64, 256, 4096])('leaving a loop over 500 filters, %i bytes a packet', async (limit) => {
    const world = await connected({ clientId: 'c', cleanStart: false }, taking(limit))
    const subscription = await subscribe(world, filtersOf(500), { qos: 1, onExit: 'unsubscribe' })
    const loop = (async () => {
      for await (const _message of subscription) break
    })()
    await world.send(publish('site/1/temperature/celsius', 'x', 1))
    await settled(world, loop)
    expect(unsubscribed(world)).toEqual(filtersOf(500))
    expect(Math.max(...sizesOf(world))).toBeLessThanOrEqual(limit)
    // Close to as few packets as can be.
    const bytes = sizesOf(world).reduce((sum, size) => sum + size, 0)
    if (limit > 64)
      expect(sizesOf(world).length).toBeLessThanOrEqual(Math.ceil(bytes / (limit - 64)))
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('client.unsubscribe of 500 filters gives a result for each, in the order asked', async () => {
    const codeOf = (filter: string): number => (filter.includes('/7') ? 0x11 : 0)
    const world = await connected({}, (packet) => {
      if (packet.type !== 'unsubscribe') return taking(512)(packet)
      return {
        type: 'unsuback',
        packetId: packet.packetId,
        reasonCodes: packet.filters.map(codeOf),
      }
    })
    const results = await settled(world, world.client.unsubscribe(filtersOf(500)))
    expect(results).toMatchObject(
      filtersOf(500).map((filter) => ({ filter, reasonCode: codeOf(filter), error: undefined })),
    )
  })

  it('user properties count too, and go with each packet', async () => {
    const world = await connected({}, taking(256))
    const userProperties: [string, string][] = [['reason', 'x'.repeat(100)]]
    await settled(
      world,
      world.client.unsubscribe(filtersOf(20), { properties: { userProperties } }),
    )
    expect(unsubscribed(world)).toEqual(filtersOf(20))
    expect(Math.max(...sizesOf(world))).toBeLessThanOrEqual(256)
    for (const packet of world.peer.all('unsubscribe'))
      expect(packet.properties.userProperties).toEqual(userProperties)
  })

  it('a filter that could just be subscribed to can be unsubscribed from', async () => {
    // SUBSCRIBE: two bytes of header, identifier, properties with a Subscription Identifier of up to five bytes, filter, options.
    const world = await connected(
      {},
      willing(false, { maximumPacketSize: 64, subscriptionIdentifierAvailable: 0 }),
    )
    const filter = 'f'.repeat(64 - 8)
    const subscription = await subscribe(world, filter)
    expect(encode(world.peer.last('subscribe'))).toHaveLength(64)
    await settled(world, subscription.unsubscribe())
    expect(unsubscribed(world)).toEqual([filter])
  })

  it('what a lost connection left unanswered is split anew for a server that takes less', async () => {
    const world = await connected(durable, withholding)
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
    const world = await connected({ ...durable, maxFiltersPerSubscribe: 3 }, withholding)
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
})

describe('an UNSUBSCRIBE that the server does not take', () => {
  const tooLarge = { code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' }

  it('user properties that are too large: the call rejects, and the subscription goes on', async () => {
    const world = await connected({}, taking(256))
    const reading = read(await subscribe(world, ['a', 'b'], { qos: 1 }))
    const properties = { userProperties: [['k', 'x'.repeat(300)]] as [string, string][] }
    expect(await world.outcome(world.client.unsubscribe(['a', 'b'], { properties }))).toMatchObject(
      { error: tooLarge },
    )
    expect(unsubscribed(world)).toEqual([])
    await world.send(publish('a', '1', 1), publish('b', '2', 2))
    expect(reading.texts).toEqual(['1', '2'])
  })

  it('one filter of several is too long: the others are unsubscribed, and the result names it', async () => {
    const world = await connected({}, taking(128))
    const results = await settled(world, world.client.unsubscribe(['a', long, 'b']))
    expect(results.map(({ filter }) => filter)).toEqual(['a', long, 'b'])
    expect(results.map(({ error }) => error?.code)).toEqual([
      undefined,
      'ERR_PACKET_TOO_LARGE',
      undefined,
    ])
    expect(results[1]?.error).toBeInstanceOf(MqttError)
    expect(unsubscribed(world)).toEqual(['a', 'b'])
  })

  /** A durable session on which `long` was left while away: the next server takes less, and never gets the UNSUBSCRIBE. */
  async function stranded(): Promise<World> {
    const world = await connected({ ...durable, receiveMaximum: 8 }, taking(4096))
    const leaving = await subscribe(world, [long, 'b'], { qos: 1, onExit: 'unsubscribe' })
    world.answer = taking(128, true)
    world.peer.cut()
    await world.settle()
    await leaving[Symbol.asyncDispose]()
    await world.clock.advance(10)
    expect(unsubscribed(world)).toEqual(['b'])
    return world
  }

  it('messages of a filter that could not be unsubscribed are acknowledged and counted: nothing else waits for them', async () => {
    const world = await stranded()
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

  it('it can be subscribed to again, and unsubscribed from later', async () => {
    const world = await stranded()
    await again(world, taking(4096, true))
    const subscription = await subscribe(world, long, { qos: 1 })
    const reading = read(subscription)
    await world.send(publish(long, 'x', 1))
    expect(reading.texts).toEqual(['x'])
    await settled(world, subscription.unsubscribe())
    expect(unsubscribed(world)).toEqual([long])
  })

  it('UNSUBACK with the wrong number of codes fails its own filters only; the rest of the call goes on', async () => {
    const world = await connected({ ...durable, maxFiltersPerSubscribe: 2 }, withholding)
    const call = world.client.unsubscribe(['a', 'b', 'c'])
    await world.settle()
    world.answer = taking(4096, true)
    await world.send({
      type: 'unsuback',
      packetId: world.peer.all('unsubscribe')[0]?.packetId as number,
      reasonCodes: [0],
    })
    await world.clock.advance(10)
    expect((await call).map(({ error }) => error?.outcome)).toEqual([
      'unknown',
      'unknown',
      undefined,
    ])
    expect(unsubscribed(world)).toEqual(['c'])
  })

  it('a subscription whose unsubscribe() failed reads on', async () => {
    const world = await connected(durable, taking(4096))
    const subscription = await subscribe(world, long, { qos: 1 })
    const reading = read(subscription)
    await again(world, taking(128, true))
    expect(await world.outcome(subscription.unsubscribe())).toMatchObject({
      state: 'rejected',
      error: tooLarge,
    })
    await world.send(publish(long, 'x', 1))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })
})
