/**
 * The broker in memory: rules that a client breaks are noted, and ended where the standard says so.
 */
import { describe, expect, it } from 'vitest'
import { durable, world } from './raw-client.js'

describe('rules that a client breaks', () => {
  it.each([
    ['packet of the other side', [0x20, 2, 0, 0], 0x82],
    ['reserved flags', [0xc1, 0], 0x81],
    ['bad UTF-8 in a topic [MQTT-1.5.4-1]', [0x30, 5, 0, 2, 0xc0, 0x80, 0], 0x81],
    ['wildcard in a topic [MQTT-3.3.2-2]', [0x30, 4, 0, 1, 0x23, 0], 0x82],
    ['subscription identifier in PUBLISH [MQTT-3.3.4-6]', [0x30, 6, 0, 1, 0x61, 2, 0x0b, 1], 0x82],
    ['SUBSCRIBE without a filter [MQTT-3.8.3-2]', [0x82, 3, 0, 1, 0], 0x82],
    ['no local on a share [MQTT-3.8.3-4]', [0x82, 16, 0, 1, 0, 0, 10, ...new TextEncoder().encode('$share/g/t'), 4], 0x82],
    ['topic alias 0 [MQTT-3.3.2-8]', [0x30, 7, 0, 1, 0x61, 3, 0x23, 0, 0], 0x94],
    ['packet identifier 0', [0x32, 6, 0, 1, 0x61, 0, 0, 0], 0x82],
  ])('%s ends the connection with its code [MQTT-4.13.1-1]', async (_what, packet, reasonCode) => {
    const { join, broker } = world()
    const client = await join('a')
    await client.sendBytes(packet)
    expect([client.goodbye, client.ended !== undefined]).toEqual([reasonCode, true])
    expect(broker.violations).toMatchObject([{ clientId: 'a', reasonCode }])
  })

  it('a second CONNECT of another version: 0x82, as DISCONNECT has no 0x84', async () => {
    const client = await world().join('a')
    await client.sendBytes([0x10, 0x0d, 0, 4, 0x4d, 0x51, 0x54, 0x54, 6, 2, 0, 0, 0, 0, 1, 0x61])
    expect(client.goodbye).toBe(0x82)
  })

  it('3.1.1 is closed without a word, and the good packets before are handled', async () => {
    const { join, broker } = world()
    const client = await join('a', {}, 4)
    await client.sendBytes([0x30, 3, 0, 1, 0x61, 0xc1, 0])
    expect([client.received.length, client.ended !== undefined, broker.accepted.length]).toEqual([1, true, 1])
  })

  it('nothing is handled after DISCONNECT [MQTT-3.14.4-1]', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.send({ type: 'disconnect' }, { type: 'publish', topic: 't' }, { type: 'unsubscribe', packetId: 2, filters: ['t'] })
    expect([client.ended !== undefined, broker.accepted.length]).toEqual([true, 0])
    expect(broker.sessions.get('a')?.subscriptions).toHaveLength(1)
  })

  it('a new message under an unreleased identifier: 0x91, not taken [MQTT-2.2.1-3]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.publish('t', '1', { qos: 2, packetId: 1 })
    expect(await client.publish('t', '2', { qos: 2, packetId: 1 })).toMatchObject([{ type: 'pubrec', reasonCode: 0x91 }])
    expect(await client.publish('t', '3', { qos: 1, packetId: 1 })).toMatchObject([{ type: 'puback', reasonCode: 0x91 }])
    expect(await client.subscribe('t', 1)).toMatchObject([{ type: 'suback', reasonCodes: [0x91] }])
    expect(await client.send({ type: 'unsubscribe', packetId: 1, filters: ['t'] })).toMatchObject([{ type: 'unsuback', reasonCodes: [0x91] }])
    expect(broker.accepted).toHaveLength(1)
    expect(broker.violations.map(({ packet, reasonCode }) => [packet, reasonCode])).toEqual(
      ['publish', 'publish', 'subscribe', 'unsubscribe'].map((packet) => [packet, undefined]),
    )
    expect(client.ended).toBeUndefined()
  })

  it('also one that was left unreleased on an earlier connection', async () => {
    const { join, broker } = world()
    await (await join('a', durable)).publish('t', '1', { qos: 2, packetId: 1 })
    const again = await join('a', durable)
    expect(await again.subscribe('t', 1)).toMatchObject([{ type: 'suback', reasonCodes: [0x91] }])
    expect(broker.violations).toMatchObject([{ packet: 'subscribe', text: 'a packet identifier in use [MQTT-2.2.1-3]' }])
    expect(await again.subscribe('t', 2)).toMatchObject([{ type: 'suback', reasonCodes: [2] }])
  })

  it('a refusal because the identifier is in use frees no place', async () => {
    const { join } = world({ receiveMaximum: 1 })
    const client = await join('a')
    await client.publish('t', '1', { qos: 2, packetId: 1 })
    await client.publish('t', '2', { qos: 1, packetId: 1 })
    expect(client.goodbye).toBeUndefined()
    await client.publish('t', '3', { qos: 1, packetId: 2 })
    expect(client.goodbye).toBe(0x93)
  })

  it('a repeat without DUP is one all the same [MQTT-3.3.1-1] [MQTT-4.3.3-10]', async () => {
    const { join, broker } = world()
    await (await join('a', durable)).publish('t', '1', { qos: 2, packetId: 1 })
    const again = await join('a', durable)
    expect(await again.publish('t', '1', { qos: 2, packetId: 1 })).toMatchObject([{ type: 'pubrec', reasonCode: 0x10 }])
    expect(broker.accepted).toHaveLength(1)
    expect(broker.violations).toMatchObject([{ text: 'a repeat without DUP [MQTT-3.3.1-1]', reasonCode: undefined }])
  })

  it('a repeat on one connection [MQTT-4.4.0-1]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.publish('t', '1', { qos: 2, packetId: 1 })
    await client.publish('t', '1', { qos: 2, packetId: 1, dup: true })
    expect(broker.violations).toMatchObject([{ text: 'a repeat on the same connection [MQTT-4.4.0-1]', reasonCode: undefined }])
  })

  it.each([
    ['PUBACK', 2, [{ type: 'puback', packetId: 1 }]],
    ['PUBREC', 1, [{ type: 'pubrec', packetId: 1 }]],
    ['PUBCOMP', 1, [{ type: 'pubcomp', packetId: 1 }]],
    ['PUBCOMP before PUBREC', 2, [{ type: 'pubcomp', packetId: 1 }]],
    [
      'PUBACK after PUBREC',
      2,
      [
        { type: 'pubrec', packetId: 1 },
        { type: 'puback', packetId: 1 },
      ],
    ],
  ] as const)('on 3.1.1 the wrong kind of acknowledgement, %s, closes the connection [3.1.1: MQTT-4.8.0-1]', async (_what, qos, packets) => {
    const { join, broker } = world()
    const client = await join('a', { cleanStart: false }, 4)
    await client.subscribe('t')
    broker.publish({ topic: 't', qos })
    await client.send(...packets)
    expect([client.ended !== undefined, broker.clients.size]).toEqual([true, 0])
    expect(broker.violations).toMatchObject([{ packet: packets.at(-1)?.type, reasonCode: 0x82 }])
    // Nothing was settled by it.
    expect(broker.sessions.get('a')?.inflight).toBe(1)
  })

  it('on 3.1.1 DUP at QoS 0 closes the connection, and nothing is published [MQTT-3.3.1-2]', async () => {
    const { join, broker } = world()
    const client = await join('a', {}, 4)
    await client.sendBytes([0x38, 3, 0, 1, 0x61])
    expect([client.ended !== undefined, broker.accepted]).toEqual([true, []])
    expect(broker.violations).toMatchObject([{ clientId: 'a' }])
  })

  it('acknowledgements that are forged, of the wrong kind, again or out of order', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    for (const qos of [1, 2, 1, 2, 1] as const) broker.publish({ topic: 't', qos })
    await client.send()
    const broken = async (...packets: Parameters<typeof client.send>) => {
      const before = broker.violations.length
      const answers = await client.send(...packets)
      return [broker.violations.slice(before).map(({ text }) => text), answers.length]
    }
    expect(await broken({ type: 'puback', packetId: 77 })).toEqual([['puback for an identifier that is not in use [MQTT-2.2.1-5]'], 0])
    expect(await broken({ type: 'puback', packetId: 2 })).toEqual([['puback for a message of another QoS [MQTT-3.3.4-1]'], 0])
    expect(await broken({ type: 'pubrec', packetId: 1 })).toEqual([['pubrec for a message of another QoS [MQTT-3.3.4-1]'], 1])
    expect(await broken({ type: 'pubcomp', packetId: 2 })).toEqual([['PUBCOMP for an identifier that was not released [MQTT-4.3.3-11]'], 0])
    expect(await broken({ type: 'puback', packetId: 3 })).toEqual([['puback out of order [MQTT-4.6.0-2]'], 0])
    expect(await broken({ type: 'pubrec', packetId: 4 })).toEqual([['pubrec out of order [MQTT-4.6.0-3]'], 1])
    expect(await broken({ type: 'puback', packetId: 1 }, { type: 'puback', packetId: 5 }, { type: 'pubrec', packetId: 2 })).toEqual([[], 1])
    expect(await broken({ type: 'pubrec', packetId: 2 })).toEqual([['pubrec again [MQTT-4.4.0-1]'], 1])
    expect(await broken({ type: 'pubcomp', packetId: 4 }, { type: 'pubcomp', packetId: 2 })).toEqual([[], 0])
    expect(broker.sessions.get('a')?.inflight).toBe(0)
  })

  it('PUBREL out of the order of PUBREC [MQTT-4.6.0-4]', async () => {
    const { join, broker } = world()
    const client = await join('a')
    for (const packetId of [4, 2, 9]) await client.publish('t', '', { qos: 2, packetId })
    await client.send({ type: 'pubrel', packetId: 4 }, { type: 'pubrel', packetId: 9 }, { type: 'pubrel', packetId: 2 })
    expect(broker.violations).toMatchObject([{ text: 'pubrel out of order [MQTT-4.6.0-4]', reasonCode: undefined }])
  })

  it('an acknowledgement for what was sent on an earlier connection only', async () => {
    const { join, broker } = world()
    const client = await join('a', durable)
    await client.subscribe('t')
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't', qos: 1 })
    await client.cut()
    const again = await join('a', { cleanStart: false, properties: { sessionExpiryInterval: 9, receiveMaximum: 1 } })
    await again.send({ type: 'puback', packetId: 2 })
    expect(broker.violations).toMatchObject([{ packet: 'puback' }])
    expect(broker.sessions.get('a')?.inflight).toBe(2)
  })

  it('PUBREC for an unknown identifier is answered by PUBREL 0x92', async () => {
    const { join } = world()
    const client = await join('a')
    expect(await client.send({ type: 'pubrec', packetId: 9 })).toEqual([{ type: 'pubrel', packetId: 9, reasonCode: 0x92, properties: {} }])
  })

  it('never names what the client sent', async () => {
    const { join, broker } = world()
    const client = await join('a')
    await client.publish('canary-topic', 'canary-payload', { properties: { topicAlias: 99, userProperties: [['canary', 'canary']] } })
    expect(JSON.stringify(broker.violations)).not.toContain('canary')
    expect(broker.violations).toHaveLength(1)
  })
})
