/**
 * The broker in memory: retained messages.
 */
import { describe, expect, it } from 'vitest'
import { durable, world } from './raw-client.js'

describe('retained messages', () => {
  it('are replaced, cleared by an empty one that is delivered, left alone by others [MQTT-3.3.1-5] to [MQTT-3.3.1-8]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    const kept = () => [...broker.retained].map(([topic, { payload }]) => `${topic} ${new TextDecoder().decode(payload)}`)
    await client.publish('t', 'one', { retain: true })
    await client.publish('t', 'two', { retain: true })
    await client.publish('t', 'three')
    expect(kept()).toEqual(['t two'])
    await client.subscribe('t')
    expect(client.received.at(-1)).toMatchObject({ topic: 't', retain: true })
    expect((await client.publish('t', '', { retain: true })).map(({ type }) => type)).toEqual(['publish'])
    expect(kept()).toEqual([])
  })

  it('Retain Handling: always, only when new, never [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11]', async () => {
    const { join, broker } = world()
    broker.publish({ topic: 'r/1', payload: 'x', retain: true, qos: 1 })
    const client = await join('a')
    let packetId = 0
    const count = async (filter: string, retainHandling: number) => {
      const packets = await client.subscribe({ filter, qos: 1, retainHandling }, ++packetId, 9)
      return packets.filter((packet) => packet.type === 'publish' && packet.retain && packet.properties.subscriptionIdentifiers?.[0] === 9).length
    }
    expect([await count('r/1', 0), await count('r/1', 0), await count('r/1', 1), await count('r/+', 1), await count('r/+', 1)]).toEqual([
      1, 1, 0, 1, 0,
    ])
    expect([await count('r/#', 2), await count('+/1', 0)]).toEqual([0, 1])
  })

  it('come after SUBACK, at the lower QoS, and match as messages do', async () => {
    const { join, broker } = world()
    for (const topic of ['a', 'a/b', '$a', 'b']) broker.publish({ topic, payload: 'x', retain: true, qos: 2 })
    const client = await join('c')
    const packets = await client.subscribe({ filter: '#', qos: 1 })
    expect(packets.map((packet) => (packet.type === 'publish' ? [packet.topic, packet.qos] : packet.type))).toEqual([
      'suback',
      ['a', 1],
      ['a/b', 1],
      ['b', 1],
    ])
  })

  it('an empty one for a topic that has none is taken where there is no room for more', async () => {
    const { join, broker } = world({ maxRetained: 1 })
    const client = await join('a')
    await client.publish('t', 'kept', { retain: true })
    expect(await client.publish('u', 'x', { retain: true, qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0x97 }])
    expect(await client.publish('u', '', { retain: true, qos: 1, packetId: 2 })).toMatchObject([{ type: 'puback', reasonCode: 0x10 }])
    expect([...broker.retained.keys()]).toEqual(['t'])
  })

  it.each([
    ['of a topic whose own has gone', 'a', 1, { topic: 'a', qos: 1, retain: false }],
    ['of a topic at another QoS', 'c', 2, { topic: 'c', qos: 2, retain: false }],
    ['behind the one of its topic at its QoS [MQTT-4.6.0-5]', 'c', 1, { topic: 'c', qos: 1, retain: true }],
  ] as const)('that wait for the window take turns with messages %s', async (_name, topic, qos, expected) => {
    const { join, broker } = world()
    for (const each of ['a', 'b', 'c']) broker.publish({ topic: each, payload: 'kept', retain: true, qos: 1 })
    const client = await join('c', { properties: { receiveMaximum: 1 } })
    expect(await client.subscribe({ filter: '#', qos: 2 })).toMatchObject([{ type: 'suback' }, { topic: 'a', retain: true }])
    broker.publish({ topic, payload: 'now', qos })
    expect(await client.send({ type: 'puback', packetId: 1 })).toMatchObject([expected])
  })

  it('at QoS 0 do not wait for the window', async () => {
    const { join, broker } = world()
    for (const [qos, topic] of (['a', 'b', 'c'] as const).entries()) broker.publish({ topic, payload: 'kept', retain: true, qos: qos === 0 ? 1 : 0 })
    const client = await join('d', { properties: { receiveMaximum: 1 } })
    expect(await client.subscribe({ filter: '#', qos: 1 })).toMatchObject([{ type: 'suback' }, { topic: 'a' }, { topic: 'b' }, { topic: 'c' }])
  })

  it('expire, and count down [MQTT-3.3.2-5] [MQTT-3.3.2-6]', async () => {
    const { join, broker, clock } = world()
    broker.publish({ topic: 't', payload: 'x', retain: true, properties: { messageExpiryInterval: 10 } })
    await clock.advance(9900)
    const client = await join('a')
    expect(await client.subscribe('t')).toMatchObject([{ type: 'suback' }, { properties: { messageExpiryInterval: 1 } }])
    await clock.advance(100)
    expect(await client.subscribe('t', 2)).toMatchObject([{ type: 'suback' }])
    expect(broker.retained.size).toBe(0)
  })

  it('are bounded in number and bytes: 0x97', async () => {
    const { join, broker } = world({ maxRetained: 2, maxRetainedBytes: 1000 })
    const client = await join('a')
    const put = async (topic: string, payload: string) => {
      const [ack] = await client.publish(topic, payload, { retain: true, qos: 1, packetId: 1 })
      return ack?.type === 'puback' ? ack.reasonCode : undefined
    }
    expect([await put('1', 'x'), await put('2', 'x'), await put('3', 'x'), await put('2', 'y')]).toEqual([0x10, 0x10, 0x97, 0x10])
    expect(await put('2', 'x'.repeat(1000))).toBe(0x97)
    // What is replaced makes room.
    for (let i = 0; i < 3; i++) expect(await put('2', 'x'.repeat(600))).toBe(0x10)
    expect(await put('1', '')).toBe(0x10)
    expect(await put('3', 'x')).toBe(0x10)
    expect([...broker.retained.keys()]).toEqual(['2', '3'])
  })
})

describe('Message Expiry', () => {
  it('drops what waited too long, counted, and counts down the rest [MQTT-3.3.2-5] [MQTT-3.3.2-6]', async () => {
    const { join, broker, clock } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.cut()
    await clock.advance(7000)
    for (const seconds of [5, 60]) broker.publish({ topic: 't', payload: String(seconds), qos: 1, properties: { messageExpiryInterval: seconds } })
    await clock.advance(12_300)
    const again = await join('a', durable)
    expect(again.take()).toMatchObject([{ properties: { messageExpiryInterval: 48 } }])
    expect(broker.sessions.get('a')).toMatchObject({ expired: 1, queued: 0 })
  })

  it('0 is for those who are there', async () => {
    const { join, broker } = world()
    const here = await join('here')
    await here.subscribe('t')
    broker.publish({ topic: 't', payload: 'x', retain: true, properties: { messageExpiryInterval: 0 } })
    expect(await here.messages()).toEqual(['t x'])
    expect(broker.retained.size).toBe(0)
  })

  it('does not stop what was sent once [MQTT-4.3.3-7]', async () => {
    const { join, broker, clock } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    broker.publish({ topic: 't', qos: 2, properties: { messageExpiryInterval: 5 } })
    await client.send()
    await client.cut()
    await clock.advance(10_000)
    expect((await join('a', durable)).take()).toMatchObject([{ type: 'publish', dup: true, properties: { messageExpiryInterval: 0 } }])
  })
})
