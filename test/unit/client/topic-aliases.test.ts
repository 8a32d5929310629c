/** Topic aliases on the wire: ours for QoS 0 where the server takes them, the server's as we announced them, and none beyond its connection. */
import { describe, expect, it } from 'vitest'
import { again, carried, forgets, keeps, publishFrames, send, steady, willing } from './across.js'
import { connected, failure, type World } from './harness.js'
import { bytesOf, publish, subscribe, takenTexts } from './incoming.js'

/** Publishes at QoS 0, one letter each. */
async function post(world: World, topics: string): Promise<void> {
  for (const topic of topics) world.client.post(topic, 'x')
  await world.settle()
}

/** `a1` teaches the server a topic, `1` uses it, `a` has no alias. */
const sent = (world: World) => world.peer.all('publish').map(({ topic, properties }) => `${topic}${properties.topicAlias ?? ''}`)

describe('ours', () => {
  it.each([
    [2, 'aa', ['a1', '1']],
    [2, 'bab', ['b1', 'a2', '1']],
    [2, 'abcbca', ['a1', 'b2', 'c1', '2', '1', 'a2']],
    [0, 'aa', ['a', 'a']],
  ])('Topic Alias Maximum %d: %s leaves as %j; the one unused for longest makes room', async (topicAliasMaximum, topics, expected) => {
    const world = await connected({}, forgets({ topicAliasMaximum }))
    await post(world, topics)
    expect(sent(world)).toEqual(expected)
  })

  it('`publish` at QoS 0 uses them as `post` does; QoS 1 and 2 never do', async () => {
    const world = await connected({}, forgets({ topicAliasMaximum: 10 }))
    world.client.publish('a', '0')
    world.client.post('a', '1')
    world.client.publish('a', '2', { qos: 1 }).catch(() => undefined)
    world.client.publish('a', '3', { qos: 2 }).catch(() => undefined)
    world.client.publish('a', '4')
    await world.settle()
    expect(sent(world)).toEqual(['a1', '1', 'a', 'a', '1'])
  })

  it('there are none without a word of the server [MQTT-3.2.2-18], nor on 3.1.1', async () => {
    const five = await connected({}, forgets())
    await post(five, 'aa')
    const four = await connected({ protocolVersion: 4 })
    await post(four, 'aa')
    expect([sent(five), sent(four)]).toEqual([
      ['a', 'a'],
      ['a', 'a'],
    ])
  })

  it('the next connection is taught anew [MQTT-3.3.2-7]', async () => {
    const world = await steady({}, forgets({ topicAliasMaximum: 2 }))
    await post(world, 'aba')
    await again(world, keeps({ topicAliasMaximum: 1 }))
    await post(world, 'aab')
    expect(sent(world)).toEqual(['a1', '1', 'b1'])
    await again(world, keeps())
    await post(world, 'aa')
    expect(sent(world)).toEqual(['a', 'a'])
  })

  it('what is sent again carries its full topic, whatever QoS 0 taught the server meanwhile', async () => {
    const world = await steady({}, forgets({ topicAliasMaximum: 5 }))
    await post(world, 'ttt')
    send(world, 1, 'one')
    send(world, 2, 'two')
    await world.settle()
    const first = publishFrames(world.peer).slice(3)
    const peer = await again(world, keeps({ topicAliasMaximum: 5 }))
    expect(peer.all('publish').map(({ topic, properties, dup }) => [topic, properties.topicAlias, dup])).toEqual([
      ['t', undefined, true],
      ['t', undefined, true],
    ])
    expect(publishFrames(peer).map(({ rest }) => rest)).toEqual(first.map(({ rest }) => rest))
  })

  it('what is published anew after a lost session carries it too', async () => {
    const world = await steady({}, forgets({ topicAliasMaximum: 5 }))
    await post(world, 't')
    send(world, 1, 'one')
    await world.settle()
    await again(world, forgets({ topicAliasMaximum: 5 }))
    expect(sent(world)).toEqual(['t'])
  })

  it('a message that was too large has taught the server nothing', async () => {
    const world = await connected({}, forgets({ topicAliasMaximum: 5, maximumPacketSize: 60 }))
    expect(() => world.client.post('a', 'x'.repeat(100))).toThrow(expect.objectContaining({ code: 'ERR_PACKET_TOO_LARGE' }))
    await post(world, 'aa')
    expect(sent(world)).toEqual(['a1', '1'])
  })

  it('a message that fits without an alias and not with one is sent', async () => {
    // The alias takes three bytes: 60 bytes without, 63 with.
    const world = await connected({}, forgets({ topicAliasMaximum: 5, maximumPacketSize: 60 }))
    expect(world.client.post('a', 'x'.repeat(54))).toBe(true)
    await world.settle()
    expect(world.peer.all('publish').map(({ topic, payload }) => [topic, payload.length])).toEqual([['a', 54]])
  })

  it('QoS 0 messages that waited for the link use them too, in order', async () => {
    const world = await steady({ outbound: { offline: { qos0: 'queue' } } }, forgets({ topicAliasMaximum: 2 }))
    world.peer.cut()
    await world.settle()
    for (const text of ['1', '2', '3']) world.client.publish('a', text).catch(() => undefined)
    world.answer = keeps({ topicAliasMaximum: 2 })
    await world.clock.advance(10)
    expect(sent(world)).toEqual(['a1', '1', '1'])
    expect(world.peer.all('publish').map(({ payload }) => new TextDecoder().decode(payload))).toEqual(['1', '2', '3'])
  })

  it('`properties.topicAlias` is refused: they are ours', async () => {
    const world = await connected({}, forgets({ topicAliasMaximum: 2 }))
    const properties = { topicAlias: 1 } as object
    expect(await failure(world.client.publish('a', 'x', { properties }))).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    await world.settle()
    expect(carried(world.peer)).toEqual([])
  })

  it('the `packet` event tells the topic, or at least what was sent', async () => {
    const world = await connected({}, forgets({ topicAliasMaximum: 2 }))
    const seen: unknown[] = []
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'publish') seen.push([packet.topic, packet.properties.topicAlias])
    })
    await post(world, 'aa')
    expect(seen).toEqual([
      ['a', 1],
      ['', 1],
    ])
  })

  it('65,535 aliases on offer do not make us remember 65,535 topics', async () => {
    const world = await connected({}, forgets({ topicAliasMaximum: 65_535 }))
    for (let number = 0; number < 2000; number++) world.client.post(`topic/${number}`, '')
    await world.settle()
    const aliases = world.peer.all('publish').map(({ properties }) => properties.topicAlias ?? 0)
    expect(Math.max(...aliases)).toBeLessThanOrEqual(256)
  })
})

describe('the server’s', () => {
  it('give the topic, the newest wins; the message has it and not the alias', async () => {
    const world = await connected({}, willing(false))
    const subscription = await subscribe(world, '#')
    const alias = (topic: string, text: string, topicAlias: number) => publish(topic, text, undefined, { properties: { topicAlias } })
    await world.sendBytes(
      bytesOf([alias('a', '1', 1), alias('', '2', 1), alias('b', '3', 10), alias('', '4', 10), alias('c', '5', 1), alias('', '6', 1)]),
    )
    const topics: string[] = []
    for (let message = subscription.read(); message !== undefined; message = subscription.read()) {
      topics.push(message.topic)
      expect('topicAlias' in message.properties).toBe(false)
    }
    expect(topics).toEqual(['a', 'a', 'b', 'b', 'c', 'c'])
  })

  it('end with the connection: the next one knows none of them, and closes with 0x82 [MQTT-3.3.2-7]', async () => {
    const world = await steady({}, willing(false))
    const subscription = await subscribe(world, '#')
    await world.send(publish('a', 'one', undefined, { properties: { topicAlias: 1 } }))
    expect(takenTexts(subscription)).toEqual(['one'])
    const peer = await again(world, willing(true))
    peer.send(publish('', 'two', undefined, { properties: { topicAlias: 1 } }))
    await world.settle()
    expect(peer.last('disconnect').reasonCode).toBe(0x82)
    expect(takenTexts(subscription)).toEqual([])
  })

  it('a server that uses one of an earlier connection gets none any more, and the session goes on', async () => {
    const world = await steady({ credentials: () => ({ connect: { topicAliasMaximum: 20 } }) }, willing(false))
    const subscription = await subscribe(world, '#')
    await world.send(publish('a', 'one', undefined, { properties: { topicAlias: 1 } }))
    const second = await again(world, willing(true))
    expect(second.last('connect').properties.topicAliasMaximum).toBe(20)
    second.send(publish('', 'two', undefined, { properties: { topicAlias: 1 } }))
    await world.clock.advance(60_000)
    const third = world.peer
    expect(third).not.toBe(second)
    expect(third.last('connect').properties.topicAliasMaximum).toBeUndefined()
    await world.send(publish('a', 'two'))
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    expect((await again(world, willing(true))).last('connect').properties.topicAliasMaximum).toBeUndefined()
  })

  it('the range is what this CONNECT announced', async () => {
    const world = await steady({ topicAliasMaximum: 2 }, willing(false))
    expect(world.peer.last('connect').properties.topicAliasMaximum).toBe(2)
    const peer = await again(world, willing(true))
    peer.send(publish('a', 'x', undefined, { properties: { topicAlias: 3 } }))
    await world.settle()
    expect(peer.last('disconnect').reasonCode).toBe(0x94)
  })

  it('where `credentials` lowered it for one connection, that counts', async () => {
    const maxima = [2, 0]
    const world = await steady({ topicAliasMaximum: 2, credentials: () => ({ connect: { topicAliasMaximum: maxima.shift() ?? 0 } }) }, willing(false))
    await world.send(publish('a', 'x', undefined, { properties: { topicAlias: 2 } }))
    expect(world.client.state).toBe('connected')
    const peer = await again(world, willing(true))
    expect(peer.last('connect').properties.topicAliasMaximum).toBeUndefined()
    peer.send(publish('a', 'x', undefined, { properties: { topicAlias: 1 } }))
    await world.settle()
    expect(peer.last('disconnect').reasonCode).toBe(0x94)
  })

  it('where `credentials` raised it, a server that uses them all is right', async () => {
    const world = await steady({ topicAliasMaximum: 2, credentials: () => ({ connect: { topicAliasMaximum: 20 } }) }, willing(false))
    expect(world.peer.last('connect').properties.topicAliasMaximum).toBe(20)
    await world.send(publish('a', 'x', undefined, { properties: { topicAlias: 20 } }))
    expect(world.client.state).toBe('connected')
  })
})
