/** Topic aliases on the wire: ours for QoS 0 where the server takes them, the server's as we announced them, and none beyond its connection. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { again, forgets, keeps, publishFrames, send, steady, willing } from './across.js'
import { connected, type World } from './harness.js'
import { publish, quiet, subscribe, takenTexts } from './incoming.js'

/** Publishes at QoS 0, one letter each. */
async function post(world: World, topics: string): Promise<void> {
  for (const topic of topics) world.client.post(topic, 'x')
  await world.settle()
}

/** `a1` teaches the server a topic, `1` uses it, `a` has no alias. */
const sent = (world: World) =>
  world.peer
    .all('publish')
    .map(({ topic, properties }) => `${topic}${properties.topicAlias ?? ''}`)
    .join(' ')

describe('ours', () => {
  /** A server that takes so many. */
  const taking = (topicAliasMaximum: number, options: ClientOptions = {}) =>
    connected(options, forgets({ topicAliasMaximum }))
  const five = { topicAliasMaximum: 5 }

  it('`publish` at QoS 0 uses them as `post` does; QoS 1 and 2 never do', async () => {
    const world = await taking(10)
    world.client.publish('a', '0')
    world.client.post('a', '1')
    for (const qos of [1, 2, 0] as const) quiet(world.client.publish('a', 'x', { qos }))
    await world.settle()
    expect(sent(world)).toBe('a1 1 a a 1')
  })

  it('what is sent again carries its full topic, whatever QoS 0 taught the server meanwhile', async () => {
    const world = await steady({}, forgets(five))
    await post(world, 'ttt')
    send(world, 1, 'one')
    send(world, 2, 'two')
    await world.settle()
    const first = publishFrames(world.peer).slice(3)
    const peer = await again(world, keeps(five))
    expect(sent(world)).toBe('t t')
    expect(publishFrames(peer)).toEqual(first.map(({ rest }) => ({ dup: true, rest })))
  })

  it('the `packet` event has the topic, or at least what was sent', async () => {
    const world = await taking(2)
    const seen: string[] = []
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'publish')
        seen.push(`${packet.topic}${packet.properties.topicAlias}`)
    })
    await post(world, 'aa')
    expect(seen).toEqual(['a1', '1'])
  })
})

describe('the server’s', () => {
  const alias = (topic: string, topicAlias: number, text = 'x') =>
    publish(topic, text, undefined, { properties: { topicAlias } })
  const announced = (world: World) => world.peer.last('connect').properties.topicAliasMaximum

  it('a server that uses one of an earlier connection gets none any more, and the session goes on', async () => {
    const world = await steady(
      { credentials: () => ({ connect: { topicAliasMaximum: 20 } }) },
      willing(false),
    )
    const subscription = await subscribe(world, '#')
    await world.send(alias('a', 1, 'one'))
    const second = await again(world, willing(true))
    expect(announced(world)).toBe(20)
    second.send(alias('', 1, 'two'))
    await world.clock.advance(60_000)
    expect(world.peer).not.toBe(second)
    expect(announced(world)).toBeUndefined()
    await world.send(publish('a', 'two'))
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    await again(world, willing(true))
    expect(announced(world)).toBeUndefined()
  })

  it.each<[string, number[], number | undefined]>([
    ['the range is what this CONNECT announced', [], 2],
    ['where `credentials` lowered it for one connection, that counts', [2, 0], undefined],
  ])('%s', async (_name, maxima, next) => {
    const credentials =
      maxima.length === 0
        ? undefined
        : () => ({ connect: { topicAliasMaximum: maxima.shift() ?? 0 } })
    const world = await steady({ topicAliasMaximum: 2, credentials }, willing(false))
    expect(announced(world)).toBe(2)
    await world.send(alias('a', 2))
    expect(world.client.state).toBe('connected')
    const peer = await again(world, willing(true))
    expect(announced(world)).toBe(next)
    await world.send(alias('a', (next ?? 0) + 1))
    expect(peer.last('disconnect').reasonCode).toBe(0x94)
  })
})
