/** Leaving with a full buffer: what `disconnect()` still hands out, what it lets go, and how it reports that. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Message } from '../../../src/client/options/index.js'
import { connected, type World } from './harness.js'
import {
  acks,
  agreed,
  gate,
  pubacks,
  publish,
  quick,
  quiet,
  read,
  series,
  subscribe,
} from './incoming.js'
import { deafTo, listen, loop, settled, sleep, unsuback } from './steps.js'

const filter = '$share/g/a'

/** UNSUBSCRIBE is answered by the test. */
const holding = deafTo('unsubscribe')

/** Disconnects, answers UNSUBSCRIBE, and lets the rest of the work take its time. */
async function leave(world: World, work = 0, done = world.client.disconnect()): Promise<void> {
  await world.settle()
  await unsuback(world)
  await settled(world, done, work)
}

const disconnected = (world: World): Promise<void> => settled(world, world.client.disconnect())

/** What the client sent after CONNECT and SUBSCRIBE. */
const sent = (world: World): string[] =>
  world.peer.received
    .map((packet) => packet.type)
    .filter((type) => type !== 'connect' && type !== 'subscribe')

const losses = (world: World) => world.seen('drop').reduce((sum, event) => sum + event.count, 0)

/** A client whose handler works for 10 ms on each message. */
async function working(options: ClientOptions = {}, listening: object = {}) {
  const world = await connected({ stats: true, ...options }, holding)
  const seen: string[] = []
  const handler = async (message: Message): Promise<void> => {
    await sleep(world, 10)
    seen.push(message.text())
  }
  await listen(world, filter, handler, listening)
  return { world, seen }
}

describe('a member of a group that leaves', () => {
  it('unsubscribes first, takes what still comes until UNSUBACK, and says goodbye when all of it is done', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 3))
    const done = world.client.disconnect()
    await world.settle()
    expect(sent(world)).toEqual(['unsubscribe'])
    expect(world.peer.last('unsubscribe').filters).toEqual([filter])
    await world.send(...quick('a', 2, 4))
    await unsuback(world)
    await world.clock.advance(49)
    expect(sent(world)).toEqual(['unsubscribe'])
    await settled(world, done, 1)
    expect(seen).toEqual(['1', '2', '3', '4', '5'])
    expect(sent(world)).toEqual(['unsubscribe', 'disconnect'])
    expect([losses(world), world.client.stats().dropped]).toEqual([0, 0])
    expect([world.clock.now(), world.clock.pending]).toEqual([50, 0])
  })

  it('hands out what comes behind UNSUBACK, several at a time', async () => {
    const { world, seen } = await working({}, { qos: 1, concurrency: 4 })
    await world.send(...series('a', 9))
    const done = world.client.disconnect()
    await world.settle()
    await unsuback(world)
    await world.send(...series('a', 1, 10))
    await settled(world, done, 100)
    expect([seen.length, world.seen('unclaimed'), losses(world)]).toEqual([10, [], 0])
    expect(acks(world)).toEqual(pubacks(1, 10))
    expect(sent(world).at(-1)).toBe('disconnect')
  })

  it('is not held up longer than `timeout`, and reports what was let go', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 100))
    await leave(world, 205, world.client.disconnect({ timeout: 205 }))
    expect(seen).toHaveLength(20)
    // One is in hand.
    expect([losses(world), world.client.stats().dropped]).toEqual([79, 79])
    await world.clock.advance(1000)
    expect(seen).toHaveLength(21)
    expect(world.clock.pending).toBe(0)
  })

  it('timeout 0: no UNSUBSCRIBE, nothing is handed out', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 4))
    await settled(world, world.client.disconnect({ timeout: 0 }), 50)
    expect(sent(world)).toEqual(['disconnect'])
    expect([seen, losses(world)]).toEqual([['1'], 3])
  })

  it('under manual acks ends when the last message of a group that was left is read', async () => {
    const world = await connected({}, holding)
    const subscription = await subscribe(world, filter, { ack: 'manual' })
    await world.send(...quick('a', 3))
    expect(subscription.read()?.text()).toBe('1')
    const done = world.client.disconnect()
    await world.settle()
    await unsuback(world)
    expect([subscription.read()?.text(), world.client.state]).toEqual(['2', 'disconnecting'])
    expect(subscription.read()?.text()).toBe('3')
    await world.settle()
    expect(world.client.state).toBe('closed')
    await done
    expect([losses(world), world.clock.now()]).toEqual([0, 0])
  })

  it('a call of `next()` that waits gets what comes before UNSUBACK', async () => {
    const world = await connected({}, holding)
    const subscription = await subscribe(world, filter)
    const first = quiet(subscription.next())
    const done = world.client.disconnect()
    await world.settle()
    await world.send(publish('a', 'late'))
    expect((await first)?.text()).toBe('late')
    const second = quiet(subscription.next())
    await leave(world, 0, done)
    expect(await second).toBeUndefined()
  })

  it.each([0, 1] as const)('QoS %i without a reader: nothing is waited for', async (qos) => {
    const world = await agreed({ stats: true })
    const subscription = await subscribe(world, filter, { qos })
    await world.send(...(qos === 0 ? quick('a', 7) : series('a', 7)))
    await disconnected(world)
    expect([world.clock.now(), acks(world)]).toEqual([0, []])
    if (qos === 1) return
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 7 }])
    expect([subscription.dropped, world.client.stats().dropped]).toEqual([7, 7])
  })

  it.each(['a loop that breaks', 'a handling that is detached'])(
    '%s meanwhile is not waited for any more',
    async (which) => {
      const world = await connected({}, holding)
      const turn = gate()
      const subscription = which.includes('loop') ? await subscribe(world, filter) : undefined
      const handling =
        subscription === undefined ? await listen(world, filter, () => turn.promise) : undefined
      const reading = (async () => {
        for await (const _ of subscription ?? []) {
          await turn.promise
          break
        }
      })()
      await world.send(...quick('a', 5))
      const done = world.client.disconnect()
      await world.settle()
      await unsuback(world)
      handling?.detach()
      turn.open()
      await settled(world, Promise.all([done, reading]))
      expect([losses(world), world.clock.now()]).toEqual([4, 0])
    },
  )

  it('of a subscription on two filters only the share is handed out; the rest is reported', async () => {
    const world = await connected({}, holding)
    const turn = gate()
    const seen: string[] = []
    await listen(world, [filter, 'b'], (message) => {
      seen.push(message.text())
      return turn.promise
    })
    await world.send(publish('b', 'b1'), publish('a', 'a1'), publish('b', 'b2'), publish('a', 'a2'))
    const done = world.client.disconnect()
    await world.send(publish('b', 'b3'), publish('a', 'a3'))
    turn.open()
    await leave(world, 0, done)
    expect(world.peer.last('unsubscribe').filters).toEqual([filter])
    expect(seen).toEqual(['b1', 'a1', 'a2', 'a3'])
    expect(losses(world)).toBe(2)
  })

  it('a refused UNSUBSCRIBE ends it all the same', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 2))
    const done = world.client.disconnect()
    await world.settle()
    await unsuback(world, 0x87)
    await settled(world, done, 20)
    expect(seen).toEqual(['1', '2'])
    expect(world.clock.now()).toBe(20)
  })
})

describe('a session that outlives the goodbye keeps its share', () => {
  const durable = { clientId: 'c', cleanStart: false, stats: true }

  it.each([
    ['1: what is buffered is left to it, without a word of loss', 1, ['puback', 'disconnect'], 1],
    ['0, which it would not keep: what is buffered is handed out', 0, ['disconnect'], 5],
  ] as const)('no UNSUBSCRIBE; QoS %s', async (_what, qos, packets, count) => {
    const { world, seen } = await working(durable, { qos })
    await world.send(...(qos === 0 ? quick('a', 5) : series('a', 5)))
    await settled(world, world.client.disconnect(), 50)
    expect(sent(world)).toEqual(packets)
    expect(seen).toEqual(['1', '2', '3', '4', '5'].slice(0, count))
    expect([losses(world), world.client.stats().dropped]).toEqual([0, 0])
  })

  it('disconnect({ sessionExpiryInterval: 0 }) ends it, so the group is left', async () => {
    const { world, seen } = await working(durable, { qos: 1 })
    await world.send(...series('a', 2))
    await leave(world, 20, world.client.disconnect({ sessionExpiryInterval: 0 }))
    expect(seen).toEqual(['1', '2'])
  })
})

describe('other subscriptions', () => {
  it('hand out nothing more: QoS 0 that was buffered, and that comes before the goodbye, is reported in one event', async () => {
    const world = await agreed({ stats: true })
    const turn = gate()
    const dropped: string[] = []
    await listen(world, 'a', () => turn.promise, {
      onDrop: (message) => dropped.push(message.text()),
    })
    await world.send(...quick('a', 3))
    const done = world.client.disconnect()
    await world.settle()
    await world.send(publish('a', '4'))
    turn.open()
    await settled(world, done)
    expect(dropped).toEqual(['2', '3', '4'])
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 3 }])
    expect([world.client.stats().dropped, world.clock.pending]).toEqual([3, 0])
  })

  it.each([
    [true, 2],
    [false, 0],
  ])('QoS 1 stays unacknowledged; clean start %s: a loss of %s', async (cleanStart, lost) => {
    const world = await agreed({ clientId: 'c', cleanStart })
    await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    await disconnected(world)
    expect([acks(world), losses(world)]).toEqual([[], lost])
  })

  it.each(['disconnect', 'drain'] as const)(
    'a loop that was unsubscribed from before is waited for: %s',
    async (ending) => {
      const world = await agreed()
      const subscription = await subscribe(world, 'a', { ack: 'manual' })
      const seen: string[] = []
      const body = async (message: Message): Promise<void> => {
        await sleep(world, 10)
        seen.push(message.text())
        message.ack()
      }
      quiet(loop(subscription, body))
      await world.send(...quick('a', 5))
      await settled(world, subscription.unsubscribe())
      await settled(world, world.client[ending](), 100)
      expect(seen).toHaveLength(5)
    },
  )

  it('a listener of `drop` that calls back does no harm', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    world.client.on('drop', () => {
      world.client.destroy()
      void world.client.disconnect()
      expect(subscription.read()).toBeUndefined()
    })
    await world.send(...quick('a', 3))
    await disconnected(world)
    expect(losses(world)).toBe(3)
    const states = world.seen('state').map(({ state }) => state)
    expect(states.slice(2)).toEqual(['disconnecting', 'closed'])
  })
})

describe('destroy() hands out nothing more', () => {
  it('a loop ends after the message in hand, a handler is not called again, and what they had is reported', async () => {
    const world = await agreed({ stats: true })
    const turn = gate()
    const texts: string[] = []
    const body = (message: Message): Promise<void> => {
      texts.push(message.text())
      return turn.promise
    }
    const subscription = await subscribe(world, 'a')
    const reading = loop(subscription, body)
    await listen(world, 'b', body)
    await world.send(...quick('a', 3), ...quick('b', 3, 11))
    world.client.destroy()
    turn.open()
    await settled(world, reading)
    expect(texts.sort()).toEqual(['1', '11'])
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'b', count: 4 }])
    expect([subscription.dropped, world.client.stats().dropped]).toEqual([2, 4])
  })

  it('read(), next() and a new loop find nothing', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 3))
    world.client.destroy()
    expect(subscription.size).toBe(0)
    expect(subscription.read()).toBeUndefined()
    expect(await subscription.next()).toBeUndefined()
    const reading = read(subscription)
    await world.settle()
    expect(reading).toMatchObject({ texts: [], end: { state: 'done' } })
  })

  it('while it leaves a group', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.clock.advance(10)
    world.client.destroy()
    await settled(world, done, 100)
    // The second was in hand.
    expect([seen, losses(world), world.clock.pending]).toEqual([['1', '2'], 3, 0])
  })
})

it('post() from a turn that still runs is false, where publish() is taken', async () => {
  const world = await agreed()
  const turn = gate()
  const posted: boolean[] = []
  await listen(world, 'a', async () => {
    await turn.promise
    posted.push(world.client.post('b', 'x'))
    await world.client.publish('b', 'y')
  })
  await world.send(publish('a', 'x'))
  const done = world.client.disconnect()
  await world.settle()
  turn.open()
  await settled(world, done)
  expect(posted).toEqual([false])
  expect(world.peer.all('publish')).toHaveLength(1)
})
