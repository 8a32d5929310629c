/** Acknowledgements leave as soon as what runs has ended; a turn of consumers is told from the next. */
import { describe, expect, it } from 'vitest'
import { Turns } from '../../src/client/turns.js'
import { VirtualClock } from '../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../src/testing/virtual-platform.js'
import { acks, agreed, pubacks, publish, quiet, series, subscribe, taken } from './incoming.js'

describe('Turns', () => {
  function made(): { readonly turns: Turns; readonly flushes: { count: number } } {
    const flushes = { count: 0 }
    const count = (): void => {
      flushes.count += 1
    }
    return { turns: new Turns(virtualPlatform(new VirtualClock()), count), flushes }
  }

  it('what may leave leaves as soon as what runs has ended, once', async () => {
    const { turns, flushes } = made()
    for (let count = 0; count < 5; count++) turns.flush()
    expect(flushes.count).toBe(0)
    await Promise.resolve()
    expect(flushes.count).toBe(1)
    turns.flush()
    await Promise.resolve()
    expect(flushes.count).toBe(2)
  })

  it('a mark is over when consumers had their turn', async () => {
    const { turns } = made()
    const first = turns.mark()
    expect([turns.mark(), turns.marks]).toEqual([first, first])
    await Promise.resolve()
    expect(turns.marks).not.toBe(first)
    const second = turns.mark()
    expect(second).toBe(turns.marks)
    await Promise.resolve()
    expect(turns.marks).not.toBe(second)
  })
})

describe('acknowledgements', () => {
  it('of a loop over messages that are there all leave', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(...series('a', 50))
    ;(async () => {
      for await (const message of subscription) message.text()
    })()
    await world.settle()
    expect(acks(world)).toEqual(pubacks(1, 50))
  })

  it('leave though nobody reads the rest, and other messages wait for ever', async () => {
    const world = await agreed()
    const nobody = await subscribe(world, 'b', { qos: 1 })
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('b', 'x', 100), ...series('a', 10))
    expect(nobody.size).toBe(1)
    for (const count of [1, 2, 3]) {
      taken(subscription).ack()
      await world.settle()
      // What came in first is not acknowledged: nothing behind it may be.
      expect(acks(world), String(count)).toEqual([])
    }
    taken(nobody)
    nobody.read()
    await world.settle()
    expect(acks(world)).toEqual(['puback 100', ...pubacks(1, 3)])
  })

  it('leave before a SUBSCRIBE that was asked for after them', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', 4))
    taken(subscription).ack()
    taken(subscription).ack()
    quiet(world.client.subscribe('b', { qos: 1 }))
    await world.settle()
    expect(world.peer.received.map(({ type }) => type).slice(-3)).toEqual(['puback', 'puback', 'subscribe'])
  })

  it.each(['disconnect', 'drain'] as const)('leave before DISCONNECT: %s()', async (how) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', 10))
    for (let count = 0; count < 5; count++) taken(subscription).ack()
    const ending = world.client[how]({ timeout: 100 })
    await world.clock.advance(2000)
    await ending
    const kinds = world.peer.received.map(({ type }) => type)
    expect(kinds.slice(-6)).toEqual([...new Array(5).fill('puback'), 'disconnect'])
  })

  it('leave when the connection is replaced, before the goodbye of the old one', async () => {
    const world = await agreed({ reconnect: true })
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(...series('a', 4))
    taken(subscription).ack()
    taken(subscription).ack()
    world.client.reconnect({ force: true })
    await world.clock.advance(2000)
    const [first] = world.peers
    expect(first?.received.map(({ type }) => type).slice(-3)).toEqual(['puback', 'puback', 'disconnect'])
  })
})
