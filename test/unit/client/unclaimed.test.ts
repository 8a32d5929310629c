/** Messages that nobody here subscribed to: held for a while after Session Present 1, else acknowledged at once; always with an event. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import type { World } from './harness.js'
import {
  acks,
  agreed,
  pubacks,
  publish,
  read,
  resumed,
  series,
  subscribe,
  takenTexts,
} from './incoming.js'

const unclaimed = (world: World): string[] =>
  world.seen('unclaimed').map(({ message }) => message.text())

describe('after Session Present 1', () => {
  it('QoS 1 and 2 wait for a subscription, and reach it in order', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }), publish('a', '3', 3))
    expect([acks(world), unclaimed(world)]).toEqual([[], []])
    expect(takenTexts(world.client.subscription('a', { qos: 2 }))).toEqual(['1', '2', '3'])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2', 'puback 3'])
  })

  it('after unclaimedHold they are acknowledged in order, with an event each; later ones at once', async () => {
    const lines: string[] = []
    const world = await resumed({ logger: { warn: (line: string) => void lines.push(line) } })
    await world.send(...series('a', 2))
    await world.clock.advance(29_000)
    expect(acks(world)).toEqual([])
    await world.clock.advance(1001)
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 2), ['1', '2']])
    expect(lines.join()).toContain(
      '2 messages acknowledged unread: nobody subscribed within unclaimedHold (30000 ms)',
    )
    await world.send(publish('a', '3', 3))
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 3), ['1', '2', '3']])
  })

  it.each([1000, 0])('a hold of %d ms runs from CONNACK', async (unclaimedHold) => {
    const world = await resumed({ unclaimedHold })
    await world.clock.advance(0.9 * unclaimedHold)
    await world.send(publish('a', '1', 1))
    expect(acks(world)).toEqual(unclaimedHold === 0 ? ['puback 1'] : [])
    await world.clock.advance(101)
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('QoS 0 does not wait', async () => {
    const world = await resumed()
    await world.send(publish('a', 'x'))
    expect(unclaimed(world)).toEqual(['x'])
  })

  it('only what matches is claimed; the rest waits on, and holds back the acks behind it', async () => {
    const world = await resumed()
    await world.send(publish('other', '1', 1), publish('a', '2', 2))
    const reading = read(world.client.subscription('a', { qos: 1 }))
    await world.settle()
    expect([reading.texts, acks(world)]).toEqual([['2'], []])
    await world.clock.advance(30_000)
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 2), ['1']])
  })

  it('they stay inside the window: Receive Maximum holds', async () => {
    const world = await resumed({ receiveMaximum: 2, receiveMaximumExceeded: 'disconnect' })
    await world.send(...series('a', 2))
    expect(world.client.state).toBe('connected')
    await world.send(publish('a', '3', 3))
    expect(world.peer.last('disconnect').reasonCode).toBe(0x93)
  })

  it('a subscription made before connect() gets what comes right behind CONNACK', async () => {
    const world = await resumed()
    const fresh = world.client.subscription('a', { qos: 1 })
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(fresh)).toEqual(['x'])
  })

  it('of a shared filter, and of one of several filters', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1), publish('b', '2', 2), publish('a', '3', 3))
    expect(takenTexts(await subscribe(world, ['$share/g/a', 'b'], { qos: 1 }))).toEqual([
      '1',
      '2',
      '3',
    ])
  })

  it('a subscription that asks for QoS 0 does not delay the ack', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1))
    const subscription = await subscribe(world, 'a', { qos: 0 })
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(subscription)).toEqual(['1'])
  })

  it('listen gets them too', async () => {
    const world = await resumed()
    await world.send(...series('a', 2))
    const texts: string[] = []
    await Promise.all([
      world.client.listen('a', (message) => texts.push(message.text()), { qos: 1 }),
      world.settle(),
    ])
    expect([texts, acks(world)]).toEqual([['1', '2'], pubacks(1, 2)])
  })

  it('the first SUBSCRIBE is sent in any case, with its own Retain Handling', async () => {
    const world = await resumed()
    await subscribe(world, 'a', { qos: 1, retainHandling: 1 })
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([
      { filter: 'a', qos: 1, retainHandling: 1 },
    ])
  })

  it('disconnect() leaves what is held unacknowledged', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1))
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(acks(world)).toEqual([])
    expect(world.clock.pending).toBe(0)
  })
})

describe('otherwise', () => {
  it('[MQTT-4.5.0-2] acknowledged at once, with the event', async () => {
    const world = await agreed({ clientId: 'c', cleanStart: false })
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
    expect([acks(world), unclaimed(world)]).toEqual([
      ['puback 1', 'pubrec 2'],
      ['1', '2'],
    ])
  })

  it('the message of the event can be read, and its ack is stale', async () => {
    const world = await agreed()
    await world.send(publish('a', 'x', 1, { properties: { contentType: 't' } }))
    const [event] = world.seen('unclaimed')
    expect([
      event?.message.text(),
      event?.message.properties.contentType,
      event?.message.ack(),
    ]).toEqual(['x', 't', false])
  })

  it('a listener of the event that subscribes gets what comes next', async () => {
    const world = await agreed()
    const made: Subscription[] = []
    world.client.on(
      'unclaimed',
      ({ message }) => void made.push(world.client.subscription(message.topic)),
    )
    await world.send(publish('a', '1'), publish('a', '2'))
    expect(made.map(takenTexts)).toEqual([['2']])
  })
})
