/** The broker in memory encodes a message for many receivers once, and each gets its own packet all the same; packets that leave together. */
import { describe, expect, it } from 'vitest'
import { WriteBatch } from '../../src/testing/broker/common/write-batch.js'
import { decode, type Properties, type ProtocolVersion } from '../../src/wire/index.js'
import { type ConnectSettings, type RawClient, text, world } from './raw-client.js'

/** Receivers that differ in everything that a PUBLISH can differ in: settings, version, options, Subscription Identifier. */
const kinds: [
  ConnectSettings,
  ProtocolVersion,
  { qos: number; retainAsPublished?: boolean },
  number?,
][] = [
  ...[0, 1, 2].map((qos): [ConnectSettings, ProtocolVersion, { qos: number }] => [{}, 5, { qos }]),
  [{}, 4, { qos: 0 }],
  [{}, 4, { qos: 2 }],
  [{}, 5, { qos: 1 }, 7],
  [{}, 5, { qos: 2 }, 268_435_455],
  [{}, 5, { qos: 1, retainAsPublished: true }, 300],
  [{ properties: { topicAliasMaximum: 2 } }, 5, { qos: 1 }],
  [{ properties: { topicAliasMaximum: 1 } }, 5, { qos: 0 }, 20_000],
  [{ properties: { maximumPacketSize: 60, topicAliasMaximum: 5 } }, 5, { qos: 1 }],
]

const several: Properties = {
  payloadFormatIndicator: 1,
  messageExpiryInterval: 0xffff_ffff,
  responseTopic: 'r',
}
const messages: [topic: string, payload: string, qos: number, properties?: Properties][] = [
  ['a', 'x', 2],
  ['a/b/c', 'y'.repeat(20), 1],
  ['a/b/c', '', 0],
  ['ä/€', 'z'.repeat(200), 2, { messageExpiryInterval: 600, contentType: 'text' }],
  ['a', 'q'.repeat(20_000), 1, several],
  ['c', 'p', 2, { userProperties: [['k', 'v'.repeat(150)]], correlationData: Uint8Array.of(1, 2) }],
  ['a', 'again', 0, { messageExpiryInterval: 128 }],
]

async function deliveredBy(options: Parameters<typeof world>[0]): Promise<RawClient[]> {
  const { join, broker, clock } = world(options)
  const clients: RawClient[] = []
  for (const [at, [settings, version, subscription, identifier]] of kinds.entries()) {
    const client = await join(`c${at}`, settings, version)
    await client.subscribe({ filter: '#', ...subscription }, 1, identifier)
    clients.push(client)
  }
  for (const [at, [topic, payload, qos, properties]] of messages.entries()) {
    broker.publish({
      topic,
      payload,
      qos: qos as 0,
      retain: at === 0,
      ...(properties && { properties }),
    })
    await clock.advance(1500)
  }
  await clock.settle()
  return clients
}

describe('a message for many', () => {
  it('is to each receiver, byte by byte, what it is when each packet is encoded for itself', async () => {
    const shared = await deliveredBy({})
    // A hook that sees every packet has each of them made for itself.
    const single = await deliveredBy({ intercept: () => undefined })
    expect(shared.map(({ bytes }) => bytes)).toEqual(single.map(({ bytes }) => bytes))
    expect(shared.map(({ publishes }) => publishes.length)).toEqual([
      7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 4,
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
    expect(
      chunks.map((chunk) => decode(chunk, { from: 'server' })).map((packet) => packet.type),
    ).toEqual(['publish', 'publish'])
  })
})

describe('packets that leave together', () => {
  it('what one read caused is one write to each client, in order', async () => {
    const { join, clock } = world()
    const [reader, client] = [await join('reader'), await join('a')]
    await reader.subscribe({ filter: '#', qos: 1 })
    let chunks = 0
    const real = reader.chunk.bind(reader)
    reader.chunk = (bytes) => {
      chunks++
      real(bytes)
    }
    const ids = Array.from({ length: 10 }, (_, index) => index + 1)
    const publishes = ids.map((packetId) => ({
      type: 'publish' as const,
      topic: String(packetId),
      qos: 1 as const,
      packetId,
    }))
    const answers = await client.send(...publishes, { type: 'pingreq' })
    expect(answers.map((packet) => ('packetId' in packet ? packet.packetId : packet.type))).toEqual(
      [...ids, 'pingresp'],
    )
    await clock.settle()
    expect([chunks, reader.takeMessages()]).toEqual([1, publishes.map(({ topic }) => `${topic} `)])
  })

  it('what was said before the end is said before the end', async () => {
    const { join, broker } = world()
    const client = await join('a')
    const packets = await client.send(
      { type: 'pingreq' },
      { type: 'pingreq' },
      { type: 'connect', clientId: 'b' },
    )
    expect(packets.map(({ type }) => type)).toEqual(['pingresp', 'pingresp', 'disconnect'])
    expect([client.ended, broker.clients.size]).toEqual([{ cause: undefined }, 0])
  })

  it('the end of the outermost batch writes everything, once and in order', () => {
    const batch = new WriteBatch()
    const written: string[] = []
    batch.begin()
    batch.add({ flush: () => written.push('a') })
    batch.begin()
    batch.add({ flush: () => written.push('b') })
    batch.end()
    expect([written, batch.isOpen]).toEqual([[], true])
    batch.end()
    expect([written, batch.isOpen]).toEqual([['a', 'b'], false])
    batch.begin()
    batch.end()
    expect(written).toEqual(['a', 'b'])
  })
})
