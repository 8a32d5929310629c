/** The memory budget of a connection: QoS 0 is dropped, QoS 1 and 2 end the link with 0x97 or wait for room, and what is let go is given back. */
import '../../../src/client/durable/keeper.js'
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/options/backoff.js'
import type {
  ClientOptions,
  Handler,
  ListenOptions,
  Message,
  Subscription,
} from '../../../src/client/options/index.js'
import { memoryStore } from '../../../src/store/memory.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { again, comeBack, keeps, lasting, lose, steady, willing } from './across.js'
import { agreeable, times, World } from './harness.js'
import {
  acks,
  agreed,
  goodbyeCode,
  publish,
  quiet,
  resumed,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { patient } from './patient.js'
import { listen, sleep } from './steps.js'

// Room for three of the large messages, with what the objects around them cost.
const memoryBudget = 11_000
const big = 'x'.repeat(3000)

/** Messages 1 to `count`, which begin with their number. */
const flood = (count: number, dup = false): PacketInput[] =>
  times(count, (index) => publish('a', `${index + 1} ${big}`, index + 1, { dup }))
const numberOf = (message: Message): string => message.text().split(' ')[0] as string
const upTo = (count: number): string[] => times(count, (index) => String(index + 1))

const dropCount = (world: World) => world.seen('drop').reduce((sum, event) => sum + event.count, 0)
/** Reason codes with which connections ended. */
const ends = (world: World) => world.seen('disconnect').map(({ cause }) => cause?.reasonCode)
const never = (): Promise<void> => new Promise(() => undefined)

async function oneByOne(world: World, packets: readonly PacketInput[]): Promise<void> {
  for (const packet of packets) await world.send(packet)
}

/** Listens at QoS 1. */
const listening = (world: World, handler: Handler, options?: ListenOptions, filter = 'a') =>
  listen(world, filter, handler, { qos: 1, ...options })

/** A handler that notes the numbers of its messages, and then does this. */
function noting(work: () => Promise<unknown>) {
  const numbers: string[] = []
  const handle = async (message: Message): Promise<void> => {
    numbers.push(numberOf(message))
    await work()
  }
  return { numbers, handle }
}

/** Asks for one message after the other, and works on each for 300 ms. */
async function asking(
  world: World,
  subscription: Subscription,
  act: (message: Message) => unknown,
) {
  const next = () => subscription.next()
  for (let message = await next(); message !== undefined; message = await next()) {
    act(message)
    await sleep(world, 300)
  }
}

describe('over the budget', () => {
  it('QoS 0 is dropped and counted; the connection goes on', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a')
    for (let index = 0; index < 10; index++) await world.send(publish('a', big))
    expect(subscription.size).toBeGreaterThanOrEqual(2)
    expect(subscription.size).toBeLessThanOrEqual(3)
    await world.clock.advance(1000)
    expect([dropCount(world), world.client.state]).toEqual([10 - subscription.size, 'connected'])
  })

  it('topics that are remembered take a small part of it', async () => {
    const world = await agreed({ memoryBudget })
    const others = await subscribe(world, 'other/#')
    for (let index = 0; index < 60; index++) {
      await world.send(publish(`other/${index}`, ''))
      taken(others)
    }
    const subscription = await subscribe(world, 'a')
    for (let index = 0; index < 10; index++) await world.send(publish('a', big))
    expect(subscription.size).toBeGreaterThanOrEqual(2)
  })

  it.each([0, 1] as const)(
    'each consumer of a message counts: at QoS %i it comes so often',
    async (qos) => {
      const world = await agreed({ memoryBudget })
      const subscriptions = await Promise.all(upTo(6).map(() => subscribe(world, 'a', { qos })))
      const send = (id: number) =>
        world.send(publish('a', big, qos === 0 ? undefined : id, { qos }))
      await send(1)
      expect(subscriptions.map(({ size }) => size)).toEqual(Array(6).fill(qos))
      for (const subscription of subscriptions) takenTexts(subscription)
      await send(2)
      await send(3)
      expect(subscriptions.map(({ size }) => size)).toEqual(Array(6).fill(qos))
      await world.clock.advance(2000)
      expect(dropCount(world)).toBe(qos === 0 ? 3 : 0)
    },
  )

  it.each([1, 2] as const)('QoS %i ends the link with 0x97, unacknowledged', async (qos) => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos })
    await oneByOne(world, [
      ...[1, 2, 3, 4].map((id) => publish('a', big, id, { qos })),
      publish('a', 'small', 5, { qos }),
    ])
    expect([goodbyeCode(world), acks(world)]).toEqual([0x97, []])
    expect(await world.client.closed).toMatchObject({ reasonCode: 0x97, fault: 'local' })
    expect(subscription.size).toBeLessThanOrEqual(3)
    expect(takenTexts(subscription).every((text) => text === big)).toBe(true)
  })

  it.each(['detached', 'unclaimed'])('messages of a %s filter count', async (which) => {
    const world = await (which === 'detached'
      ? agreed({ memoryBudget })
      : resumed({ memoryBudget }))
    if (which === 'detached') (await subscribe(world, 'a', { qos: 1 })).detach()
    await oneByOne(world, flood(4))
    expect(goodbyeCode(world)).toBe(0x97)
  })
})

describe('over the budget while somebody reads: what had no room comes again once the rest is handed out', () => {
  // Six messages: three fit.
  const rest = flood(6, true).slice(3)

  const keeping = (): Promise<World> =>
    steady({ memoryBudget, cleanStart: false, clientId: 'slow' }, willing(false))

  /** A handler that takes so many milliseconds for each message, and what it was given. */
  async function slow(delay: number) {
    const world = await keeping()
    const { numbers, handle } = noting(() => sleep(world, delay))
    await listening(world, handle)
    await world.send(...flood(6))
    return { world, numbers }
  }

  it('each is handled once, in order', async () => {
    const { world, numbers } = await slow(400)
    // A small one behind them stays behind them, too.
    await world.send(publish('a', '7', 7))
    await world.clock.advance(1199)
    expect(goodbyeCode(world)).toBe(undefined)
    expect(numbers).toEqual(upTo(3))
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    const first = world.peer
    world.answer = willing(true)
    await world.clock.advance(110)
    expect(acks({ ...world, peer: first } as World)).toEqual(['puback 1', 'puback 2', 'puback 3'])
    expect(first.last('disconnect').reasonCode).toBe(0x97)
    expect(world.peer).not.toBe(first)
    await world.send(...rest, publish('a', '7', 7))
    await world.clock.advance(2000)
    expect(numbers).toEqual(upTo(7))
    expect(acks(world)).toEqual(['puback 4', 'puback 5', 'puback 6', 'puback 7'])
    expect(world.seen('drop')).toEqual([])
  })

  it('a handler that hangs is not waited for', async () => {
    const { world } = await slow(1_000_000)
    await world.clock.advance(1099)
    expect(ends(world)).toEqual([])
    await world.clock.advance(1)
    expect(ends(world)).toEqual([0x97])
  })

  it('a handler of borrowed messages sees nothing before what had no room', async () => {
    const world = await keeping()
    const { numbers, handle } = noting(() => sleep(world, 10))
    await Promise.all([
      listening(world, handle, { lifetime: 'borrowed' }),
      listening(world, () => sleep(world, 600), {}, 'other'),
    ])
    await world.send(publish('other', 'x', 20), ...flood(6))
    const most = numbers.length + 3
    await world.clock.advance(100)
    await world.send(publish('a', '7', 7))
    await world.clock.advance(400)
    expect(numbers.length).toBeLessThanOrEqual(most)
    expect(numbers).not.toContain('7')
    expect(goodbyeCode(world)).toBe(undefined)
  })

  it('who asks for one message after the other counts as a reader while it works', async () => {
    const world = await keeping()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const numbers: string[] = []
    quiet(asking(world, subscription, (message) => numbers.push(numberOf(message))))
    await world.send(...flood(6))
    await world.clock.advance(850)
    expect(numbers).toEqual(upTo(3))
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    expect(goodbyeCode(world)).toBe(undefined)
    await world.clock.advance(500)
    // The first one never lay in the buffer: four had room.
    expect(numbers).toEqual(upTo(4))
    expect(world.peers[0]?.last('disconnect').reasonCode).toBe(0x97)
  })

  it('the end of the client stays an orderly one', async () => {
    const { world, numbers } = await slow(2000)
    const ended = world.client.disconnect({ timeout: 6000 })
    await world.clock.advance(1990)
    expect(goodbyeCode(world)).toBe(undefined)
    await world.clock.advance(1100)
    await ended
    expect([numbers, acks(world), goodbyeCode(world)]).toEqual([['1'], ['puback 1'], 0])
    expect(await world.client.closed).toBe(undefined)
  })

  it('a connection that is lost meanwhile takes the matter with it', async () => {
    const { world, numbers } = await slow(100)
    await again(world, willing(true))
    await world.clock.advance(500)
    await world.send(...rest)
    await world.clock.advance(5000)
    expect(numbers).toEqual(upTo(6))
    expect(ends(world)).not.toContain(0x97)
  })
})

describe('what is let go is given back', () => {
  const manual = { qos: 1, ack: 'manual', retainHandling: 2 } as const

  const ways: Readonly<Record<string, (world: World, id: number) => Promise<unknown>>> = {
    async overflow(world, id) {
      const options = { qos: 1, buffer: 1, overflow: 'drop-oldest' } as const
      if (id === 1) await subscribe(world, 'a', options)
      await world.send(publish('a', big, id))
    },
    async 'a handler'(world, id) {
      if (id === 1) await listening(world, () => undefined)
      await world.send(publish('a', big, id))
      expect(acks(world)).toHaveLength(id)
    },
    async unsubscribing(world, id) {
      const subscription = await subscribe(world, 'a', { qos: 1 })
      await world.send(publish('a', big, id * 2), publish('a', big, id * 2 + 1))
      await Promise.all([subscription.unsubscribe(), world.settle()])
    },
    async 'detaching and a new subscription'(world, id) {
      const subscription = await subscribe(world, 'a', { qos: 1, retainHandling: 2 })
      await world.send(publish('a', big, id))
      subscription.detach()
      const next = await subscribe(world, 'a', { qos: 1, retainHandling: 2 })
      expect(takenTexts(next)).toEqual([big])
      next.detach()
    },
    async 'client.unsubscribe() of a detached filter'(world, id) {
      const subscription = await subscribe(world, 'a', { qos: 1 })
      await world.send(publish('a', big, id))
      subscription.detach()
      await Promise.all([world.client.unsubscribe('a'), world.settle()])
      expect(acks(world)).toHaveLength(id)
    },
    async 'ack() of a message that a detached filter keeps'(world, id) {
      const subscription = await subscribe(world, 'a', manual)
      await world.send(publish('a', big, id))
      const message = taken(subscription)
      subscription.detach()
      expect(message.ack()).toBe(true)
      await world.settle()
    },
  }

  it.each(Object.entries(ways))('by %s', async (_how, act) => {
    const world = await agreed({ memoryBudget })
    for (let id = 1; id <= 10; id++) await act(world, id)
    expect(world.client.state).toBe('connected')
  })

  it('by reading', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    for (const packet of flood(20)) {
      await world.send(packet)
      expect(taken(subscription).payloadLength).toBeGreaterThan(3000)
    }
    expect(world.client.state).toBe('connected')
  })

  it('by the end of unclaimedHold', async () => {
    const world = await resumed({ memoryBudget, unclaimedHold: 1000, keepAlive: false })
    await oneByOne(world, flood(3))
    await world.clock.advance(1001)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await oneByOne(world, flood(3))
    expect([subscription.size, world.client.state]).toEqual([3, 'connected'])
  })
})

describe('over the budget, on a stream that can be paused', () => {
  const session = { clientId: 'c', cleanStart: false } as const
  const coming = { reconnect: { backoff: constant(1000) } }

  /** A client over such a stream. */
  function created(options: ClientOptions, answer: Answer = willing(true)): World {
    const all = { ...lasting, memoryBudget, stats: true, ...options }
    const world = new World(all, {}, 1, (_index, open) => patient(open()))
    world.answer = answer
    return world
  }

  async function started(options: ClientOptions = {}): Promise<World> {
    const world = created({ ...coming, ...session, ...options })
    await world.up()
    return world
  }

  /** A client of 3.1.1 with a handler, and what it was given. */
  async function handling(work: (world: World) => Promise<unknown>, more: ClientOptions = {}) {
    const world = created({ protocolVersion: 4, ...more }, willing(false))
    await world.up()
    const { numbers, handle } = noting(() => work(world))
    await listening(world, handle)
    return { world, numbers }
  }

  const taking = (delay: number) => (world: World) => sleep(world, delay)

  /** Each connection brings these again. */
  const repeating =
    (count: number): Answer =>
    (packet) =>
      [willing(true)(packet) ?? [], packet.type === 'connect' ? flood(count, true) : []].flat()

  it.each([20, 400, 2500, 9000])(
    'reading waits for a handler that takes %i ms: each message once',
    async (delay) => {
      // PINGRESP is not read for longer than a ping timeout.
      const { world, numbers } = await handling(taking(delay), { keepAlive: 10 })
      await oneByOne(world, flood(9))
      // What was taken is the budget and one message.
      expect(world.client.stats().unread).toBeLessThanOrEqual(4)
      await world.clock.advance(9 * delay + 2000)
      expect(numbers).toEqual(upTo(9))
      expect(acks(world)).toEqual(upTo(9).map((id) => `puback ${id}`))
      expect([world.peers.length, ends(world)]).toEqual([1, []])
    },
  )

  it.each([2, 65_535])(
    'nor is a server of 5.0 read from, Receive Maximum %i',
    async (receiveMaximum) => {
      const { world, numbers } = await handling(taking(20), { protocolVersion: 5, receiveMaximum })
      await world.send(...flood(9))
      await world.clock.advance(2000)
      expect([numbers, world.peers.length]).toEqual([upTo(9), 1])
    },
  )

  it('a backlog that comes before the answer to SUBSCRIBE waits for its reader, too: one connection, each message once', async () => {
    const world = created({ protocolVersion: 4, ...session }, keeps())
    const { numbers, handle } = noting(() => sleep(world, 400))
    const granted = world.client.listen('a', handle, { qos: 1 })
    await world.up()
    const { packetId } = world.peer.last('subscribe')
    await world.send(...flood(9), { type: 'suback', packetId, reasonCodes: [1] })
    await world.clock.advance(9 * 400 + 1000)
    await granted
    expect([numbers, world.peers.length, ends(world)]).toEqual([upTo(9), 1, []])
  })

  it('answers are read: a handler that waits for its own publish goes on', async () => {
    const { world, numbers } = await handling(({ client }) =>
      client.publish('done', 'x', { qos: 1 }),
    )
    await world.send(...flood(9))
    await world.clock.advance(900)
    expect(numbers.length).toBeGreaterThanOrEqual(3)
    await world.clock.advance(5000)
    expect(world.client.state).toBe('connected')
  })

  it('messages are read where one of them may be the answer to a request', async () => {
    const ask = ({ client }: World) =>
      client.request('asked', 'x', { timeout: 60_000 }).catch(() => undefined)
    const { world } = await handling(ask, { protocolVersion: 5, receiveMaximum: 2 })
    await world.send(...flood(9))
    await world.clock.advance(3000)
    expect(ends(world)).toEqual([0x97])
  })

  it('a handler that waits for a SUBSCRIBE of its own goes on after ten seconds', async () => {
    const { world, numbers } = await handling(({ client }) => client.subscribe('more', { qos: 1 }))
    await world.send(...flood(9))
    await world.clock.advance(9000)
    expect(numbers).toEqual(['1'])
    await world.clock.advance(3000)
    expect(numbers.length).toBeGreaterThanOrEqual(3)
  })

  it('a handler that hangs for ten seconds ends the connection, as on 5.0', async () => {
    const { world } = await handling(never)
    await world.send(...flood(9))
    await world.clock.advance(9900)
    expect(ends(world)).toEqual([])
    await world.clock.advance(1500)
    expect(ends(world)).toEqual([0x97])
  })

  it('a session in a store, which keeps from reading on by itself, is not read from either', async () => {
    const { world } = await handling(taking(9000), { store: memoryStore() })
    for (const packet of flood(9)) {
      await world.send(packet)
      await world.settle()
    }
    expect(world.client.stats().unread).toBeLessThanOrEqual(4)
    await world.clock.advance(90_000)
    expect([world.peers.length, ends(world)]).toEqual([1, []])
  })

  it.each([4, 5] as const)(
    'a handler that hangs: the budget and one message, over however many connections, and no attempts are spent (version %i)',
    async (protocolVersion) => {
      const reconnect = { ...coming.reconnect, maxAttempts: 3 }
      const world = await started({ protocolVersion, reconnect })
      await listening(world, never)
      world.answer = repeating(20)
      await world.send(...flood(20))
      for (let round = 0; round < 10; round++) {
        await world.clock.advance(15_000)
        expect(world.client.stats().unread).toBeLessThanOrEqual(4)
      }
      expect(world.peers.length).toBeGreaterThan(3)
      expect(world.client.state).not.toBe('closed')
    },
  )

  it('messages that wait for their next attempt are bounded by bufferBytes, too', async () => {
    const world = await started()
    let bytes = 0
    const failing = (message: Message): void => {
      bytes += message.payloadLength
      throw new Error('the database is down')
    }
    await listening(world, failing, { concurrency: 2, bufferBytes: 9000 }, 'a/#')
    for (let id = 1; id <= 100; id++) await world.send(publish(`a/${id}`, big, id))
    expect(bytes).toBeLessThanOrEqual(12_000)
  })

  it.each(['on-receive', 'manual'] as const)(
    'one next() after the other is waited for, with ack %s',
    async (ack) => {
      const world = await started()
      const subscription = await subscribe(world, 'a', { qos: 1, ack })
      let count = 0
      const act = (message: Message) => [ack === 'manual' && message.ack(), count++]
      quiet(asking(world, subscription, act))
      await oneByOne(world, flood(12))
      await world.clock.advance(10_000)
      expect([count, world.peers.length]).toEqual([12, 1])
    },
  )

  it('a handler goes on where a message was larger than the budget before, and somebody else leaves a small one unread', async () => {
    const world = await started()
    for (let count = 0; count < 3; count++) await listening(world, () => undefined, {}, 'three')
    await subscribe(world, 'unread', { qos: 1 })
    let handled = 0
    const handler = (): Promise<void> => {
      handled += 1
      return sleep(world, 100)
    }
    await listening(world, handler)
    await world.send(publish('three', 'x'.repeat(5000), 100), publish('unread', 'x', 101))
    await oneByOne(world, flood(12))
    await world.clock.advance(5000)
    expect([handled, world.peers.length]).toEqual([12, 1])
  })

  it.each([0, 1] as const)('the answer of a request has room, at QoS %i', async (qos) => {
    const world = await started()
    const answers: string[] = []
    const handler = async (): Promise<void> =>
      void answers.push((await world.client.request('asked', 'x', { timeout: 20_000 })).topic)
    await listening(world, handler)
    world.peer.answer = (packet) => {
      if (packet.type !== 'publish') return agreeable(packet)
      const { responseTopic = '', correlationData } = packet.properties
      return publish(responseTopic, 'reply', qos === 0 ? undefined : 1000, {
        properties: { correlationData },
      })
    }
    await world.send(...flood(9))
    await world.clock.advance(900)
    expect(answers.length).toBeGreaterThanOrEqual(1)
    expect(world.seen('drop')).toEqual([])
  })

  it.each([0, 1] as const)(
    'a flood on the topic of answers, which another subscription has too, stays within the budget and two messages, at QoS %i',
    async (qos) => {
      const world = await started()
      await subscribe(world, '#', { qos: 1, bufferBytes: 1_000_000 })
      quiet(world.client.request('asked', 'x', { timeout: 20_000 }))
      await world.settle()
      const topic = world.peer.last('publish').properties.responseTopic ?? ''
      const answer = (_: unknown, index: number) =>
        publish(topic, big, qos === 0 ? undefined : index + 1)
      await world.send(...Array.from({ length: 40 }, answer))
      expect(world.client.stats().unread).toBeLessThanOrEqual(5)
    },
  )

  it('the answer to a re-authentication is read', async () => {
    const auth = { method: 'M', start: () => new Uint8Array(1), continue: () => undefined }
    const properties = { authenticationMethod: 'M' }
    const world = created({ auth, ...session }, (packet) => {
      if (packet.type === 'connect')
        return { type: 'connack', sessionPresent: true, reasonCode: 0, properties }
      return packet.type === 'auth'
        ? { type: 'auth', reasonCode: 0, properties }
        : agreeable(packet)
    })
    await world.up()
    await listening(world, () => sleep(world, 8000))
    await oneByOne(world, flood(20))
    const renewed = quiet(world.client.reauthenticate())
    await world.clock.advance(1000)
    expect((await world.outcome(renewed)).state).toBe('fulfilled')
  })
})

describe('the budget over several connections', () => {
  const announced = (world: World) =>
    world.peers.map((peer) => peer.all('connect')[0]?.properties.receiveMaximum)

  /** A client with 20,000 bytes for messages, whose reader never comes. */
  async function overrun(options: ClientOptions): Promise<World> {
    const all = { memoryBudget: 20_000, receiveMaximum: 64, ...options }
    const world = await steady(all, willing(false))
    await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    return world
  }

  it('announces budget ÷ largest message at once, then ever less, down to budget ÷ maximumPacketSize', async () => {
    const closes = async (options: ClientOptions): Promise<unknown> => {
      const world = await overrun(options)
      for (let round = 0; round < 3; round++) {
        await world.send(...flood(8))
        expect(world.peer.last('disconnect').reasonCode).toBe(0x97)
        // A server that lost the session, so that the same messages come as new ones and fill the budget again.
        await comeBack(world, willing(false))
      }
      return announced(world)
    }
    // Five messages of 3,000 bytes fit, with what the objects around them cost.
    expect(await closes({ maximumPacketSize: 4000 })).toEqual([64, 5, 5, 5])
    expect(await closes({ maximumPacketSize: 10_000 })).toEqual([64, 5, 2, 2])
  })

  it('announces 1024 at most, where more of the largest would fit', async () => {
    const world = await overrun({ memoryBudget: 1_000_000, receiveMaximum: 65_535 })
    await world.send(...series('a', 10_000))
    expect(world.peer.last('disconnect').reasonCode).toBe(0x97)
    await comeBack(world, willing(true))
    expect(announced(world)[1]).toBe(1024)
  })

  it('other ends of a connection change nothing', async () => {
    const world = await overrun({ maximumPacketSize: 4000 })
    await lose(world)
    await comeBack(world, willing(true))
    // The server's own 0x97 is about what we sent.
    await world.send({ type: 'disconnect', reasonCode: 0x97 })
    await comeBack(world, willing(true))
    expect(announced(world)).toEqual([64, 64, 64])
  })
})
