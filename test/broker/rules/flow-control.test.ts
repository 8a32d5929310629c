/**
 * Proofs of the server role, sections 3.1.2.11, 3.3.4 and 4.9: the limits that a client announces in CONNECT, and the broker in memory keeping them.
 */
import { describe, expect, it } from 'vitest'
import { type ConnectSettings, durable, type RawClient, type World, world } from '../raw-client.js'
import { heard, packetOf, say, textOf } from './wire.js'

/** A subscriber of everything at QoS 2 with the given CONNECT. */
async function subscriber(settings: ConnectSettings, options: Parameters<typeof world>[0] = {}): Promise<World & { client: RawClient }> {
  const all = world(options)
  const client = await all.join('a', settings)
  await client.subscribe('#')
  client.take()
  heard(client)
  return { ...all, client }
}

/** Where a hook looks at every packet, each PUBLISH is encoded on its own; otherwise its bytes are shared. */
const ways: readonly Parameters<typeof world>[0][] = [{}, { intercept: () => undefined }]

const publishes = (packets: readonly string[]): string[] => packets.filter((packet) => packet.startsWith('3'))

describe('Receive Maximum', () => {
  it('so many QoS 1 and 2 messages are open, and no more; each acknowledgement lets one go [MQTT-3.3.4-9] [MQTT-4.9.0-1] [MQTT-4.9.0-2]', async () => {
    const { client, broker } = await subscriber({ properties: { receiveMaximum: 2 } })
    for (const qos of [1, 2, 1, 2, 1, 2] as const) broker.publish({ topic: 't', qos })
    await client.send()
    const next = async (...acks: string[]) => (await say(client, ...acks)).map((packet) => packet.slice(0, 2))
    expect(heard(client).map((packet) => packet.slice(0, 2))).toEqual(['32', '34'])
    expect(await next('40 02 00 01')).toEqual(['32'])
    // PUBREC keeps the place, PUBCOMP frees it.
    expect(await next('50 02 00 02')).toEqual(['62'])
    expect(await next('70 02 00 02')).toEqual(['34'])
    // A refusal frees it as well.
    expect(await next('50 03 00 04 80')).toEqual(['32'])
    expect(await next('40 03 00 03 80')).toEqual(['34'])
  })

  it('acknowledgements of nothing never lift the quota above its start [MQTT-4.9.0-2]', async () => {
    const { client, broker } = await subscriber({ properties: { receiveMaximum: 1 } })
    await say(client, '40 02 00 01', '40 02 00 09', '70 02 00 01', '50 03 00 02 80')
    for (let i = 0; i < 3; i++) broker.publish({ topic: 't', qos: 1 })
    await client.send()
    expect(publishes(heard(client))).toHaveLength(1)
    expect(publishes(await say(client, '40 02 00 01', '40 02 00 01', '40 02 00 07'))).toHaveLength(1)
  })

  it('what is sent again counts too, and the quota starts anew with each connection [MQTT-4.9.0-1] [MQTT-4.9.0-2]', async () => {
    const { client, broker, join } = await subscriber({ ...durable, properties: { sessionExpiryInterval: 60, receiveMaximum: 3 } })
    for (let i = 0; i < 5; i++) broker.publish({ topic: 't', qos: 2 })
    await client.send()
    expect(publishes(heard(client))).toHaveLength(3)
    await say(client, '50 02 00 01')
    await client.cut()
    const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 60, receiveMaximum: 2 } })
    // One PUBREL and one PUBLISH take both places.
    expect(
      heard(again)
        .slice(1)
        .map((packet) => packet.slice(0, 2)),
    ).toEqual(['62', '3c'])
    expect(publishes(await say(again, '70 02 00 01'))).toEqual(['3c 06 00 01 74 00 03 00'])
    expect(publishes(await say(again, '50 03 00 02 80'))).toEqual(['34 06 00 01 74 00 04 00'])
  })

  it('without the property up to 65,535 are open [MQTT-4.9.0-1]', async () => {
    const { broker, dial } = world({ maxQueuedMessages: 100_000, maxQueuedBytes: 1e9 })
    const client = dial(5, { highWaterMark: 1e9 })
    await client.connect()
    await client.subscribe('#')
    for (let i = 0; i < 65_540; i++) broker.publish({ topic: 't', qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 65_535, queued: 5 })
  })

  it('with no quota left only PUBLISH of QoS 1 and 2 waits: all else is handled and answered [MQTT-3.3.4-10] [MQTT-4.9.0-3]', async () => {
    const { client, broker } = await subscriber({ properties: { receiveMaximum: 1 } })
    for (const qos of [2, 1, 1] as const) broker.publish({ topic: 't', qos })
    await client.send()
    expect(publishes(heard(client))).toHaveLength(1)
    const own = (first: string, packetId: string) => packetOf(first, textOf('$own'), packetId, '00')
    expect(await say(client, 'c0 00', own('32', '00 05'), own('34', '00 06'), '62 02 00 06')).toEqual([
      'd0 00',
      '40 03 00 05 10',
      '50 03 00 06 10',
      '70 02 00 06',
    ])
    expect(await say(client, packetOf('82', '00 07 00', textOf('u'), '00'), packetOf('a2', '00 08 00', textOf('u')))).toEqual([
      '90 04 00 07 00 00',
      'b0 04 00 08 00 00',
    ])
    broker.publish({ topic: 'zero' })
    await client.send()
    expect(heard(client)).toEqual([packetOf('30', textOf('zero'), '00')])
    // PUBREL is no PUBLISH either.
    expect(await say(client, '50 02 00 01')).toEqual(['62 02 00 01'])
    expect(publishes(await say(client, '70 02 00 01'))).toHaveLength(1)
  })
})

describe('Maximum Packet Size', () => {
  /** A message on `t` whose PUBLISH at QoS 1 has so many bytes. */
  const payload = (size: number): string => 'x'.repeat(size - 8)

  it('a packet of the limit comes, one byte more never does, not even later, and takes no place [MQTT-3.1.2-24] [MQTT-3.1.2-25]', async () => {
    for (const options of ways) {
      const settings = { cleanStart: false, properties: { sessionExpiryInterval: 60, maximumPacketSize: 64, receiveMaximum: 1 } }
      const { client, broker, join } = await subscriber(settings, options)
      broker.publish({ topic: 't', payload: payload(65), qos: 1 })
      broker.publish({ topic: 't', payload: payload(64), qos: 1 })
      await client.send()
      const [exact, ...more] = heard(client)
      expect([exact?.split(' ').length, more]).toEqual([64, []])
      expect(broker.sessions.get('a')).toMatchObject({ inflight: 1, queued: 0, oversized: 1 })
      await say(client, `40 02 ${exact?.slice(15, 20)}`)
      broker.publish({ topic: 't', payload: payload(65), qos: 2 })
      broker.publish({ topic: 't', payload: 'small', qos: 1 })
      await client.send()
      expect(heard(client).map((packet) => packet.split(' ').length)).toEqual([13])
      await client.cut()
      const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 60 } })
      expect(
        heard(again)
          .slice(1)
          .map((packet) => packet.slice(0, 2)),
      ).toEqual(['3a'])
    }
  })

  it('what waited or was sent on a connection with room is dropped on one without [MQTT-3.1.2-24] [MQTT-3.1.2-25]', async () => {
    const { client, broker, join } = await subscriber(durable)
    broker.publish({ topic: 't', payload: payload(100), qos: 1 })
    await client.send()
    await client.cut()
    broker.publish({ topic: 't', payload: payload(100), qos: 2 })
    broker.publish({ topic: 't', payload: 'small', qos: 1 })
    const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 60, maximumPacketSize: 64, receiveMaximum: 1 } })
    expect(
      heard(again)
        .slice(1)
        .map((packet) => packet.split(' ').length),
    ).toEqual([13])
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 1, queued: 0 })
  })

  it('nor is a retained message, a will or a message with long properties larger [MQTT-3.1.2-24]', async () => {
    const { broker, join } = world()
    broker.publish({ topic: 'r/1', payload: payload(100), retain: true })
    broker.publish({ topic: 'r/2', payload: 'small', retain: true })
    const client = await join('a', { properties: { maximumPacketSize: 64 } })
    heard(client)
    const identifier = '0b ff ff ff 7f'
    expect(
      (await say(client, packetOf('82', '00 01', packetOf('', identifier), textOf('#'), '00'))).slice(1).map((packet) => packet.split(' ').length),
    ).toEqual([18])
    await (await join('dies', { will: { topic: 'w', payload: new Uint8Array(60) } })).cut()
    broker.publish({ topic: 'p', properties: { userProperties: [['n', 'v'.repeat(50)]] } })
    broker.publish({ topic: 'q', properties: { contentType: 'c' } })
    await client.send()
    expect(heard(client).map((packet) => packet.split(' ').length)).toEqual([15])
  })
})

describe('Topic Alias Maximum', () => {
  const aliasOf = (packet: string): string | undefined => /^30 .. (?:00 00|00 02 74 .) ?.* 23 (.. ..)/.exec(packet)?.[1]

  it('no alias is above it, or above 2 of 5 topics, and each stands for its topic [MQTT-3.1.2-26] [MQTT-3.3.2-11]', async () => {
    for (const options of ways) {
      const { client, broker } = await subscriber({ properties: { topicAliasMaximum: 2 } }, options)
      const topics = ['t1', 't2', 't3', 't4', 't5']
      const known = new Map<string, string>()
      const seen: string[] = []
      for (let round = 0; round < 2; round++) {
        for (const topic of topics) broker.publish({ topic, payload: topic })
        await client.send()
        for (const packet of heard(client)) {
          const alias = aliasOf(packet)
          const empty = packet.slice(6, 11) === '00 00'
          const payload = packet.slice(-5)
          if (alias !== undefined) {
            expect(['00 01', '00 02']).toContain(alias)
            if (empty) expect(known.get(alias)).toBe(payload)
            else known.set(alias, packet.slice(12, 17))
          } else expect(empty).toBe(false)
          seen.push(payload)
        }
      }
      expect(known.size).toBe(2)
      expect(seen).toEqual([...topics, ...topics].map((topic) => textOf(topic).slice(6)))
    }
  })

  it.each([
    ['absent', {}],
    ['0', { topicAliasMaximum: 0 }],
  ])('where it is %s there is none, nor an empty topic [MQTT-3.1.2-27]', async (_what, properties) => {
    const { client, broker } = await subscriber({ properties })
    for (let i = 0; i < 3; i++) broker.publish({ topic: 't', payload: 'x' })
    await client.send()
    expect(heard(client)).toEqual(Array.from({ length: 3 }, () => '30 05 00 01 74 00 78'))
  })

  it('they die with the connection: the first use of the next one has the topic [MQTT-3.3.2-7]', async () => {
    const settings = { cleanStart: false, properties: { sessionExpiryInterval: 60, topicAliasMaximum: 5 } }
    const { client, broker, join } = await subscriber(settings)
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't' })
    await client.send()
    expect(heard(client)).toEqual(['30 07 00 01 74 03 23 00 01', '30 06 00 00 03 23 00 01'])
    await client.cut()
    const again = await join('a', settings)
    heard(again)
    broker.publish({ topic: 't' })
    await again.send()
    expect(heard(again)).toEqual(['30 07 00 01 74 03 23 00 01'])
  })

  it('0 is never sent, though 65,535 are allowed [MQTT-3.3.2-8]', async () => {
    for (const options of ways) {
      const { client, broker } = await subscriber({ properties: { topicAliasMaximum: 65_535 } }, options)
      for (let i = 0; i < 300; i++) broker.publish({ topic: `t/${i}` })
      await client.send()
      const aliases = client.received.flatMap((packet) => (packet.type === 'publish' ? [packet.properties.topicAlias] : []))
      expect(aliases).toEqual(Array.from({ length: 300 }, (_none, at) => at + 1))
    }
  })
})

describe('Request Response Information and Request Problem Information', () => {
  it('without the wish there is no Response Information [MQTT-3.1.2-28]', async () => {
    const { dial } = world({ responseInformation: 'r', topicAliasMaximum: 0 })
    const connacks: string[] = []
    for (const properties of [{}, { requestResponseInformation: 0 }, { requestResponseInformation: 1 }]) {
      const client = dial()
      await client.connect({ properties })
      connacks.push(...heard(client))
    }
    expect(connacks).toEqual(['20 08 00 00 05 27 00 10 00 00', '20 08 00 00 05 27 00 10 00 00', '20 0c 00 00 09 27 00 10 00 00 1a 00 01 72'])
  })

  it('0 keeps explanations to CONNACK and DISCONNECT, and User Properties to those and PUBLISH [MQTT-3.1.2-29]', async () => {
    const explained = { reasonString: 'why', userProperties: [['a', 'b']] as [string, string][] }
    const { dial, broker } = world({
      auth: { m: { start: () => ({ reasonCode: 0x18 }), continue: () => ({}) } },
      intercept: (direction, packet) =>
        direction === 'out' && 'properties' in packet && packet.type !== 'publish'
          ? ({ ...packet, properties: { ...packet.properties, ...explained } } as typeof packet)
          : undefined,
    })
    for (const requestProblemInformation of [0, 1]) {
      const client = dial()
      const method = { authenticationMethod: 'm' }
      await client.send({ type: 'connect', clientId: 'a', properties: { ...method, requestProblemInformation } })
      await client.send({ type: 'auth', reasonCode: 0x18, properties: method })
      await say(
        client,
        packetOf('82', '00 01 00', textOf('t'), '02'),
        packetOf('a2', '00 02 00', textOf('u')),
        packetOf('32', textOf('n'), '00 03 00'),
        packetOf('34', textOf('n'), '00 04 00'),
      )
      broker.publish({ topic: 't', qos: 2, properties: { userProperties: [['a', 'b']] } })
      await say(client, '62 02 00 04', '50 02 00 01', '70 02 00 01', 'c1 00')
      const said = client.received.map((packet) => [
        packet.type,
        'properties' in packet && packet.properties.reasonString !== undefined,
        'properties' in packet && packet.properties.userProperties !== undefined,
      ])
      const told = requestProblemInformation === 1
      expect(said).toEqual([
        ['auth', told, told],
        ['connack', true, true],
        ['suback', told, told],
        ['unsuback', told, told],
        ['puback', told, told],
        ['pubrec', told, told],
        ['publish', false, true],
        ['pubcomp', told, told],
        ['pubrel', told, told],
        ['disconnect', true, true],
      ])
    }
  })
})
