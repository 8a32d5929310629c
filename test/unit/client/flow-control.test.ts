/** Receive Maximum and packet identifiers of outgoing exchanges (sections 2.2.1, 4.9), and the limits that CONNACK sets. */
import { describe, expect, it } from 'vitest'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { Random } from '../../world/random.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { ack, StubWorld, stubbed, watched } from './stub.js'

/** Topics of the publishes that reached the peer. */
const topics = (world: World): string[] => world.peer.all('publish').map((packet) => packet.topic)

describe('quota', () => {
  it('Receive Maximum 3, six QoS 1: never more than three open, refilled one for one [MQTT-4.9.0-2] [MQTT-3.3.4-9]', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 3 }))
    const all = Array.from({ length: 6 }, (_, index) => watched(world.client.publish(`t/${index}`, 'x', { qos: 1 })))
    await world.settle()
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2'])
    for (let done = 1; done <= 6; done++) {
      await world.send(ack('puback', world.peer.all('publish')[done - 1]?.packetId as number))
      expect(topics(world)).toHaveLength(Math.min(6, 3 + done))
      expect(all.filter((one) => one.state === 'fulfilled')).toHaveLength(done)
    }
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2', 't/3', 't/4', 't/5'])
  })

  it('an acknowledgement out of order frees one place as well', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 2 }))
    for (let index = 0; index < 4; index++) world.client.publish(`t/${index}`, 'x', { qos: 1 })
    await world.settle()
    await world.send(ack('puback', 2))
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2'])
    await world.send(ack('puback', 3), ack('puback', 1))
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2', 't/3'])
  })

  it('Receive Maximum 1, five QoS 2: strictly one exchange at a time', async () => {
    const world = await connected({}, (packet) => (packet.type === 'connect' ? accepting({ receiveMaximum: 1 })(packet) : agreeable(packet)))
    const all = Array.from({ length: 5 }, (_, index) => world.client.publish(`t/${index}`, 'x', { qos: 2 }))
    await world.settle()
    await Promise.all(all)
    expect(world.peer.received.slice(1).map((packet) => packet.type)).toEqual(Array.from({ length: 5 }, () => ['publish', 'pubrel']).flat())
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2', 't/3', 't/4'])
  })

  it('Receive Maximum 2, five QoS 2: PUBCOMP frees the place, PUBREC does not', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 2 }))
    for (let index = 0; index < 5; index++) world.client.publish(`t/${index}`, 'x', { qos: 2 })
    await world.settle()
    await world.send(ack('pubrec', 1), ack('pubrec', 2))
    expect(world.peer.all('pubrel')).toHaveLength(2)
    expect(topics(world)).toHaveLength(2)
    await world.send(ack('pubcomp', 2))
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2'])
  })

  it('an error PUBREC frees it too [MQTT-4.9.0-2]', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 2 }))
    for (let index = 0; index < 4; index++) world.client.publish(`t/${index}`, 'x', { qos: 2 })
    await world.settle()
    await world.send(ack('pubrec', 1, 0x97))
    expect(topics(world)).toEqual(['t/0', 't/1', 't/2'])
    await world.send(ack('pubrec', 2, 0x10))
    expect(topics(world)).toHaveLength(3)
  })

  it('a repeated PUBREC or a stray PUBCOMP frees nothing twice', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    for (let index = 0; index < 4; index++) world.client.publish(`t/${index}`, 'x', { qos: 2 })
    await world.settle()
    await world.send(ack('pubrec', 1), ack('pubrec', 1), ack('pubcomp', 1), ack('pubcomp', 1), ack('puback', 1), ack('pubrec', 1, 0x80))
    expect(topics(world)).toEqual(['t/0', 't/1'])
  })

  it('[MQTT-4.9.0-3] without quota QoS 0, SUBSCRIBE, UNSUBSCRIBE, PINGREQ and PUBREL still go out', async () => {
    const world = await connected({ keepAlive: 10 }, accepting({ receiveMaximum: 1 }))
    world.client.publish('q2', 'x', { qos: 2 })
    world.client.publish('waits', 'x', { qos: 1 })
    const zero = watched(world.client.publish('q0', 'x'))
    world.client.subscription('s')
    world.client.unsubscribe('u').catch(() => undefined)
    expect(world.client.post('posted', 'x')).toBe(true)
    await world.settle()
    expect(zero.state).toBe('fulfilled')
    await world.send(ack('pubrec', 1))
    await world.clock.advance(10_000)
    expect(topics(world)).toEqual(['q2', 'q0', 'posted'])
    expect(world.peer.received.map((packet) => packet.type)).toEqual(expect.arrayContaining(['subscribe', 'unsubscribe', 'pingreq', 'pubrel']))
  })

  it('QoS 1 and 2 share one line: none overtakes another', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const order = [1, 2, 2, 1, 1, 2] as const
    order.forEach((qos, index) => {
      world.client.publish(`t/${index}`, 'x', { qos })
    })
    world.client.publish('q0', 'x')
    await world.settle()
    expect(topics(world)).toEqual(['t/0', 'q0'])
    for (const [index, qos] of order.entries())
      await world.send(...(qos === 1 ? [ack('puback', index + 1)] : [ack('pubrec', index + 1), ack('pubcomp', index + 1)]))
    expect(topics(world)).toEqual(['t/0', 'q0', 't/1', 't/2', 't/3', 't/4', 't/5'])
  })

  it('maxInflight lowers the window, the Receive Maximum still holds', async () => {
    const low = await connected({ outbound: { maxInflight: 2 } }, accepting({ receiveMaximum: 5 }))
    const high = await connected({ outbound: { maxInflight: 5 } }, accepting({ receiveMaximum: 2 }))
    for (const world of [low, high]) {
      for (let index = 0; index < 6; index++) world.client.publish(`t/${index}`, 'x', { qos: 1 })
      await world.settle()
      expect(topics(world)).toHaveLength(2)
    }
  })

  it('Receive Maximum 0 in CONNACK is a protocol error', async () => {
    const world = new World()
    const connecting = watched(world.client.connect())
    await world.settle()
    await world.sendBytes('20 06 00 00 03 21 00 00')
    expect(connecting.error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR', reasonCode: 0x82, fault: 'remote' })
    expect(world.peer.ended).toBeDefined()
  })
})

describe('packet identifiers', () => {
  // All calls are made in one turn, in which no transport can take them.
  const roomy = { outbound: { maxQueuedMessages: 100_000 } }

  it('70,000 QoS 1 publishes with acks withheld: exactly 65,535 identifiers, none twice, none 0', async () => {
    const world = await connected(roomy, accepting(), { split: 65_536 })
    const all = Array.from({ length: 70_000 }, () => watched(world.client.publish('t', '', { qos: 1 })))
    await world.settle()
    const ids = world.peer.all('publish').map((packet) => packet.packetId as number)
    expect(ids).toHaveLength(65_535)
    expect(new Set(ids).size).toBe(65_535)
    expect(ids[0]).toBe(1)
    expect(ids.at(-1)).toBe(65_535)
    expect(world.client.outbound.size).toBe(4465)
    expect(all.filter((one) => one.state !== 'pending')).toHaveLength(0)
    // A freed identifier, and only that, is used again.
    await world.send(ack('puback', 30_000))
    expect(world.peer.last('publish').packetId).toBe(30_000)
    expect(world.peer.all('publish')).toHaveLength(65_536)
    expect(all.filter((one) => one.state === 'fulfilled')).toHaveLength(1)
  })

  it('without identifiers SUBSCRIBE waits for one as well', async () => {
    const world = await connected(roomy, accepting(), { split: 65_536 })
    for (let index = 0; index < 65_535; index++) world.client.publish('t', '', { qos: 1 })
    await world.settle()
    const subscription = world.client.subscription('s')
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(0)
    await world.send(ack('puback', 9))
    expect(world.peer.last('subscribe').packetId).toBe(9)
    await world.send({ type: 'suback', packetId: 9, reasonCodes: [0], properties: {} })
    expect(await subscription.ready).toBe(subscription)
  })

  it('identifiers wrap to 1 and skip those in use; random holes are all reused', async () => {
    const world = await stubbed()
    const held = new Set<number>()
    const random = new Random(7)
    for (let sent = 0; sent < 140_000; sent += 1000) {
      for (let index = 0; index < 1000; index++) world.client.publish('t', '', { qos: 1 })
      await world.settle()
      const ids = world.stub.packets.map((packet) => (packet as PublishPacket).packetId as number)
      world.forget()
      for (const id of ids) {
        expect(id > 0 && id <= 65_535 && !held.has(id)).toBe(true)
        held.add(id)
      }
      const freed = [...held].filter(() => random.chance(0.9))
      for (const id of freed) held.delete(id)
      await world.deliver(...freed.map((id) => ack('puback', id)))
    }
  })

  it('PUBLISH, SUBSCRIBE and UNSUBSCRIBE never have one identifier at the same time [MQTT-2.2.1-3]', async () => {
    const world = await connected()
    for (let index = 0; index < 5; index++) {
      world.client.publish('t', 'x', { qos: index % 2 === 0 ? 1 : 2 })
      world.client.subscription(`s/${index}`)
      world.client.unsubscribe(`u/${index}`).catch(() => undefined)
    }
    await world.settle()
    const ids = world.peer.received.flatMap((packet) => ('packetId' in packet && packet.packetId !== undefined ? [packet.packetId] : []))
    expect(ids.length).toBeGreaterThanOrEqual(7)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('the identifier of a timed-out or aborted publish is not reused before its acknowledgement', async () => {
    const world = await connected({ ...roomy, keepAlive: false }, accepting(), { split: 65_536 })
    const abort = new AbortController()
    const one = watched(world.client.publish('t', '', { qos: 1, ackTimeout: 100 }))
    const two = watched(world.client.publish('t', '', { qos: 2, signal: abort.signal }))
    await world.clock.advance(100)
    abort.abort()
    await world.settle()
    expect([one.error, two.error]).toMatchObject([{ code: 'ERR_TIMEOUT' }, { code: 'ERR_ABORTED' }])
    for (let index = 0; index < 65_534; index++) world.client.publish('t', '', { qos: 1 })
    await world.settle()
    const ids = world.peer.all('publish').map((packet) => packet.packetId)
    expect(ids).toHaveLength(65_535)
    expect(new Set(ids).size).toBe(65_535)
    await world.send(ack('puback', 1))
    expect(world.peer.last('publish').packetId).toBe(1)
  })
})

describe('what CONNACK limits', () => {
  const narrow = { receiveMaximum: 1, retainAvailable: 0, maximumPacketSize: 64 }

  it.each([0, 1] as const)('Maximum QoS %i: each excess is refused locally, the rest flows, the connection stays', async (maximumQoS) => {
    const world = await connected({}, accepting({ ...narrow, maximumQoS }))
    const before = world.peer.bytes.length
    const excess = [
      world.client.publish('t', 'x', { qos: 2 }),
      world.client.publish('t', 'x', { qos: 0, retain: true }),
      // 2 header bytes, 3 topic, 1 properties: 59 bytes of payload make 65.
      world.client.publish('t', new Uint8Array(59)),
      ...(maximumQoS === 0 ? [world.client.publish('t', 'x', { qos: 1 })] : [world.client.publish('t', new Uint8Array(57), { qos: 1 })]),
    ].map(watched)
    await world.settle()
    expect(excess.map((one) => one.error)).toMatchObject([
      { code: 'ERR_QOS_UNSUPPORTED', option: 'qos', outcome: 'not-sent', fault: 'local' },
      { code: 'ERR_RETAIN_UNSUPPORTED', option: 'retain', outcome: 'not-sent' },
      { code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' },
      { code: maximumQoS === 0 ? 'ERR_QOS_UNSUPPORTED' : 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' },
    ])
    expect(world.peer.bytes).toHaveLength(before)
    const zero = watched(world.client.publish('t', new Uint8Array(58)))
    await world.settle()
    expect(zero.state).toBe('fulfilled')
    expect(world.peer.bytes).toHaveLength(before + 64)
    if (maximumQoS === 1) {
      for (let index = 0; index < 3; index++) world.client.publish(`q/${index}`, new Uint8Array(50), { qos: 1 })
      await world.settle()
      expect(topics(world)).toEqual(['t', 'q/0'])
    }
    expect(world.client.state).toBe('connected')
  })

  it('post is held to the same limits', async () => {
    const world = await connected({}, accepting({ maximumPacketSize: 64 }))
    expect(() => world.client.post('t', new Uint8Array(59))).toThrow(expect.objectContaining({ code: 'ERR_PACKET_TOO_LARGE' }))
    expect(world.client.post('t', new Uint8Array(58))).toBe(true)
    await world.settle()
    expect(world.peer.all('publish')).toHaveLength(1)
  })

  it('large payloads count with their head', async () => {
    const world = await stubbed({}, { maximumPacketSize: 40_000 })
    const large = watched(world.client.publish('t', new Uint8Array(40_000), { qos: 1 }))
    const zero = watched(world.client.publish('t', new Uint8Array(40_000)))
    await world.settle()
    expect([large.error, zero.error]).toMatchObject([{ code: 'ERR_PACKET_TOO_LARGE' }, { code: 'ERR_PACKET_TOO_LARGE' }])
    expect(world.stub.writes).toHaveLength(0)
    world.client.publish('t', new Uint8Array(39_990), { qos: 1 })
    await world.settle()
    // The refused one left no hole in what follows.
    expect(world.stub.packets).toMatchObject([{ type: 'publish', qos: 1 }])
  })

  it('a refused publish takes no quota and no identifier', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1, maximumPacketSize: 64 }))
    for (let index = 0; index < 10; index++) world.client.publish('t', new Uint8Array(60), { qos: 2 })
    world.client.publish('ok', 'x', { qos: 1 })
    await world.settle()
    expect(topics(world)).toEqual(['ok'])
  })

  it('the option that is named is the one that is wrong', async () => {
    const world = await connected({}, accepting({ maximumQoS: 0 }))
    await expect(world.client.publish('t', 'x', { qos: 1, retain: true })).rejects.toMatchObject({ code: 'ERR_QOS_UNSUPPORTED', option: 'qos' })
  })

  it('an item queued before CONNACK that breaks its limits is rejected alone', async () => {
    const world = new StubWorld({ outbound: { offline: { qos0: 'queue' } } })
    const calls = [
      world.client.publish('t/0', 'x', { qos: 1 }),
      world.client.publish('t/1', 'x', { qos: 2 }),
      world.client.publish('t/2', 'x', { qos: 1, retain: true }),
      world.client.publish('t/3', new Uint8Array(100), { qos: 1 }),
      world.client.publish('t/4', 'x', { retain: true }),
      world.client.publish('t/5', 'x', { qos: 1 }),
      world.client.publish('t/6', 'x'),
    ].map(watched)
    const connecting = world.client.connect()
    await world.settle()
    world.forget()
    world.stub.deliver({
      type: 'connack',
      sessionPresent: false,
      reasonCode: 0,
      properties: { maximumQoS: 1, retainAvailable: 0, maximumPacketSize: 64 },
    })
    await connecting
    await world.settle()
    expect(calls.map((one) => (one.error as { code: string } | undefined)?.code ?? one.state)).toEqual([
      'pending',
      'ERR_QOS_UNSUPPORTED',
      'ERR_RETAIN_UNSUPPORTED',
      'ERR_PACKET_TOO_LARGE',
      'ERR_RETAIN_UNSUPPORTED',
      'pending',
      'fulfilled',
    ])
    expect(world.stub.packets.map((packet) => (packet as PublishPacket).topic).sort()).toEqual(['t/0', 't/5', 't/6'])
    expect(world.client.state).toBe('connected')
  })
})
