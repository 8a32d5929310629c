/** The memory budget of a connection: QoS 0 is dropped, QoS 1 and 2 end the link with 0x97, and what is let go is given back. */
import { describe, expect, it } from 'vitest'
import { accepting, connected, type World } from './harness.js'
import { acks, agreed, goodbyeCode, publish, resumed, subscribe, taken, takenTexts } from './incoming.js'

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

  it('QoS 0 over several subscriptions, each far below its own bounds', async () => {
    const world = await agreed({ memoryBudget, keepAlive: false })
    const subscriptions = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((filter) => subscribe(world, filter)))
    for (const filter of ['a', 'b', 'c', 'd', 'e']) await world.send(publish(filter, big))
    expect(subscriptions.reduce((sum, subscription) => sum + subscription.size, 0)).toBeLessThanOrEqual(3)
  })

  it('several consumers of one message count as often as they hold it', async () => {
    const world = await agreed({ memoryBudget })
    const subscriptions = await Promise.all([1, 2, 3, 4, 5, 6].map(() => subscribe(world, 'a')))
    await world.send(publish('a', big))
    expect(subscriptions.reduce((sum, subscription) => sum + subscription.size, 0) * big.length).toBeLessThanOrEqual(memoryBudget)
  })

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
