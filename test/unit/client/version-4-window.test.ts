/** Publishes in flight on 3.1.1, where a server cannot say how many it takes. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { again, forgets, keeps, send, steady } from './across.js'
import { agreeable, failure, type World } from './harness.js'
import { quiet } from './incoming.js'
import { refusing } from './rig.js'
import { ack } from './stub.js'

const durable: ClientOptions = { clientId: 'c', cleanStart: false }
const four: ClientOptions = { ...durable, protocolVersion: 4 }
const texts = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => String(index))
const textOf = ({ payload }: { payload: Uint8Array }) => new TextDecoder().decode(payload)
const open = (world: World): number => world.peer.all('publish').length

/** A server without a session that answers nothing else gets so many publishes. */
async function flooded(count: number, qos: 1 | 2, options: ClientOptions = {}): Promise<World> {
  const world = await steady({ ...four, ...options })
  send(world, qos, ...texts(count))
  await world.settle()
  return world
}

describe('QoS 2 on 3.1.1', () => {
  it.each<[string, 1 | 2, ClientOptions, number]>([
    ['20 are in flight', 2, {}, 20],
    ['maxInflight decides', 2, { outbound: { maxInflight: 33 } }, 33],
    ['maxInflight decides when it is less, too', 2, { outbound: { maxInflight: 5 } }, 5],
    ['QoS 1 is left alone', 1, {}, 50],
    ['of 5.0 there is no such limit', 2, { protocolVersion: 5 }, 50],
  ])('%s', async (_name, qos, options, most) => {
    expect(open(await flooded(50, qos, options))).toBe(most)
  })

  it('a server that ends the connection above 20 gets 50 messages on one', async () => {
    const world = await steady(four)
    let unreleased = 0
    world.answer = (packet) => {
      if (packet.type === 'publish') unreleased += 1
      if (packet.type === 'pubrel') unreleased -= 1
      if (unreleased > 20) world.peer.cut()
      return agreeable(packet)
    }
    expect((await world.outcome(Promise.all(send(world, 2, ...texts(50))))).state).toBe('fulfilled')
    expect(world.seen('disconnect')).toEqual([])
  })

  it('the next goes when an exchange is over, not before; all arrive in order', async () => {
    const world = await steady(four)
    const all = send(world, 2, ...texts(50))
    await world.settle()
    await world.send(ack('pubrec', 1))
    expect(open(world)).toBe(20)
    await world.send(ack('pubcomp', 1))
    expect(open(world)).toBe(21)
    world.answer = agreeable
    for (let id = 2; id <= 21; id++) await world.send(ack('pubrec', id))
    expect((await world.outcome(Promise.all(all))).state).toBe('fulfilled')
    expect(world.peer.all('publish').map(textOf)).toEqual(texts(50))
  })

  it('holds for what goes again on the next connection', async () => {
    const world = await flooded(30, 2)
    await again(world)
    expect(world.peer.all('publish').filter(({ dup }) => dup)).toHaveLength(20)
    expect(open(world)).toBe(20)
  })

  it('QoS 1 goes past those that wait for it, until one follows on their topics: each topic and each QoS keeps its order', async () => {
    const world = await flooded(20, 2)
    const publish = (topic: string, qos: 1 | 2): unknown =>
      quiet(world.client.publish(topic, topic, { qos }))
    publish('a', 2)
    for (const topic of ['b', 'a', 'c']) publish(topic, 1)
    await world.settle()
    // The last two are published while the first still waits, in a turn of their own.
    for (const topic of ['a', 'd']) publish(topic, 1)
    publish('b', 2)
    await world.settle()
    const late = () =>
      world.peer
        .all('publish')
        .slice(20)
        .map(({ topic, qos }) => topic + qos)
    expect(late()).toEqual(['b1'])
    await world.send(ack('pubrec', 1), ack('pubcomp', 1))
    expect(late()).toEqual(['b1', 'a2', 'a1', 'c1', 'a1', 'd1'])
    await world.send(ack('pubrec', 2), ack('pubcomp', 2))
    expect(late().slice(6)).toEqual(['b2'])
    expect(world.client.outbound.size).toBe(0)
  })

  it('what waits for it is dropped, aborted and sent on the next connection as all others are, in order', async () => {
    const world = await flooded(20, 2, {
      outbound: { maxQueuedMessages: 4, overflow: 'drop-oldest' },
    })
    const control = new AbortController()
    const oldest = failure(world.client.publish('a', 'oldest', { qos: 2 }))
    const aborted = failure(
      world.client.publish('b', 'aborted', { qos: 2, signal: control.signal }),
    )
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
      await world.send(ack(qos === 1 ? 'puback' : 'pubrec', packetId))
    expect((await world.outcome(Promise.all(kept))).state).toBe('fulfilled')
    const sent = world.peer.all('publish').filter(({ topic }) => topic === 'a')
    expect(sent.map(textOf)).toEqual(['1', '2', '3'])
  })
})

describe('a connection on 3.1.1 that ends with more than 20 in flight', () => {
  it('halves what the next one carries at a time, down to 20', async () => {
    const world = await flooded(100, 1)
    const carried: number[] = [open(world)]
    for (let round = 0; round < 4; round++) {
      await again(world)
      carried.push(open(world))
    }
    // One that ends with no more than 20 says nothing against the limit that was set.
    expect(carried).toEqual([100, 50, 25, 20, 100])
  })

  it('at QoS 2, where maxInflight allows more', async () => {
    const world = await flooded(100, 2, { outbound: { maxInflight: 60 } })
    await again(world)
    expect(open(world)).toBe(30)
  })

  it('an attempt that fails in between changes nothing', async () => {
    const world = await flooded(100, 1)
    await again(world, refusing(3))
    world.answer = keeps()
    await world.clock.advance(10)
    expect(open(world)).toBe(50)
  })

  it('on 5.0 the Receive Maximum of the server is what counts', async () => {
    const world = await flooded(100, 1, { protocolVersion: 5 })
    await again(world)
    expect(open(world)).toBe(100)
  })
})

it('QoS 2 that waits for an identifier to be cleared lets QoS 1 of other topics pass, too', async () => {
  const world = await steady(durable, keeps())
  for (const topic of ['a2', 'b1', 'a1'])
    quiet(world.client.publish(topic.charAt(0), 'x', { qos: topic.endsWith('2') ? 2 : 1 }))
  await world.settle()
  const sent = () => world.peer.all('publish').map(({ topic, qos }) => topic + qos)
  expect(world.peer.all('pubrel')).toHaveLength(16)
  expect(sent()).toEqual(['b1'])
  await world.send(ack('pubcomp', world.peer.last('pubrel').packetId, 0x92))
  expect(sent()).toEqual(['b1', 'a2', 'a1'])
})
