/**
 * Ends: of turns, of subscriptions and of the client, in the orders that programs really use.
 */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable, connected, type World } from './harness.js'
import { acks, publish, quiet } from './incoming.js'
import { unhandledIn } from './unhandled.js'

async function subscribed(world: World, options: object = {}) {
  const call = world.client.subscribe('a', { qos: 1, ...options })
  await world.settle()
  return call
}

describe('disconnect()', () => {
  it('timeout 0 lets DISCONNECT leave, also where time passes between two statements', async () => {
    const clock = new VirtualClock()
    let ticks = 0
    const moving = { ...virtualPlatform(clock), now: () => clock.now() + ticks++ * 0.001 }
    const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay), latency: 5 })
    const peer = new ScriptedPeer(far, 5, agreeable)
    const client = new BaseClient(moving, { url: 'memory://peer', transport: () => near }, {})
    const connecting = client.connect()
    await clock.advance(20)
    await connecting
    for (let count = 0; count < 30; count++) client.publish('t', new Uint8Array(2000)).catch(() => undefined)
    const done = client.disconnect({ timeout: 0 })
    await clock.advance(20)
    await done
    expect(peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    expect(peer.all('publish')).toHaveLength(30)
  })

  it('called again by a listener of its own state change, it joins', async () => {
    const world = await connected({}, agreeable)
    world.client.on('state', ({ state }) => {
      if (state === 'disconnecting') world.client.disconnect()
    })
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'disconnect'])
  })

  it.each([0, 200])('waits for a loop body whose subscription is gone already, and %i others since', async (others) => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world)
    let finish: () => void = () => undefined
    const loop = (async () => {
      for await (const message of subscription) if (message.text() === 'x') await new Promise<void>((resolve) => (finish = resolve))
    })()
    await world.send(publish('a', 'x', 1))
    const left = quiet(subscription.unsubscribe())
    await world.settle()
    await left
    for (let count = 0; count < others; count++) {
      const other = await subscribed(world)
      other.unsubscribe().catch(() => undefined)
      await world.settle()
    }
    const done = world.client.disconnect()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    finish()
    await world.settle()
    await Promise.all([done, loop])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('acknowledges what a loop had in hand that breaks meanwhile, before it says goodbye', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world)
    let finish: () => void = () => undefined
    const loop = (async () => {
      for await (const _ of subscription) {
        await new Promise<void>((resolve) => (finish = resolve))
        break
      }
    })()
    await world.send(publish('a', 'x', 1), publish('a', 'y', 2))
    const done = world.client.disconnect()
    await world.settle()
    expect(acks(world)).toEqual([])
    finish()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    await Promise.all([done, loop])
    expect(world.clock.now()).toBeLessThan(100)
  })

  it('does not wait when every manual consumer of a message has settled it', async () => {
    const world = await connected({}, agreeable)
    const [first, second] = [await subscribed(world, { ack: 'manual' }), await subscribed(world, { ack: 'manual' })]
    await world.send(publish('a', 'x', 1))
    const messages = [first.read(), second.read()]
    const done = world.client.disconnect()
    await world.settle()
    messages[0]?.ack()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    messages[1]?.ack()
    await world.settle()
    await done
    expect(world.clock.now()).toBeLessThan(100)
  })

  it.each([
    ['acked it', true],
    ['not acked it', false],
  ])('under manual acks waits for the message in a loop, not for its body: that has %s', async (_name, acked) => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world, { ack: 'manual' })
    const loop = (async () => {
      for await (const message of subscription) {
        if (acked) message.ack()
        await new Promise(() => undefined)
      }
    })()
    await world.send(publish('a', 'x', 1))
    const done = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe(acked ? 'closed' : 'disconnecting')
    await world.clock.advance(60_000)
    await done
    quiet(loop)
  })

  it('lets nobody subscribe any more', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world, { ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    subscription.read()
    const done = world.client.disconnect()
    await expect(world.client.subscribe('b')).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await expect(world.client.unsubscribe('a')).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await world.clock.advance(6000)
    await done
  })
})

describe('unsubscribe()', () => {
  it('ends the turn of a message that a bare next() gave, so that the acknowledgements behind it can leave', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world)
    await world.send(publish('a', 'x', 1))
    expect((await subscription.next())?.text()).toBe('x')
    const left = subscription.unsubscribe()
    await world.settle()
    await left
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('under manual acks leaves it to the application', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world, { ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = subscription.read()
    const left = subscription.unsubscribe()
    await world.settle()
    await left
    expect(acks(world)).toEqual([])
    expect(message?.ack()).toBe(true)
  })

  it('settles at the UNSUBACK that is under way, whoever asked for it', async () => {
    const world = await connected({}, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const subscription = await subscribed(world)
    const [one, two] = [quiet(world.client.unsubscribe('a')), quiet(subscription.unsubscribe())]
    expect(await world.outcome(two)).toEqual({ state: 'pending' })
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0], properties: {} })
    await Promise.all([one, two])
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('refused after a new subscription took its place: the old reader ends', async () => {
    const world = await connected({}, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const old = await subscribed(world)
    const waiting = old.next()
    const left = quiet(old.unsubscribe())
    await world.settle()
    const fresh = await subscribed(world)
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [0x87], properties: {} })
    expect(await world.outcome(waiting)).toEqual({ state: 'fulfilled', value: undefined })
    await expect(left).rejects.toMatchObject({ code: 'ERR_UNSUBSCRIBE_REFUSED' })
    await world.send(publish('a', 'x', 1))
    expect(fresh.read()?.text()).toBe('x')
  })

  it('that nobody awaits raises no unhandled rejection when the link is lost', async () => {
    const world = await connected({}, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const raised = await unhandledIn(async () => {
      const subscription = await subscribed(world)
      subscription.unsubscribe()
      await world.settle()
      world.peer.cut()
      await world.settle()
    })
    expect(world.client.state).toBe('closed')
    expect(raised).toEqual([])
  })

  it('offline, pairs of subscription() and unsubscribe() do not pile up', async () => {
    const world = await connected({}, agreeable)
    for (let count = 0; count < 5000; count++) {
      const subscription = world.client.subscription(`t/${count}`)
      subscription.ready.catch(() => undefined)
      subscription.unsubscribe()
    }
    await world.settle()
    expect(world.peer.all('subscribe')).toEqual([])
  })
})

describe('readers', () => {
  it('one ERR_CONCURRENT_NEXT does not poison the subscription', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribed(world)
    const waiting = subscription.next()
    await expect(subscription[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'ERR_CONCURRENT_NEXT' })
    await world.send(publish('a', 'x', 1), publish('a', 'y', 2))
    await waiting
    for await (const message of subscription) {
      expect(message.text()).toBe('y')
      break
    }
  })
})
