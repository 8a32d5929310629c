/** Overflow policies at QoS 1 and 2, where a broker that keeps Receive Maximum sends nothing more until something is acknowledged. */
import { describe, expect, it, vi } from 'vitest'
import type { ClientOptions, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import { Ring } from '../../../src/client/common/ring.js'
import type { World } from './harness.js'
import { agreed, obliging, publish, quiet, subscribe, taken, takenTexts } from './incoming.js'

/** A broker with messages 1 to `total` that has at most `window` of them open: sends until nothing moves any more, and gives how many have left. */
async function feed(world: World, total: number, window: number, qos: 1 | 2, topic: (index: number) => string = () => 'a'): Promise<number> {
  const done = (): number => world.peer.all(qos === 1 ? 'puback' : 'pubcomp').length
  const before = done()
  let sent = 0
  for (;;) {
    const room = Math.min(window - (sent - done() + before), total - sent)
    if (room === 0) return sent
    await world.send(
      ...Array.from({ length: room }, (_, at) => publish(topic(sent + at + 1), String(sent + at + 1), ((sent + at) % 65_535) + 1, { qos })),
    )
    sent += room
  }
}

async function reader(receiveMaximum: number, options: SubscribeOptions, more: ClientOptions = {}) {
  const world = await agreed({ receiveMaximum, keepAlive: false, ...more }, obliging)
  return { world, subscription: await subscribe(world, 'a', options) }
}

const numbers = (subscription: Subscription): number[] => takenTexts(subscription).map(Number)

describe.each([1, 2] as const)('QoS %i, nobody reads', (qos) => {
  it.each(['auto', 'manual'] as const)('drop-oldest, %s: everything comes, the newest are kept, in order', async (ack) => {
    const { world, subscription } = await reader(8, { qos, ack, buffer: 5, overflow: 'drop-oldest' })
    expect(await feed(world, 1000, 8, qos)).toBe(1000)
    expect(subscription.size).toBeLessThanOrEqual(5)
    expect(subscription.dropped).toBe(1000 - subscription.size)
    const kept = numbers(subscription)
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 1001 - kept.length + index))
    expect(kept.length).toBeGreaterThanOrEqual(4)
  })

  it.each([1, 2, 3, 4, 5, 8, 10, 64, 255, 256, 300])('drop-oldest with the default buffer, Receive Maximum %i', async (receiveMaximum) => {
    const { world, subscription } = await reader(receiveMaximum, { qos, overflow: 'drop-oldest' })
    const total = receiveMaximum * 3 + 20
    expect(await feed(world, total, receiveMaximum, qos)).toBe(total)
    const buffer = Math.max(1, Math.floor(receiveMaximum / 2))
    expect(numbers(subscription)).toEqual(Array.from({ length: buffer }, (_, index) => total + 1 - buffer + index))
  })

  it('drop-oldest with a buffer as large as the window, or larger', async () => {
    for (const buffer of [8, 1000]) {
      const { world, subscription } = await reader(8, { qos, buffer, overflow: 'drop-oldest' })
      expect(await feed(world, 200, 8, qos)).toBe(200)
      expect(numbers(subscription)).toEqual([194, 195, 196, 197, 198, 199, 200])
    }
  })

  it('drop-newest keeps the oldest and no more; what is dropped is acknowledged in its turn', async () => {
    const { world, subscription } = await reader(8, { qos, buffer: 5, overflow: 'drop-newest' })
    expect(await feed(world, 1000, 8, qos)).toBe(8)
    expect([subscription.size, subscription.dropped]).toEqual([5, 3])
    expect(world.peer.all(qos === 1 ? 'puback' : 'pubrec')).toEqual([])
    expect(numbers(subscription)).toEqual([1, 2, 3, 4, 5])
    await world.settle()
    expect(world.peer.all(qos === 1 ? 'puback' : 'pubrec').map(({ packetId }) => packetId)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('bytes: as many go as must, but the last', async () => {
    const { world, subscription } = await reader(8, { qos, bufferBytes: 1, overflow: 'drop-oldest' })
    expect(await feed(world, 50, 8, qos)).toBe(50)
    expect(subscription.size).toBe(1)
    expect(numbers(subscription)).toEqual([50])
  })

  it('on-receive acknowledges everything, with 1,024 messages of its own', async () => {
    const { world, subscription } = await reader(8, { qos, ack: 'on-receive' })
    expect(await feed(world, 1100, 8, qos)).toBe(1100)
    expect([subscription.size, subscription.dropped]).toEqual([1024, 76])
  })

  it('a message in hand is waited for: what is dropped behind it is acknowledged after it', async () => {
    const { world, subscription } = await reader(8, { qos, ack: 'manual', buffer: 3, overflow: 'drop-oldest' })
    const next = quiet(subscription.next())
    expect(await feed(world, 1000, 8, qos)).toBe(8)
    expect([subscription.size, subscription.dropped]).toEqual([3, 4])
    expect(world.peer.all(qos === 1 ? 'puback' : 'pubrec')).toEqual([])
    ;(await next)?.ack()
    await world.settle()
    expect(world.peer.all(qos === 1 ? 'puback' : 'pubrec').map(({ packetId }) => packetId)).toEqual([1, 2, 3, 4, 5])
  })

  it('several subscriptions: each comes to its newest, and none holds up the others', async () => {
    const world = await agreed({ receiveMaximum: 10, keepAlive: false }, obliging)
    const options = { qos, overflow: 'drop-oldest' } as const
    const [first, second] = [await subscribe(world, 'a', options), await subscribe(world, 'b', options)]
    expect(await feed(world, 500, 10, qos, (index) => (index % 2 === 0 ? 'a' : 'b'))).toBe(500)
    for (const [subscription, last] of [
      [first, 500],
      [second, 499],
    ] as const) {
      expect(subscription.size).toBeLessThanOrEqual(5)
      const kept = numbers(subscription)
      expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => last - 2 * (kept.length - 1 - index)))
      expect(kept.length).toBeGreaterThan(2)
    }
  })

  it('overlapping subscriptions, one of which waits for its reader: nothing is dropped for nothing', async () => {
    const world = await agreed({ receiveMaximum: 8, keepAlive: false }, obliging)
    const waiting = await subscribe(world, '+', { qos, overflow: 'backpressure' })
    const dropping = await subscribe(world, 'a', { qos, overflow: 'drop-oldest' })
    expect(await feed(world, 100, 8, qos)).toBe(8)
    expect([waiting.size, dropping.size, dropping.dropped]).toEqual([8, 4, 4])
    takenTexts(waiting)
    waiting.unsubscribe()
    await world.settle()
    expect(dropping.size).toBeLessThanOrEqual(4)
  })

  it('a reader that comes in time loses nothing', async () => {
    const { world, subscription } = await reader(8, { qos, buffer: 4, overflow: 'drop-oldest' })
    const texts: string[] = []
    const reading = (async () => {
      for await (const message of subscription) texts.push(message.text())
    })()
    quiet(reading)
    expect(await feed(world, 300, 8, qos)).toBe(300)
    expect([texts.length, subscription.dropped]).toEqual([300, 0])
  })

  it('onDrop that leaves the subscription', async () => {
    const { world, subscription } = await reader(8, { qos, buffer: 4, overflow: 'drop-oldest', onDrop: () => subscription.detach() })
    await feed(world, 8, 8, qos)
    expect([subscription.size, subscription.dropped, world.client.state]).toEqual([0, 1, 'connected'])
  })
})

describe('the default buffer', () => {
  it.each([
    [1, 1],
    [7, 3],
    [256, 128],
    [65_535, 1024],
  ])('Receive Maximum %i: %i messages at QoS 1 where a policy drops', async (receiveMaximum, expected) => {
    const { world, subscription } = await reader(receiveMaximum, { qos: 1, overflow: 'drop-newest' })
    await world.send(...Array.from({ length: 1500 }, (_, index) => publish('a', String(index), index + 1)))
    expect(subscription.size).toBe(expected)
  })

  it('a limit that is given counts, of the subscription or of all', async () => {
    const messages = Array.from({ length: 20 }, (_, index) => publish('a', String(index), index + 1))
    for (const [options, more] of [
      [{ buffer: 15 }, {}],
      [{}, { subscriptions: { buffer: 15 } }],
    ] as [SubscribeOptions, ClientOptions][]) {
      const { world, subscription } = await reader(20, { qos: 1, overflow: 'drop-newest', ...options }, more)
      await world.send(...messages)
      expect(subscription.size).toBe(15)
    }
  })
})

it('a burst of QoS 1 beyond the buffer goes once the reader had its turn, though the window has room', async () => {
  const { world, subscription } = await reader(256, { qos: 1, buffer: 5, overflow: 'drop-oldest' })
  await world.send(...Array.from({ length: 100 }, (_, index) => publish('a', String(index + 1), index + 1)))
  expect([subscription.size, subscription.dropped]).toEqual([5, 95])
  expect(taken(subscription).text()).toBe('96')
})

it('QoS 0 behind more than the buffer that is owed acknowledgements is let go without a look at what waits', async () => {
  const { world, subscription } = await reader(65_535, { qos: 1, buffer: 100 })
  await world.send(...Array.from({ length: 2000 }, (_, index) => publish('a', String(index), index + 1)))
  const take = vi.spyOn(Ring.prototype, 'take')
  await world.send(...Array.from({ length: 1000 }, (_, index) => publish('a', `q${index}`)))
  const looks = take.mock.calls.length
  take.mockRestore()
  expect([subscription.size, subscription.dropped]).toEqual([2000, 1000])
  expect(looks).toBe(0)
})
