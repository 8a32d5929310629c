/**
 * The broker in memory: the fault table breaks exactly the packet that it names.
 */
import { describe, expect, it } from 'vitest'
import type { Fault, FaultAction } from '../../src/testing/index.js'
import type { Packet, ServerPacket } from '../../src/wire/index.js'
import { durable, text, world } from './raw-client.js'

const types = (packets: readonly ServerPacket[]): string[] =>
  packets.map((packet) => ('packetId' in packet && packet.packetId ? `${packet.type} ${packet.packetId}` : packet.type))

const out = (action: FaultAction, packet: Fault['packet'] = 'puback', nth: Fault['nth'] = 1): Fault => ({ packet, direction: 'out', nth, action })
const into = (action: FaultAction, packet: Fault['packet'] = 'publish', nth: Fault['nth'] = 1): Fault => ({ packet, direction: 'in', nth, action })

const qos1 = (packetId: number, dup = false) => ({ type: 'publish' as const, topic: 't', qos: 1, packetId, dup })

describe('the fault table', () => {
  it('drop: it never happened', async () => {
    const { join, broker } = world({ faults: [out('drop'), into('drop', 'publish', 3)] })
    const client = await join('a')
    expect(types(await client.send(qos1(1), qos1(2), qos1(3)))).toEqual(['puback 2'])
    expect(broker.accepted.map(({ packetId }) => packetId)).toEqual([1, 2])
    expect(broker.faults.fired.map(({ fault, clientId }) => [fault.direction, clientId])).toEqual([
      ['out', 'a'],
      ['in', 'a'],
    ])
  })

  it('delay: others overtake it', async () => {
    const { join, clock } = world({ faults: [{ ...out('delay'), delay: 250 }] })
    const client = await join('a')
    expect(types(await client.send(qos1(1), qos1(2)))).toEqual(['puback 2'])
    await clock.advance(249)
    expect(client.take()).toEqual([])
    await clock.advance(1)
    expect(types(client.take())).toEqual(['puback 1'])
  })

  it('delay of CONNACK holds up what follows it [MQTT-3.2.0-1]', async () => {
    const { join, dial, broker, clock } = world()
    const first = await join('a', durable)
    await first.subscribe('t')
    await first.cut()
    broker.publish({ topic: 't', qos: 1 })
    broker.faults.add({ ...out('delay', 'connack'), delay: 100 })
    const client = dial()
    expect(await client.send({ type: 'connect', clientId: 'a', ...durable }, { type: 'pingreq' })).toEqual([])
    // What waits behind it does so also where there are no faults any more.
    broker.faults.clear()
    broker.publish({ topic: 't', qos: 1 })
    await clock.advance(99)
    expect(client.take()).toEqual([])
    await clock.advance(1)
    expect(types(client.take())).toEqual(['connack', 'publish 1', 'pingresp', 'publish 2'])
  })

  it('twice: done again, without blame', async () => {
    const { join, broker } = world({
      faults: [into('twice', 'connect'), out('twice'), into('twice', 'publish', 2), into('twice', 'subscribe'), out('twice', 'publish')],
    })
    const client = await join('a')
    expect(types(await client.send(qos1(1)))).toEqual(['puback 1', 'puback 1'])
    expect(types(await client.send({ type: 'publish', topic: 't', qos: 2, packetId: 2 }))).toEqual(['pubrec 2', 'pubrec 2'])
    expect(broker.accepted).toHaveLength(2)
    expect(types(await client.subscribe('t', 3))).toEqual(['suback 3', 'suback 3'])
    broker.publish({ topic: 't', qos: 1 })
    expect(types(await client.send())).toEqual(['publish 1', 'publish 1'])
    await client.send({ type: 'puback', packetId: 1 }, { type: 'puback', packetId: 1 })
    expect(broker.violations).toEqual([])
  })

  it('reorder: after the next of its direction, or a second later', async () => {
    const { join, clock, broker } = world({ faults: [out('reorder'), into('reorder', 'publish', 3)] })
    const client = await join('a')
    expect(types(await client.send(qos1(1), qos1(2)))).toEqual(['puback 2', 'puback 1'])
    expect(types(await client.send(qos1(3)))).toEqual([])
    await clock.advance(999)
    expect(client.take()).toEqual([])
    await clock.advance(1)
    expect(types(client.take())).toEqual(['puback 3'])
    expect(broker.accepted.map(({ packetId }) => packetId)).toEqual([1, 2, 3])
  })

  it('reorder: what was held is lost with the connection', async () => {
    const { join, broker } = world({ faults: [into('reorder')] })
    const client = await join('a')
    await client.send(qos1(1), { type: 'disconnect' })
    expect([client.ended !== undefined, broker.accepted.length]).toEqual([true, 0])
  })

  it.each([
    ['in', 'close-before', []],
    ['in', 'close-after', [1]],
    ['out', 'close-before', [1]],
    ['in', 'restart-keep', []],
    ['out', 'restart-keep', [1]],
  ] as const)('%s %s: the answer is lost, the message by the side of it', async (direction, action, accepted) => {
    const { join, broker } = world({ faults: [direction === 'in' ? into(action) : out(action)] })
    const client = await join('a', durable)
    expect(await client.send(qos1(1))).toEqual([])
    expect(client.ended?.cause).toBeDefined()
    expect(broker.accepted.map(({ packetId }) => packetId)).toEqual(accepted)
    // The retry passes.
    const again = await join('a', durable)
    expect(types(await again.send(qos1(1, true)))).toEqual(['puback 1'])
  })

  it('out close-after: it arrives, then the end', async () => {
    const { join } = world({ faults: [out('close-after')] })
    const client = await join('a')
    expect(types(await client.send(qos1(1)))).toEqual(['puback 1'])
    expect(client.ended).toEqual({ cause: undefined })
  })

  it('restart-lose: everybody is cut, everything forgotten', async () => {
    const { join, dial, broker } = world({ faults: [out('restart-lose')] })
    const other = await join('b', durable)
    const client = await join('a', durable)
    await client.publish('r', 'x', { retain: true })
    await client.send(qos1(1))
    expect([client.ended !== undefined, other.ended !== undefined, broker.retained.size]).toEqual([true, true, 0])
    expect(await dial().connect({ clientId: 'a', ...durable })).toMatchObject({ sessionPresent: false })
  })

  it('a reason code, in: refused without effect', async () => {
    const code = { reasonCode: 0x97 }
    const { join, dial, broker } = world({
      faults: [
        into(code),
        into(code, 'publish', 2),
        into(code, 'subscribe'),
        into({ reasonCode: 0x83 }, 'unsubscribe'),
        into({ reasonCode: 0x89 }, 'connect', 2),
      ],
    })
    const client = await join('a')
    expect(await client.send(qos1(1))).toMatchObject([{ type: 'puback', reasonCode: 0x97 }])
    expect(await client.send({ type: 'publish', topic: 't', qos: 2, packetId: 2 })).toMatchObject([{ type: 'pubrec', reasonCode: 0x97 }])
    expect(await client.subscribe('t')).toMatchObject([{ type: 'suback', reasonCodes: [0x97] }])
    expect(await client.send({ type: 'unsubscribe', packetId: 1, filters: ['t', 'u'] })).toMatchObject([{ reasonCodes: [0x83, 0x83] }])
    expect([broker.accepted.length, broker.sessions.get('a')?.subscriptions, broker.sessions.get('a')?.unreleased]).toEqual([0, [], []])
    expect(await dial().connect({ clientId: 'b' })).toMatchObject({ reasonCode: 0x89 })
    expect(await client.send(qos1(1))).toMatchObject([{ type: 'puback', reasonCode: 0x10 }])
  })

  it.each([
    ['publish', 0x97],
    ['subscribe', 0x97],
    ['unsubscribe', 0x83],
    ['pubrel', 0x92],
  ] as const)('a reason code, in: %s before CONNECT is not answered', async (packet, reasonCode) => {
    const { dial } = world({ faults: [into({ reasonCode }, packet)] })
    const client = dial()
    const packets = {
      publish: qos1(1),
      subscribe: { type: 'subscribe', packetId: 1, subscriptions: [{ filter: 't' }] },
      unsubscribe: { type: 'unsubscribe', packetId: 1, filters: ['t'] },
      pubrel: { type: 'pubrel', packetId: 1 },
    } as const
    expect(await client.send(packets[packet])).toEqual([])
    expect(client.ended).toBeUndefined()
    expect(await client.connect({ clientId: 'a' })).toMatchObject({ reasonCode: 0 })
  })

  it('a reason code on 3.1.1 is what 3.1.1 has of it', async () => {
    const { join, dial } = world({
      faults: [
        into({ reasonCode: 0x97 }),
        into({ reasonCode: 0x97 }, 'subscribe'),
        out({ reasonCode: 0x97 }, 'suback', 2),
        into({ reasonCode: 0x83 }, 'unsubscribe'),
        into({ reasonCode: 0x86 }, 'connect', 2),
        out({ reasonCode: 0x89 }, 'connack', 3),
        out({ reasonCode: 0x83 }, 'pubrec'),
        into({ reasonCode: 0x92 }, 'pubrel'),
      ],
    })
    const client = await join('a', {}, 4)
    expect(await client.send(qos1(1))).toMatchObject([{ type: 'puback', reasonCode: 0 }])
    for (let i = 0; i < 2; i++) expect(await client.subscribe({ filter: 't' })).toMatchObject([{ type: 'suback', reasonCodes: [0x80] }])
    expect(await client.send({ type: 'unsubscribe', packetId: 1, filters: ['t'] })).toMatchObject([{ type: 'unsuback', reasonCodes: [] }])
    expect(types(await client.send({ type: 'publish', topic: 'u', qos: 2, packetId: 2 }, { type: 'pubrel', packetId: 2 }))).toEqual([
      'pubrec 2',
      'pubcomp 2',
    ])
    expect(await dial(4).connect({ clientId: 'b' })).toMatchObject({ reasonCode: 4 })
    expect(await dial(4).connect({ clientId: 'b' })).toMatchObject({ reasonCode: 3 })
  })

  it('a reason code, out: said, whatever is true', async () => {
    const { join, dial, broker } = world({
      faults: [
        out({ reasonCode: 0x80 }),
        out({ reasonCode: 0x83 }, 'pubrec'),
        out({ reasonCode: 0x88 }, 'connack', 2),
        out({ reasonCode: 0x8d }, 'disconnect'),
      ],
    })
    const client = await join('a')
    expect(await client.send(qos1(1))).toMatchObject([{ type: 'puback', reasonCode: 0x80 }])
    expect(await client.send({ type: 'publish', topic: 't', qos: 2, packetId: 2 })).toMatchObject([{ type: 'pubrec', reasonCode: 0x83 }])
    expect([broker.accepted.length, broker.sessions.get('a')?.unreleased]).toEqual([2, []])
    const refused = dial()
    expect(await refused.connect({ clientId: 'b', ...durable })).toMatchObject({ reasonCode: 0x88, sessionPresent: false })
    expect(refused.ended).toBeDefined()
    broker.disconnect('a')
    await client.send()
    expect(client.goodbye).toBe(0x8d)
  })

  it('a reason code that the packet never has is refused, or passes it by', async () => {
    for (const fault of [out({ reasonCode: 0x97 }, 'pubrel'), into({ reasonCode: 0x92 }), into({ reasonCode: 0x97 }, 'pingreq')]) {
      expect(() => world({ faults: [fault] })).toThrow(/no such reason code/)
    }
    const { join, broker } = world()
    const client = await join('a')
    broker.faults.add(into({ reasonCode: 0x97 }, '*', 'every'))
    expect(await client.send({ type: 'pingreq' })).toEqual([{ type: 'pingresp' }])
  })

  it('replace: by another packet, or by bytes', async () => {
    const { join } = world({
      faults: [
        out({ replace: (packet: Packet) => ({ ...packet, packetId: 99 }) as never }),
        out({ replace: () => Uint8Array.of(0x40, 2, 0, 77) }, 'puback', 2),
      ],
    })
    const client = await join('a')
    expect(types(await client.send(qos1(1), qos1(2)))).toEqual(['puback 99', 'puback 77'])
  })

  it('every: each message once, and its retry passes', async () => {
    const { join, broker } = world({ faults: [out('close-before', 'puback', 'every')] })
    for (const packetId of [1, 2, 1]) {
      const client = await join('a', durable)
      expect(types(await client.send(qos1(packetId)))).toEqual([])
      const again = await join('a', durable)
      expect(types(await again.send(qos1(packetId, true)))).toEqual([`puback ${packetId}`])
    }
    expect(broker.accepted).toHaveLength(6)
    expect(broker.faults.fired).toHaveLength(3)
  })

  it('every: what loses nothing hits each time', async () => {
    const { join } = world({ faults: [out('twice', 'puback', 'every')] })
    const client = await join('a')
    for (let i = 0; i < 3; i++) expect(types(await client.send(qos1(1)))).toEqual(['puback 1', 'puback 1'])
  })

  it('a restart in the middle of a queue loses nothing that was not sent', async () => {
    const { join, dial, broker } = world({ queueQoS0: true, faults: [out('restart-keep', 'publish', 2)] })
    const client = await join('a', durable)
    await client.subscribe('t')
    await client.cut()
    for (const payload of ['1', '2', '3']) broker.publish({ topic: 't', payload })
    for (const payload of ['4', '5']) broker.publish({ topic: 't', payload, qos: 1 })
    // All of it was on its way when the stream was cut.
    expect(await dial().send({ type: 'connect', clientId: 'a', ...durable })).toEqual([])
    expect(broker.sessions.get('a')).toMatchObject({ connected: false, queued: 3 })
    const again = await join('a', durable)
    expect(again.take().map((packet) => (packet.type === 'publish' ? [text(packet.payload), packet.dup] : []))).toEqual([
      ['3', false],
      ['4', false],
      ['5', false],
    ])
  })

  it('counts over all clients from when it was added, or one client only; may be taken back', async () => {
    const { join, broker } = world()
    const a = await join('a')
    const b = await join('b')
    await a.send(qos1(1))
    broker.faults.add(out('drop', 'puback', 2))
    broker.faults.add({ ...out('drop', '*', 'every'), clientId: 'b' })
    const stop = broker.faults.add(out('drop', 'puback', 'every'))
    stop()
    expect(types(await a.send(qos1(1)))).toEqual(['puback 1'])
    expect(types(await b.send(qos1(1)))).toEqual([])
    expect(types(await a.send(qos1(2)))).toEqual(['puback 2'])
    expect(types(await b.send({ type: 'pingreq' }))).toEqual([])
    broker.faults.clear()
    expect(types(await b.send(qos1(2)))).toEqual(['puback 2'])
  })

  it('a message whose PUBLISH was lost on the way out is replayed', async () => {
    const { join, broker } = world({ faults: [out('close-before', 'publish')] })
    const client = await join('a', durable)
    await client.subscribe('t')
    broker.publish({ topic: 't', payload: 'x', qos: 2 })
    await client.send()
    expect(client.ended).toBeDefined()
    const again = await join('a', durable)
    expect(again.take().map((packet) => (packet.type === 'publish' ? [text(packet.payload), packet.dup] : []))).toEqual([['x', true]])
  })

  it('aliases survive lost packets: what was dropped defined none', async () => {
    const { join, broker } = world({ faults: [out('drop', 'publish')] })
    const client = await join('a', { properties: { topicAliasMaximum: 5 } })
    await client.subscribe('t')
    for (const payload of ['1', '2', '3']) broker.publish({ topic: 't', payload })
    await client.send()
    expect(client.received.slice(2)).toMatchObject([
      { topic: 't', properties: { topicAlias: 1 } },
      { topic: '', properties: { topicAlias: 1 } },
    ])
  })
})
