/** A message that is larger than what is taken never ends the client: it is read past, answered in order, counted and reported. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Transport } from '../../../src/transport/transport.js'
import { sizeError } from '../../../src/transport/websocket-rules.js'
import { encode } from '../../../src/wire/encode.js'
import { lasting } from './across.js'
import { agreeable, connected, World } from './harness.js'
import { acks, goodbyeCode, obliging, publish, subscribe, takenTexts } from './incoming.js'

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
