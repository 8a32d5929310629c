/** Limits that client and server announce: a message that is larger than what is taken, which never ends the client, and topic aliases. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Transport } from '../../../src/transport/transport.js'
import { sizeError } from '../../../src/transport/websocket-rules.js'
import { encode } from '../../../src/wire/encode.js'
import { again, forgets, keeps, lasting, publishFrames, send, steady, willing } from './across.js'
import { agreeable, connected, World } from './harness.js'
import { acks, goodbyeCode, obliging, publish, quiet, subscribe, takenTexts } from './incoming.js'

const big = 'x'.repeat(5000)

async function small(options: ClientOptions = {}, qos?: 1 | 2) {
  const warnings: string[] = []
  const logger = { warn: (text: string): void => void warnings.push(text) }
  const world = await connected(
    { maximumPacketSize: 1000, stats: true, logger, ...options },
    obliging,
  )
  return { world, warnings, subscription: await subscribe(world, '#', { qos }) }
}

describe('a PUBLISH over maximumPacketSize', () => {
  it.each([
    [5, 1, 'puback', ' 0x97'],
    [5, 2, 'pubrec', ' 0x97'],
    [4, 1, 'puback', ''],
  ] as const)(
    'on version %i at QoS %i is answered in the order of arrival (%s%s)',
    async (protocolVersion, qos, type, reason) => {
      const { world, subscription } = await small({ protocolVersion }, qos)
      await world.send(
        publish('a', 'one', 1, { qos }),
        publish('b', big, 2, { qos }),
        publish('a', 'three', 3, { qos }),
      )
      // Nothing is acknowledged before what came earlier.
      expect(acks(world)).toEqual([])
      expect(takenTexts(subscription)).toEqual(['one', 'three'])
      await world.settle()
      expect(acks(world).slice(0, 2)).toEqual([`${type} 1`, `${type} 2${reason}`])
      expect(world.client.state).toBe('connected')
    },
  )

  it('on version 4 at QoS 2 the exchange is completed, and its identifier is free for a message that fits', async () => {
    const { world } = await small({ protocolVersion: 4 }, 2)
    for (let round = 0; round < 2; round++) await world.send(publish('b', big, 2, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 2', 'pubcomp 2', 'pubrec 2', 'pubcomp 2'])
    expect(world.seen('drop')).toHaveLength(2)
  })

  it('is told as drop with topic, QoS and size, counted, and told once a connection in the log', async () => {
    const { world, warnings } = await small({ ...lasting, clientId: 'c' }, 1)
    const packets = [publish('a/b', big), publish('a/c', big, 7)]
    await world.send(...packets)
    const drop = { direction: 'in', count: 1, error: undefined, reason: 'too-large' }
    const sizes = packets.map((packet) => encode(packet).length)
    expect(world.seen('drop')).toEqual([
      { ...drop, topic: 'a/b', qos: 0, size: sizes[0] },
      { ...drop, topic: 'a/c', qos: 1, size: sizes[1] },
    ])
    expect(world.client.stats()).toMatchObject({
      received: 2,
      dropped: 2,
      tooLarge: 2,
      delivered: 0,
      unread: 0,
    })
    const line = expect.stringMatching(/5\d\d\d bytes on "a\/b".*maximumPacketSize is 1000/)
    expect(warnings).toEqual([line])
    world.peer.cut()
    await world.clock.advance(100)
    await world.send(publish('a/b', big))
    expect(warnings.filter((text) => text.includes('maximumPacketSize'))).toEqual([line, line])
  })

  it('names an alias that later messages use', async () => {
    const { world, subscription } = await small({ topicAliasMaximum: 5 })
    const properties = { topicAlias: 3 }
    await world.send(
      publish('far/away', big, undefined, { properties }),
      publish('', 'by alias', undefined, { properties }),
    )
    expect(subscription.read()).toMatchObject({ topic: 'far/away' })
    await world.send(publish('', big, undefined, { properties }))
    expect(world.seen('drop')).toMatchObject([{ topic: 'far/away' }, { topic: 'far/away' }])
  })

  it('takes no memory while it comes in: others are not dropped for it', async () => {
    const { world, subscription } = await small({ memoryBudget: 4000 })
    const bytes = encode(publish('large', 'x'.repeat(400_000)))
    for (const part of [bytes.slice(0, 300_000), bytes.slice(300_000)]) await world.sendBytes(part)
    await world.send(publish('a', 'y'.repeat(900)))
    expect(takenTexts(subscription)).toEqual(['y'.repeat(900)])
    expect(world.client.state).toBe('connected')
  })

  it('that comes again is answered again, without another event where the first is still unanswered', async () => {
    const { world, subscription } = await small({ protocolVersion: 4 }, 1)
    await world.send(
      publish('a', 'first', 1),
      publish('b', big, 2),
      publish('b', big, 2, { dup: true }),
    )
    expect(world.seen('drop')).toHaveLength(1)
    expect(world.client.stats()).toMatchObject({ received: 2, tooLarge: 1, duplicates: 1 })
    takenTexts(subscription)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it.each([
    ['a topic and properties that alone exceed it', publish('t'.repeat(1200), '')],
    [
      'another packet',
      {
        type: 'puback',
        packetId: 1,
        reasonCode: 0,
        properties: { reasonString: 'r'.repeat(1200) },
      } as const,
    ],
  ])('%s: the connection ends with 0x95', async (_name, packet) => {
    const { world } = await small({ reconnect: false })
    await world.send(packet)
    expect(goodbyeCode(world)).toBe(0x95)
    expect(await world.client.closed).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
      reasonCode: 0x95,
      fault: 'remote',
    })
  })

  it("oversized: 'disconnect' ends the connection with 0x95 at its header [MQTT-3.1.2-24]", async () => {
    const { world } = await small({ oversized: 'disconnect' })
    await world.sendBytes(encode(publish('a', big)).slice(0, 4))
    expect([goodbyeCode(world), world.seen('drop')]).toEqual([0x95, []])
  })

  it('a message above memoryBudget that was taken in is told in the same way', async () => {
    const { world } = await small({ maximumPacketSize: 10_000, memoryBudget: 4000 }, 2)
    await world.send(publish('a', big, 1, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 1 0x97'])
    expect(world.seen('drop')).toMatchObject([{ topic: 'a', reason: 'too-large', qos: 2 }])
    expect(world.client.stats()).toMatchObject({ tooLarge: 1, dropped: 1 })
  })
})

it.each([
  [{}, 16 * 2 ** 20],
  [{ memoryBudget: 2 ** 20 }, 2 ** 19],
  // CONNACK has to fit.
  [{ memoryBudget: 1000 }, 1024],
  [{ memoryBudget: 2 ** 30 }, 16 * 2 ** 20],
  [{ maximumPacketSize: 2 ** 26 }, 2 ** 26],
] as const)('%j announces a maximumPacketSize of %i', async (options, announced) => {
  const world = await connected(options)
  expect(world.peer.last('connect').properties.maximumPacketSize).toBe(announced)
})

it('a message that a transport cannot take, as WebSocket, ends the connection with its name, the limit and the way out; the client comes back', async () => {
  const log: string[] = []
  const connections: Transport[] = []
  const options = { ...lasting, stats: true, logger: { warn: (text: string) => log.push(text) } }
  const world = new World(options, {}, 1, (_index, open) => {
    connections.push(open())
    return connections.at(-1) as Transport
  })
  world.answer = agreeable
  await Promise.all([world.client.connect(), world.settle()])
  connections[0]?.destroy(sizeError(4000, 5000))
  await world.clock.advance(100)
  const error = {
    code: 'ERR_PACKET_TOO_LARGE',
    fault: 'remote',
    message: expect.stringMatching(/5000.*4000.*maximumPacketSize/),
  }
  expect(world.seen('disconnect')).toMatchObject([{ error }])
  expect(log[0]).toContain('the connection ended: a WebSocket message of 5000 bytes')
  expect([world.client.stats().tooLarge, world.client.state]).toEqual([1, 'connected'])
})

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
