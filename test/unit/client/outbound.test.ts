/** What waits to be sent or acknowledged: its time, a message that makes the server complain, its numbers; and the queues underneath, whose model is an array. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { constant } from '../../../src/client/options/backoff.js'
import type { ClientOptions, PublishOptions } from '../../../src/client/options/index.js'
import type { QueuedPublish } from '../../../src/client/publish/queued-publish.js'
import { PublishTable } from '../../../src/client/publish/sent-publishes.js'
import { type Linked, Queue } from '../../../src/common/queue.js'
import { Ring } from '../../../src/common/ring.js'
import { Random } from '../../world/random.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  keeps,
  lose,
  send,
  short,
  steady,
  willing,
} from './across.js'
import { failure, type World } from './harness.js'
import { quiet } from './incoming.js'
import { ack } from './stub.js'

const wait = 1_000_000

/** A client that has lost its link, for so long. */
async function away(options: ClientOptions = {}): Promise<World> {
  const reconnect = { backoff: constant(wait) }
  const world = await steady({
    keepAlive: false,
    sessionExpiryInterval: 4_294_967_295,
    reconnect,
    ...options,
  })
  await lose(world)
  world.answer = willing(true)
  return world
}

const expiring = (messageExpiryInterval: number): PublishOptions => ({
  qos: 1,
  properties: { messageExpiryInterval },
})
const intervals = (world: World) =>
  world.peer.all('publish').map((packet) => packet.properties.messageExpiryInterval)
const expired = { code: 'ERR_EXPIRED', outcome: 'not-sent' }

it('Message Expiry Interval: goes down by the whole seconds that the message waited here, in a copy of the properties [MQTT-3.3.2-6]', async () => {
  const world = await away()
  const properties = Object.freeze({ messageExpiryInterval: 5000, contentType: 'c' })
  const promises = [
    quiet(world.client.publish('t', 'a', Object.freeze({ qos: 1, properties } as const))),
  ]
  await world.clock.advance(7900)
  promises.push(quiet(world.client.publish('t', 'b', { ...expiring(5000), qos: 2 })))
  await world.clock.advance(wait - 7900)
  expect(world.peer.all('publish').map((packet) => packet.properties)).toMatchObject([
    { messageExpiryInterval: 4000, contentType: 'c' },
    { messageExpiryInterval: 5000 - 992 },
  ])
  await expect(Promise.all(promises)).resolves.toHaveLength(2)
  expect(properties).toEqual({ messageExpiryInterval: 5000, contentType: 'c' })
})

it('Message Expiry Interval: at its end the message is dropped: ERR_EXPIRED, not-sent, and a `drop` event', async () => {
  const world = await away()
  const gone = failure(world.client.publish('t', 'a', expiring(3)))
  const kept = quiet(world.client.publish('t', 'b', { qos: 1 }))
  await world.clock.advance(2999)
  expect(world.client.outbound.size).toBe(2)
  await world.clock.advance(1)
  expect(await gone).toMatchObject(expired)
  expect(world.client.outbound.size).toBe(1)
  expect(world.seen('drop')).toMatchObject([
    { direction: 'out', topic: 't', count: 1, error: { code: 'ERR_EXPIRED' } },
  ])
  await world.clock.advance(wait)
  await expect(kept).resolves.toBeDefined()
  expect(world.peer.all('publish')).toHaveLength(1)
})

it('Message Expiry Interval: counts while the message waits for quota, too; what is sent at once keeps its interval', async () => {
  const world = await steady({}, forgets({ receiveMaximum: 1 }))
  quiet(world.client.publish('t', 'first', expiring(10)))
  const gone = failure(world.client.publish('t', 'a', expiring(2)))
  const kept = quiet(world.client.publish('t', 'b', expiring(60)))
  await world.clock.advance(10_000)
  expect(await gone).toMatchObject(expired)
  await world.send(ack('puback', 1))
  expect(intervals(world)).toEqual([10, 50])
  await world.send(ack('puback', 2))
  await expect(kept).resolves.toBeDefined()
})

it('Message Expiry Interval: one that is published again after a lost session is not dropped; its interval is what is left, at least 1', async () => {
  const world = await steady()
  const promises = [10, 2].map((seconds) =>
    quiet(world.client.publish('t', 'a', expiring(seconds))),
  )
  await world.clock.advance(4000)
  await again(world, willing(false))
  expect(intervals(world)).toEqual([6, 1])
  await expect(Promise.all(promises)).resolves.toHaveLength(2)
})

it('`ttl`: ends what waits for a link, for the client and per publish', async () => {
  const world = await away({ outbound: { ttl: 10_000 } })
  const usual = failure(world.client.publish('t', 'usual', { qos: 1 }))
  const short = failure(world.client.publish('t', 'short', { qos: 2, ttl: 1000 }))
  const long = quiet(world.client.publish('t', 'long', { qos: 1, ttl: 2 * wait }))
  await world.clock.advance(1000)
  expect(await short).toMatchObject(expired)
  expect(world.client.outbound.size).toBe(2)
  await world.clock.advance(9000)
  expect(await usual).toMatchObject(expired)
  await world.clock.advance(wait)
  await expect(long).resolves.toBeDefined()
  expect(world.peer.all('publish')).toHaveLength(1)
})

it('`ttl`: and message expiry: whichever comes first', async () => {
  const world = await away()
  const errors = [500, 5000].map((ttl) =>
    failure(world.client.publish('t', 'a', { ...expiring(1), ttl })),
  )
  for (const left of [1, 0]) {
    await world.clock.advance(500)
    expect(world.client.outbound.size).toBe(left)
  }
  for (const error of errors) expect((await error).code).toBe('ERR_EXPIRED')
})

it('`ttl`: leaves no timer behind once a message was sent, aborted or cleared', async () => {
  const world = await steady(
    { outbound: { ttl: 60_000, offline: { qos0: 'queue' } } },
    willing(false),
  )
  const idle = world.clock.pending
  await lose(world)
  const controller = new AbortController()
  const waiting = world.clock.pending
  quiet(world.client.publish('t', 'a', { qos: 1, signal: controller.signal }))
  quiet(world.client.publish('t', 'b', { qos: 2 }))
  quiet(world.client.publish('t', 'c'))
  expect(world.clock.pending).toBe(waiting + 3)
  controller.abort()
  expect(world.clock.pending).toBe(waiting + 2)
  await comeBack(world, willing(true))
  expect(world.clock.pending).toBe(idle)
})

it('`ttl`: 0 is no time at all: only what can leave at once leaves', async () => {
  const world = await steady({ outbound: { ttl: 0 } }, willing(false))
  const now = quiet(world.client.publish('t', 'now', { qos: 1 }))
  await world.settle()
  await expect(now).resolves.toBeDefined()
  await lose(world)
  const later = failure(world.client.publish('t', 'later', { qos: 1 }))
  await world.settle()
  expect((await later).code).toBe('ERR_EXPIRED')
})

const complain = (reasonCode: number) =>
  ({ type: 'disconnect', reasonCode, properties: { reasonString: 'not that one' } }) as const

it.each([
  [0x93, 5, 1],
  [0x94, 5, 1],
  [0x95, 5, 1],
  [0x95, 5, 2],
  [0x9a, 5, 1],
  [0x9b, 5, 1],
  // These name what is wrong with a packet, and it was the only one without an answer.
  [0x81, 1, 1],
  [0x82, 1, 1],
  [0x90, 1, 1],
  [0x99, 1, 1],
] as const)('0x%x: given up after %i connections at QoS %i', async (code, connections, qos) => {
  const world = await steady()
  const poison = failure(world.client.publish('t', 'poison', { qos }))
  await world.settle()
  for (let round = 1; round <= connections; round++) {
    expect(world.peer.all('publish'), `connection ${round}`).toHaveLength(1)
    await world.send(complain(code))
    await comeBack(world)
  }
  expect(await poison).toMatchObject({
    code: 'ERR_PUBLISH_REFUSED',
    reasonCode: code,
    outcome: 'unknown',
    reasonString: 'not that one',
  })
  expect([carried(world.peer), world.seen('drop').length]).toEqual([[], 1])
  const [fine] = send(world, 1, 'fine')
  await world.settle()
  expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=fine q1 #\d+$/)])
  await again(world, willing(true))
  await expect(fine).resolves.toBeDefined()
})

it.each<[string, (world: World) => unknown, (world: World) => unknown]>([
  ['a publish at QoS 0 before it', (world) => world.client.post('other', 'x'), () => undefined],
  [
    'a subscription that has its answer',
    (world) => quiet(world.client.subscribe('f')),
    () => undefined,
  ],
  ['a publish at QoS 1 behind it', () => undefined, (world) => send(world, 1, 'fine')],
])('0x81 where %s may be meant: it goes once more, alone', async (_name, before, behind) => {
  const world = await steady({}, willing(false))
  before(world)
  await world.settle()
  world.answer = (packet) => {
    const { clock, peer } = world
    if (packet.type !== 'publish' || !short(packet).includes('t=poison'))
      return willing(true)(packet)
    clock.setTimer(() => peer.send(complain(0x81)), 1)
    return undefined
  }
  const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
  behind(world)
  await world.clock.advance(1000)
  expect(await poison).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x81 })
  expect(world.peers).toHaveLength(3)
  expect(carried(world.peers[1] as World['peer'])).toEqual([
    'pingreq',
    expect.stringContaining('t=poison'),
  ])
  expect(await world.outcome(world.client.drain())).toMatchObject({ state: 'fulfilled' })
})

it('0x81 right behind a PUBLISH that is no match for it blames nothing for good: QoS 0 of another topic ends each connection', async () => {
  const world = await steady({}, willing(false))
  world.answer = (packet) => {
    if (packet.type === 'publish' && packet.qos === 0) return complain(0x81)
    // Too slow for what ends the connection.
    return packet.type === 'publish' ? undefined : willing(true)(packet)
  }
  const [fine] = send(world, 1, 'fine')
  for (let round = 0; round < 3; round++) {
    world.client.post('bad', 'x')
    await world.clock.advance(500)
  }
  expect(await world.outcome(fine as Promise<unknown>)).toEqual({ state: 'pending' })
})

it('is not blamed for reasons that are not its own: server busy, shutting down, cuts', async () => {
  const world = await steady()
  const [one] = send(world, 1, 'one')
  await world.settle()
  for (let round = 0; round < 12; round++) {
    if (round % 2 === 0) await world.send(complain(round % 4 === 0 ? 0x89 : 0x8b))
    else await lose(world)
    await comeBack(world)
  }
  // After two cuts it waits for a sign of life.
  await world.send({ type: 'pingresp' })
  expect(world.peer.all('publish')).toHaveLength(1)
  expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
})

it('only what the complaining connection carried is blamed: what waits behind a small window is not', async () => {
  const world = await steady()
  const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
  const [good] = send(world, 1, 'good')
  await world.settle()
  // Both were in flight; from now on only the first fits.
  await again(world, keeps({ receiveMaximum: 1 }))
  for (let round = 1; round <= 5; round++) {
    expect(world.peer.all('publish')).toHaveLength(1)
    await world.send(complain(0x95))
    await comeBack(world, keeps({ receiveMaximum: 1 }))
  }
  expect((await poison).reasonCode).toBe(0x95)
  // Now it is the other one's turn, and its first complaint.
  expect(carried(world.peer)).toEqual(['publish t=good q1 #2 dup'])
  await world.send(complain(0x95))
  await comeBack(world, willing(true))
  await expect(good).resolves.toBeDefined()
})

it('numbers of what waits, and of what is in flight, are right after every event', async () => {
  const world = await steady(
    { stats: true, outbound: { poisonAfter: Number.POSITIVE_INFINITY } },
    forgets({ receiveMaximum: 2 }),
  )
  const expectNumbers = async (after: unknown, ...numbers: number[]): Promise<void> => {
    await after
    const { publishesQueued, publishesInFlight } = world.client.stats()
    expect([publishesQueued, publishesInFlight, world.client.outbound.size]).toEqual(numbers)
  }
  send(world, 1, 'a', 'b', 'c')
  await expectNumbers(send(world, 2, 'd')[1], 2, 2, 2)
  await expectNumbers(lose(world), 2, 2, 2)
  await expectNumbers(send(world, 1, 'e')[1], 3, 2, 3)
  await expectNumbers(comeBack(world, keeps({ receiveMaximum: 2 })), 3, 2, 3)
  await expectNumbers(world.send(ack('puback', 1)), 2, 2, 2)
  await expectNumbers(again(world, forgets({ receiveMaximum: 1 })), 3, 1, 3)
  await expectNumbers(world.client.destroy(), 0, 0, 0)
})

it('Ring does what an array does, whatever the order of operations', () => {
  const random = new Random(1)
  const ring = new Ring<number>()
  let model: number[] = []
  const fits = (value: number): boolean => value % 5 === 0
  for (let step = 0; step < 50_000; step++) {
    // Waves, so that it grows above and shrinks below its thresholds.
    const pushes = (step >> 12) % 2 === 0 ? 7 : 3
    const operation = random.below(10)
    if (operation < pushes) {
      ring.push(step)
      model.push(step)
    } else if (operation < 9) expect(ring.shift()).toBe(model.shift())
    else {
      const index = model.findIndex(fits)
      expect(ring.take(fits)).toBe(index < 0 ? undefined : model.splice(index, 1)[0])
    }
    expect(ring.length).toBe(model.length)
    expect(ring.peek()).toBe(model[0])
    if (step % 9973 === 0) {
      expect(ring.drain()).toEqual(model)
      model = []
    }
  }
})

interface Element extends Linked<Element> {
  readonly name: number
}

it('Queue does what an array does, elements taken from anywhere included', () => {
  const random = new Random(3)
  const queue = new Queue<Element>()
  const model: Element[] = []
  for (let step = 0; step < 20_000 || model.length > 0; step++) {
    if (step < 20_000 && random.chance(0.5)) {
      const element: Element = { name: step, previous: undefined, following: undefined }
      queue.push(element)
      model.push(element)
    } else if (model.length > 0) {
      // The first, or any.
      const index = random.chance(0.5) ? 0 : random.below(model.length)
      const [element] = model.splice(index, 1) as [Element]
      queue.remove(element)
      // It may be put into a queue again.
      expect([element.previous, element.following]).toEqual([undefined, undefined])
    }
    expect(queue.length).toBe(model.length)
    expect(queue.first).toBe(model[0])
    expect(queue.last).toBe(model.at(-1))
  }
})

function itemOf(packetId: number, order: number, released = 0): QueuedPublish {
  return { packetId, order, released } as QueuedPublish
}

it('messages in flight are found as a Map finds them, whatever identifiers are in use', () => {
  const steps = fc.array(
    fc.tuple(
      fc.boolean(),
      fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 65_535 })),
    ),
    { maxLength: 120 },
  )
  fc.assert(
    fc.property(steps, (list) => {
      const table = new PublishTable()
      const map = new Map<number, QueuedPublish>()
      list.forEach(([add, id], order) => {
        expect(table.get(id)).toBe(map.get(id))
        if (add && !map.has(id)) {
          const item = itemOf(id, order)
          table.add(item)
          map.set(id, item)
        } else if (!add && map.has(id)) {
          table.delete(id)
          map.delete(id)
        }
        expect(table.size).toBe(map.size)
      })
      expect(table.all()).toEqual([...map.values()])
    }),
  )
})

it('messages in flight hold all identifiers at once, and none of them when they are done', () => {
  const table = new PublishTable()
  for (let id = 1; id <= 65_535; id++) table.add(itemOf(id, id))
  expect(table.size).toBe(65_535)
  expect(table.get(65_535)?.order).toBe(65_535)
  for (let id = 1; id <= 65_535; id++) table.delete(id)
  expect(table.size).toBe(0)
  expect(table.all()).toEqual([])
  table.add(itemOf(3, 1))
  expect(table.get(3)?.order).toBe(1)
})

it('messages in flight are told apart by PUBREC, each in their order', () => {
  const table = new PublishTable()
  for (const item of [itemOf(5, 3), itemOf(6, 1), itemOf(7, 2, 9), itemOf(8, 4, 8)]) table.add(item)
  expect(table.unreleased().map(({ packetId }) => packetId)).toEqual([6, 5])
  expect(table.released().map(({ packetId }) => packetId)).toEqual([8, 7])
  expect(table.all().map(({ packetId }) => packetId)).toEqual([6, 7, 5, 8])
  table.clear()
  expect([table.size, table.get(5)]).toEqual([0, undefined])
})
