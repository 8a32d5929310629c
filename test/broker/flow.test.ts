/**
 * The broker in memory: Receive Maximum both ways, and messages that wait for it.
 */
import { describe, expect, it } from 'vitest'
import type { ServerPacket } from '../../src/wire/index.js'
import { durable, world } from './raw-client.js'

const ids = (packets: readonly ServerPacket[]): (number | undefined)[] =>
  packets.map((packet) => ('packetId' in packet ? packet.packetId : undefined))

describe('Receive Maximum', () => {
  it('of the client: no more are open, acknowledgements free places in order [MQTT-3.3.4-9] [MQTT-4.9.0-2]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { receiveMaximum: 2 } })
    await client.subscribe('t')
    for (let i = 0; i < 5; i++) broker.publish({ topic: 't', payload: String(i), qos: i === 0 ? 2 : 1 })
    broker.publish({ topic: 't', payload: 'zero' })
    // QoS 0 needs no place [MQTT-3.3.4-10].
    expect(await client.messages()).toEqual(['t 0', 't 1', 't zero'])
    expect(await client.send({ type: 'pubrec', packetId: 1 })).toMatchObject([{ type: 'pubrel' }])
    expect(ids(await client.send({ type: 'pubcomp', packetId: 1 }))).toEqual([3])
    expect(ids(await client.send({ type: 'puback', packetId: 2 }, { type: 'puback', packetId: 3 }))).toEqual([4, 5])
    expect(broker.violations).toEqual([])
  })

  it('a failing PUBREC frees a place and settles the message [MQTT-4.4.0-2] [MQTT-4.9.0-2]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { receiveMaximum: 1 } })
    await client.subscribe('t')
    for (const payload of ['1', '2']) broker.publish({ topic: 't', payload, qos: 2 })
    await client.send()
    expect(await client.send({ type: 'pubrec', packetId: 1, reasonCode: 0x80 })).toMatchObject([{ type: 'publish', packetId: 2 }])
    expect(broker.sessions.get('a')?.inflight).toBe(1)
  })

  it('of the broker: one more is 0x93, and the one more is not taken [MQTT-3.3.4-7]', async () => {
    const { join, broker } = world({ receiveMaximum: 2 })
    const client = await join('a')
    await client.publish('t', '1', { qos: 2, packetId: 1 })
    await client.publish('t', '2', { qos: 2, packetId: 2 })
    await client.send({ type: 'pubrel', packetId: 1 })
    await client.publish('t', '3', { qos: 1, packetId: 3 })
    await client.publish('t', '4', { qos: 2, packetId: 4 })
    expect(client.goodbye).toBeUndefined()
    await client.publish('t', '5', { qos: 1, packetId: 5 })
    expect(client.goodbye).toBe(0x93)
    expect(broker.accepted).toHaveLength(4)
    expect(broker.violations).toMatchObject([{ clientId: 'a', packet: 'publish', reasonCode: 0x93 }])
  })

  it('of the broker starts anew with each connection [MQTT-4.9.0-1]', async () => {
    const { join, broker } = world({ receiveMaximum: 1 })
    await (await join('a', durable)).publish('t', '1', { qos: 2, packetId: 1 })
    const again = await join('a', durable)
    expect(await again.publish('t', '2', { qos: 2, packetId: 2 })).toMatchObject([{ type: 'pubrec', packetId: 2 }])
    expect(broker.violations).toEqual([])
  })

  it('an acknowledgement that is late keeps its place taken', async () => {
    const { join, clock, broker } = world({
      receiveMaximum: 1,
      faults: [{ packet: 'puback', direction: 'out', nth: 1, action: 'delay', delay: 100 }],
    })
    const client = await join('a')
    expect(await client.publish('t', '1', { qos: 1, packetId: 1 })).toEqual([])
    await clock.advance(100)
    expect(client.take()).toMatchObject([{ type: 'puback', packetId: 1 }])
    expect(await client.publish('t', '2', { qos: 1, packetId: 2 })).toMatchObject([{ type: 'puback', packetId: 2 }])
    expect(broker.violations).toEqual([])
  })
})

describe('replay [MQTT-4.4.0-1]', () => {
  it('PUBREL, then PUBLISH with DUP and old identifiers, each in order, then what is new [MQTT-3.3.1-1] [MQTT-4.3.3-6]', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    for (let i = 1; i <= 5; i++) broker.publish({ topic: 't', payload: String(i), qos: i === 5 ? 1 : 2 })
    await client.send({ type: 'pubrec', packetId: 1 }, { type: 'pubrec', packetId: 2 })
    await client.cut()
    broker.publish({ topic: 't', payload: 'new', qos: 1 })
    const again = await join('a', durable)
    expect(again.take().map((packet) => [packet.type, ...ids([packet]), 'dup' in packet && packet.dup])).toEqual([
      ['pubrel', 1, false],
      ['pubrel', 2, false],
      ['publish', 3, true],
      ['publish', 4, true],
      ['publish', 5, true],
      ['publish', 6, false],
    ])
    await again.send({ type: 'pubcomp', packetId: 1 }, { type: 'pubcomp', packetId: 2 }, { type: 'pubrec', packetId: 3 })
    expect(broker.violations).toEqual([])
  })

  it('keeps to the new Receive Maximum', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    for (let i = 1; i <= 3; i++) broker.publish({ topic: 't', payload: String(i), qos: 1 })
    await client.cut()
    const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 60, receiveMaximum: 2 } })
    expect(ids(again.take())).toEqual([1, 2])
    expect(ids(await again.send({ type: 'puback', packetId: 1 }))).toEqual([3])
  })

  it('a PUBREL that is repeated takes a place too', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    broker.publish({ topic: 't', payload: '1', qos: 2 })
    await client.send()
    await client.send({ type: 'pubrec', packetId: 1 })
    await client.cut()
    for (const payload of ['2', '3']) broker.publish({ topic: 't', payload, qos: 1 })
    const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 60, receiveMaximum: 2 } })
    expect(again.take()).toMatchObject([
      { type: 'pubrel', packetId: 1 },
      { type: 'publish', packetId: 2 },
    ])
    expect(await again.send({ type: 'pubcomp', packetId: 1 })).toMatchObject([{ type: 'publish', packetId: 3 }])
  })

  it('nothing is repeated on one connection', async () => {
    const { join, broker, clock } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    broker.publish({ topic: 't', payload: 'x', qos: 1 })
    await clock.advance(3_600_000)
    expect(await client.messages()).toEqual(['t x'])
  })

  it('packet identifiers go round and leave out those in use, whether PUBLISH or PUBREL is open [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.subscribe('t')
    for (const qos of [1, 2, 2] as const) broker.publish({ topic: 't', qos })
    await client.send({ type: 'pubrec', packetId: 2 })
    for (let i = 4; i <= 65_535; i++) {
      broker.publish({ topic: 't', qos: 1 })
      if (i % 500 === 0 || i === 65_535) {
        const came = ids(await client.send())
        if (i === 65_535) expect(came.at(-1)).toBe(65_535)
        await client.send(...came.map((packetId = 0) => ({ type: 'puback' as const, packetId })))
      }
    }
    broker.publish({ topic: 't', qos: 1 })
    expect(ids(await client.send())).toEqual([4])
  })
})

describe('topic aliases', () => {
  it('of the client stand for its topics, per connection [MQTT-3.3.2-7] [MQTT-3.3.2-12]', async () => {
    const { join, broker } = world({ topicAliasMaximum: 2 })
    const client = await join('a')
    await client.publish('one', '1', { properties: { topicAlias: 1 } })
    await client.publish('two', '2', { properties: { topicAlias: 2 } })
    await client.publish('', '3', { properties: { topicAlias: 1 } })
    await client.publish('three', '4', { properties: { topicAlias: 1 } })
    await client.publish('', '5', { properties: { topicAlias: 1 } })
    expect(broker.accepted.map(({ topic }) => topic)).toEqual(['one', 'two', 'one', 'three', 'three'])
    expect(broker.accepted.every(({ properties }) => properties.topicAlias === undefined)).toBe(true)
    const again = await join('a')
    await again.publish('', '6', { properties: { topicAlias: 1 } })
    expect(again.goodbye).toBe(0x82)
  })

  it('above the maximum are 0x94 [MQTT-3.3.2-9] [MQTT-3.2.2-17] [MQTT-3.2.2-18]', async () => {
    for (const topicAliasMaximum of [0, 3]) {
      const { join } = world({ topicAliasMaximum })
      const client = await join('a')
      await client.publish('t', '', { properties: { topicAlias: topicAliasMaximum + 1 } })
      expect(client.goodbye).toBe(0x94)
    }
  })

  it('of the broker: within what the client allows, with the topic the first time [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { topicAliasMaximum: 1 } })
    const plain = await join('b')
    for (const each of [client, plain]) await each.subscribe('#')
    for (const topic of ['x', 'x', 'y', 'x']) broker.publish({ topic })
    await client.send()
    const seen = (each: typeof client) =>
      each.received.slice(2).map((packet) => (packet.type === 'publish' ? [packet.topic, packet.properties.topicAlias] : []))
    expect(seen(client)).toEqual([
      ['x', 1],
      ['', 1],
      ['y', undefined],
      ['', 1],
    ])
    expect(seen(plain)).toEqual(['x', 'x', 'y', 'x'].map((topic) => [topic, undefined]))
  })
})

describe('Maximum Packet Size', () => {
  it('of the broker: larger is 0x95 [MQTT-3.2.2-15]', async () => {
    const { join } = world({ maximumPacketSize: 100 })
    const client = await join('a')
    await client.publish('t', 'x'.repeat(94))
    expect(client.goodbye).toBeUndefined()
    await client.publish('t', 'x'.repeat(95))
    expect(client.goodbye).toBe(0x95)
  })

  it('of the client: what is larger counts as sent, to the byte [MQTT-3.1.2-24] [MQTT-3.1.2-25]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { maximumPacketSize: 100 } })
    await client.subscribe('t')
    // 2 header, 3 topic, 2 identifier, 1 properties.
    broker.publish({ topic: 't', payload: 'x'.repeat(92), qos: 1 })
    broker.publish({ topic: 't', payload: 'x'.repeat(93), qos: 1 })
    broker.publish({ topic: 't', payload: 'small', qos: 1 })
    const came = await client.messages()
    expect(came.map((message) => message.length)).toEqual([94, 7])
    expect(broker.sessions.get('a')).toMatchObject({ inflight: 2, oversized: 1, queued: 0 })
  })

  it('of the client: explanations are left out where they do not fit [MQTT-3.14.2-3] [MQTT-3.14.2-4]', async () => {
    const { join, broker } = world()
    const client = await join('a', { properties: { maximumPacketSize: 20 } })
    broker.disconnect('a', 0x98, { reasonString: 'x'.repeat(30), userProperties: [['a', 'b']] })
    expect(await client.send()).toEqual([{ type: 'disconnect', reasonCode: 0x98, properties: {} }])
  })

  it('of the client: who cannot even take CONNACK is closed', async () => {
    const client = world().dial()
    expect(await client.send({ type: 'connect', clientId: 'a', properties: { maximumPacketSize: 5 } })).toEqual([])
    expect(client.ended).toBeDefined()
  })

  it('Request Problem Information 0: only DISCONNECT and CONNACK explain [MQTT-3.1.2-29]', async () => {
    const { join } = world({
      intercept: (direction, packet) =>
        direction === 'out' && (packet.type === 'puback' || packet.type === 'disconnect')
          ? { ...packet, properties: { reasonString: 'why', userProperties: [['a', 'b']] } }
          : undefined,
    })
    const told = await join('a')
    expect(await told.publish('t', '', { qos: 1, packetId: 1 })).toMatchObject([{ properties: { reasonString: 'why' } }])
    const untold = await join('b', { properties: { requestProblemInformation: 0 } })
    expect(await untold.publish('t', '', { qos: 1, packetId: 1 })).toEqual([{ type: 'puback', packetId: 1, reasonCode: 0x10, properties: {} }])
    expect(await untold.publish('t', '', { properties: { topicAlias: 11 } })).toMatchObject([
      { type: 'disconnect', properties: { reasonString: 'why' } },
    ])
  })
})
