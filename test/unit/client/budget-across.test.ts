/** After a close for budget (0x97) the next CONNECT asks for what fits, so that a backlog cannot come back in one piece. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { comeBack, lose, steady, willing } from './across.js'
import type { World } from './harness.js'
import { acks, publish, subscribe, takenTexts } from './incoming.js'

const announced = (world: World) =>
  world.peers.map((peer) => peer.all('connect')[0]?.properties.receiveMaximum)

const messages = (count: number, size = 3000, dup = false) =>
  Array.from({ length: count }, (_, index) => publish('t', 'x'.repeat(size), index + 1, { dup }))

/** A client with 20,000 bytes for messages, whose reader never comes. */
async function overrun(options: ClientOptions): Promise<World> {
  const world = await steady({ memoryBudget: 20_000, ...options }, willing(false))
  await subscribe(world, 't', { qos: 1, ack: 'manual' })
  return world
}

/** As many QoS 1 messages of 3,000 bytes as fit, and one more. */
async function flood(world: World): Promise<void> {
  await world.send(...messages(8))
}

describe('the budget over several connections', () => {
  it('announces budget ÷ largest message at once, then ever less, down to budget ÷ maximumPacketSize', async () => {
    const closes = async (options: ClientOptions): Promise<unknown> => {
      const world = await overrun({ receiveMaximum: 64, ...options })
      for (let round = 0; round < 3; round++) {
        await flood(world)
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

  it('announces 1 where a message is too much for its many readers', async () => {
    const world = await overrun({ receiveMaximum: 64, maximumPacketSize: 4000 })
    for (let reader = 0; reader < 6; reader++)
      await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await flood(world)
    await comeBack(world, willing(false))
    expect(announced(world)).toEqual([64, 1])
  })

  it('never goes below 1', async () => {
    const world = await overrun({ receiveMaximum: 3, maximumPacketSize: 1_000_000 })
    for (let round = 0; round < 3; round++) {
      await world.send(...messages(3, 9000))
      await comeBack(world, willing(false))
    }
    const all = announced(world) as number[]
    expect(all.slice(0, 2)).toEqual([3, 1])
    for (const value of all) expect(value).toBeGreaterThanOrEqual(1)
  })

  it('other ends of a connection change nothing', async () => {
    const world = await overrun({ receiveMaximum: 64, maximumPacketSize: 4000 })
    await lose(world)
    await comeBack(world, willing(true))
    // The server's own 0x97 is about what we sent.
    await world.send({ type: 'disconnect', reasonCode: 0x97, properties: {} })
    await comeBack(world, willing(true))
    expect(announced(world)).toEqual([64, 64, 64])
  })

  it('what is announced is enforced: one message more is 0x93', async () => {
    const world = await overrun({
      receiveMaximum: 8,
      maximumPacketSize: 4000,
      receiveMaximumExceeded: 'disconnect',
    })
    await flood(world)
    await comeBack(world, willing(false))
    expect(announced(world).at(-1)).toBe(5)
    await world.send(...messages(6, 1))
    expect(world.peer.last('disconnect').reasonCode).toBe(0x93)
  })

  it.each([1, 2] as const)(
    'QoS %i: what did not fit is delivered when it comes again, in order',
    async (qos) => {
      const world = await steady(
        { memoryBudget: 20_000, maximumPacketSize: 4000, receiveMaximum: 8 },
        willing(false),
      )
      const subscription = await subscribe(world, 't', { qos })
      const texts: string[] = []
      const acked: string[] = []
      let open = Array.from({ length: 20 }, (_, index) =>
        publish('t', String(index).padEnd(3000), index + 1, { qos }),
      )
      let connections = 0
      while (open.length > 0 && connections < 10) {
        connections += 1
        // A server without regard to our window.
        await world.send(...open)
        texts.push(...takenTexts(subscription))
        subscription.read()
        await world.settle()
        const acknowledged = acks(world)
        acked.push(...acknowledged)
        open = open.slice(acknowledged.length).map((message) => ({ ...message, dup: true }))
        if (world.client.state === 'connected') await lose(world)
        await comeBack(world, willing(true))
      }
      // At QoS 1 a message whose acknowledgement was cut off comes again.
      const numbers = texts.map(Number)
      expect(qos === 1 ? [...new Set(numbers)] : numbers).toEqual(
        Array.from({ length: 20 }, (_, index) => index),
      )
      expect(acked).toEqual(
        Array.from({ length: 20 }, (_, index) => `${qos === 1 ? 'puback' : 'pubrec'} ${index + 1}`),
      )
      expect(connections).toBeLessThan(9)
    },
  )

  it('messages in hand are not delivered again after it', async () => {
    const world = await steady(
      { memoryBudget: 20_000, maximumPacketSize: 4000, receiveMaximum: 8 },
      willing(false),
    )
    const subscription = await subscribe(world, 't', { qos: 1 })
    await flood(world)
    expect(world.peer.last('disconnect').reasonCode).toBe(0x97)
    const buffered = subscription.size
    expect(buffered).toBeGreaterThan(0)
    await comeBack(world, willing(true))
    await world.send(...messages(5, 3000, true))
    expect(subscription.size).toBe(buffered)
  })
})
