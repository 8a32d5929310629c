/** A message that is larger than what is taken never ends the client: it is read past, answered in order, counted and reported. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { encode } from '../../../src/wire/encode.js'
import { steady, willing } from './across.js'
import { connected, type World } from './harness.js'
import { acks, goodbyeCode, obliging, publish, subscribe, takenTexts } from './incoming.js'

const big = 'x'.repeat(5000)

async function small(options: ClientOptions = {}): Promise<{ readonly world: World; readonly warnings: string[] }> {
  const warnings: string[] = []
  const logger = { warn: (text: string): void => void warnings.push(text) }
  const world = await connected({ maximumPacketSize: 1000, stats: true, logger, ...options }, obliging)
  return { world, warnings }
}

/** Bytes of a PUBLISH from the peer, in pieces. */
async function piecewise(world: World, version: 4 | 5, packet: Parameters<typeof encode>[0], size: number): Promise<void> {
  const bytes = encode(packet, { protocolVersion: version })
  for (let at = 0; at < bytes.length; at += size) await world.sendBytes(bytes.slice(at, at + size))
}

describe('a PUBLISH over maximumPacketSize', () => {
  it.each([
    [5, 1, 'puback', ' 0x97'],
    [5, 2, 'pubrec', ' 0x97'],
    [4, 1, 'puback', ''],
  ] as const)('on version %i at QoS %i is answered in the order of arrival (%s%s)', async (protocolVersion, qos, type, reason) => {
    const { world } = await small({ protocolVersion })
    const subscription = await subscribe(world, '#', { qos })
    await world.send(publish('a', 'one', 1, { qos }), publish('b', big, 2, { qos }), publish('a', 'three', 3, { qos }))
    // Nothing is acknowledged before what came earlier.
    expect(acks(world)).toEqual([])
    expect(takenTexts(subscription)).toEqual(['one', 'three'])
    subscription.read()
    await world.settle()
    expect(acks(world).slice(0, 2)).toEqual([`${type} 1`, `${type} 2${reason}`])
    expect(world.client.state).toBe('connected')
  })

  it('on version 4 at QoS 2 the exchange is completed', async () => {
    const { world } = await small({ protocolVersion: 4 })
    await subscribe(world, '#', { qos: 2 })
    await world.send(publish('b', big, 2, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 2', 'pubcomp 2'])
    // Its identifier is free: for a message that fits.
    await world.send(publish('b', big, 2, { qos: 2 }))
    expect(acks(world)).toHaveLength(4)
    expect(world.seen('drop')).toHaveLength(2)
  })

  it('is told as drop with topic, QoS and size, counted, and told once a connection in the log', async () => {
    const { world, warnings } = await small()
    await subscribe(world, '#', { qos: 1 })
    const packets = [publish('a/b', big), publish('a/c', big, 7)] as const
    await world.send(...packets)
    const sizes = packets.map((packet) => encode(packet).length)
    expect(world.seen('drop')).toEqual([
      { direction: 'in', topic: 'a/b', count: 1, error: undefined, reason: 'too-large', qos: 0, size: sizes[0] },
      { direction: 'in', topic: 'a/c', count: 1, error: undefined, reason: 'too-large', qos: 1, size: sizes[1] },
    ])
    expect(world.client.stats()).toMatchObject({ received: 2, dropped: 2, tooLarge: 2, delivered: 0, unread: 0 })
    expect(warnings).toEqual([expect.stringMatching(/5\d\d\d bytes on "a\/b".*maximumPacketSize is 1000/)])
  })

  it('is told in the log of the next connection, too', async () => {
    const warnings: string[] = []
    const logger = { warn: (text: string): void => void warnings.push(text) }
    const world = await steady({ clientId: 'c', cleanStart: false, maximumPacketSize: 1000, logger }, willing(true))
    await world.send(publish('a', big))
    world.peer.cut()
    await world.clock.advance(10)
    await world.send(publish('a', big))
    expect(warnings.filter((text) => text.includes('maximumPacketSize'))).toHaveLength(2)
  })

  it('names an alias that later messages use', async () => {
    const { world } = await small({ topicAliasMaximum: 5 })
    const subscription = await subscribe(world, '#')
    await world.send(publish('far/away', big, undefined, { properties: { topicAlias: 3 } }))
    await world.send(publish('', 'by alias', undefined, { properties: { topicAlias: 3 } }))
    expect(subscription.read()).toMatchObject({ topic: 'far/away' })
    await world.send(publish('', big, undefined, { properties: { topicAlias: 3 } }))
    expect(world.seen('drop')).toMatchObject([{ topic: 'far/away' }, { topic: 'far/away' }])
  })

  it('takes no memory while it comes in: others are not dropped for it', async () => {
    const { world } = await small({ memoryBudget: 4000 })
    const subscription = await subscribe(world, '#')
    const bytes = encode(publish('large', 'x'.repeat(400_000)))
    await world.sendBytes(bytes.slice(0, 300_000))
    await world.sendBytes(bytes.slice(300_000))
    await world.send(publish('a', 'y'.repeat(900)))
    expect(takenTexts(subscription)).toEqual(['y'.repeat(900)])
    expect(world.client.state).toBe('connected')
  })

  it.each([1, 97])('in pieces of %i bytes it is the same', async (size) => {
    for (const protocolVersion of [4, 5] as const) {
      const { world } = await small({ protocolVersion })
      const subscription = await subscribe(world, '#', { qos: 1 })
      await piecewise(world, protocolVersion, publish('a', 'x'.repeat(1500), 4), size)
      await world.send(publish('a', 'next'))
      expect(acks(world)).toEqual([protocolVersion === 5 ? 'puback 4 0x97' : 'puback 4'])
      expect(takenTexts(subscription)).toEqual(['next'])
    }
  })

  it('that comes again is answered again, without another event where the first is still unanswered', async () => {
    const { world } = await small({ protocolVersion: 4 })
    const subscription = await subscribe(world, '#', { qos: 1 })
    await world.send(publish('a', 'first', 1), publish('b', big, 2), publish('b', big, 2, { dup: true }))
    expect(world.seen('drop')).toHaveLength(1)
    subscription.read()
    subscription.read()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it.each([
    ['a topic and properties that alone exceed it', publish('t'.repeat(1200), '')],
    ['another packet', { type: 'puback', packetId: 1, reasonCode: 0, properties: { reasonString: 'r'.repeat(1200) } } as const],
  ])('%s: the connection ends with 0x95', async (_name, packet) => {
    const { world } = await small()
    await world.send(packet)
    expect(goodbyeCode(world)).toBe(0x95)
    expect(await world.client.closed).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE', reasonCode: 0x95, fault: 'remote' })
  })

  it("oversized: 'disconnect' ends the connection with 0x95 at its header [MQTT-3.1.2-24]", async () => {
    const { world } = await small({ oversized: 'disconnect' })
    await world.sendBytes(encode(publish('a', big)).slice(0, 4))
    expect(goodbyeCode(world)).toBe(0x95)
    expect(world.seen('drop')).toEqual([])
  })

  it('a message above memoryBudget that was taken in is told in the same way', async () => {
    const { world } = await small({ maximumPacketSize: 10_000, memoryBudget: 4000 })
    await subscribe(world, '#', { qos: 2 })
    await world.send(publish('a', big, 1, { qos: 2 }))
    expect(acks(world)).toEqual(['pubrec 1 0x97'])
    expect(world.seen('drop')).toMatchObject([{ topic: 'a', reason: 'too-large', qos: 2 }])
    expect(world.client.stats()).toMatchObject({ tooLarge: 1, dropped: 1 })
  })
})

describe('maximumPacketSize', () => {
  it.each([
    [{}, 16 * 2 ** 20],
    [{ memoryBudget: 2 ** 20 }, 2 ** 19],
    // CONNACK has to fit.
    [{ memoryBudget: 1000 }, 1024],
    [{ memoryBudget: 2 ** 30 }, 16 * 2 ** 20],
    [{ maximumPacketSize: 2 ** 26 }, 2 ** 26],
  ] as const)('%j announces %i', async (options, announced) => {
    const world = await connected(options)
    expect(world.peer.last('connect').properties.maximumPacketSize).toBe(announced)
  })
})
