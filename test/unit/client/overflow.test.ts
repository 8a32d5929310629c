/** Bounds: the three overflow policies, when they decide, and backpressure by Receive Maximum while everything else flows. */
import { describe, expect, it } from 'vitest'
import type { SubscribeOptions } from '../../../src/client/api/index.js'
import type { World } from './harness.js'
import {
  acks,
  agreed,
  pubacks,
  publish,
  quick,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'

const dropCount = (world: World): number =>
  world.seen('drop').reduce((sum, event) => sum + event.count, 0)
const texts = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => String(from + index))

/** Sends each message in a read of its own. */
async function trickle(world: World, to: number, qos: 0 | 1 = 0, from = 1): Promise<void> {
  for (let text = from; text <= to; text++)
    await world.send(publish('a', String(text), qos === 0 ? undefined : text))
}

async function overflowing(options: SubscribeOptions) {
  const world = await agreed({ keepAlive: false })
  const dropped: string[] = []
  const subscription = await subscribe(world, 'a', {
    buffer: 3,
    onDrop: (message) => dropped.push(message.text()),
    ...options,
  })
  return { world, subscription, dropped }
}

describe('drop-oldest', () => {
  it('QoS 0: keeps the newest, counts and tells the rest', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-oldest' })
    await trickle(world, 3)
    expect(subscription.dropped).toBe(0)
    // The one that finds the buffer full comes in a later read than those that filled it.
    await trickle(world, 7, 0, 4)
    expect(subscription.size).toBeLessThanOrEqual(4)
    expect(dropped).toEqual(texts(1, subscription.dropped))
    await world.clock.advance(1000)
    expect(dropCount(world)).toBe(subscription.dropped)
    expect(takenTexts(subscription)).toEqual(texts(subscription.dropped + 1, 7))
  })

  it('QoS 1: what is dropped is acknowledged', async () => {
    const { world, subscription, dropped } = await overflowing({ overflow: 'drop-oldest', qos: 1 })
    await trickle(world, 6, 1)
    expect(dropped.length).toBeGreaterThanOrEqual(2)
    expect(acks(world)).toEqual(pubacks(1, dropped.length))
    expect(takenTexts(subscription)).toEqual(texts(dropped.length + 1, 6))
  })

  it('after a burst the buffer comes down to its limit', async () => {
    const { world, subscription } = await overflowing({ overflow: 'drop-oldest' })
    await world.send(...quick('a', 10))
    expect(subscription.size).toBe(10)
    for (const text of [11, 12]) {
      await trickle(world, text, 0, text)
      expect(subscription.size).toBeLessThanOrEqual(4)
    }
    expect(takenTexts(subscription).at(-1)).toBe('12')
  })

  it('bytes are bounded as well: as many go as must', async () => {
    const { world, subscription } = await overflowing({
      overflow: 'drop-oldest',
      buffer: 1000,
      bufferBytes: 2000,
    })
    for (let index = 0; index < 40; index++)
      await world.send(publish('a', 'x'.repeat(index < 10 ? 100 : 900)))
    expect(subscription.size).toBeLessThanOrEqual(3)
    expect(subscription.dropped).toBe(40 - subscription.size)
  })
})

it.each([0, 1] as const)('drop-newest at QoS %i: acknowledged in its turn', async (qos) => {
  const { world, subscription, dropped } = await overflowing({ overflow: 'drop-newest', qos })
  await trickle(world, 7, qos)
  expect(acks(world)).toEqual([])
  expect(dropped.length).toBeGreaterThanOrEqual(3)
  expect(dropped).toEqual(texts(8 - dropped.length, 7))
  expect(takenTexts(subscription)).toEqual(texts(1, 7 - dropped.length))
  await world.clock.advance(1000)
  expect(dropCount(world)).toBe(dropped.length)
  expect(acks(world)).toEqual(qos === 0 ? [] : pubacks(1, 7))
})

describe('backpressure, the default', () => {
  it('QoS 1 is never dropped: acks wait, and the broker stops at Receive Maximum', async () => {
    const { world, subscription } = await overflowing({ qos: 1 })
    await trickle(world, 256, 1)
    expect(world.peer.last('connect').properties.receiveMaximum ?? 65_535).toBe(65_535)
    expect([subscription.size, subscription.dropped, acks(world), world.client.state]).toEqual([
      256,
      0,
      [],
      'connected',
    ])
    expect(takenTexts(subscription)).toHaveLength(256)
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 256))
    await world.send(publish('a', 'more', 1))
    expect(takenTexts(subscription)).toEqual(['more'])
  })

  it('QoS 0 then drops the oldest QoS 0, counted; QoS 1 stays', async () => {
    const { world, subscription, dropped } = await overflowing({ qos: 1 })
    await world.send(publish('a', 'keep', 1))
    await trickle(world, 6)
    expect(dropped.length).toBeGreaterThanOrEqual(3)
    expect(dropped).toEqual(texts(1, dropped.length))
    expect(takenTexts(subscription)).toEqual(['keep', ...texts(dropped.length + 1, 6)])
  })

  it('a buffer full of QoS 1 drops the QoS 0 message that comes', async () => {
    const { world, subscription, dropped } = await overflowing({ qos: 1 })
    await trickle(world, 5, 1)
    for (let round = 0; round < 2; round++) await world.send(publish('a', 'zero'))
    expect(dropped).toContain('zero')
    expect(takenTexts(subscription).filter((text) => text !== 'zero')).toEqual(texts(1, 5))
  })
})

describe('when the policy decides', () => {
  it.each(['drop-oldest', 'drop-newest', 'backpressure'] as const)(
    '%s: bursts within one read, each read before the next, are not the consumer’s fault',
    async (overflow) => {
      const { world, subscription } = await overflowing({ overflow })
      for (let round = 0; round < 5; round++) {
        await world.send(...quick('a', 50, round * 50 + 1))
        expect(takenTexts(subscription)).toEqual(texts(round * 50 + 1, round * 50 + 50))
      }
      expect(subscription.dropped).toBe(0)
    },
  )

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
    const world = await agreed({
      keepAlive: false,
      subscriptions: { buffer: 2, overflow: 'drop-newest' },
    })
    const [first, second] = [
      await subscribe(world, 'a'),
      await subscribe(world, 'a', { buffer: 100 }),
    ]
    await trickle(world, 6)
    expect(first.size).toBeLessThanOrEqual(3)
    expect(second.size).toBe(6)
  })

  it.each([
    [undefined, 1024],
    [16, 16],
  ])('memory stays flat at QoS 0: a buffer of %s holds %i', async (buffer, holds) => {
    const { world, subscription } = await overflowing({ buffer })
    for (let round = 0; round < 40; round++) await world.send(...quick('a', 50, round * 50 + 1))
    expect(subscription.size).toBeGreaterThanOrEqual(holds)
    expect(subscription.size).toBeLessThanOrEqual(holds + 50)
    expect(subscription.dropped + subscription.size).toBe(2000)
    expect(takenTexts(subscription).at(-1)).toBe('2000')
  })

  it('onDrop that throws harms nothing', async () => {
    const fail = (): never => {
      throw new Error('no')
    }
    const { world, subscription } = await overflowing({
      buffer: 1,
      overflow: 'drop-newest',
      onDrop: fail,
    })
    await trickle(world, 4)
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
    await trickle(world, 3)
    await world.clock.advance(5000)
    expect(world.seen('drop').map(({ count }) => count)).not.toContain(0)
    expect(dropCount(world)).toBe(subscription.dropped)
  })
})

describe('a subscription that is not read', () => {
  it('QoS 0 of others, control packets, keep-alive and publishes are unaffected', async () => {
    const world = await agreed({ keepAlive: 30 })
    const stalled = await subscribe(world, 'stalled', { qos: 1 })
    const other = await subscribe(world, 'other')
    await world.send(...series('stalled', 256))
    for (let round = 0; round < 5; round++) {
      await world.send(publish('other', String(round)))
      expect(takenTexts(other)).toEqual([String(round)])
      const [sent] = await Promise.all([world.client.publish('x', 'y', { qos: 1 }), world.settle()])
      expect(sent.reasonCode).toBe(0)
      await world.clock.advance(30_000)
    }
    expect(world.peer.all('pingreq').length).toBeGreaterThanOrEqual(4)
    expect((await subscribe(world, 'third')).granted).toHaveLength(1)
    expect([stalled.size, acks(world), world.client.state]).toEqual([256, [], 'connected'])
  })

  it('others get at most Receive Maximum − 1 further QoS 1 messages behind the oldest unsettled one', async () => {
    const world = await agreed({ receiveMaximum: 10 })
    await subscribe(world, 'stalled', { qos: 1 })
    const other = await subscribe(world, 'other', { qos: 1 })
    await world.send(publish('stalled', 'x', 1), ...series('other', 9, 2))
    expect(takenTexts(other)).toHaveLength(9)
    await world.settle()
    expect([acks(world), world.client.state]).toEqual([[], 'connected'])
  })

  it("ack 'on-receive' is not held up by its reader, but by others only as the order of acks says", async () => {
    const world = await agreed({ receiveMaximum: 4 })
    const isolated = await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
    await trickle(world, 20, 1)
    expect([acks(world), isolated.size]).toEqual([pubacks(1, 20), 20])
  })

  it('a copy of a QoS 1 message for a consumer that asked for QoS 0 is dropped like QoS 0: the oldest goes', async () => {
    const world = await agreed({ keepAlive: false })
    const lazy = await subscribe(world, 'a', { qos: 0, buffer: 2 })
    await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
    await trickle(world, 6, 1)
    expect(lazy.dropped).toBeGreaterThanOrEqual(3)
    expect(taken(lazy).text()).not.toBe('1')
  })
})
