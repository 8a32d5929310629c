/** Publishes in flight on 3.1.1, where a server cannot say how many it takes. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../src/client/api/index.js'
import { comeBack, send, steady } from './across.js'
import { accepting, agreeable, type World } from './harness.js'

const four: ClientOptions = { protocolVersion: 4, clientId: 'c', cleanStart: false }
const texts = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index))
const open = (world: World): number => world.peer.all('publish').length

/** A server that has no session yet, and one that has it; both answer nothing else. */
const fresh = accepting()
const silent = accepting({}, true)

describe('QoS 2 on 3.1.1', () => {
  it.each([
    ['20 are in flight', {}, 20],
    ['maxInflight decides', { outbound: { maxInflight: 33 } }, 33],
    ['maxInflight decides when it is less, too', { outbound: { maxInflight: 5 } }, 5],
  ] as const)('%s', async (_name, options, most) => {
    const world = await steady({ ...four, ...options }, fresh)
    send(world, 2, ...texts(50))
    await world.settle()
    expect(open(world)).toBe(most)
  })

  it('the next goes when an exchange is over, not before; all arrive in order', async () => {
    const world = await steady(four, fresh)
    const all = send(world, 2, ...texts(50))
    await world.settle()
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} })
    expect(open(world)).toBe(20)
    await world.send({ type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    expect(open(world)).toBe(21)
    world.answer = agreeable
    for (let id = 2; id <= 21; id++) await world.send({ type: 'pubrec', packetId: id, reasonCode: 0, properties: {} })
    await world.settle()
    expect((await world.outcome(Promise.all(all))).state).toBe('fulfilled')
    expect(world.peer.all('publish').map(({ payload }) => new TextDecoder().decode(payload))).toEqual(
      Array.from({ length: 50 }, (_, index) => String(index)),
    )
  })

  it('holds for what goes again on the next connection, and leaves QoS 1 alone', async () => {
    const world = await steady(four, fresh)
    send(world, 2, ...texts(30))
    await world.settle()
    world.peer.cut()
    await world.settle()
    await comeBack(world, silent)
    expect(world.peer.all('publish').filter(({ dup }) => dup)).toHaveLength(20)
    expect(open(world)).toBe(20)
    const other = await steady(four, fresh)
    send(other, 1, ...texts(50))
    await other.settle()
    expect(open(other)).toBe(50)
  })

  it('of 5.0 there is no such limit', async () => {
    const world = await steady({}, accepting())
    send(world, 2, ...texts(50))
    await world.settle()
    expect(open(world)).toBe(50)
  })
})

describe('a connection on 3.1.1 that ends with more than 20 in flight', () => {
  it('halves what the next one carries at a time, down to 20', async () => {
    const world = await steady(four, fresh)
    send(world, 1, ...texts(100))
    await world.settle()
    const carried: number[] = [open(world)]
    for (let round = 0; round < 4; round++) {
      world.peer.cut()
      await world.settle()
      await comeBack(world, silent)
      carried.push(open(world))
    }
    // One that ends with no more than 20 says nothing against the limit that was set.
    expect(carried).toEqual([100, 50, 25, 20, 100])
  })

  it('at QoS 2, where maxInflight allows more', async () => {
    const world = await steady({ ...four, outbound: { maxInflight: 60 } }, fresh)
    send(world, 2, ...texts(100))
    await world.settle()
    world.peer.cut()
    await world.settle()
    await comeBack(world, silent)
    expect(open(world)).toBe(30)
  })

  it('an attempt that fails in between changes nothing', async () => {
    const world = await steady(four, fresh)
    send(world, 1, ...texts(100))
    await world.settle()
    world.peer.cut()
    await world.settle()
    await comeBack(world, (packet) =>
      packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 3, properties: {} } : undefined,
    )
    await comeBack(world, silent)
    expect(open(world)).toBe(50)
  })

  it('on 5.0 the Receive Maximum of the server is what counts', async () => {
    const world = await steady({ clientId: 'c', cleanStart: false }, fresh)
    send(world, 1, ...texts(100))
    await world.settle()
    world.peer.cut()
    await world.settle()
    await comeBack(world, accepting({}, true))
    expect(open(world)).toBe(100)
  })
})
