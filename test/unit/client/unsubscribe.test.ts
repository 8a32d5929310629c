/** UNSUBSCRIBE: by subscription, by filter, per-filter results, and what happens to messages meanwhile. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, agreed, goodbyeCode, publish, quiet, read, series, subscribe, taken, takenTexts } from './incoming.js'
import { unhandledIn } from './unhandled.js'

/** Grants everything, and leaves UNSUBSCRIBE to the test. */
const granting: Answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))

/** Answers UNSUBSCRIBE with these codes. */
const answering = (...reasonCodes: number[]) =>
  connected({}, (packet) => (packet.type === 'unsubscribe' ? { type: 'unsuback', packetId: packet.packetId, reasonCodes } : agreeable(packet)))

async function unsuback(world: World, ...reasonCodes: number[]): Promise<void> {
  await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes })
}

describe('what leaves', () => {
  it('[MQTT-3.10.1-1] [MQTT-3.10.3-1] [MQTT-3.10.3-2] one filter, resolves on UNSUBACK', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a/b')
    const before = world.peer.bytes.length
    const call = quiet(subscription.unsubscribe())
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
    const id = world.peer.last('unsubscribe').packetId
    expect(id).toBeGreaterThan(0)
    expect(world.peer.bytes.slice(before)).toEqual([0xa2, 8, id >> 8, id & 0xff, 0, 0, 3, 0x61, 0x2f, 0x62])
    await unsuback(world, 0)
    expect(await world.outcome(call)).toEqual({ state: 'fulfilled', value: undefined })
  })

  it('user property', async () => {
    const world = await agreed()
    const call = world.client.unsubscribe('a', { properties: { userProperties: [['k', 'v']] } })
    await world.settle()
    await call
    expect(world.peer.last('unsubscribe').properties.userProperties).toEqual([['k', 'v']])
  })

  it('more filters than maxFiltersPerSubscribe: several packets, results in the order asked', async () => {
    const world = await connected({ maxFiltersPerSubscribe: 2 }, (packet) =>
      packet.type === 'unsubscribe'
        ? { type: 'unsuback', packetId: packet.packetId, reasonCodes: packet.filters.map((filter) => (filter === 'c' ? 0x87 : 0)) }
        : agreeable(packet),
    )
    const call = world.client.unsubscribe(['a', 'b', 'c'])
    await world.settle()
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a', 'b'], ['c']])
    expect((await call).map((result) => [result.filter, result.reasonCode])).toEqual([
      ['a', 0],
      ['b', 0],
      ['c', 0x87],
    ])
  })

  it.each([[[]], ['a#'], [''], [5], [['a', 'b#']]])('what is no filter is refused here: %j', async (filters) => {
    const world = await agreed()
    const outcome = await world.outcome(world.client.unsubscribe(filters as string))
    expect(outcome.state === 'rejected' && MqttError.is(outcome.error) && outcome.error.outcome).toBe('not-sent')
    expect(world.peer.all('unsubscribe')).toEqual([])
  })

  it('a filter whose SUBSCRIBE has not left: nothing is sent at all', async () => {
    const world = new World()
    world.answer = agreeable
    const subscription = world.client.subscription('a')
    const reading = read(subscription)
    const result = await world.outcome(world.client.unsubscribe('a'))
    expect(result.state).toBe('fulfilled')
    expect(reading.end.state).not.toBe('running')
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
  })
})

describe('the answer', () => {
  it('[MQTT-3.11.3-1] 0x00 and 0x11 per filter; 0x11 is no error', async () => {
    const world = await answering(0, 0x11)
    const call = world.client.unsubscribe(['a', 'b'])
    await world.settle()
    expect(await call).toEqual([
      { filter: 'a', reasonCode: 0, reasonName: 'Success', error: undefined },
      { filter: 'b', reasonCode: 0x11, reasonName: 'No subscription existed', error: undefined },
    ])
  })

  it.each([0x80, 0x83, 0x87, 0x8f, 0x91])('[MQTT-3.11.3-2] UNSUBACK %i', async (reasonCode) => {
    const several = await answering(0, reasonCode)
    const call = several.client.unsubscribe(['a', 'b'])
    await several.settle()
    const expected = { code: 'ERR_UNSUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote', reasonCode }
    expect((await call)[1]).toMatchObject({ filter: 'b', reasonCode, error: expected })
    const one = await answering(reasonCode)
    expect(await one.outcome(one.client.unsubscribe('a'))).toMatchObject({ state: 'rejected', error: expected })
  })

  it('the subscription whose UNSUBSCRIBE was refused goes on', async () => {
    const world = await answering(0x87)
    const subscription = await subscribe(world, 'a')
    const reading = read(subscription)
    expect(await world.outcome(subscription.unsubscribe())).toMatchObject({ state: 'rejected', error: { code: 'ERR_UNSUBSCRIBE_REFUSED' } })
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it.each([0x01, 0x10, 0x97, 0xff])('[MQTT-3.11.3-2] UNSUBACK code %i: close(0x81/0x82)', async (code) => {
    const world = await connected({}, granting)
    const call = quiet(world.client.unsubscribe('a'))
    await world.settle()
    await world.sendBytes([0xb0, 4, 0, world.peer.last('unsubscribe').packetId, 0, code])
    expect(goodbyeCode(world)).toSatisfy((sent) => sent === 0x81 || sent === 0x82)
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { outcome: 'unknown' } })
  })

  it.each([
    ['fewer', [0]],
    ['more', [0, 0, 0]],
  ])('UNSUBACK with %s codes than filters: close(0x82)', async (_what, reasonCodes) => {
    const world = await answering(...reasonCodes)
    expect(await world.outcome(world.client.unsubscribe(['a', 'b']))).toMatchObject({ state: 'rejected', error: { outcome: 'unknown' } })
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
    await world.send({ type: 'suback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0] })
    expect((await world.outcome(call)).state).not.toBe('fulfilled')
  })

  it('[MQTT-3.10.4-5] a filter never subscribed: resolves with 0x11', async () => {
    const world = await answering(0x11)
    const call = world.client.unsubscribe('never')
    await world.settle()
    expect(await call).toMatchObject([{ filter: 'never', reasonCode: 0x11, error: undefined }])
    expect(world.peer.last('unsubscribe').filters).toEqual(['never'])
  })

  it('the connection drops before UNSUBACK: rejected, outcome unknown', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a')
    const call = quiet(subscription.unsubscribe())
    await world.settle()
    world.peer.cut()
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' } })
  })

  it('abort of an unsubscribe detaches the caller; the exchange finishes', async () => {
    const world = await connected({}, granting)
    const abort = new AbortController()
    const subscription = await subscribe(world, 'a')
    const reading = read(subscription)
    const call = quiet(world.client.unsubscribe('a', { signal: abort.signal }))
    await world.settle()
    abort.abort()
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_ABORTED', outcome: 'unknown' } })
    await unsuback(world, 0)
    expect(reading.end.state).toBe('done')
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
    let release: () => void = () => undefined
    const done = (async () => {
      for await (const message of subscription) {
        texts.push(message.text())
        if (texts.length === 1)
          await new Promise<void>((resolve) => {
            release = resolve
          })
      }
    })()
    await world.send(...series('a', 3))
    const call = subscription.unsubscribe()
    await world.settle()
    await call
    release()
    await world.settle()
    await done
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
  })

  it('a message after the loop was left: acknowledged and dropped', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const iterator = subscription[Symbol.asyncIterator]()
    await iterator.return?.()
    await world.settle()
    await world.send(publish('a', 'late', 1))
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 1 }])
  })

  it('nobody reads: what waits is acknowledged and counted at UNSUBACK', async () => {
    const world = await agreed()
    const dropped: string[] = []
    const subscription = await subscribe(world, 'a', { qos: 1, onDrop: (message) => dropped.push(message.text()) })
    await world.send(...series('a', 3))
    const call = world.client.unsubscribe('a')
    await world.settle()
    await call
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
    expect(subscription.dropped).toBe(3)
    expect(dropped).toEqual(['1', '2', '3'])
    expect(await subscription.next()).toBeUndefined()
  })

  it('under manual acks the message in hand stays in hand', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = taken(subscription)
    const call = subscription.unsubscribe()
    await world.settle()
    await call
    expect(acks(world)).toEqual([])
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('several', () => {
  it('unsubscribe() twice: one UNSUBSCRIBE, both settle at UNSUBACK', async () => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a')
    const reading = read(subscription)
    const first = quiet(subscription.unsubscribe())
    const second = quiet(subscription.unsubscribe())
    expect(await world.outcome(first)).toEqual({ state: 'pending' })
    expect(await world.outcome(second)).toEqual({ state: 'pending' })
    await world.send(publish('a', 'late'))
    expect(reading.texts).toEqual(['late'])
    await unsuback(world, 0)
    expect(await world.outcome(first)).toMatchObject({ state: 'fulfilled' })
    expect(await world.outcome(second)).toMatchObject({ state: 'fulfilled' })
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
    expect(await world.outcome(subscription.unsubscribe())).toMatchObject({ state: 'fulfilled' })
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('client.unsubscribe ends every local subscription on the filter, at once on the wire', async () => {
    const world = await agreed()
    const readings = [read(await subscribe(world, 'a')), read(await subscribe(world, 'a'))]
    const call = world.client.unsubscribe('a')
    await world.settle()
    await call
    expect(readings.map((reading) => reading.end.state)).toEqual(['done', 'done'])
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a']])
  })

  it('one filter of two goes; the other one goes on', async () => {
    const world = await agreed()
    const reading = read(await subscribe(world, ['a', 'b']))
    const call = world.client.unsubscribe('a')
    await world.settle()
    await call
    await world.send(publish('b', 'x'), publish('a', 'y'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it('one packet for all filters of a subscription, but for those that others use', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a', 'b', 'c'])
    await subscribe(world, 'b')
    const call = subscription.unsubscribe()
    await world.settle()
    await call
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a', 'c']])
  })

  it('a new subscription while UNSUBSCRIBE is under way: SUBSCRIBE follows it, and its messages arrive', async () => {
    const world = await connected({}, granting)
    const old = await subscribe(world, 'a', { qos: 1 })
    const call = quiet(old.unsubscribe())
    const fresh = await subscribe(world, 'a', { qos: 1 })
    await world.settle()
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe', 'unsubscribe', 'subscribe'])
    await unsuback(world, 0)
    await call
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(fresh)).toEqual(['x'])
    expect(await old.next()).toBeUndefined()
  })

  it('async dispose leaves like the loop does', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await subscription[Symbol.asyncDispose]()
    await world.settle()
    expect(world.peer.last('unsubscribe').filters).toEqual(['a'])
  })
})

describe('an abort', () => {
  it.each([
    ['client.unsubscribe', (world: World) => world.client.unsubscribe('a')],
    ['unsubscribe() of the reader', (_world: World, subscription: Subscription) => subscription.unsubscribe()],
  ])('is about its caller alone: %s of another waits for UNSUBACK and fulfils', async (_name, other) => {
    const world = await connected({}, granting)
    const subscription = await subscribe(world, 'a')
    const abort = new AbortController()
    const first = failure(world.client.unsubscribe('a', { signal: abort.signal }))
    const second = quiet<unknown>(other(world, subscription))
    await world.settle()
    abort.abort()
    expect(await first).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    expect(await world.outcome(second)).toEqual({ state: 'pending' })
    for (const { packetId } of world.peer.all('unsubscribe')) await world.send({ type: 'unsuback', packetId, reasonCodes: [0] })
    expect(await world.outcome(second)).toMatchObject({ state: 'fulfilled' })
    expect(await subscription.next()).toBeUndefined()
  })
})

describe('the end of the client', () => {
  it('what may have reached the server says so, on whichever connection it was sent; what waits was not sent', async () => {
    const world = await connected({ clientId: 'c', cleanStart: false, maxFiltersPerSubscribe: 1, reconnect: { backoff: () => 10 } }, granting)
    const sent = failure(world.client.unsubscribe(['a', 'b']))
    await world.settle()
    world.peer.cut()
    await world.settle()
    const waiting = failure(world.client.unsubscribe('c'))
    world.client.destroy()
    expect(await sent).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
    expect(await waiting).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })

  it('an unsubscribe() that nobody awaits raises no unhandled rejection', async () => {
    const unhandled = await unhandledIn(async () => {
      const world = await connected({}, granting)
      const subscription = await subscribe(world, 'a')
      world.client.unsubscribe('b')
      subscription.unsubscribe()
      await world.settle()
      world.client.destroy()
    })
    expect(unhandled).toEqual([])
  })
})
