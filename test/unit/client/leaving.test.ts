/** Leaving with a full buffer: what `disconnect()` still hands out, what it lets go, and how it tells. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, type World } from './harness.js'
import { acks, gate, obliging, pubacks, publish, quick, quiet, read, series, subscribe } from './incoming.js'

const filter = '$share/g/a'

/** Says yes to everything but UNSUBSCRIBE, which the test answers. */
const holding: Answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))

async function leaveGroup(world: World): Promise<void> {
  const { packetId, filters } = world.peer.last('unsubscribe')
  await world.send({ type: 'unsuback', packetId, reasonCodes: filters.map(() => 0), properties: {} })
}

/** What the client sent after CONNECT and SUBSCRIBE. */
const sent = (world: World): string[] => world.peer.received.map((packet) => packet.type).filter((type) => type !== 'connect' && type !== 'subscribe')

const losses = (world: World): number => world.seen('drop').reduce((sum, event) => sum + event.count, 0)

/** A client whose handler works for 10 ms on each message. */
async function working(options: ClientOptions = {}, listen: object = {}): Promise<{ world: World; seen: string[] }> {
  const world = await connected({ stats: true, ...options }, holding)
  const seen: string[] = []
  const handler = async (message: { text(): string }): Promise<void> => {
    await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
    seen.push(message.text())
  }
  quiet(world.client.listen(filter, handler, listen))
  await world.settle()
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
    await leaveGroup(world)
    await world.clock.advance(49)
    expect(sent(world)).toEqual(['unsubscribe'])
    await world.clock.advance(1)
    await done
    expect(seen).toEqual(['1', '2', '3', '4', '5'])
    expect(sent(world)).toEqual(['unsubscribe', 'disconnect'])
    expect([losses(world), world.client.stats().dropped]).toEqual([0, 0])
    expect(world.clock.now()).toBe(50)
    expect(world.clock.pending).toBe(0)
  })

  it.each([0, 1] as const)('hands out what comes behind UNSUBACK while it still works, QoS %i', async (qos) => {
    const { world, seen } = await working({}, { qos })
    await world.send(...(qos === 0 ? quick('a', 2) : series('a', 2)))
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
    await world.send(...(qos === 0 ? quick('a', 1, 3) : series('a', 1, 3)))
    await world.clock.advance(100)
    await done
    expect(seen).toHaveLength(3)
    expect(world.seen('unclaimed')).toEqual([])
    expect(losses(world)).toBe(0)
    if (qos === 1) expect(acks(world)).toEqual(pubacks(1, 3))
  })

  it('waits for UNSUBACK also when nothing is buffered', async () => {
    const { world, seen } = await working()
    const done = quiet(world.client.disconnect())
    await world.clock.advance(100)
    await world.send(publish('a', 'late'))
    await leaveGroup(world)
    await world.clock.advance(10)
    await done
    expect(seen).toEqual(['late'])
  })

  it('at QoS 1 acknowledges what it hands out', async () => {
    const { world, seen } = await working({}, { qos: 1, concurrency: 4 })
    await world.send(...series('a', 10))
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
    await world.clock.advance(100)
    await done
    expect(seen).toHaveLength(10)
    expect(acks(world)).toEqual(pubacks(1, 10))
    expect(sent(world).at(-1)).toBe('disconnect')
  })

  it('is not held up longer than `timeout`, and tells what was let go', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 100))
    const done = world.client.disconnect({ timeout: 205 })
    await world.settle()
    await leaveGroup(world)
    await world.clock.advance(205)
    await done
    expect(seen).toHaveLength(20)
    // One is in hand.
    expect([losses(world), world.client.stats().dropped]).toEqual([79, 79])
    await world.clock.advance(1000)
    expect(seen).toHaveLength(21)
    expect(world.clock.pending).toBe(0)
  })

  it('a server that never answers UNSUBSCRIBE holds it up no longer than `timeout`', async () => {
    const { world } = await working()
    const done = world.client.disconnect({ timeout: 300 })
    await world.clock.advance(300)
    await done
    expect(sent(world)).toEqual(['unsubscribe', 'disconnect'])
    expect(world.clock.pending).toBe(0)
  })

  it('timeout 0: no UNSUBSCRIBE, nothing is handed out', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 4))
    const done = world.client.disconnect({ timeout: 0 })
    await world.clock.advance(50)
    await done
    expect(sent(world)).toEqual(['disconnect'])
    expect(seen).toEqual(['1'])
    expect(losses(world)).toBe(3)
  })

  it('a loop reads to the end of its buffer', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, filter)
    await world.send(...quick('a', 50))
    const reading = read(subscription)
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(reading.texts).toHaveLength(50)
    expect(reading.end.state).toBe('done')
  })

  it('a loop under manual acks at QoS 0 does not keep it waiting', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, filter, { ack: 'manual' })
    await world.send(...quick('a', 50))
    const reading = read(subscription)
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(reading.texts).toHaveLength(50)
    expect(world.clock.now()).toBe(0)
  })

  it('batches are handed out to the end', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, filter, { qos: 1, ack: 'manual' })
    await world.send(...series('a', 25))
    const sizes: number[] = []
    const loop = (async () => {
      for await (const batch of subscription.batches(10)) {
        sizes.push(batch.length)
        for (const message of batch) message.ack()
      }
    })()
    const done = world.client.disconnect()
    await world.settle()
    await Promise.all([done, loop])
    expect(sizes).toEqual([10, 10, 5])
    expect(acks(world)).toEqual(pubacks(1, 25))
  })

  it('whoever reads with `next()` gets what there is, and then the end', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, filter)
    await world.send(...quick('a', 5))
    const texts: string[] = []
    const loop = (async () => {
      for (let message = await subscription.next(); message !== undefined; message = await subscription.next()) {
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
        texts.push(message.text())
      }
    })()
    await world.settle()
    const done = world.client.disconnect()
    await world.clock.advance(60)
    await Promise.all([done, loop])
    expect(texts).toEqual(['1', '2', '3', '4', '5'])
  })

  it('under manual acks ends when the last message of a group that was left is read', async () => {
    const world = await connected({}, holding)
    const subscription = await subscribe(world, filter, { ack: 'manual' })
    await world.send(...quick('a', 3))
    expect(subscription.read()?.text()).toBe('1')
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
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
    const [first] = [quiet(subscription.next())]
    const done = world.client.disconnect()
    await world.settle()
    await world.send(publish('a', 'late'))
    expect((await first)?.text()).toBe('late')
    const second = quiet(subscription.next())
    await leaveGroup(world)
    expect(await second).toBeUndefined()
    await done
  })

  it('nobody reads: it is not waited for, and what was there is told', async () => {
    const world = await connected({ stats: true }, agreeable)
    const subscription = await subscribe(world, filter)
    await world.send(...quick('a', 7))
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(world.clock.now()).toBe(0)
    expect(world.seen('drop')).toMatchObject([{ direction: 'in', topic: 'a', count: 7 }])
    expect([subscription.dropped, world.client.stats().dropped]).toEqual([7, 7])
  })

  it('nobody reads at QoS 1: what was there stays unacknowledged', async () => {
    const world = await connected({}, agreeable)
    await subscribe(world, filter, { qos: 1 })
    await world.send(...series('a', 7))
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(acks(world)).toEqual([])
  })

  it('a loop that breaks is not waited for any more', async () => {
    const world = await connected({}, holding)
    const subscription = await subscribe(world, filter)
    await world.send(...quick('a', 5))
    const turn = gate()
    const loop = (async () => {
      for await (const _ of subscription) {
        await turn.promise
        break
      }
    })()
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
    turn.open()
    await world.settle()
    await Promise.all([done, loop])
    expect(losses(world)).toBe(4)
    expect(world.clock.now()).toBe(0)
  })

  it('a handling that is detached meanwhile is not waited for', async () => {
    const world = await connected({}, holding)
    const turn = gate()
    const starting = world.client.listen(filter, () => turn.promise)
    await world.settle()
    const handling = await starting
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
    handling.detach()
    turn.open()
    await world.settle()
    await done
    expect(losses(world)).toBe(4)
  })

  it('of a subscription on two filters only the share is handed out; the rest is told', async () => {
    const world = await connected({}, holding)
    const turn = gate()
    const seen: string[] = []
    const handler = async (message: { text(): string }): Promise<void> => {
      seen.push(message.text())
      await turn.promise
    }
    quiet(world.client.listen([filter, 'b'], handler))
    await world.settle()
    await world.send(publish('b', 'b1'), publish('a', 'a1'), publish('b', 'b2'), publish('a', 'a2'))
    const done = quiet(world.client.disconnect())
    await world.send(publish('b', 'b3'), publish('a', 'a3'))
    await leaveGroup(world)
    turn.open()
    await world.settle()
    await done
    expect(world.peer.last('unsubscribe').filters).toEqual([filter])
    expect(seen).toEqual(['b1', 'a1', 'a2', 'a3'])
    expect(losses(world)).toBe(2)
  })

  it('Receive Maximum 1: what the server sends for each acknowledgement is taken until UNSUBACK', async () => {
    const { world, seen } = await working({ receiveMaximum: 1 }, { qos: 1 })
    await world.send(publish('a', '1', 1))
    const done = world.client.disconnect()
    await world.clock.advance(10)
    await world.send(publish('a', '2', 2))
    await leaveGroup(world)
    await world.clock.advance(10)
    await done
    expect(seen).toEqual(['1', '2'])
    expect(acks(world)).toEqual(pubacks(1, 2))
  })

  it('QoS 2: the exchange of what is handed out gets to PUBREC', async () => {
    const world = await connected({}, obliging)
    const reading = read(await subscribe(world, filter, { qos: 2 }))
    await world.send(publish('a', '1', 1, { qos: 2 }), publish('a', '2', 2, { qos: 2 }))
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(reading.texts).toEqual(['1', '2'])
    expect(acks(world).filter((ack) => ack.startsWith('pubrec'))).toEqual(['pubrec 1', 'pubrec 2'])
  })

  it('a refused UNSUBSCRIBE ends it all the same', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 2))
    const done = world.client.disconnect()
    await world.settle()
    const { packetId } = world.peer.last('unsubscribe')
    await world.send({ type: 'unsuback', packetId, reasonCodes: [0x87], properties: {} })
    await world.clock.advance(20)
    await done
    expect(seen).toEqual(['1', '2'])
    expect(world.clock.now()).toBe(20)
  })

  it('drain() does the same', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 3))
    const done = world.client.drain()
    await world.settle()
    await leaveGroup(world)
    await world.clock.advance(30)
    await done
    expect(seen).toEqual(['1', '2', '3'])
  })

  it('a responder sends the answers of what it still handles', async () => {
    const world = await connected({}, agreeable)
    quiet(
      world.client.respond(filter, async (request) => {
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
        return request.text()
      }),
    )
    await world.settle()
    const requests = quick('a', 8).map((packet) => ({ ...packet, properties: { responseTopic: 'answers' } }))
    await world.send(...requests)
    const done = world.client.disconnect()
    await world.clock.advance(80)
    await done
    expect(world.peer.all('publish')).toHaveLength(8)
    expect(sent(world).at(-1)).toBe('disconnect')
  })

  it('a handler that failed while it leaves is not called again, and the others go on', async () => {
    const world = await connected({}, holding)
    const seen: string[] = []
    quiet(
      world.client.listen(
        filter,
        async (message) => {
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
          seen.push(message.text())
          if (message.text() === '2') throw new Error('mine')
        },
        { qos: 1 },
      ),
    )
    await world.settle()
    await world.send(...series('a', 3))
    const done = world.client.disconnect()
    await world.settle()
    await leaveGroup(world)
    await world.clock.advance(30)
    await done
    expect(seen).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('a session that outlives the goodbye keeps its share', () => {
  const durable = { clientId: 'c', cleanStart: false, stats: true }

  it('no UNSUBSCRIBE; at QoS 1 what is buffered is left to it, without a word of loss', async () => {
    const { world, seen } = await working(durable, { qos: 1 })
    await world.send(...series('a', 5))
    const done = world.client.disconnect()
    await world.clock.advance(10)
    await done
    expect(sent(world)).toEqual(['puback', 'disconnect'])
    expect(seen).toEqual(['1'])
    expect([losses(world), world.client.stats().dropped]).toEqual([0, 0])
  })

  it('at QoS 0, which it would not keep, what is buffered is handed out', async () => {
    const { world, seen } = await working(durable)
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.clock.advance(50)
    await done
    expect(sent(world)).toEqual(['disconnect'])
    expect(seen).toEqual(['1', '2', '3', '4', '5'])
  })

  it('disconnect({ sessionExpiryInterval: 0 }) ends it, so the group is left', async () => {
    const { world, seen } = await working(durable, { qos: 1 })
    await world.send(...series('a', 2))
    const done = world.client.disconnect({ sessionExpiryInterval: 0 })
    await world.settle()
    await leaveGroup(world)
    await world.clock.advance(20)
    await done
    expect(seen).toEqual(['1', '2'])
  })
})

describe('other subscriptions', () => {
  it('hand out nothing more: QoS 0 that was buffered, and that comes before the goodbye, is told in one event', async () => {
    const world = await connected({ stats: true }, agreeable)
    const turn = gate()
    const dropped: string[] = []
    quiet(world.client.listen('a', () => turn.promise, { onDrop: (message) => dropped.push(message.text()) }))
    await world.settle()
    await world.send(...quick('a', 3))
    const done = world.client.disconnect()
    await world.settle()
    await world.send(publish('a', '4'))
    turn.open()
    await world.settle()
    await done
    expect(dropped).toEqual(['2', '3', '4'])
    expect(world.seen('drop')).toEqual([{ direction: 'in', topic: 'a', count: 3, error: undefined }])
    expect(world.client.stats().dropped).toBe(3)
    expect(world.clock.pending).toBe(0)
  })

  it.each([
    [true, 2],
    [false, 0],
  ])('QoS 1 stays unacknowledged; with clean start %s that is a loss of %s', async (cleanStart, lost) => {
    const world = await connected({ clientId: 'c', cleanStart }, agreeable)
    await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 2))
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(acks(world)).toEqual([])
    expect(losses(world)).toBe(lost)
  })

  it('a loop whose subscription was unsubscribed before reads to the end of its buffer', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 20))
    const reading = read(subscription)
    quiet(subscription.unsubscribe())
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(reading.texts).toHaveLength(20)
    expect(acks(world)).toEqual(pubacks(1, 20))
  })

  it.each([
    ['disconnect', 0],
    ['drain', 0],
    ['disconnect', 1],
  ] as const)('a loop under manual acks does as well: %s, QoS %i', async (ending, qos) => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, 'a', { qos, ack: 'manual' })
    const seen: string[] = []
    quiet(
      (async () => {
        for await (const message of subscription) {
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
          seen.push(message.text())
          message.ack()
        }
      })(),
    )
    await world.send(...(qos === 0 ? quick('a', 5) : series('a', 5)))
    await Promise.all([subscription.unsubscribe(), world.settle()])
    const done = world.client[ending]()
    await world.clock.advance(100)
    await done
    expect(seen).toHaveLength(5)
  })

  it('a listener of `drop` that calls back does no harm', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, 'a')
    world.client.on('drop', () => {
      world.client.destroy()
      void world.client.disconnect()
      expect(subscription.read()).toBeUndefined()
    })
    await world.send(...quick('a', 3))
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(losses(world)).toBe(3)
    expect(world.seen('state').map(({ state }) => state)).toEqual(['connecting', 'connected', 'disconnecting', 'closed'])
  })
})

describe('destroy() hands out nothing more', () => {
  it('a loop ends after the message in hand, a handler is not called again, and what they had is told', async () => {
    const world = await connected({ stats: true }, agreeable)
    const turn = gate()
    const texts: string[] = []
    const subscription = await subscribe(world, 'a')
    const loop = (async () => {
      for await (const message of subscription) {
        texts.push(message.text())
        await turn.promise
      }
    })()
    quiet(
      world.client.listen('b', (message) => {
        texts.push(message.text())
        return turn.promise
      }),
    )
    await world.settle()
    await world.send(...quick('a', 3), ...quick('b', 3, 11))
    world.client.destroy()
    turn.open()
    await world.settle()
    await loop
    expect(texts.sort()).toEqual(['1', '11'])
    expect(world.seen('drop')).toEqual([{ direction: 'in', topic: 'b', count: 4, error: undefined }])
    expect([subscription.dropped, world.client.stats().dropped]).toEqual([2, 4])
  })

  it('read(), next() and a new loop find nothing', async () => {
    const world = await connected({}, agreeable)
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

  it('a loop whose subscription was unsubscribed before ends too', async () => {
    const world = await connected({}, agreeable)
    const subscription = await subscribe(world, 'a', { ack: 'manual' })
    await world.send(...quick('a', 3))
    const iterator = subscription[Symbol.asyncIterator]()
    await iterator.next()
    const left = quiet(subscription.unsubscribe())
    await world.settle()
    await left
    world.client.destroy()
    expect((await iterator.next()).done).toBe(true)
  })

  it('while it leaves a group', async () => {
    const { world, seen } = await working()
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.clock.advance(10)
    world.client.destroy()
    await world.clock.advance(100)
    await done
    // The second was in hand.
    expect(seen).toEqual(['1', '2'])
    expect(losses(world)).toBe(3)
    expect(world.clock.pending).toBe(0)
  })
})

it('post() from a turn that still runs is false, where publish() is taken', async () => {
  const world = await connected({}, agreeable)
  const turn = gate()
  const posted: boolean[] = []
  quiet(
    world.client.listen('a', async () => {
      await turn.promise
      posted.push(world.client.post('b', 'x'))
      await world.client.publish('b', 'y')
    }),
  )
  await world.settle()
  await world.send(publish('a', 'x'))
  const done = world.client.disconnect()
  await world.settle()
  turn.open()
  await world.settle()
  await done
  expect(posted).toEqual([false])
  expect(world.peer.all('publish')).toHaveLength(1)
})
