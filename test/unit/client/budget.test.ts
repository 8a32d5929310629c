/** The memory budget of a connection: QoS 0 is dropped, QoS 1 and 2 end the link with 0x97, and what is let go is given back. */
import '../../../src/client/durable/keeper.js'
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Message } from '../../../src/client/api/index.js'
import { memoryStore } from '../../../src/store/memory.js'
import { again, keeps, lasting, steady, willing } from './across.js'
import { accepting, connected, World } from './harness.js'
import { acks, agreed, goodbyeCode, publish, quiet, resumed, subscribe, taken, takenTexts } from './incoming.js'
import { patient } from './patient.js'

// Room for three of the large messages, with what the objects around them cost.
const memoryBudget = 11_000
const big = 'x'.repeat(3000)

const dropCount = (world: World): number => world.seen('drop').reduce((sum, event) => sum + event.count, 0)

describe('over the budget', () => {
  it('QoS 0 is dropped and counted; the connection goes on', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a')
    for (let index = 0; index < 10; index++) await world.send(publish('a', big))
    expect(subscription.size).toBeGreaterThanOrEqual(2)
    expect(subscription.size).toBeLessThanOrEqual(3)
    await world.clock.advance(1000)
    expect(dropCount(world)).toBe(10 - subscription.size)
    expect(world.client.state).toBe('connected')
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

  it('QoS 0 over several subscriptions, each far below its own bounds', async () => {
    const world = await agreed({ memoryBudget, keepAlive: false })
    const subscriptions = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((filter) => subscribe(world, filter)))
    for (const filter of ['a', 'b', 'c', 'd', 'e']) await world.send(publish(filter, big))
    expect(subscriptions.reduce((sum, subscription) => sum + subscription.size, 0)).toBeLessThanOrEqual(3)
  })

  it.each([
    [0, 0],
    [1, 1],
  ] as const)(
    'several consumers of one message count as often as they hold it: at QoS %i one that is too much for all comes %i times',
    async (qos, times) => {
      const world = await agreed({ memoryBudget })
      const subscriptions = await Promise.all([1, 2, 3, 4, 5, 6].map(() => subscribe(world, 'a', { qos })))
      const send = (id: number) => world.send(publish('a', big, qos === 0 ? undefined : id, { qos }))
      await send(1)
      expect(subscriptions.map(({ size }) => size)).toEqual(Array(6).fill(times))
      for (const subscription of subscriptions) takenTexts(subscription)
      await send(2)
      await send(3)
      expect(subscriptions.map(({ size }) => size)).toEqual(Array(6).fill(times))
      await world.clock.advance(2000)
      expect(dropCount(world)).toBe(qos === 0 ? 3 : 0)
    },
  )

  it.each([1, 2] as const)('QoS %i ends the link with 0x97; nothing of it is acknowledged', async (qos) => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos })
    for (let id = 1; id <= 4; id++) await world.send(publish('a', big, id, { qos }))
    expect(goodbyeCode(world)).toBe(0x97)
    expect(acks(world)).toEqual([])
    expect(await world.client.closed).toMatchObject({ reasonCode: 0x97, fault: 'local' })
    expect(subscription.size).toBeLessThanOrEqual(3)
    expect(takenTexts(subscription).every((text) => text === big)).toBe(true)
  })

  it('on 3.1.1, too, answers are read: a handler that waits for its own publish goes on', async () => {
    const pausable = { pause: () => undefined, resume: () => undefined }
    const options = { memoryBudget, protocolVersion: 4, clientId: 'c', cleanStart: false } as const
    const world = new World(options, {}, 1, (_index, open) => Object.assign(open(), pausable))
    world.answer = willing(false)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const handled: string[] = []
    const listening = world.client.listen(
      'a',
      async (message) => {
        await world.client.publish('done', 'x', { qos: 1 })
        handled.push(message.topic)
      },
      { qos: 1 },
    )
    await world.settle()
    await listening
    await world.send(...[1, 2, 3, 4, 5, 6].map((id) => publish('a', big, id)))
    await world.clock.advance(900)
    expect(handled.length).toBeGreaterThanOrEqual(3)
  })

  it('messages of a detached filter count', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    subscription.detach()
    for (let id = 1; id <= 4; id++) await world.send(publish('a', big, id))
    expect(goodbyeCode(world)).toBe(0x97)
  })

  it('unclaimed messages that are held count', async () => {
    const world = await resumed({ memoryBudget })
    for (let id = 1; id <= 4; id++) await world.send(publish('a', big, id))
    expect(goodbyeCode(world)).toBe(0x97)
  })

  it('messages behind the one that was too much are not delivered', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...[1, 2, 3, 4, 5].map((id) => publish('a', id === 5 ? 'small' : big, id)))
    expect(takenTexts(subscription)).not.toContain('small')
  })
})

describe('over the budget while somebody reads: what had no room comes again once the rest is handed out', () => {
  // Six messages: three fit.
  const flood = [1, 2, 3, 4, 5, 6].map((id) => publish('a', `${id} ${big}`, id))

  /** A handler that takes so many milliseconds for each message, and what it was given. */
  async function slow(delay: number): Promise<{ readonly world: World; readonly texts: string[] }> {
    const world = await steady({ memoryBudget, cleanStart: false, clientId: 'slow' }, willing(false))
    const texts: string[] = []
    const handle = (message: Message): Promise<void> => {
      texts.push(message.text().slice(0, 1))
      return new Promise((resolve) => void world.clock.setTimer(resolve, delay))
    }
    const listening = world.client.listen('a', handle, { qos: 1 })
    await world.settle()
    await listening
    return { world, texts }
  }

  it('each is handled once, in order', async () => {
    const { world, texts } = await slow(400)
    await world.send(...flood)
    // A small one behind them stays behind them, too.
    await world.send(publish('a', '7', 7))
    await world.clock.advance(1199)
    expect(goodbyeCode(world)).toBe(undefined)
    expect([texts, acks(world)]).toEqual([
      ['1', '2', '3'],
      ['puback 1', 'puback 2'],
    ])
    const first = world.peer
    world.answer = willing(true)
    await world.clock.advance(110)
    expect(acks({ ...world, peer: first } as World)).toEqual(['puback 1', 'puback 2', 'puback 3'])
    expect(first.last('disconnect').reasonCode).toBe(0x97)
    expect(world.peer).not.toBe(first)
    await world.send(...flood.slice(3).map((packet) => ({ ...packet, dup: true })), publish('a', '7', 7))
    await world.clock.advance(2000)
    expect(texts).toEqual(['1', '2', '3', '4', '5', '6', '7'])
    expect(acks(world)).toEqual(['puback 4', 'puback 5', 'puback 6', 'puback 7'])
    expect(world.seen('drop')).toEqual([])
  })

  it('what else the server has to say is heard meanwhile', async () => {
    const { world } = await slow(400)
    await world.send(...flood)
    const published = world.client.publish('b', 'x', { qos: 1 })
    await world.settle()
    await expect(published).resolves.toMatchObject({ reasonCode: 0 })
  })

  it('a handler that hangs is not waited for', async () => {
    const { world } = await slow(1_000_000)
    await world.send(...flood)
    await world.clock.advance(1099)
    expect(world.seen('disconnect')).toEqual([])
    await world.clock.advance(1)
    expect(world.seen('disconnect').map(({ cause }) => cause?.reasonCode)).toEqual([0x97])
  })

  it('a handler of borrowed messages sees nothing before what had no room', async () => {
    const world = await steady({ memoryBudget, cleanStart: false, clientId: 'slow' }, willing(false))
    const texts: string[] = []
    const wait = (delay: number): Promise<void> => new Promise((resolve) => void world.clock.setTimer(resolve, delay))
    const handle = (message: Message): Promise<void> => {
      texts.push(message.text().slice(0, 1))
      return wait(10)
    }
    const listening = Promise.all([
      world.client.listen('a', handle, { qos: 1, lifetime: 'borrowed' }),
      world.client.listen('other', () => wait(600), { qos: 1 }),
    ])
    await world.settle()
    await listening
    await world.send(publish('other', 'x', 20), ...flood)
    const taken = texts.length + 3
    await world.clock.advance(100)
    await world.send(publish('a', '7', 7))
    await world.clock.advance(400)
    expect(texts.length).toBeLessThanOrEqual(taken)
    expect(texts).not.toContain('7')
    expect(goodbyeCode(world)).toBe(undefined)
  })

  it('who asks for one message after the other counts as a reader while it works', async () => {
    const world = await steady({ memoryBudget, cleanStart: false, clientId: 'slow' }, willing(false))
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const reading = (async () => {
      for (let message = await subscription.next(); message !== undefined; message = await subscription.next()) {
        texts.push(message.text().slice(0, 1))
        await new Promise<void>((resolve) => void world.clock.setTimer(resolve, 300))
      }
    })()
    quiet(reading)
    await world.send(...flood)
    await world.clock.advance(850)
    expect([texts, acks(world), goodbyeCode(world)]).toEqual([['1', '2', '3'], ['puback 1', 'puback 2'], undefined])
    await world.clock.advance(500)
    // The first one never lay in the buffer: four had room.
    expect(texts).toEqual(['1', '2', '3', '4'])
    expect(world.peers[0]?.last('disconnect').reasonCode).toBe(0x97)
  })

  it('the end of the client stays an orderly one', async () => {
    const { world, texts } = await slow(2000)
    await world.send(...flood)
    const ended = world.client.disconnect({ timeout: 6000 })
    await world.clock.advance(1990)
    expect(goodbyeCode(world)).toBe(undefined)
    await world.clock.advance(1100)
    await ended
    expect([texts, acks(world), goodbyeCode(world)]).toEqual([['1'], ['puback 1'], 0])
    expect(await world.client.closed).toBe(undefined)
  })

  it('the next connection is made at once, and without a growing delay', async () => {
    const { world } = await slow(20)
    world.answer = willing(true)
    await world.send(...flood)
    await world.clock.advance(300)
    expect(world.peers).toHaveLength(2)
    expect(world.seen('reconnecting').every(({ delay }) => delay <= 1000)).toBe(true)
  })

  it('a connection that is lost meanwhile takes the matter with it', async () => {
    const { world, texts } = await slow(100)
    await world.send(...flood)
    await again(world, willing(true))
    await world.clock.advance(500)
    await world.send(...flood.slice(3).map((packet) => ({ ...packet, dup: true })))
    await world.clock.advance(5000)
    expect(texts).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(world.seen('disconnect').map(({ cause }) => cause?.reasonCode)).not.toContain(0x97)
  })
})

describe('what is let go is given back', () => {
  it('by reading', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos: 1 })
    for (let id = 1; id <= 50; id++) {
      await world.send(publish('a', big, id))
      expect(taken(subscription).text()).toHaveLength(3000)
    }
    expect(world.client.state).toBe('connected')
  })

  it('by a handler', async () => {
    const world = await agreed({ memoryBudget })
    let count = 0
    const handling = world.client.listen(
      'a',
      () => {
        count += 1
      },
      { qos: 1 },
    )
    await world.settle()
    await handling
    for (let id = 1; id <= 50; id++) await world.send(publish('a', big, id))
    expect(count).toBe(50)
  })

  it('by unsubscribing', async () => {
    const world = await agreed({ memoryBudget })
    for (let round = 1; round <= 10; round++) {
      const subscription = await subscribe(world, 'a', { qos: 1 })
      await world.send(publish('a', big, round * 2), publish('a', big, round * 2 + 1))
      const left = subscription.unsubscribe()
      await world.settle()
      await left
    }
    expect(world.client.state).toBe('connected')
  })

  it('by detaching and a new subscription', async () => {
    const world = await agreed({ memoryBudget })
    for (let round = 1; round <= 10; round++) {
      const subscription = await subscribe(world, 'a', { qos: 1, retainHandling: 2 })
      await world.send(publish('a', big, round))
      subscription.detach()
      const next = await subscribe(world, 'a', { qos: 1, retainHandling: 2 })
      expect(takenTexts(next)).toEqual([big])
      next.detach()
    }
    expect(world.client.state).toBe('connected')
  })

  it('by client.unsubscribe of a detached filter', async () => {
    const world = await agreed({ memoryBudget })
    for (let round = 1; round <= 10; round++) {
      const subscription = await subscribe(world, 'a', { qos: 1 })
      await world.send(publish('a', big, round))
      subscription.detach()
      const released = world.client.unsubscribe('a')
      await world.settle()
      await released
    }
    expect(world.client.state).toBe('connected')
    expect(acks(world)).toHaveLength(10)
  })

  it('by ack() of a message that a detached filter keeps', async () => {
    const world = await agreed({ memoryBudget })
    for (let round = 1; round <= 10; round++) {
      const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual', retainHandling: 2 })
      await world.send(publish('a', big, round))
      const message = taken(subscription)
      subscription.detach()
      expect(message.ack()).toBe(true)
      await world.settle()
    }
    expect(world.client.state).toBe('connected')
  })

  it('by overflow', async () => {
    const world = await agreed({ memoryBudget })
    const subscription = await subscribe(world, 'a', { qos: 1, buffer: 1, overflow: 'drop-oldest' })
    for (let id = 1; id <= 50; id++) await world.send(publish('a', big, id))
    expect(world.client.state).toBe('connected')
    expect(subscription.dropped).toBeGreaterThanOrEqual(47)
  })

  it('by the end of unclaimedHold', async () => {
    const world = await resumed({ memoryBudget, unclaimedHold: 1000, keepAlive: false })
    for (let id = 1; id <= 3; id++) await world.send(publish('a', big, id))
    await world.clock.advance(1001)
    const subscription = await subscribe(world, 'a', { qos: 1 })
    for (let id = 1; id <= 3; id++) await world.send(publish('a', big, id))
    expect(subscription.size).toBe(3)
    expect(world.client.state).toBe('connected')
  })

  it('nobody subscribed: nothing piles up', async () => {
    const world = await connected({ memoryBudget }, accepting())
    for (let id = 1; id <= 50; id++) await world.send(publish('a', big, id))
    expect(acks(world)).toHaveLength(50)
  })
})

describe('over the budget, on a stream that can be paused', () => {
  const flood = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => publish('a', `${id} ${big}`, id))

  /** A handler, and what it was given. */
  async function handling(
    handle: (message: Message, world: World) => Promise<unknown>,
    more: ClientOptions = {},
  ): Promise<{ readonly world: World; readonly texts: string[] }> {
    const options = { ...lasting, protocolVersion: 4, memoryBudget, stats: true, ...more } as const
    const world = new World(options, {}, 1, (_index, open) => patient(open()))
    world.answer = willing(false)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const texts: string[] = []
    const listening = world.client.listen(
      'a',
      async (message) => {
        texts.push(message.text().slice(0, 1))
        await handle(message, world)
      },
      { qos: 1 },
    )
    await world.settle()
    await listening
    return { world, texts }
  }

  const taking =
    (delay: number) =>
    (_message: Message, { clock }: World): Promise<void> =>
      new Promise((resolve) => void clock.setTimer(resolve, delay))

  it.each([20, 400, 2500, 9000])(
    'nothing more is read until a handler that takes %i ms has made room: one connection, each message once',
    async (delay) => {
      // PINGRESP is not read for longer than a ping timeout.
      const { world, texts } = await handling(taking(delay), { keepAlive: 10 })
      for (const packet of flood) await world.send(packet)
      // What was taken is the budget and one message.
      expect(world.client.stats().unread).toBeLessThanOrEqual(4)
      await world.clock.advance(9 * delay + 2000)
      expect(texts.join('')).toBe('123456789')
      expect(acks(world)).toEqual(flood.map((_, index) => `puback ${index + 1}`))
      expect([world.peers.length, world.seen('disconnect')]).toEqual([1, []])
    },
  )

  it.each([2, 65_535])('a server of 5.0 is not read from either, whether it exceeds Receive Maximum (%i) or not', async (receiveMaximum) => {
    const { world, texts } = await handling(taking(20), { protocolVersion: 5, receiveMaximum })
    await world.send(...flood)
    await world.clock.advance(2000)
    expect(texts.join('')).toBe('123456789')
    expect(world.peers.length).toBe(1)
  })

  it('a backlog that comes before the answer to SUBSCRIBE waits for its reader, too: one connection, each message once', async () => {
    const options = { ...lasting, protocolVersion: 4, memoryBudget, cleanStart: false, clientId: 'c' } as const
    const world = new World(options, {}, 1, (_index, open) => patient(open()))
    world.answer = keeps()
    const texts: string[] = []
    const listening = world.client.listen(
      'a',
      async (message) => {
        texts.push(message.text().slice(0, 1))
        await taking(400)(message, world)
      },
      { qos: 1 },
    )
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    const { packetId } = world.peer.last('subscribe')
    await world.send(...flood, { type: 'suback', packetId, reasonCodes: [1], properties: {} })
    await world.clock.advance(9 * 400 + 1000)
    await listening
    expect(texts.join('')).toBe('123456789')
    expect([world.peers.length, world.seen('disconnect')]).toEqual([1, []])
  })

  it('answers are read: a handler that waits for its own publish goes on', async () => {
    const { world, texts } = await handling((_message, { client }) => client.publish('done', 'x', { qos: 1 }))
    await world.send(...flood)
    await world.clock.advance(900)
    expect(texts.length).toBeGreaterThanOrEqual(3)
    await world.clock.advance(5000)
    expect(world.client.state).toBe('connected')
  })

  it('messages are read where one of them may be the answer to a request', async () => {
    const { world } = await handling((_message, { client }) => client.request('asked', 'x', { timeout: 60_000 }).catch(() => undefined), {
      protocolVersion: 5,
      receiveMaximum: 2,
    })
    await world.send(...flood)
    await world.clock.advance(3000)
    expect(world.seen('disconnect').map(({ cause }) => cause?.reasonCode)).toEqual([0x97])
  })

  it('a handler that waits for a SUBSCRIBE of its own goes on after ten seconds', async () => {
    const { world, texts } = await handling((_message, { client }) => client.subscribe('more', { qos: 1 }))
    await world.send(...flood)
    await world.clock.advance(9000)
    expect(texts).toEqual(['1'])
    await world.clock.advance(3000)
    expect(texts.length).toBeGreaterThanOrEqual(3)
  })

  it('a handler that hangs for ten seconds ends the connection, as on 5.0', async () => {
    const { world } = await handling(taking(1_000_000))
    await world.send(...flood)
    await world.clock.advance(9900)
    expect(world.seen('disconnect')).toEqual([])
    await world.clock.advance(1500)
    expect(world.seen('disconnect').map(({ cause }) => cause?.reasonCode)).toEqual([0x97])
  })

  it('a session in a store, which keeps from reading on by itself, is not read from either', async () => {
    const { world } = await handling(taking(9000), { store: memoryStore() })
    for (const packet of flood) {
      await world.send(packet)
      await world.settle()
    }
    expect(world.client.stats().unread).toBeLessThanOrEqual(4)
    await world.clock.advance(90_000)
    expect([world.peers.length, world.seen('disconnect')]).toEqual([1, []])
  })

  it('disconnect() in the meantime hands out what was taken, and ends', async () => {
    const { world } = await handling(taking(100))
    await world.send(...flood)
    const ended = world.client.disconnect()
    await world.clock.advance(3000)
    expect((await world.outcome(ended)).state).toBe('fulfilled')
  })
})
