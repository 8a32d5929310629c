/**
 * The broker in memory: a message for many receivers is encoded once, and each gets its own packet all the same.
 */
import { describe, expect, it } from 'vitest'
import { decode, type ProtocolVersion, type PublishInput } from '../../src/wire/index.js'
import { type ConnectSettings, durable, type RawClient, text, world } from './raw-client.js'

/** Receivers that differ in everything that a PUBLISH can differ in. */
const kinds: [string, ConnectSettings, ProtocolVersion, { qos: number; retainAsPublished?: boolean }, number | undefined][] = [
  ['QoS 0', {}, 5, { qos: 0 }, undefined],
  ['QoS 1', {}, 5, { qos: 1 }, undefined],
  ['QoS 2', {}, 5, { qos: 2 }, undefined],
  ['3.1.1 at QoS 0', {}, 4, { qos: 0 }, undefined],
  ['3.1.1 at QoS 2', {}, 4, { qos: 2 }, undefined],
  ['an identifier', {}, 5, { qos: 1 }, 7],
  ['a large identifier', {}, 5, { qos: 2 }, 268_435_455],
  ['RETAIN as published', {}, 5, { qos: 1, retainAsPublished: true }, 300],
  ['aliases', { properties: { topicAliasMaximum: 2 } }, 5, { qos: 1 }, undefined],
  ['aliases and an identifier', { properties: { topicAliasMaximum: 1 } }, 5, { qos: 0 }, 20_000],
  ['little room', { properties: { maximumPacketSize: 60, topicAliasMaximum: 5 } }, 5, { qos: 1 }, undefined],
]

const messages: (Omit<PublishInput, 'payload' | 'properties' | 'topic'> & { topic: string; payload: string; properties?: object })[] = [
  { topic: 'a', payload: 'x', qos: 2, retain: true },
  { topic: 'a/b/c', payload: 'y'.repeat(20), qos: 1 },
  { topic: 'a/b/c', payload: '', qos: 0 },
  { topic: 'ä/€', payload: 'z'.repeat(200), qos: 2, properties: { messageExpiryInterval: 600, contentType: 'text' } },
  {
    topic: 'a',
    payload: 'q'.repeat(20_000),
    qos: 1,
    properties: { payloadFormatIndicator: 1, messageExpiryInterval: 0xffff_ffff, responseTopic: 'r' },
  },
  { topic: 'c', payload: 'p', qos: 2, properties: { userProperties: [['k', 'v'.repeat(150)]], correlationData: Uint8Array.of(1, 2) } },
  { topic: 'a', payload: 'again', qos: 0, properties: { messageExpiryInterval: 128 } },
]

/** What a receiver got, without what no other way of encoding would make the same: nothing. */
function publishesOf(client: RawClient): unknown[] {
  return client.received.filter(({ type }) => type === 'publish')
}

async function deliveredBy(options: Parameters<typeof world>[0]): Promise<{ packets: unknown[][]; bytes: number[][] }> {
  const { join, broker, clock } = world(options)
  const clients: RawClient[] = []
  for (const [name, settings, version, { qos, retainAsPublished }, identifier] of kinds) {
    const client = await join(name, settings, version)
    const subscription = version === 4 ? { filter: '#', qos } : { filter: '#', qos, retainAsPublished: retainAsPublished === true }
    await client.send({
      type: 'subscribe',
      packetId: 1,
      subscriptions: [subscription],
      ...(identifier === undefined ? {} : { properties: { subscriptionIdentifiers: [identifier] } }),
    })
    clients.push(client)
  }
  for (const message of messages) {
    broker.publish(message as never)
    await clock.advance(1500)
  }
  await clock.settle()
  return { packets: clients.map(publishesOf), bytes: clients.map(({ bytes }) => bytes) }
}

describe('a message for many', () => {
  it('is to each receiver, byte by byte, what it is when each packet is encoded for itself', async () => {
    const shared = await deliveredBy({})
    // A hook that sees every packet has each of them made for itself.
    const single = await deliveredBy({ intercept: () => undefined })
    expect(shared.bytes).toEqual(single.bytes)
    expect(shared.packets.map((packets) => packets.length)).toEqual([7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4])
  })

  it('that waited says how long it is still valid [MQTT-3.3.2-6], and is repeated with DUP', async () => {
    const { join, broker, clock } = world()
    const names = ['a', 'b', 'c']
    for (const name of names) {
      const client = await join(name, durable)
      await client.subscribe('#')
      if (name !== 'c') await client.cut()
    }
    broker.publish({
      topic: 't',
      payload: 'x',
      qos: 1,
      properties: { userProperties: [['a', 'b']], messageExpiryInterval: 100 },
    })
    const left: unknown[] = []
    for (const name of names) {
      await clock.advance(10_000)
      const client = await join(name, durable)
      const packet = client.received.find(({ type }) => type === 'publish')
      if (packet?.type === 'publish') left.push([packet.dup, packet.properties.messageExpiryInterval])
    }
    expect(left).toEqual([
      [false, 90],
      [false, 80],
      [true, 70],
    ])
  })

  it('is memory of its own for each: what one receiver writes into it, no other sees', async () => {
    const { join, broker, dial, clock } = world()
    const clients: RawClient[] = []
    const chunks: Uint8Array[] = []
    for (const name of ['a', 'b']) {
      const client = await join(name)
      await client.subscribe('#')
      clients.push(client)
    }
    const spoiler = dial()
    await spoiler.connect({ clientId: 'spoiler' })
    await spoiler.subscribe('#')
    const real = spoiler.chunk.bind(spoiler)
    spoiler.chunk = (bytes) => {
      chunks.push(bytes.slice())
      real(bytes)
      bytes.fill(0xff)
    }
    for (const topic of ['one', 'two']) broker.publish({ topic, payload: 'text', retain: true })
    await clock.settle()
    for (const client of clients) expect(client.takeMessages()).toEqual(['one text', 'two text'])
    expect(text(broker.retained.get('two')?.payload ?? new Uint8Array(0))).toBe('text')
    expect(chunks.map((chunk) => decode(chunk, { from: 'server' })).map((packet) => packet.type)).toEqual(['publish', 'publish'])
  })
})

describe('packets that leave together', () => {
  it('what one read caused is one write to each client, in order', async () => {
    const { join, clock } = world()
    const reader = await join('reader')
    await reader.subscribe({ filter: '#', qos: 1 })
    const client = await join('a')
    const counts: number[] = []
    const real = reader.chunk.bind(reader)
    reader.chunk = (bytes) => {
      counts.push(bytes.length)
      real(bytes)
    }
    const publishes = Array.from({ length: 10 }, (_, index) => ({
      type: 'publish' as const,
      topic: String(index),
      qos: 1 as const,
      packetId: index + 1,
    }))
    const answers = await client.send(...publishes, { type: 'pingreq' })
    expect(answers.map((packet) => ('packetId' in packet ? packet.packetId : packet.type))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 'pingresp'])
    await clock.settle()
    expect(counts).toHaveLength(1)
    expect(reader.takeMessages()).toEqual(publishes.map(({ topic }) => `${topic} `))
  })

  it('what was said before the end is said before the end', async () => {
    const { join, broker } = world()
    const client = await join('a')
    const packets = await client.send({ type: 'pingreq' }, { type: 'pingreq' }, { type: 'connect', clientId: 'b' })
    expect(packets.map(({ type }) => type)).toEqual(['pingresp', 'pingresp', 'disconnect'])
    expect([client.ended, broker.clients.size]).toEqual([{ cause: undefined }, 0])
  })
})
