/** Overflow policies at QoS 1 and 2, where a broker that keeps Receive Maximum sends nothing more until something is acknowledged. */
import { describe, expect, it, vi } from 'vitest'
import type {
  ClientOptions,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/api/index.js'
import { Ring } from '../../../src/client/common/ring.js'
import type { World } from './harness.js'
import {
  agreed,
  obliging,
  publish,
  quiet,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'

/** A broker with messages 1 to `total` that has at most `window` of them open: sends until nothing moves any more, and gives how many have left. */
async function feed(
  world: World,
  total: number,
  window: number,
  qos: 1 | 2,
  topics = ['a'],
): Promise<number> {
  const done = (): number => world.peer.all(qos === 1 ? 'puback' : 'pubcomp').length
  const before = done()
  let sent = 0
  for (;;) {
    const room = Math.min(window - (sent - done() + before), total - sent)
    if (room === 0) return sent
    const numbers = Array.from({ length: room }, (_, at) => sent + at + 1)
    await world.send(
      ...numbers.map((n) =>
        publish(topics[n % topics.length] ?? '', String(n), ((n - 1) % 65_535) + 1, { qos }),
      ),
    )
    sent += room
  }
}

async function reader(receiveMaximum: number, options: SubscribeOptions, more: ClientOptions = {}) {
  const world = await agreed({ receiveMaximum, keepAlive: false, ...more }, obliging)
  return { world, subscription: await subscribe(world, 'a', options) }
}

const numbers = (subscription: Subscription): number[] => takenTexts(subscription).map(Number)
/** The last `count` numbers up to `last`. */
const newest = (count: number, last: number, step = 1): number[] =>
  Array.from({ length: count }, (_, index) => last - step * (count - 1 - index))

describe.each([1, 2] as const)('QoS %i, unread', (qos) => {
  const acknowledged = (world: World) =>
    world.peer.all(qos === 1 ? 'puback' : 'pubrec').map(({ packetId }) => packetId)

  it.each(['auto', 'manual'] as const)('drop-oldest, %s: the newest are kept', async (ack) => {
    const { world, subscription } = await reader(8, {
      qos,
      ack,
      buffer: 5,
      overflow: 'drop-oldest',
    })
    expect(await feed(world, 1000, 8, qos)).toBe(1000)
    expect(subscription.dropped).toBe(1000 - subscription.size)
    const kept = numbers(subscription)
    expect([4, 5]).toContain(kept.length)
    expect(kept).toEqual(newest(kept.length, 1000))
  })

  it.each([
    ...[1, 2, 3, 4, 5, 8, 10, 64, 255, 256, 300].map(
      (receiveMaximum) =>
        [undefined, receiveMaximum, Math.max(1, Math.floor(receiveMaximum / 2))] as const,
    ),
    [8, 8, 7] as const,
    [1000, 8, 7] as const,
  ])(
    'drop-oldest, buffer %s, Receive Maximum %i: keeps %i',
    async (buffer, receiveMaximum, kept) => {
      const { world, subscription } = await reader(receiveMaximum, {
        qos,
        buffer,
        overflow: 'drop-oldest',
      })
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
    const { world, subscription } = await reader(8, {
      qos,
      bufferBytes: 1,
      overflow: 'drop-oldest',
    })
    expect(await feed(world, 50, 8, qos)).toBe(50)
    expect(numbers(subscription)).toEqual([50])
  })

  it('on-receive acknowledges everything, with 1,024 messages of its own', async () => {
    const { world, subscription } = await reader(8, { qos, ack: 'on-receive' })
    expect(await feed(world, 1100, 8, qos)).toBe(1100)
    expect([subscription.size, subscription.dropped]).toEqual([1024, 76])
  })

  it('a message in hand is waited for: what is dropped behind it is acknowledged after it', async () => {
    const { world, subscription } = await reader(8, {
      qos,
      ack: 'manual',
      buffer: 3,
      overflow: 'drop-oldest',
    })
    const next = quiet(subscription.next())
    expect(await feed(world, 1000, 8, qos)).toBe(8)
    expect([subscription.size, subscription.dropped, acknowledged(world)]).toEqual([3, 4, []])
    ;(await next)?.ack()
    await world.settle()
    expect(acknowledged(world)).toEqual([1, 2, 3, 4, 5])
  })

  it('several subscriptions: each comes to its newest, and none holds up the others', async () => {
    const { world, subscription } = await reader(10, { qos, overflow: 'drop-oldest' })
    const other = await subscribe(world, 'b', { qos, overflow: 'drop-oldest' })
    expect(await feed(world, 500, 10, qos, ['a', 'b'])).toBe(500)
    for (const kept of [numbers(subscription), numbers(other)]) {
      expect([3, 4, 5]).toContain(kept.length)
      expect(kept).toEqual(newest(kept.length, 500 - ((kept.at(-1) ?? 0) % 2), 2))
    }
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

  it('a reader that comes in time loses nothing', async () => {
    const { world, subscription } = await reader(8, { qos, buffer: 4, overflow: 'drop-oldest' })
    const texts: string[] = []
    const reading = async (): Promise<void> => {
      for await (const message of subscription) texts.push(message.text())
    }
    quiet(reading())
    expect(await feed(world, 300, 8, qos)).toBe(300)
    expect([texts.length, subscription.dropped]).toEqual([300, 0])
  })

  it('onDrop that leaves the subscription', async () => {
    const { world, subscription } = await reader(8, {
      qos,
      buffer: 4,
      overflow: 'drop-oldest',
      onDrop: () => subscription.detach(),
    })
    await feed(world, 8, 8, qos)
    expect([subscription.size, subscription.dropped, world.client.state]).toEqual([
      0,
      1,
      'connected',
    ])
  })
})

describe('the buffer where a policy drops', () => {
  it.each<[number, SubscribeOptions, ClientOptions, number]>([
    [1, {}, {}, 1],
    [7, {}, {}, 3],
    [256, {}, {}, 128],
    [65_535, {}, {}, 1024],
    // A limit that is given counts, of the subscription or of all.
    [20, { buffer: 15 }, {}, 15],
    [20, {}, { subscriptions: { buffer: 15 } }, 15],
  ])('Receive Maximum %i, %j, %j: %i at QoS 1', async (receiveMaximum, options, more, expected) => {
    const { world, subscription } = await reader(
      receiveMaximum,
      { qos: 1, overflow: 'drop-newest', ...options },
      more,
    )
    await world.send(...series('a', 1500))
    expect(subscription.size).toBe(expected)
  })
})

it('a burst of QoS 1 beyond the buffer goes once the reader had its turn, though the window has room', async () => {
  const { world, subscription } = await reader(256, { qos: 1, buffer: 5, overflow: 'drop-oldest' })
  await world.send(...series('a', 100))
  expect([subscription.size, subscription.dropped, taken(subscription).text()]).toEqual([
    5,
    95,
    '96',
  ])
})

it('QoS 0 behind more than the buffer that is owed acknowledgements is let go without a look at what waits', async () => {
  const { world, subscription } = await reader(65_535, { qos: 1, buffer: 100 })
  await world.send(...series('a', 2000))
  const take = vi.spyOn(Ring.prototype, 'take')
  await world.send(...Array.from({ length: 1000 }, (_, index) => publish('a', `q${index}`)))
  const looks = take.mock.calls.length
  take.mockRestore()
  expect([subscription.size, subscription.dropped, looks]).toEqual([2000, 1000, 0])
})
