/** A full memory budget on a stream that can be paused: what must go on all the same, and what stays bounded. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Handler, ListenOptions, Message } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { lasting, willing } from './across.js'
import { agreeable, World } from './harness.js'
import { publish, quiet } from './incoming.js'
import { patient } from './patient.js'

// Room for three of the large messages, with what the objects around them cost.
const memoryBudget = 11_000
const big = 'x'.repeat(3000)

/** Messages 1 to `count`. */
const flood = (count: number, dup = false): PacketInput[] => Array.from({ length: count }, (_, index) => publish('a', big, index + 1, { dup }))

/** A client whose session the server keeps. */
function created(options: ClientOptions = {}): World {
  const all = { ...lasting, reconnect: { backoff: constant(1000) }, clientId: 'c', cleanStart: false, memoryBudget, stats: true, ...options }
  const world = new World(all, {}, 1, (_index, open) => patient(open()))
  world.answer = willing(true)
  return world
}

async function started(options: ClientOptions = {}): Promise<World> {
  const world = created(options)
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  return world
}

async function listening(world: World, handler: Handler, options: ListenOptions = {}, filter = 'a'): Promise<void> {
  const granted = world.client.listen(filter, handler, { qos: 1, ...options })
  await world.settle()
  await granted
}

/** Each connection brings these again. */
function again(count: number): (packet: ClientPacket) => readonly PacketInput[] {
  const answer = willing(true)
  return (packet) => [answer(packet) ?? [], packet.type === 'connect' ? flood(count, true) : []].flat()
}

const waiting = (world: World, delay: number): Promise<void> => new Promise((resolve) => void world.clock.setTimer(resolve, delay))
const never = (): Promise<void> => new Promise(() => undefined)

describe('memory', () => {
  it.each([4, 5] as const)(
    'a handler that hangs: the budget and one message, over however many connections (version %i)',
    async (protocolVersion) => {
      const world = await started({ protocolVersion })
      await listening(world, never)
      world.answer = again(20)
      await world.send(...flood(20))
      for (let round = 0; round < 10; round++) {
        await world.clock.advance(15_000)
        expect(world.client.stats().unread).toBeLessThanOrEqual(4)
      }
      expect(world.peers.length).toBeGreaterThan(3)
    },
  )
})

describe('retries', () => {
  it('messages that wait for their next attempt are bounded by bufferBytes, too', async () => {
    const world = await started()
    let bytes = 0
    const fail = (message: Message): void => {
      bytes += message.payloadLength
      throw new Error('the database is down')
    }
    await listening(world, fail, { concurrency: 2, bufferBytes: 9000 }, 'a/#')
    for (let id = 1; id <= 100; id++) await world.send(publish(`a/${id}`, big, id))
    expect(bytes).toBeLessThanOrEqual(12_000)
  })
})

describe('who reads', () => {
  it.each(['on-receive', 'manual'] as const)('asks for one message after the other, with ack %s: is waited for', async (ack) => {
    const world = await started()
    const subscribing = world.client.subscribe('a', { qos: 1, ack })
    await world.settle()
    const subscription = await subscribing
    const texts: string[] = []
    const run = async (): Promise<void> => {
      for (let message = await subscription.next(); message !== undefined; message = await subscription.next()) {
        if (ack === 'manual') message.ack()
        texts.push(message.topic)
        await waiting(world, 300)
      }
    }
    quiet(run())
    for (const packet of flood(12)) await world.send(packet)
    await world.clock.advance(10_000)
    expect([texts.length, world.peers.length]).toEqual([12, 1])
  })

  it('goes on where a message was larger than the budget before, and somebody else leaves a small one unread', async () => {
    const world = await started()
    for (let count = 0; count < 3; count++) await listening(world, () => undefined, {}, 'three')
    const subscribing = world.client.subscribe('unread', { qos: 1 })
    let handled = 0
    await listening(world, async () => {
      handled += 1
      await waiting(world, 100)
    })
    await subscribing
    await world.send(publish('three', 'x'.repeat(5000), 100), publish('unread', 'x', 101))
    for (const packet of flood(12)) await world.send(packet)
    await world.clock.advance(5000)
    expect([handled, world.peers.length]).toEqual([12, 1])
  })

  it('and hangs, spends no attempts to reconnect', async () => {
    const world = await started({ reconnect: { backoff: constant(1000), maxAttempts: 3 } })
    await listening(world, never)
    world.answer = again(20)
    await world.send(...flood(20))
    await world.clock.advance(120_000)
    expect(world.client.state).not.toBe('closed')
  })
})

describe('a subscription whose grant lies behind the backlog', () => {
  /** A program that reads once `subscribe()` has fulfilled, over a server that sends this before SUBACK. */
  async function reading(protocolVersion: 4 | 5, backlog: readonly PacketInput[]): Promise<string[]> {
    const world = created({ protocolVersion })
    const open = new Map(backlog.map((packet) => [(packet as { packetId: number }).packetId, packet]))
    world.answer = (packet) => {
      if (packet.type === 'puback') open.delete(packet.packetId)
      return [willing(true)(packet) ?? [], packet.type === 'connect' ? [...open.values()] : []].flat()
    }
    const texts: string[] = []
    const run = async (): Promise<void> => {
      await world.client.connect()
      for await (const message of await world.client.subscribe('a', { qos: 1 })) texts.push(message.topic)
    }
    quiet(run())
    await world.clock.advance(20_000)
    return texts
  }

  it.each([4, 5] as const)('is granted, and its reader gets everything (version %i)', async (protocolVersion) => {
    expect(await reading(protocolVersion, flood(20, true))).toHaveLength(20)
  })
})

describe('answers', () => {
  it.each([0, 1] as const)('that of a request has room, at QoS %i', async (qos) => {
    const world = await started()
    const answers: string[] = []
    await listening(world, async () => {
      const { topic } = await world.client.request('asked', 'x', { timeout: 20_000 })
      answers.push(topic)
    })
    world.peer.answer = (packet) => {
      if (packet.type !== 'publish') return agreeable(packet)
      const { responseTopic = '', correlationData } = packet.properties
      return publish(responseTopic, 'reply', qos === 0 ? undefined : 1000, { properties: { correlationData } })
    }
    await world.send(...flood(9))
    await world.clock.advance(900)
    expect(answers.length).toBeGreaterThanOrEqual(1)
    expect(world.seen('drop')).toEqual([])
  })

  it.each([0, 1] as const)(
    'a flood on their topic, which another subscription has too, stays within the budget and two messages, at QoS %i',
    async (qos) => {
      const world = await started()
      const { client } = world
      const all = client.subscribe('#', { qos: 1, bufferBytes: 1_000_000 })
      await world.settle()
      await all
      quiet(client.request('asked', 'x', { timeout: 20_000 }))
      await world.settle()
      const topic = world.peer.last('publish').properties.responseTopic ?? ''
      await world.send(...Array.from({ length: 40 }, (_, index) => publish(topic, big, qos === 0 ? undefined : index + 1)))
      expect(client.stats().unread).toBeLessThanOrEqual(5)
    },
  )

  it('that of a re-authentication is read', async () => {
    const auth = { method: 'M', start: () => new Uint8Array(1), continue: () => undefined }
    const world = created({ auth })
    const properties = { authenticationMethod: 'M' }
    world.answer = (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: true, reasonCode: 0, properties }
      return packet.type === 'auth' ? { type: 'auth', reasonCode: 0, properties } : agreeable(packet)
    }
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    await listening(world, () => waiting(world, 8000))
    for (const packet of flood(20)) await world.send(packet)
    const renewed = world.client.reauthenticate()
    quiet(renewed)
    await world.clock.advance(1000)
    expect((await world.outcome(renewed)).state).toBe('fulfilled')
  })
})
