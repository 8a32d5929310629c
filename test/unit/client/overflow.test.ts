/** Bounds: the three overflow policies, when they decide, and backpressure by Receive Maximum while everything else flows. */
import { describe, expect, it, vi } from 'vitest'
import type {
  ClientOptions,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import { Ring } from '../../../src/common/ring.js'
import { times, type World } from './harness.js'
import {
  acks,
  agreed,
  obliging,
  pubacks,
  publish,
  quick,
  quiet,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'

const dropCount = (world: World): number =>
  world.seen('drop').reduce((sum, event) => sum + event.count, 0)
const texts = (from: number, to: number): string[] =>
  times(to - from + 1, (index) => String(from + index))

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

it('drop-oldest: QoS 0: keeps the newest, counts and tells the rest', async () => {
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

it('drop-oldest: after a burst the buffer comes down to its limit', async () => {
  const { world, subscription } = await overflowing({ overflow: 'drop-oldest' })
  await world.send(...quick('a', 10))
  expect(subscription.size).toBe(10)
  for (const text of [11, 12]) {
    await trickle(world, text, 0, text)
    expect(subscription.size).toBeLessThanOrEqual(4)
  }
  expect(takenTexts(subscription).at(-1)).toBe('12')
})

it('drop-oldest: bytes are bounded as well: as many go as must', async () => {
  const limits = { buffer: 1000, bufferBytes: 2000 }
  const { world, subscription } = await overflowing({ overflow: 'drop-oldest', ...limits })
  for (let index = 0; index < 40; index++)
    await world.send(publish('a', 'x'.repeat(index < 10 ? 100 : 900)))
  expect(subscription.size).toBeLessThanOrEqual(3)
  expect(subscription.dropped).toBe(40 - subscription.size)
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

it('backpressure: QoS 1 is never dropped: acks wait, and the broker stops at Receive Maximum', async () => {
  const { world, subscription } = await overflowing({ qos: 1 })
  await trickle(world, 256, 1)
  expect(world.peer.last('connect').properties.receiveMaximum ?? 65_535).toBe(65_535)
  expect([subscription.dropped, acks(world), world.client.state]).toEqual([0, [], 'connected'])
  expect(takenTexts(subscription)).toHaveLength(256)
  await world.settle()
  expect(acks(world)).toEqual(pubacks(1, 256))
  await world.send(publish('a', 'more', 1))
  expect(takenTexts(subscription)).toEqual(['more'])
})

it('backpressure: QoS 0 then drops the oldest QoS 0, counted; QoS 1 stays', async () => {
  const { world, subscription, dropped } = await overflowing({ qos: 1 })
  await world.send(publish('a', 'keep', 1))
  await trickle(world, 6)
  expect(dropped.length).toBeGreaterThanOrEqual(3)
  expect(dropped).toEqual(texts(1, dropped.length))
  expect(takenTexts(subscription)).toEqual(['keep', ...texts(dropped.length + 1, 6)])
})

it('backpressure: a buffer full of QoS 1 drops the QoS 0 message that comes', async () => {
  const { world, subscription, dropped } = await overflowing({ qos: 1 })
  await trickle(world, 5, 1)
  for (let round = 0; round < 2; round++) await world.send(publish('a', 'zero'))
  expect(dropped).toContain('zero')
  expect(takenTexts(subscription).filter((text) => text !== 'zero')).toEqual(texts(1, 5))
})

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

it('a reader that waits is given the message, whatever the buffer', async () => {
  const { world, subscription } = await overflowing({ overflow: 'drop-newest', buffer: 1 })
  for (const text of ['1', '2', '3']) {
    const waiting = subscription.next()
    await world.send(publish('a', text))
    expect((await waiting)?.text()).toBe(text)
  }
  expect(subscription.dropped).toBe(0)
})

it('onDrop that throws harms nothing', async () => {
  const options = { buffer: 1, overflow: 'drop-newest' } as const
  const { world, subscription } = await overflowing({ ...options, onDrop: () => expect.fail() })
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

it('a subscription that is not read: QoS 0 of others, control packets, keep-alive and publishes are unaffected', async () => {
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

it('a subscription that is not read: a copy of a QoS 1 message for a consumer that asked for QoS 0 is dropped like QoS 0: the oldest goes', async () => {
  const world = await agreed({ keepAlive: false })
  const lazy = await subscribe(world, 'a', { qos: 0, buffer: 2 })
  await subscribe(world, 'a', { qos: 1, ack: 'on-receive' })
  await trickle(world, 6, 1)
  expect(lazy.dropped).toBeGreaterThanOrEqual(3)
  expect(taken(lazy).text()).not.toBe('1')
})

/** A broker with messages 1 to `total` that has at most `window` of them open: sends until nothing moves any more, and gives how many have left. */
async function feed(world: World, total: number, window: number, qos: 1 | 2): Promise<number> {
  const done = (): number => world.peer.all(qos === 1 ? 'puback' : 'pubcomp').length
  const before = done()
  let sent = 0
  for (;;) {
    const room = Math.min(window - (sent - done() + before), total - sent)
    if (room === 0) return sent
    await world.send(...series('a', room, sent + 1).map((packet) => ({ ...packet, qos })))
    sent += room
  }
}

async function reader(receiveMaximum: number, options: SubscribeOptions, more: ClientOptions = {}) {
  const world = await agreed({ receiveMaximum, keepAlive: false, ...more }, obliging)
  return { world, subscription: await subscribe(world, 'a', options) }
}

const numbers = (subscription: Subscription): number[] => takenTexts(subscription).map(Number)
const newest = (count: number, last: number): number[] =>
  times(count, (index) => last - (count - 1 - index))

describe.each([1, 2] as const)('QoS %i, within Receive Maximum', (qos) => {
  const acknowledged = (world: World) =>
    world.peer.all(qos === 1 ? 'puback' : 'pubrec').map(({ packetId }) => packetId)

  it.each([
    [undefined, 1, 1],
    [undefined, 5, 2],
    [undefined, 256, 128],
    [8, 8, 7],
    [1000, 8, 7],
  ])(
    'drop-oldest, buffer %s, Receive Maximum %i: keeps %i',
    async (buffer, receiveMaximum, kept) => {
      const options = { qos, buffer, overflow: 'drop-oldest' } as const
      const { world, subscription } = await reader(receiveMaximum, options)
      const total = receiveMaximum * 3 + 20
      expect(await feed(world, total, receiveMaximum, qos)).toBe(total)
      expect(numbers(subscription)).toEqual(newest(kept, total))
    },
  )

  it('drop-newest keeps the oldest and no more; what is dropped is acknowledged in its turn', async () => {
    const { world, subscription } = await reader(8, { qos, buffer: 5, overflow: 'drop-newest' })
    expect(await feed(world, 1000, 8, qos)).toBe(8)
    expect([subscription.size, subscription.dropped, acknowledged(world)]).toEqual([5, 3, []])
    expect(numbers(subscription)).toEqual([1, 2, 3, 4, 5])
    await world.settle()
    expect(acknowledged(world)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('bytes: as many go as must, but the last', async () => {
    const options = { qos, bufferBytes: 1, overflow: 'drop-oldest' } as const
    const { world, subscription } = await reader(8, options)
    expect(await feed(world, 50, 8, qos)).toBe(50)
    expect(numbers(subscription)).toEqual([50])
  })

  it('on-receive acknowledges everything, with 1,024 messages of its own', async () => {
    const { world, subscription } = await reader(8, { qos, ack: 'on-receive' })
    expect(await feed(world, 1100, 8, qos)).toBe(1100)
    expect([subscription.size, subscription.dropped]).toEqual([1024, 76])
  })

  it('a message in hand is waited for: what is dropped behind it is acknowledged after it', async () => {
    const options = { qos, ack: 'manual', buffer: 3, overflow: 'drop-oldest' } as const
    const { world, subscription } = await reader(8, options)
    const next = quiet(subscription.next())
    expect(await feed(world, 1000, 8, qos)).toBe(8)
    expect([subscription.size, subscription.dropped, acknowledged(world)]).toEqual([3, 4, []])
    ;(await next)?.ack()
    await world.settle()
    expect(acknowledged(world)).toEqual([1, 2, 3, 4, 5])
  })

  it('overlapping subscriptions, one of which waits for its reader: nothing is dropped for nothing', async () => {
    const { world, subscription } = await reader(8, { qos, overflow: 'drop-oldest' })
    const waiting = await subscribe(world, '+', { qos, overflow: 'backpressure' })
    expect(await feed(world, 100, 8, qos)).toBe(8)
    expect([waiting.size, subscription.size, subscription.dropped]).toEqual([8, 4, 4])
    takenTexts(waiting)
    waiting.unsubscribe()
    await world.settle()
    expect(subscription.size).toBeLessThanOrEqual(4)
  })
})

it.each<[number, SubscribeOptions, ClientOptions, number]>([
  [1, {}, {}, 1],
  [7, {}, {}, 3],
  [256, {}, {}, 128],
  [65_535, {}, {}, 1024],
  // A limit that is given counts, of the subscription or of all.
  [20, { buffer: 15 }, {}, 15],
  [20, {}, { subscriptions: { buffer: 15 } }, 15],
])(
  'the buffer where a policy drops, Receive Maximum %i, %j, %j: %i at QoS 1',
  async (receiveMaximum, options, more, expected) => {
    const asked = { qos: 1, overflow: 'drop-newest', ...options } as const
    const { world, subscription } = await reader(receiveMaximum, asked, more)
    await world.send(...series('a', 1500))
    expect(subscription.size).toBe(expected)
  },
)

it('a burst of QoS 1 beyond the buffer goes once the reader had its turn, though the window has room', async () => {
  const { world, subscription } = await reader(256, { qos: 1, buffer: 5, overflow: 'drop-oldest' })
  await world.send(...series('a', 100))
  expect([subscription.size, subscription.dropped]).toEqual([5, 95])
  expect(taken(subscription).text()).toBe('96')
})

it('QoS 0 behind more than the buffer that is owed acknowledgements is let go without a look at what waits', async () => {
  const { world, subscription } = await reader(65_535, { qos: 1, buffer: 100 })
  await world.send(...series('a', 2000))
  const take = vi.spyOn(Ring.prototype, 'take')
  await world.send(...times(1000, (index) => publish('a', `q${index}`)))
  const looks = take.mock.calls.length
  take.mockRestore()
  expect([subscription.size, subscription.dropped, looks]).toEqual([2000, 1000, 0])
})
