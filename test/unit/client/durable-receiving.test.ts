/** A resumed session that brings messages before anybody subscribed, and subscriptions that were left to the broker, over several connections. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { again, carried, comeBack, lose, steady, willing } from './across.js'
import { acks, publish, subscribe, takenTexts } from './incoming.js'

const durable: ClientOptions = { clientId: 'mine', cleanStart: false, unclaimedHold: 5000 }

describe('messages that nobody claimed yet', () => {
  it('are held over a drop, bound to their repeats, and handed to whoever subscribes, once and in order', async () => {
    const world = await steady(durable, willing(true))
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }))
    expect(acks(world)).toEqual([])
    await again(world, willing(true))
    await world.send(publish('t', 'one', 1, { dup: true }), publish('t', 'two', 2, { qos: 2, dup: true }))
    expect(acks(world)).toEqual([])
    const subscription = await subscribe(world, 't', { qos: 2 })
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    subscription.read()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
  })

  it('the time of `unclaimedHold` runs from the first CONNACK, and on over a drop; then they are acknowledged with the event', async () => {
    const log: string[] = []
    const world = await steady({ ...durable, logger: { warn: (text) => log.push(text) } }, willing(true))
    await world.send(publish('t', 'one', 1))
    await world.clock.advance(4000)
    await again(world, willing(true))
    await world.send(publish('t', 'one', 1, { dup: true }))
    await world.clock.advance(989)
    expect(world.seen('unclaimed')).toEqual([])
    await world.clock.advance(1)
    expect(world.seen('unclaimed')).toHaveLength(1)
    expect(acks(world)).toEqual(['puback 1'])
    expect(log).toEqual([expect.stringMatching(/1 message .*unclaimedHold.*5000 ms/)])
    // After it nothing is held, on no later connection.
    await again(world, willing(true))
    await world.send(publish('t', 'two', 2))
    expect(acks(world)).toEqual(['puback 2'])
    expect(world.seen('unclaimed')).toHaveLength(2)
  })

  it('the time may end while there is no connection: the acknowledgement waits for the repeat', async () => {
    const world = await steady(durable, willing(true))
    await world.send(publish('t', 'one', 1))
    world.answer = () => undefined
    await lose(world)
    await world.clock.advance(6000)
    expect(world.seen('unclaimed')).toHaveLength(1)
    await lose(world)
    await comeBack(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.send(publish('t', 'one', 1, { dup: true }))
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('unclaimed')).toHaveLength(1)
  })

  it('are forgotten with the session: a later subscription does not get them as messages that it could acknowledge', async () => {
    const world = await steady(durable, willing(true))
    await world.send(publish('t', 'one', 1))
    await again(world, willing(false))
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'absent', stale: 1 }])
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    for (let message = subscription.read(); message !== undefined; message = subscription.read()) expect(message.ack()).toBe(false)
    await world.settle()
    expect(acks(world)).toEqual([])
  })
})

describe('a subscription that was left to the broker (detach)', () => {
  it('is made again when the session is lost, as the broker is to go on sending', async () => {
    const world = await steady(durable, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1 })
    subscription.detach()
    await again(world, willing(false))
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe t #\d+$/)])
    await world.send(publish('t', 'kept', 1))
    expect(acks(world)).toEqual([])
    expect(takenTexts(await subscribe(world, 't', { qos: 1, retainHandling: 2 }))).toEqual(['kept'])
  })

  it('`client.unsubscribe(filter)` while there is no connection releases it: nothing brings it back', async () => {
    const world = await steady(durable, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1 })
    subscription.detach()
    await lose(world)
    const left = world.client.unsubscribe('t')
    await comeBack(world, willing(true))
    await left
    await again(world, willing(false))
    expect(world.peer.all('subscribe')).toEqual([])
  })
})
