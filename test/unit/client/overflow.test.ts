/** Bounds: the three overflow policies, when they decide, and backpressure by Receive Maximum while everything else flows. */
import { describe, expect, it } from 'vitest'
import type { SubscribeOptions } from '../../../src/client/api/index.js'
import type { World } from './harness.js'
import { acks, agreed, pubacks, publish, quick, series, subscribe, taken, takenTexts } from './incoming.js'

const dropCount = (world: World): number => world.seen('drop').reduce((sum, event) => sum + event.count, 0)

/** Sends each message in a read of its own. */
async function trickle(world: World, texts: readonly number[], qos: 0 | 1 = 0): Promise<void> {
  for (const text of texts) await world.send(publish('a', String(text), qos === 0 ? undefined : text))
}

async function overflowing(options: SubscribeOptions) {
  const world = await agreed({ keepAlive: false })
  const dropped: string[] = []
  const subscription = await subscribe(world, 'a', { buffer: 3, onDrop: (message) => dropped.push(message.text()), ...options })
  return { world, subscription, dropped }
}

describe('drop-oldest', () => {
  it('QoS 0: keeps the newest, counts and tells the rest', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-oldest' })
    await trickle(world, [1, 2, 3])
    expect(subscription.dropped).toBe(0)
    // The one that finds the buffer full comes in a later read than those that filled it.
    await trickle(world, [4, 5, 6, 7])
    expect(subscription.size).toBeLessThanOrEqual(4)
    expect(dropped).toEqual(Array.from({ length: subscription.dropped }, (_, index) => String(index + 1)))
    expect(subscription.dropped).toBeGreaterThanOrEqual(3)
    await world.clock.advance(1000)
    expect(dropCount(world)).toBe(subscription.dropped)
    expect(takenTexts(subscription)).toEqual(['1', '2', '3', '4', '5', '6', '7'].slice(subscription.dropped))
  })

  it('QoS 1: what is dropped is acknowledged', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-oldest', qos: 1 })
    await trickle(world, [1, 2, 3, 4, 5, 6], 1)
    expect(dropped.length).toBeGreaterThanOrEqual(2)
    expect(acks(world)).toEqual(pubacks(1, dropped.length))
    expect(takenTexts(subscription)).toEqual(['1', '2', '3', '4', '5', '6'].slice(dropped.length))
  })

  it('after a burst the buffer comes down to its limit', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-oldest' })
    await world.send(...quick('a', 10))
    expect(subscription.size).toBe(10)
    await trickle(world, [11])
    expect(subscription.size).toBeLessThanOrEqual(4)
    await trickle(world, [12])
    expect(subscription.size).toBeLessThanOrEqual(4)
    expect(takenTexts(subscription).at(-1)).toBe('12')
  })

  it('bytes are bounded as well: as many go as must', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-oldest', buffer: 1000, bufferBytes: 2000 })
    for (let index = 0; index < 10; index++) await world.send(publish('a', 'x'.repeat(100)))
    for (let index = 0; index < 30; index++) await world.send(publish('a', 'y'.repeat(900)))
    expect(subscription.size).toBeLessThanOrEqual(3)
    expect(subscription.dropped).toBe(40 - subscription.size)
  })
})

describe('drop-newest', () => {
  it('QoS 0: keeps the oldest', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-newest' })
    await trickle(world, [1, 2, 3, 4, 5, 6, 7])
    expect(dropped.length).toBeGreaterThanOrEqual(3)
    expect(takenTexts(subscription)).toEqual(['1', '2', '3', '4', '5', '6', '7'].slice(0, 7 - dropped.length))
    expect(dropped).toEqual(['1', '2', '3', '4', '5', '6', '7'].slice(7 - dropped.length))
    await world.clock.advance(1000)
    expect(dropCount(world)).toBe(dropped.length)
  })

  it('QoS 1: what is dropped is acknowledged, in its turn', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-newest', qos: 1 })
    await trickle(world, [1, 2, 3, 4, 5, 6], 1)
    expect(acks(world)).toEqual([])
    expect(dropped.length).toBeGreaterThanOrEqual(2)
    takenTexts(subscription)
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 6))
  })
})

describe('backpressure, the default', () => {
  it('QoS 1 is never dropped: acks wait, and the broker stops at Receive Maximum', async () => {
    const { world, subscription } = await overflowing({ qos: 1 })
    await trickle(
      world,
      Array.from({ length: 256 }, (_, index) => index + 1),
      1,
    )
    expect(world.peer.last('connect').properties.receiveMaximum ?? 65_535).toBe(65_535)
    expect(subscription.size).toBe(256)
    expect(subscription.dropped).toBe(0)
    expect(acks(world)).toEqual([])
    expect(world.client.state).toBe('connected')
    expect(takenTexts(subscription)).toHaveLength(256)
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 256))
    await world.send(publish('a', 'more', 1))
    expect(takenTexts(subscription)).toEqual(['more'])
  })

  it('QoS 0 then drops the oldest QoS 0, counted; QoS 1 stays', async () => {
    const { world, subscription, dropped } = await overflowing({ qos: 1 })
    await world.send(publish('a', 'keep', 1))
    await trickle(world, [1, 2, 3, 4, 5, 6])
    expect(dropped.length).toBeGreaterThanOrEqual(3)
    expect(dropped).toEqual(['1', '2', '3', '4', '5', '6'].slice(0, dropped.length))
    expect(takenTexts(subscription)).toEqual(['keep', ...['1', '2', '3', '4', '5', '6'].slice(dropped.length)])
  })

  it('a buffer full of QoS 1 drops the QoS 0 message that comes', async () => {
    const { world, subscription, dropped } = await overflowing({ qos: 1 })
    await trickle(world, [1, 2, 3, 4, 5], 1)
    await world.send(publish('a', 'zero'))
    await world.send(publish('a', 'zero'))
    expect(dropped).toContain('zero')
    expect(takenTexts(subscription).filter((text) => text !== 'zero')).toEqual(['1', '2', '3', '4', '5'])
  })
})

describe('when the policy decides', () => {
  it.each(['drop-oldest', 'drop-newest', 'backpressure'] as const)('%s: a burst within one read is not the consumer’s fault', async (overflow) => {
    const { world, subscription } = await overflowing({ overflow })
    await world.send(...quick('a', 50))
    expect(subscription.dropped).toBe(0)
    expect(takenTexts(subscription)).toHaveLength(50)
  })

  it.each(['drop-oldest', 'drop-newest'] as const)('%s: bursts, each read before the next, lose nothing', async (overflow) => {
    const { world, subscription } = await overflowing({ overflow })
    const texts: string[] = []
    for (let round = 0; round < 5; round++) {
      await world.send(...quick('a', 20, round * 20 + 1))
      texts.push(...takenTexts(subscription))
    }
    expect(subscription.dropped).toBe(0)
    expect(texts).toEqual(Array.from({ length: 100 }, (_, index) => String(index + 1)))
  })

  it('a message larger than bufferBytes still arrives when the buffer is empty', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-oldest', bufferBytes: 10 })
    await world.send(publish('a', 'x'.repeat(1000)))
    expect(takenTexts(subscription)).toHaveLength(1)
  })

  it('a reader that waits is given the message, whatever the buffer', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-newest', buffer: 1 })
    for (const text of ['1', '2', '3']) {
      const waiting = subscription.next()
      await world.send(publish('a', text))
      expect((await waiting)?.text()).toBe(text)
    }
    expect(subscription.dropped).toBe(0)
  })

  it('defaults of the client: subscriptions { buffer, overflow }, and options of a subscription over them', async () => {
    const world = await agreed({ keepAlive: false, subscriptions: { buffer: 2, overflow: 'drop-newest' } })
    const first = await subscribe(world, 'a')
    const second = await subscribe(world, 'a', { buffer: 100 })
    await trickle(world, [1, 2, 3, 4, 5, 6])
    expect(first.size).toBeLessThanOrEqual(3)
    expect(second.size).toBe(6)
  })

  it('the default buffer holds 1,024 messages', async () => {
    const world = await agreed({ keepAlive: false })
    const subscription = await subscribe(world, 'a')
    for (let round = 0; round < 30; round++) await world.send(...quick('a', 50, round * 50 + 1))
    expect(subscription.size).toBeGreaterThanOrEqual(1024)
    expect(subscription.size).toBeLessThanOrEqual(1024 + 50)
    expect(takenTexts(subscription).at(-1)).toBe('1500')
  })

  it('onDrop that throws harms nobody', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', {
      buffer: 1,
      overflow: 'drop-newest',
      onDrop: () => {
        throw new Error('no')
      },
    })
    await trickle(world, [1, 2, 3, 4])
    expect(world.client.state).toBe('connected')
    expect(takenTexts(subscription)[0]).toBe('1')
  })

  it('a flood of losses is at most one drop event per second', async () => {
    const { world } = await overflowing({ overflow: 'drop-oldest', buffer: 1 })
    for (let index = 0; index < 50; index++) {
      await world.send(publish('a', 'x'))
      await world.clock.advance(100)
    }
    expect(world.seen('drop').length).toBeLessThanOrEqual(6)
    expect(world.seen('drop').length).toBeGreaterThanOrEqual(4)
  })

  it('a loss that nothing follows is told once, and no `drop` event tells of none', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-oldest', buffer: 1 })
    await trickle(world, [1, 2, 3])
    await world.clock.advance(5000)
    expect(world.seen('drop').map(({ count }) => count)).not.toContain(0)
    expect(dropCount(world)).toBe(subscription.dropped)
  })
})

describe('a subscription that nobody reads', () => {
  it('QoS 0 of others, control packets, keep-alive and publishes are unaffected', async () => {
    const world = await agreed({ keepAlive: 30 })
    const stalled = await subscribe(world, 'stalled', { qos: 1 })
    const other = await subscribe(world, 'other')
    await world.send(...series('stalled', 256))
    expect(world.client.state).toBe('connected')
    for (let round = 0; round < 5; round++) {
      await world.send(publish('other', String(round)))
      expect(takenTexts(other)).toEqual([String(round)])
      const sent = world.client.publish('x', 'y', { qos: 1 })
      await world.settle()
      expect((await sent).reasonCode).toBe(0)
      await world.clock.advance(30_000)
    }
    expect(world.peer.all('pingreq').length).toBeGreaterThanOrEqual(4)
    expect(world.client.state).toBe('connected')
    expect((await subscribe(world, 'third')).granted).toHaveLength(1)
    expect(stalled.size).toBe(256)
    expect(acks(world)).toEqual([])
  })

  it('others get at most Receive Maximum − 1 further QoS 1 messages behind the oldest unsettled one', async () => {
    const world = await agreed({ receiveMaximum: 10 })
    await subscribe(world, 'stalled', { qos: 1 })
    const other = await subscribe(world, 'other', { qos: 1 })
    await world.send(publish('stalled', 'x', 1), ...series('other', 9, 2))
    expect(takenTexts(other)).toHaveLength(9)
    await world.settle()
    expect(acks(world)).toEqual([])
    expect(world.client.state).toBe('connected')
  })

  it("ack 'on-receive' is not held up by its reader, but by others only as the order of acks says", async () => {
    const world = await agreed({ receiveMaximum: 4 })
    const isolated = await subscribe(world, 'isolated', { qos: 1, ack: 'on-receive' })
    for (let id = 1; id <= 20; id++) await world.send(publish('isolated', String(id), id))
    expect(acks(world)).toEqual(pubacks(1, 20))
    expect(isolated.size).toBe(20)
  })

  it('memory stays flat over a long feed: QoS 0 by the buffer', async () => {
    const world = await agreed({ keepAlive: false })
    const subscription = await subscribe(world, 'a', { buffer: 16 })
    for (let round = 0; round < 200; round++) await world.send(...quick('a', 10))
    expect(subscription.size).toBeLessThanOrEqual(26)
    expect(subscription.dropped + subscription.size).toBe(2000)
  })

  it('a copy of a QoS 1 message for a consumer that asked for QoS 0 is dropped like QoS 0: the oldest goes', async () => {
    const world = await agreed({ keepAlive: false })
    const lazy = await subscribe(world, 'a', { qos: 0, buffer: 2 })
    await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
    await trickle(world, [1, 2, 3, 4, 5, 6], 1)
    expect(lazy.dropped).toBeGreaterThanOrEqual(3)
    expect(taken(lazy).text()).not.toBe('1')
  })
})
