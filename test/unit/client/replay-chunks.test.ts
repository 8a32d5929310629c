/** The same story, whatever pieces the bytes come in, and the same numbers of timers and listeners after a thousand drops. */
import { describe, expect, it } from 'vitest'
import type { MemoryOptions } from '../../../src/transport/memory.js'
import { again, carried, comeBack, keeps, lasting, lose, send, short, steady, willing } from './across.js'
import { World } from './harness.js'
import { publish, quiet, read, subscribe } from './incoming.js'

/** A session over four connections; gives everything that either side saw. */
async function story(memory: MemoryOptions): Promise<unknown> {
  const world = new World({ ...lasting, outbound: { onSessionLost: 'republish' } }, memory)
  world.answer = willing(false)
  const connecting = quiet(world.client.connect())
  await world.settle()
  await connecting
  const reading = read(await subscribe(world, ['in', 'more'], { qos: 2 }))
  world.answer = () => undefined
  const calls = [...send(world, 1, 'a', 'b'), ...send(world, 2, 'c', 'd')]
  await world.send(publish('in', 'one', 1), publish('in', 'two', 2, { qos: 2 }), publish('more', 'three'))
  await world.send({ type: 'pubrec', packetId: calls.length + 1, reasonCode: 0, properties: {} })
  await again(world, keeps())
  await world.send(publish('in', 'two', 2, { qos: 2, dup: true }), publish('in', 'four', 3, { qos: 2 }))
  await again(world, willing(false))
  await world.send(publish('in', 'five', 4))
  await again(world, willing(true))
  const results = await Promise.all(calls.map((call) => world.outcome(call)))
  return {
    bytes: world.peers.map((peer) => peer.bytes),
    packets: world.peers.map((peer) => peer.received.map(short)),
    events: world.events.map(({ type }) => type),
    texts: reading.texts,
    results: results.map(({ state }) => state),
  }
}

describe('the size of the pieces', () => {
  it('makes no difference: byte by byte, in threes, in sevens, all at once, into a buffer or as chunks', async () => {
    const whole = await story({})
    for (const split of [1, 2, 3, 7, 64]) {
      for (const delivery of ['chunk', 'buffer'] as const) expect(await story({ split, delivery }), `${split} ${delivery}`).toEqual(whole)
    }
    expect(whole).toMatchObject({ results: ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'] })
  })
})

describe('a thousand connections', () => {
  it('leave as many timers as one, no second reader, and nothing that waits', { timeout: 60_000 }, async () => {
    const world = await steady({ keepAlive: 30, stats: true }, willing(false))
    const reading = read(await subscribe(world, 't', { qos: 1 }))
    send(world, 1, 'first')
    await world.settle()
    await again(world, willing(true))
    const timers = world.clock.pending
    for (let round = 0; round < 1000; round++) {
      world.answer = round % 2 === 0 ? keeps() : willing(true)
      await lose(world)
      if (round % 10 === 0) quiet(world.client.publish('t', 'x', { qos: 1 }))
      await comeBack(world, world.answer)
    }
    await again(world, willing(true))
    await world.settle()
    expect(world.clock.pending).toBeLessThanOrEqual(timers)
    expect(world.client.outbound.size).toBe(0)
    expect(world.client.stats()).toMatchObject({ publishesInFlight: 0, publishesQueued: 0, connects: 1003 })
    expect(world.seen('connect').length - world.seen('disconnect').length).toBe(1)
    await world.send(publish('t', 'once', 1))
    expect(reading.texts).toEqual(['once'])
    expect(carried(world.peer)).toEqual(['puback #1'])
  })
})
