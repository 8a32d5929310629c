/** Publishes in flight on 3.1.1, where a server cannot say how many it takes. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { again, comeBack, forgets, send, steady } from './across.js'
import { accepting, agreeable, failure, type World } from './harness.js'
import { quiet } from './incoming.js'

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

  it('a server that ends the connection above 20 gets 50 messages on one', async () => {
    const world = await steady(four, fresh)
    let unreleased = 0
    world.answer = (packet) => {
      if (packet.type === 'publish') unreleased += 1
      if (packet.type === 'pubrel') unreleased -= 1
      if (unreleased > 20) world.peer.cut()
      return agreeable(packet)
    }
    const all = send(world, 2, ...texts(50))
    await world.settle()
    expect((await world.outcome(Promise.all(all))).state).toBe('fulfilled')
    expect(world.seen('disconnect')).toEqual([])
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

  it('QoS 1 goes past those that wait for it, until one follows on their topics: each topic and each QoS keeps its order', async () => {
    const world = await steady(four, fresh)
    const publish = (topic: string, qos: 1 | 2): unknown => quiet(world.client.publish(topic, topic, { qos }))
    send(world, 2, ...texts(20))
    await world.settle()
    publish('a', 2)
    for (const topic of ['b', 'a', 'c']) publish(topic, 1)
    await world.settle()
    // The last two are published while the first still waits, in a turn of their own.
    for (const topic of ['a', 'd']) publish(topic, 1)
    publish('b', 2)
    await world.settle()
    const late = (): string[] =>
      world.peer
        .all('publish')
        .slice(20)
        .map(({ topic, qos }) => `${topic}${qos}`)
    expect(late()).toEqual(['b1'])
    await world.send({ type: 'pubrec', packetId: 1, reasonCode: 0, properties: {} }, { type: 'pubcomp', packetId: 1, reasonCode: 0, properties: {} })
    expect(late()).toEqual(['b1', 'a2', 'a1', 'c1', 'a1', 'd1'])
    await world.send({ type: 'pubrec', packetId: 2, reasonCode: 0, properties: {} }, { type: 'pubcomp', packetId: 2, reasonCode: 0, properties: {} })
    expect(late().slice(6)).toEqual(['b2'])
    expect(world.client.outbound.size).toBe(0)
  })

  it('what waits for it is dropped, aborted and sent on the next connection as all others are, in order', async () => {
    const world = await steady({ ...four, outbound: { maxQueuedMessages: 4, overflow: 'drop-oldest' } }, fresh)
    send(world, 2, ...texts(20))
    const control = new AbortController()
    const oldest = failure(world.client.publish('a', 'oldest', { qos: 2 }))
    const aborted = failure(world.client.publish('b', 'aborted', { qos: 2, signal: control.signal }))
    const kept = ['1', '2', '3'].map((text) => quiet(world.client.publish('a', text, { qos: 2 })))
    expect(await oldest).toMatchObject({ code: 'ERR_DROPPED' })
    control.abort()
    expect(await aborted).toMatchObject({ code: 'ERR_ABORTED' })
    quiet(world.client.publish('c', 'past', { qos: 1 }))
    await world.settle()
    expect(world.client.outbound.size).toBe(3)
    await again(world, forgets())
    world.answer = agreeable
    for (const { packetId = 0, qos } of world.peer.all('publish'))
      await world.send({ type: qos === 1 ? 'puback' : 'pubrec', packetId, reasonCode: 0, properties: {} })
    await world.settle()
    expect((await world.outcome(Promise.all(kept))).state).toBe('fulfilled')
    const sent = world.peer.all('publish').map(({ topic, payload }) => topic + new TextDecoder().decode(payload))
    expect(sent.filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
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

it('QoS 2 that waits for an identifier to be cleared lets QoS 1 of other topics pass, too', async () => {
  const world = await steady({ clientId: 'c', cleanStart: false }, accepting({}, true))
  for (const [topic, qos] of [
    ['a', 2],
    ['b', 1],
    ['a', 1],
  ] as const)
    quiet(world.client.publish(topic, 'x', { qos }))
  await world.settle()
  expect(world.peer.all('pubrel')).toHaveLength(16)
  expect(world.peer.all('publish').map(({ topic }) => topic)).toEqual(['b'])
  await world.send({ type: 'pubcomp', packetId: world.peer.last('pubrel').packetId, reasonCode: 0x92, properties: {} })
  expect(world.peer.all('publish').map(({ topic, qos }) => `${topic}${qos}`)).toEqual(['b1', 'a2', 'a1'])
})
