/** Leaving the loop: what happens to the broker's subscription and to messages nobody has acknowledged. */
import { describe, expect, it } from 'vitest'
import type { Message, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { World } from './harness.js'
import { acks, agreed, pubacks, publish, quiet, series, subscribe, taken, takenTexts } from './incoming.js'

type Leave = (subscription: Subscription) => Promise<void>

const ways: readonly (readonly [string, Leave])[] = [
  [
    'break',
    async (subscription) => {
      for await (const _ of subscription) break
    },
  ],
  [
    'return',
    async (subscription) => {
      for await (const _ of subscription) return
    },
  ],
  [
    'throw',
    async (subscription) => {
      try {
        for await (const _ of subscription) throw new Error('out')
      } catch {
        // Only leaving matters here.
      }
    },
  ],
  [
    'dispose with a message in hand',
    async (subscription) => {
      await subscription.next()
      await subscription[Symbol.asyncDispose]()
    },
  ],
  [
    'await using',
    async (subscription) => {
      await using mine = subscription
      await mine.next()
    },
  ],
  [
    'break out of batches',
    async (subscription) => {
      for await (const _ of subscription.batches(1)) break
    },
  ],
]

async function left(options: SubscribeOptions, leave: Leave, filter = 'a'): Promise<{ world: World; subscription: Subscription }> {
  const world = await agreed()
  const subscription = await subscribe(world, filter, { qos: 1, ...options })
  await world.send(...series('a', 3))
  const leaving = leave(subscription)
  await world.settle()
  await leaving
  await world.settle()
  return { world, subscription }
}

describe.each(ways)('%s', (_what, leave) => {
  it("onExit 'unsubscribe' acknowledges what is in hand and buffered, counts it, and unsubscribes", async () => {
    const dropped: string[] = []
    const { world, subscription } = await left({ onExit: 'unsubscribe', onDrop: (message) => dropped.push(message.text()) }, leave)
    expect(acks(world)).toEqual(pubacks(1, 3))
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a']])
    expect(dropped).toEqual(['2', '3'])
    expect(subscription.dropped).toBe(2)
    expect(world.seen('drop').reduce((sum, event) => sum + event.count, 0)).toBeGreaterThanOrEqual(1)
    expect(await subscription.next()).toBeUndefined()
  })

  it("onExit 'detach' leaves the broker's subscription and every unacknowledged message alone", async () => {
    const { world, subscription } = await left({ onExit: 'detach' }, leave)
    expect(acks(world)).toEqual([])
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(subscription.dropped).toBe(0)
    const next = await subscribe(world, 'a', { qos: 1 })
    expect(takenTexts(next)).toEqual(['1', '2', '3'])
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('under manual acks leaving acknowledges only what was never handed out', async () => {
    const { world } = await left({ onExit: 'unsubscribe', ack: 'manual' }, leave)
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
    expect(acks(world)).toEqual([])
  })
})

describe('which way', () => {
  const [, leave] = ways[0] as (typeof ways)[number]

  it('the default is unsubscribe for a session of this connection', async () => {
    const { world } = await left({}, leave)
    expect(world.peer.all('unsubscribe')).toHaveLength(1)
  })

  it('the default is detach for $share', async () => {
    const { world } = await left({}, leave, '$share/g/a')
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(acks(world)).toEqual([])
  })

  it('the default is detach for a durable session', async () => {
    const world = await agreed({ clientId: 'c', cleanStart: false })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    await leave(subscription)
    await world.settle()
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(acks(world)).toEqual([])
  })

  it('onExit wins over the default', async () => {
    const { world } = await left({ onExit: 'unsubscribe' }, leave, '$share/g/a')
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['$share/g/a']])
  })

  it('ack() and break finishes the one in hand', async () => {
    const { world } = await left({ onExit: 'detach' }, async (subscription) => {
      for await (const message of subscription) {
        message.ack()
        break
      }
    })
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['2', '3'])
  })

  it('unsubscribes only when it was the last on its filter', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    await leave(first)
    await world.settle()
    expect(world.peer.all('unsubscribe')).toEqual([])
    expect(acks(world)).toEqual([])
    taken(second).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('a subscription that is left before its grant says so', async () => {
    const world = await agreed()
    const subscription = world.client.subscription('a')
    await subscription[Symbol.asyncDispose]()
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await world.settle()
    expect(world.peer.all('subscribe').length).toBe(world.peer.all('unsubscribe').length)
  })
})

describe('detached', () => {
  async function detached(filters: string | string[] = 'a', options: SubscribeOptions = {}): Promise<World> {
    const world = await agreed()
    const subscription = await subscribe(world, filters, { qos: 1, onExit: 'detach', ...options })
    await world.send(...series('a', 3))
    subscription.detach()
    await world.settle()
    return world
  }

  it('the next subscription on the filter gets them in order, those that came meanwhile last', async () => {
    const world = await detached()
    await world.send(...series('a', 2, 4))
    expect(acks(world)).toEqual([])
    const next = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 1, 6))
    expect(takenTexts(next)).toEqual(['1', '2', '3', '4', '5', '6'])
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 6))
  })

  it('a message that was in hand is the first of them', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 3))
    const message = taken(subscription)
    subscription.detach()
    const next = await subscribe(world, 'a', { qos: 1 })
    expect(takenTexts(next)).toEqual(['1', '2', '3'])
    await world.settle()
    expect(message.ack()).toBe(false)
  })

  it('a message in hand may still be acknowledged by whoever holds it: nobody gets it then', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const message = taken(subscription)
    subscription.detach()
    expect(message.ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['2'])
  })

  it('what was acknowledged meanwhile is not given to a next subscription that asks for QoS 0 either', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const message = taken(subscription)
    subscription.detach()
    expect(message.ack()).toBe(true)
    expect(takenTexts(await subscribe(world, 'a', { qos: 0 }))).toEqual(['2'])
  })

  it('of two filters they come in the order of arrival', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a', 'b'], { qos: 1 })
    await world.send(publish('a', '1', 1), publish('b', '2', 2), publish('a', '3', 3), publish('b', '4', 4))
    subscription.detach()
    expect(takenTexts(await subscribe(world, ['b', 'a'], { qos: 1 }))).toEqual(['1', '2', '3', '4'])
  })

  it('QoS 0 is dropped while detached, and counted', async () => {
    const world = await detached()
    await world.send(publish('a', 'lost'))
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 1 }])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['1', '2', '3'])
  })

  it('they are kept without a time limit, and stalled fires', async () => {
    const world = await detached()
    await world.clock.advance(3_600_000)
    expect(acks(world)).toEqual([])
    expect(world.seen('stalled').length).toBeGreaterThanOrEqual(1)
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual(['1', '2', '3'])
  })

  it('client.unsubscribe releases them, acknowledged in order', async () => {
    const world = await detached()
    const call = world.client.unsubscribe('a')
    await world.settle()
    await call
    expect(acks(world)).toEqual(pubacks(1, 3))
    await world.send(publish('a', 'x', 4))
    expect(acks(world)).toEqual(pubacks(1, 4))
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual([])
  })

  it('a new subscription on another filter gets none of them', async () => {
    const world = await detached('a')
    expect(takenTexts(await subscribe(world, '#', { qos: 1 }))).toEqual([])
    expect(acks(world)).toEqual([])
  })

  it('what one leaves unacknowledged is acknowledged where only a reader at QoS 0 stays, who had its copy', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 0 })
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual([])
    first.detach()
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 1))
    expect(takenTexts(second)).toEqual(['x'])
  })

  it('a subscription that is detached with another on the filter gives up its share: the other decides, and nothing stalls', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    first.detach()
    await world.settle()
    expect(acks(world)).toEqual([])
    taken(second).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(await subscribe(world, 'a', { qos: 1 }))).toEqual([])
  })

  it('a next subscription that asks for QoS 0 does not delay the acks', async () => {
    const world = await detached()
    const next = await subscribe(world, 'a', { qos: 0 })
    expect(acks(world)).toEqual(pubacks(1, 3))
    expect(takenTexts(next)).toEqual(['1', '2', '3'])
  })

  it('disconnect() leaves them unacknowledged', async () => {
    const world = await detached()
    const done = quiet(world.client.disconnect())
    await world.settle()
    await done
    expect(acks(world)).toEqual([])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('QoS 2 the same', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 2 })
    await world.send(publish('a', '1', 1, { qos: 2 }), publish('a', '2', 2, { qos: 2 }))
    subscription.detach()
    expect(acks(world)).toEqual([])
    const got: Message[] = []
    const next = await subscribe(world, 'a', { qos: 2 })
    for (let message = next.read(); message !== undefined; message = next.read()) got.push(message)
    await world.settle()
    expect(got.map((message) => message.qos)).toEqual([2, 2])
    expect(acks(world)).toEqual(['pubrec 1', 'pubrec 2'])
  })

  it('detach() again, and after the end, does nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    subscription.detach()
    subscription.detach()
    expect(await subscription.next()).toBeUndefined()
    await world.settle()
    expect(world.peer.all('unsubscribe')).toEqual([])
  })
})
