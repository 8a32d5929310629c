/**
 * The broker in memory: who gets a message, at which QoS, with which properties.
 */
import { describe, expect, it } from 'vitest'
import { durable, text, world } from './raw-client.js'

describe('QoS 0 to 2, both ways', () => {
  it('takes QoS 0 without an answer and forwards it [MQTT-3.3.4-1] [MQTT-4.3.1-1] [MQTT-4.5.0-1]', async () => {
    const { join, broker } = world()
    const a = await join('a')
    const b = await join('b')
    await b.subscribe('t/+')
    expect(await a.publish('t/1', 'hi')).toEqual([])
    expect(b.take()).toEqual([
      { type: 'publish', dup: false, qos: 0, retain: false, topic: 't/1', packetId: undefined, properties: {}, payload: Uint8Array.from([104, 105]) },
    ])
    expect(broker.accepted).toMatchObject([{ clientId: 'a', topic: 't/1', qos: 0, packetId: undefined, dup: false, will: false }])
    expect(broker.violations).toEqual([])
  })

  it('QoS 1: PUBACK with the identifier, 0x10 without subscribers [MQTT-4.3.2-4] [MQTT-2.2.1-5]', async () => {
    const { join } = world()
    const a = await join('a')
    expect(await a.publish('t', '1', { qos: 1, packetId: 7 })).toEqual([{ type: 'puback', packetId: 7, reasonCode: 0x10, properties: {} }])
    await a.subscribe('t')
    expect(await a.publish('t', '2', { qos: 1, packetId: 8 })).toMatchObject([
      { type: 'publish', qos: 1, packetId: 1 },
      { type: 'puback', packetId: 8, reasonCode: 0 },
    ])
  })

  it('QoS 2 from the client: PUBREC, PUBCOMP, one delivery for repeats [MQTT-4.3.3-8] [MQTT-4.3.3-10] [MQTT-4.3.3-11] [MQTT-4.3.3-12]', async () => {
    const { join, dial, broker } = world()
    const a = await join('a', durable)
    expect(await a.publish('t', '1', { qos: 2, packetId: 3 })).toEqual([{ type: 'pubrec', packetId: 3, reasonCode: 0x10, properties: {} }])
    await a.cut()
    const again = dial()
    expect(await again.connect({ clientId: 'a', ...durable })).toMatchObject({ sessionPresent: true })
    expect(broker.sessions.get('a')?.unreleased).toEqual([3])
    expect(await again.publish('t', '1', { qos: 2, packetId: 3, dup: true })).toMatchObject([{ type: 'pubrec', packetId: 3, reasonCode: 0x10 }])
    expect(broker.accepted).toHaveLength(1)
    expect(await again.send({ type: 'pubrel', packetId: 3 })).toEqual([{ type: 'pubcomp', packetId: 3, reasonCode: 0, properties: {} }])
    expect(await again.send({ type: 'pubrel', packetId: 3 })).toEqual([{ type: 'pubcomp', packetId: 3, reasonCode: 0x92, properties: {} }])
    await again.publish('t', '2', { qos: 2, packetId: 3 })
    expect(broker.accepted.map(({ payload }) => text(payload))).toEqual(['1', '2'])
    expect(broker.violations).toEqual([])
  })

  it('QoS 2 to the client: PUBLISH, PUBREC, PUBREL, PUBCOMP [MQTT-4.3.3-2] [MQTT-4.3.3-4] [MQTT-4.3.3-5]', async () => {
    const { join, broker } = world()
    const a = await join('a')
    await a.subscribe('t')
    broker.publish({ topic: 't', payload: 'x', qos: 2 })
    expect(await a.send()).toMatchObject([{ type: 'publish', qos: 2, packetId: 1, dup: false }])
    expect(await a.send({ type: 'pubrec', packetId: 1 })).toEqual([{ type: 'pubrel', packetId: 1, reasonCode: 0, properties: {} }])
    expect(broker.sessions.get('a')?.inflight).toBe(1)
    await a.send({ type: 'pubcomp', packetId: 1 })
    expect(broker.sessions.get('a')?.inflight).toBe(0)
    expect(broker.violations).toEqual([])
  })

  it('delivers at the lower of published and granted QoS [MQTT-3.8.4-8]', async () => {
    const { join, broker } = world()
    const a = await join('a')
    await a.subscribe({ filter: 't', qos: 1 })
    for (const qos of [0, 1, 2] as const) broker.publish({ topic: 't', qos })
    await a.send()
    expect(a.received.flatMap((packet) => (packet.type === 'publish' ? [packet.qos] : []))).toEqual([0, 1, 1])
  })
})
