/** UNSUBSCRIBE: by subscription, by filter, per-filter results, and what happens to messages meanwhile. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, failure, World } from './harness.js'
import {
  acks,
  agreed,
  gate,
  goodbyeCode,
  pubacks,
  publish,
  quiet,
  read,
  series,
  subscribe,
  takenTexts,
} from './incoming.js'
import { unhandledIn } from './unhandled.js'

/** Grants everything, and leaves UNSUBSCRIBE to the test. */
const granting: Answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))

/** Answers UNSUBSCRIBE with these codes. */
const answering = (...reasonCodes: number[]) =>
  connected({}, (packet) =>
    packet.type === 'unsubscribe'
      ? { type: 'unsuback', packetId: packet.packetId, reasonCodes }
      : agreeable(packet),
  )

const unsuback = (world: World, ...reasonCodes: number[]) =>
  world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes })

/** What a call gives when everything has happened. */
const settled = async <T>(world: World, call: Promise<T>): Promise<T> => {
  await world.settle()
  return call
}

/** Filters of each UNSUBSCRIBE. */
const sent = (world: World) => world.peer.all('unsubscribe').map(({ filters }) => filters.join(' '))

describe('what leaves', () => {
  it('[MQTT-3.10.1-1] [MQTT-3.10.3-1] [MQTT-3.10.3-2] one filter, resolves on UNSUBACK', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a/b')
    const before = world.peer.bytes.length
    const call = quiet(subscription.unsubscribe())
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
    const id = world.peer.last('unsubscribe').packetId
    expect(id).toBeGreaterThan(0)
    expect(world.peer.bytes.slice(before)).toEqual([
      0xa2,
      8,
      id >> 8,
      id & 0xff,
      0,
      0,
      3,
      0x61,
      0x2f,
      0x62,
    ])
    await unsuback(world, 0)
    expect(await world.outcome(call)).toEqual({ state: 'fulfilled', value: undefined })
  })

  it('user property', async () => {
    const world = await agreed()
    const userProperties: [string, string][] = [['k', 'v']]
    await settled(world, world.client.unsubscribe('a', { properties: { userProperties } }))
    expect(world.peer.last('unsubscribe').properties.userProperties).toEqual(userProperties)
  })

  it('more filters than maxFiltersPerSubscribe: several packets, results in the order asked', async () => {
    const world = await connected({ maxFiltersPerSubscribe: 2 }, (packet) => {
      if (packet.type !== 'unsubscribe') return agreeable(packet)
      return {
        type: 'unsuback',
        packetId: packet.packetId,
        reasonCodes: packet.filters.map((filter) => (filter === 'c' ? 0x87 : 0)),
      }
    })
    const results = await settled(world, world.client.unsubscribe(['a', 'b', 'c']))
    expect(sent(world)).toEqual(['a b', 'c'])
    expect(results.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)).toEqual([
      'a 0',
      'b 0',
      'c 135',
    ])
  })

  it.each([[[]], ['a#'], [''], [5], [['a', 'b#']]])('no filter is refused: %j', async (filters) => {
    const world = await agreed()
    const error = await failure(world.client.unsubscribe(filters as string))
    expect([MqttError.is(error), error.outcome]).toEqual([true, 'not-sent'])
    expect(sent(world)).toEqual([])
  })

  it('a filter whose SUBSCRIBE has not left: nothing is sent at all', async () => {
    const world = new World()
    world.answer = agreeable
    const reading = read(world.client.subscription('a'))
    expect((await world.outcome(world.client.unsubscribe('a'))).state).toBe('fulfilled')
    expect(reading.end.state).not.toBe('running')
    await settled(world, world.client.connect())
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })

  it('one packet for all filters of a subscription, but for those that others use', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a', 'b', 'c'])
    await subscribe(world, 'b')
    await settled(world, subscription.unsubscribe())
    expect(sent(world)).toEqual(['a c'])
  })

  it('async dispose leaves like the loop does', async () => {
    const world = await agreed()
    await (await subscribe(world, 'a'))[Symbol.asyncDispose]()
    await world.settle()
    expect(sent(world)).toEqual(['a'])
  })
})

describe('the answer', () => {
  it('[MQTT-3.11.3-1] [MQTT-3.10.4-5] 0x00 and 0x11 per filter; 0x11 is no error', async () => {
    const world = await answering(0, 0x11)
    expect(await settled(world, world.client.unsubscribe(['a', 'never']))).toEqual([
      { filter: 'a', reasonCode: 0, reasonName: 'Success', error: undefined },
      {
        filter: 'never',
        reasonCode: 0x11,
        reasonName: 'No subscription existed',
        error: undefined,
      },
    ])
  })

  it.each([0x80, 0x83, 0x87, 0x8f, 0x91])('[MQTT-3.11.3-2] UNSUBACK %i', async (reasonCode) => {
    const several = await answering(0, reasonCode)
    const error = {
      code: 'ERR_UNSUBSCRIBE_REFUSED',
      outcome: 'refused',
      fault: 'remote',
      reasonCode,
    }
    const results = await settled(several, several.client.unsubscribe(['a', 'b']))
    expect(results[1]).toMatchObject({ filter: 'b', reasonCode, error })
    const one = await answering(reasonCode)
    expect(await one.outcome(one.client.unsubscribe('a'))).toMatchObject({
      state: 'rejected',
      error,
    })
  })

  it('the subscription whose UNSUBSCRIBE was refused goes on', async () => {
    const world = await answering(0x87)
    const subscription = await subscribe(world, 'a')
    const reading = read(subscription)
    const error = { code: 'ERR_UNSUBSCRIBE_REFUSED' }
    expect(await world.outcome(subscription.unsubscribe())).toMatchObject({
      state: 'rejected',
      error,
    })
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it.each([0x01, 0x10, 0x97, 0xff])(
    '[MQTT-3.11.3-2] UNSUBACK code %i: close(0x81/0x82)',
    async (code) => {
      const world = await connected({}, granting)
      const call = quiet(world.client.unsubscribe('a'))
      await world.settle()
      await world.sendBytes([0xb0, 4, 0, world.peer.last('unsubscribe').packetId, 0, code])
      expect([0x81, 0x82]).toContain(goodbyeCode(world))
      expect(await world.outcome(call)).toMatchObject({
        state: 'rejected',
        error: { outcome: 'unknown' },
      })
    },
  )

  it.each([[[0]], [[0, 0, 0]]])('UNSUBACK %j for two filters: close(0x82)', async (codes) => {
    const world = await answering(...codes)
    const error = { outcome: 'unknown' }
    expect(await world.outcome(world.client.unsubscribe(['a', 'b']))).toMatchObject({
      state: 'rejected',
      error,
    })
    expect(goodbyeCode(world)).toBe(0x82)
  })

  it('UNSUBACK unasked is ignored', async () => {
    const world = await agreed()
    await world.send({ type: 'unsuback', packetId: 77, reasonCodes: [0] })
    expect(world.client.state).toBe('connected')
  })

  it('SUBACK for an UNSUBSCRIBE closes or is ignored, and never settles it', async () => {
    const world = await connected({}, granting)
    const call = quiet(world.client.unsubscribe('a'))
    await world.settle()
    await world.send({
      type: 'suback',
      packetId: world.peer.last('unsubscribe').packetId,
      reasonCodes: [0],
    })
    expect((await world.outcome(call)).state).not.toBe('fulfilled')
  })

  it('the connection drops before UNSUBACK: rejected, outcome unknown', async () => {
    const world = await connected({}, granting)
    const call = quiet((await subscribe(world, 'a')).unsubscribe())
    await world.settle()
    world.peer.cut()
    const error = { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' }
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error })
  })
})

describe('messages meanwhile', () => {
  it('a message between UNSUBSCRIBE and UNSUBACK is still delivered', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const reading = read(subscription)
    const call = quiet(subscription.unsubscribe())
    await world.settle()
    await world.send(publish('a', 'late', 1))
    expect(reading.texts).toEqual(['late'])
    await unsuback(world, 0)
    await call
    expect(reading.end.state).toBe('done')
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('what a reader has not read yet can still be read after UNSUBACK', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const first = gate()
    const done = (async () => {
      for await (const message of subscription)
        if (texts.push(message.text()) === 1) await first.promise
    })()
    await world.send(...series('a', 3))
    await settled(world, subscription.unsubscribe())
    first.open()
    await settled(world, done)
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('a message after the loop was left: acknowledged and dropped', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await subscription[Symbol.asyncIterator]().return?.()
    await world.settle()
    await world.send(publish('a', 'late', 1))
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 1 }])
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

  it.each(['manual', 'auto'] as const)(
    'a message in hand under %s acks: it stays there, or its turn ends',
    async (ack) => {
      const world = await agreed()
      const subscription = await subscribe(world, 'a', { qos: 1, ack })
      await world.send(publish('a', 'x', 1))
      const message = await subscription.next()
      await settled(world, subscription.unsubscribe())
      expect(acks(world)).toEqual(ack === 'manual' ? [] : ['puback 1'])
      expect(message?.ack()).toBe(ack === 'manual')
      await world.settle()
      expect(acks(world)).toEqual(['puback 1'])
    },
  )
})

describe('several', () => {
  it.each(['client', 'subscription'])(
    'unsubscribe() after that of the %s: one UNSUBSCRIBE, both settle at UNSUBACK',
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
      await unsuback(world, 0)
      // A third one, when all is over, is fulfilled as well.
      for (const call of [...calls, subscription.unsubscribe()])
        expect(await world.outcome<unknown>(call)).toMatchObject({ state: 'fulfilled' })
      expect(sent(world)).toEqual(['a'])
    },
  )

  it('client.unsubscribe ends every local subscription on the filter, at once on the wire', async () => {
    const world = await agreed()
    const readings = [read(await subscribe(world, 'a')), read(await subscribe(world, 'a'))]
    await settled(world, world.client.unsubscribe('a'))
    expect(readings.map((reading) => reading.end.state)).toEqual(['done', 'done'])
    expect(sent(world)).toEqual(['a'])
  })

  it('one filter of two goes; the other one goes on', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, ['a', 'b']))
    await settled(world, world.client.unsubscribe('a'))
    await world.send(publish('b', 'x'), publish('a', 'y'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it.each([0, 0x87])(
    'a new subscription while UNSUBSCRIBE is under way, which ends with %i, gets the messages',
    async (code) => {
      const world = await connected({}, granting)
      const old = await subscribe(world, 'a', { qos: 1 })
      const waiting = old.next()
      const call = quiet(old.unsubscribe())
      const fresh = await subscribe(world, 'a', { qos: 1 })
      expect(world.peer.received.map((packet) => packet.type)).toEqual([
        'connect',
        'subscribe',
        'unsubscribe',
        'subscribe',
      ])
      await unsuback(world, code)
      expect((await world.outcome(call)).state).toBe(code === 0 ? 'fulfilled' : 'rejected')
      expect(await world.outcome(waiting)).toEqual({ state: 'fulfilled', value: undefined })
      await world.send(publish('a', 'x', 1))
      expect(takenTexts(fresh)).toEqual(['x'])
      expect(await old.next()).toBeUndefined()
    },
  )

  it('offline, pairs of subscription() and unsubscribe() do not pile up', async () => {
    const world = await agreed()
    for (let count = 0; count < 5000; count++) {
      const subscription = world.client.subscription(`t/${count}`)
      quiet(subscription.ready)
      subscription.unsubscribe()
    }
    await world.settle()
    expect(world.peer.all('subscribe')).toEqual([])
  })
})

describe('an abort', () => {
  it.each([
    ['client.unsubscribe', (world: World) => world.client.unsubscribe('a')],
    [
      'unsubscribe() of the reader',
      (_world: World, subscription: Subscription) => subscription.unsubscribe(),
    ],
  ])('is about its caller alone: %s of another waits for UNSUBACK', async (_name, other) => {
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
})

describe('the end of the client', () => {
  it('what may have reached the server says so, on whichever connection it was sent; what waits was not sent', async () => {
    const durable = { clientId: 'c', cleanStart: false, reconnect: { backoff: () => 10 } }
    const world = await connected({ ...durable, maxFiltersPerSubscribe: 1 }, granting)
    const unanswered = failure(world.client.unsubscribe(['a', 'b']))
    await world.settle()
    world.peer.cut()
    await world.settle()
    const waiting = failure(world.client.unsubscribe('c'))
    world.client.destroy()
    expect(await unanswered).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
    expect(await waiting).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })

  it.each(['destroy', 'cut'])(
    'an unsubscribe() that nobody awaits is no unhandled rejection: %s',
    async (how) => {
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
    },
  )
})
