/** Ends: of turns and of the client, in the orders that programs really use. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable, failure } from './harness.js'
import { acks, agreed, gate, publish, quiet, subscribe, taken } from './incoming.js'

describe('disconnect()', () => {
  it('timeout 0 lets DISCONNECT leave, also where time passes between two statements', async () => {
    const clock = new VirtualClock()
    let ticks = 0
    const moving = { ...virtualPlatform(clock), now: () => clock.now() + ticks++ * 0.001 }
    const [near, far] = memoryPair({
      schedule: (callback, delay) => clock.setTimer(callback, delay),
      latency: 5,
    })
    const peer = new ScriptedPeer(far, 5, agreeable)
    const client = new BaseClient(moving, { url: 'memory://peer', transport: () => near }, {})
    await Promise.all([client.connect(), clock.advance(20)])
    for (let count = 0; count < 30; count++) quiet(client.publish('t', new Uint8Array(2000)))
    await Promise.all([client.disconnect({ timeout: 0 }), clock.advance(20)])
    expect(peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    expect(peer.all('publish')).toHaveLength(30)
  })

  it('called again by a listener of its own state change, it joins', async () => {
    const world = await agreed()
    world.client.on('state', ({ state }) => {
      if (state === 'disconnecting') world.client.disconnect()
    })
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'disconnect'])
  })

  it.each([0, 200])('waits for a loop body of a subscription gone, %i since', async (others) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const body = gate()
    const loop = (async () => {
      for await (const _ of subscription) await body.promise
    })()
    await world.send(publish('a', 'x', 1))
    await Promise.all([subscription.unsubscribe(), world.settle()])
    for (let count = 0; count < others; count++) {
      quiet((await subscribe(world, 'a', { qos: 1 })).unsubscribe())
      await world.settle()
    }
    const done = world.client.disconnect()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    body.open()
    await Promise.all([done, loop, world.settle()])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('acknowledges what a loop had in hand that breaks meanwhile, before it says goodbye', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const body = gate()
    const loop = (async () => {
      for await (const _ of subscription) {
        await body.promise
        break
      }
    })()
    await world.send(publish('a', 'x', 1), publish('a', 'y', 2))
    const done = world.client.disconnect()
    await world.settle()
    expect(acks(world)).toEqual([])
    body.open()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    await Promise.all([done, loop])
    expect(world.clock.now()).toBeLessThan(100)
  })

  it('does not wait when every manual consumer of a message has settled it', async () => {
    const world = await agreed()
    const subscriptions = [1, 2].map(() =>
      world.client.subscription('a', { qos: 1, ack: 'manual' }),
    )
    await world.settle()
    await world.send(publish('a', 'x', 1))
    const [first, second] = subscriptions.map(taken)
    const done = world.client.disconnect()
    await world.settle()
    first?.ack()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    second?.ack()
    await Promise.all([done, world.settle()])
    expect(world.clock.now()).toBeLessThan(100)
  })

  it.each([true, false])(
    'waits for the message of a loop, not its body; acked: %s',
    async (acked) => {
      const world = await agreed()
      const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
      const loop = (async () => {
        for await (const message of subscription) {
          if (acked) message.ack()
          await gate().promise
        }
      })()
      await world.send(publish('a', 'x', 1))
      const done = world.client.disconnect()
      await world.settle()
      expect(world.client.state).toBe(acked ? 'closed' : 'disconnecting')
      await world.clock.advance(60_000)
      await done
      quiet(loop)
    },
  )

  it('lets nobody subscribe any more', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    taken(subscription)
    const done = world.client.disconnect()
    expect(await failure(world.client.subscribe('b'))).toMatchObject({ code: 'ERR_CLOSED' })
    expect(await failure(world.client.unsubscribe('a'))).toMatchObject({ code: 'ERR_CLOSED' })
    await world.clock.advance(6000)
    await done
  })
})

it('one ERR_CONCURRENT_NEXT does not poison the subscription', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, 'a', { qos: 1 })
  const waiting = subscription.next()
  const iterator = subscription[Symbol.asyncIterator]()
  expect(await failure(iterator.next())).toMatchObject({ code: 'ERR_CONCURRENT_NEXT' })
  await world.send(publish('a', 'x', 1), publish('a', 'y', 2))
  await waiting
  for await (const message of subscription) {
    expect(message.text()).toBe('y')
    break
  }
})
