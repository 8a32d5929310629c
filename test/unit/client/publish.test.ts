/** PUBLISH as it leaves, and the exchanges at each QoS (sections 3.3, 4.3), against bytes written down by hand. */
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { Payload, PublishOptions, PublishProperties } from '../../../src/client/api/index.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected } from './harness.js'
import { ack, type StubWorld, stubbed, watched } from './stub.js'

const hex = (bytes: Iterable<number> | undefined): string => [...(bytes ?? [])].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
const utf8 = (text: string): string => hex(Buffer.from(text))
const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values)

/** The bytes of one publish. */
async function wire(topic: string, payload: Payload, options?: PublishOptions): Promise<string> {
  const world = await stubbed()
  world.client.publish(topic, payload, options)
  await world.settle()
  expect(world.stub.writes).toHaveLength(1)
  return hex(world.stub.writes[0])
}

async function refused(topic: unknown, payload: unknown, options?: unknown): Promise<{ error: unknown; world: StubWorld }> {
  const world = await stubbed()
  const result = watched(world.client.publish(topic as string, payload as Payload, options as PublishOptions))
  await world.settle()
  expect(result.state).toBe('rejected')
  expect(world.stub.writes).toHaveLength(0)
  return { error: result.error, world }
}

describe('bytes on the wire', () => {
  it('QoS 0: no identifier, flags and payload exact', async () => {
    expect(await wire('a/b', 'hi')).toBe('30 08 00 03 61 2f 62 00 68 69')
    expect(await wire('a/b', '')).toBe('30 06 00 03 61 2f 62 00')
    expect(await wire('a/b', 'hi', { retain: true })).toBe('31 08 00 03 61 2f 62 00 68 69')
    expect(await wire('a/b', '', { retain: true })).toBe('31 06 00 03 61 2f 62 00')
  })

  it('QoS 1 and 2 carry identifier 1 first, DUP 0 [MQTT-2.2.1-3] [MQTT-4.3.2-2] [MQTT-4.3.3-2]', async () => {
    expect(await wire('a', 'hi', { qos: 1 })).toBe('32 08 00 01 61 00 01 00 68 69')
    expect(await wire('a', 'hi', { qos: 2, retain: true })).toBe('35 08 00 01 61 00 01 00 68 69')
  })

  it('topic and text payload in UTF-8', async () => {
    expect(await wire('é/€/😀', 'ü😀')).toBe(`30 14 00 0b ${utf8('é/€/😀')} 00 ${utf8('ü😀')}`)
  })

  it('payload kinds', async () => {
    const base = bytes(9, 1, 2, 3, 9)
    const expected = '30 07 00 01 61 00 01 02 03'
    expect(await wire('a', base.subarray(1, 4))).toBe(expected)
    expect(await wire('a', new DataView(base.buffer, 1, 3))).toBe(expected)
    expect(await wire('a', Buffer.from([1, 2, 3]))).toBe(expected)
    expect(await wire('a', bytes(1, 2, 3).buffer)).toBe(expected)
    expect(await wire('a', Uint16Array.of(0x0201, 0x0403))).toBe('30 08 00 01 61 00 01 02 03 04')
    expect(await wire('a', new ArrayBuffer(0))).toBe('30 04 00 01 61 00')
    expect(await wire('a', new Uint8Array(0))).toBe('30 04 00 01 61 00')
  })

  it('bytes of another realm', async () => {
    expect(await wire('a', runInNewContext('Uint8Array.of(1, 2, 3)'))).toBe('30 07 00 01 61 00 01 02 03')
    expect(await wire('a', runInNewContext('Uint8Array.of(1, 2, 3).buffer'))).toBe('30 07 00 01 61 00 01 02 03')
  })

  it.each([undefined, null, 5, true, {}, ['a'], () => 'a', Symbol('a'), 5n])('anything else is refused: %s', async (payload) => {
    const { error } = await refused('a', payload)
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', option: 'payload', outcome: 'not-sent', fault: 'local' })
  })

  it.each<[PublishProperties, string]>([
    [{ payloadFormatIndicator: 0 }, '01 00'],
    [{ payloadFormatIndicator: 1 }, '01 01'],
    [{ messageExpiryInterval: 0 }, '02 00 00 00 00'],
    [{ messageExpiryInterval: 4_294_967_295 }, '02 ff ff ff ff'],
    [{ messageExpiryInterval: 66_051 }, '02 00 01 02 03'],
    [{ contentType: 'a/é' }, '03 00 04 61 2f c3 a9'],
    [{ contentType: '' }, '03 00 00'],
    [{ responseTopic: 'r/1' }, '08 00 03 72 2f 31'],
    [{ correlationData: bytes(0, 255, 7) }, '09 00 03 00 ff 07'],
    [{ correlationData: 'é' }, '09 00 02 c3 a9'],
    [{ correlationData: bytes(9, 1, 2, 9).subarray(1, 3) }, '09 00 02 01 02'],
    [{ correlationData: new ArrayBuffer(0) }, '09 00 00'],
    [{ userProperties: [['', '']] }, '26 00 00 00 00'],
    [
      {
        userProperties: [
          ['b', '1'],
          ['a', '2'],
          ['b', '1'],
          ['a', ''],
        ],
      },
      '26 00 01 62 00 01 31 26 00 01 61 00 01 32 26 00 01 62 00 01 31 26 00 01 61 00 00',
    ],
  ])('[MQTT-3.3.2-17] [MQTT-3.3.2-18] properties byte for byte: %j', async (properties, expected) => {
    const size = expected.split(' ').length
    expect(await wire('a', 'x', { properties })).toBe(
      `30 ${(size + 5).toString(16).padStart(2, '0')} 00 01 61 ${size.toString(16).padStart(2, '0')} ${expected} 78`,
    )
  })

  it('all properties at once, each exactly once', async () => {
    const all: PublishProperties = {
      userProperties: [['k', 'v']],
      correlationData: bytes(1),
      responseTopic: 'r',
      contentType: 'c',
      messageExpiryInterval: 1,
      payloadFormatIndicator: 1,
    }
    const sent = (await wire('a', 'x', { qos: 1, properties: all })).split(' ')
    expect(sent.slice(0, 8).join(' ')).toBe('32 21 00 01 61 00 01 1a')
    expect(sent.at(-1)).toBe('78')
    const block = sent.slice(8, -1).join(' ')
    for (const part of ['01 01', '02 00 00 00 01', '03 00 01 63', '08 00 01 72', '09 00 01 01', '26 00 01 6b 00 01 76']) expect(block).toContain(part)
    expect(block.split(' ')).toHaveLength(0x1a)
  })

  it('properties and options that are undefined count as left out', async () => {
    const options = { qos: undefined, retain: undefined, properties: { contentType: undefined }, flush: undefined, signal: undefined }
    expect(await wire('a', 'x', options)).toBe('30 05 00 01 61 00 78')
  })
})

describe('what is refused locally', () => {
  it.each<[string, unknown]>([
    ['empty', ''],
    ['with +', 'a/+'],
    ['with #', '#'],
    ['with NUL', 'a\u0000'],
    ['with a lone surrogate', '\ud800'],
    ['of 65,536 bytes', 'a'.repeat(65_536)],
    ['a number', 5],
    ['undefined', undefined],
    ['null', null],
  ])('topic %s [MQTT-3.3.2-2] [MQTT-4.7.3-1]', async (_, topic) => {
    for (const qos of [0, 1, 2]) {
      const { error } = await refused(topic, 'x', { qos })
      expect(error).toMatchObject({ code: 'ERR_INVALID_TOPIC', outcome: 'not-sent', fault: 'local' })
    }
  })

  it('a topic of 65,535 bytes is allowed', async () => {
    const world = await stubbed()
    world.client.publish('a'.repeat(65_535), 'x')
    await world.settle()
    expect((world.stub.packets[0] as PublishPacket).topic).toHaveLength(65_535)
  })

  it.each<[unknown, string]>([
    [{ qos: 3 }, 'qos'],
    [{ qos: '1' }, 'qos'],
    [{ retain: 1 }, 'retain'],
    [{ properties: 5 }, 'properties'],
    [{ properties: { topicAlias: 1 } }, 'properties.topicAlias'],
    [{ properties: { subscriptionIdentifiers: [1] } }, 'properties.subscriptionIdentifiers'],
    [{ properties: { reasonString: 'x' } }, 'properties.reasonString'],
    [{ properties: { payloadFormatIndicator: 2 } }, 'properties.payloadFormatIndicator'],
    [{ properties: { messageExpiryInterval: -1 } }, 'properties.messageExpiryInterval'],
    [{ properties: { messageExpiryInterval: 4_294_967_296 } }, 'properties.messageExpiryInterval'],
    [{ properties: { messageExpiryInterval: 1.5 } }, 'properties.messageExpiryInterval'],
    [{ properties: { contentType: 5 } }, 'properties.contentType'],
    [{ properties: { contentType: 'a\u0000' } }, 'properties.contentType'],
    [{ properties: { responseTopic: 'a/#' } }, 'properties.responseTopic'],
    [{ properties: { responseTopic: '' } }, 'properties.responseTopic'],
    [{ properties: { correlationData: 5 } }, 'properties.correlationData'],
    [{ properties: { userProperties: { a: 'b' } } }, 'properties.userProperties'],
    [{ properties: { userProperties: [['a', 5]] } }, 'properties.userProperties[0]'],
    [{ properties: { userProperties: [['a']] } }, 'properties.userProperties[0]'],
    [{ flush: 'yes' }, 'flush'],
    [{ ackTimeout: -1 }, 'ackTimeout'],
    [{ ackTimeout: Number.NaN }, 'ackTimeout'],
    [{ signal: {} }, 'signal'],
    [{ dup: true }, 'dup'],
    [5, 'options'],
  ])('option %j names %s [MQTT-3.3.2-14]', async (options, option) => {
    const { error } = await refused('a', 'x', options)
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent', fault: 'local', option })
  })

  it.each<[string, PublishProperties]>([
    ['correlationData', { correlationData: new Uint8Array(65_536) }],
    ['contentType', { contentType: 'x'.repeat(65_536) }],
    ['userProperties', { userProperties: [['a', 'x'.repeat(65_536)]] }],
  ])('%s over 65,535 bytes', async (name, properties) => {
    const { error } = await refused('a', 'x', { properties })
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent', option: expect.stringContaining(`properties.${name}`) })
  })

  it('a packet beyond what the protocol can carry is too large', async () => {
    const { error } = await refused('a', new Uint8Array(268_435_456), { qos: 1 })
    expect(error).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' })
  })

  it('a call is never written to', async () => {
    const options = Object.freeze({ qos: 1 as const, properties: Object.freeze({ userProperties: [['a', 'b']] as [string, string][] }) })
    expect(await wire('a', 'x', options)).toContain('26 00 01 61 00 01 62')
    expect(options).toEqual({ qos: 1, properties: { userProperties: [['a', 'b']] } })
  })
})

describe('QoS 0', () => {
  it('resolves with one shared frozen receipt when handed to the transport', async () => {
    const world = await connected()
    const [first, second] = await Promise.all([world.client.publish('a', 'x'), world.client.publish('b', 'y')])
    expect(first).toEqual({ reasonCode: 0, reasonName: 'Success', reasonString: undefined, userProperties: [], packetId: undefined })
    expect(second).toBe(first)
    expect(Object.isFrozen(first)).toBe(true)
    await world.settle()
    expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(['a', 'b'])
  })
})

describe('QoS 1', () => {
  it('resolves at PUBACK, not before, with code and identifier; never sent again by time', async () => {
    const world = await stubbed({ keepAlive: false })
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.clock.advance(60_000)
    expect(result.state).toBe('pending')
    await world.deliver(ack('puback', 1))
    expect(result.value).toEqual({ reasonCode: 0, reasonName: 'Success', reasonString: undefined, userProperties: [], packetId: 1 })
    expect(Object.isFrozen(result.value)).toBe(true)
    expect(world.stub.packets.filter((packet) => packet.type === 'publish')).toHaveLength(1)
  })

  it.each(['40 02 00 01', '40 03 00 01 00', '40 04 00 01 00 00', '40 08 00 01 00 04 1f 00 01 68'])('PUBACK %s means success', async (puback) => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.settle()
    await world.sendBytes(puback)
    expect(result.value).toMatchObject({ reasonCode: 0, packetId: 1 })
  })

  it('PUBACK 0x10 is success with its code, reason string and user properties', async () => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.settle()
    const userProperties: [string, string][] = [
      ['a', '1'],
      ['a', '2'],
    ]
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0x10, properties: { reasonString: 'nobody', userProperties } })
    expect(result.value).toEqual({ reasonCode: 0x10, reasonName: 'No matching subscribers', reasonString: 'nobody', userProperties, packetId: 1 })
  })

  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])('PUBACK 0x%s rejects, frees the identifier, sends nothing again', async (reasonCode) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    const next = watched(world.client.publish('b', 'y', { qos: 1 }))
    await world.settle()
    await world.send({ type: 'puback', packetId: 1, reasonCode, properties: { reasonString: 'no' } })
    expect(result.error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', outcome: 'refused', fault: 'remote', reasonCode, reasonString: 'no' })
    expect((result.error as { reasonName: string }).reasonName).not.toBe('unknown')
    expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(['a', 'b'])
    await world.send({ type: 'puback', packetId: 2, reasonCode: 0, properties: {} })
    expect(next.state).toBe('fulfilled')
    expect(world.client.state).toBe('connected')
  })

  it.each(['40 03 00 01 01', '40 03 00 01 92', '40 03 00 01 ff'])('PUBACK with a code that is not its own: %s', async (puback) => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.settle()
    await world.sendBytes(puback)
    // The vectors take either; the exact code is what the application sees.
    const { reasonCode } = world.peer.last('disconnect')
    expect([0x81, 0x82]).toContain(reasonCode)
    expect(result.error).toMatchObject({ outcome: 'unknown', fault: 'remote', reasonCode })
    expect(world.client.state).toBe('closed')
  })
})

describe('QoS 2', () => {
  it('PUBLISH, PUBREC, PUBREL, PUBCOMP [MQTT-4.3.3-1] [MQTT-4.3.3-4]', async () => {
    const world = await stubbed()
    const result = watched(world.client.publish('a', 'x', { qos: 2 }))
    await world.settle()
    await world.deliver(ack('pubrec', 1))
    expect(hex(world.stub.writes.at(-1))).toBe('62 02 00 01')
    expect(result.state).toBe('pending')
    await world.deliver(ack('pubcomp', 1))
    expect(result.value).toEqual({ reasonCode: 0, reasonName: 'Success', reasonString: undefined, userProperties: [], packetId: 1 })
  })

  it.each([
    ['50 02 00 01', '70 02 00 01', 0],
    ['50 03 00 01 00', '70 03 00 01 00', 0],
    ['50 03 00 01 10', '70 04 00 01 00 00', 0x10],
    ['50 08 00 01 00 04 1f 00 01 68', '70 08 00 01 00 04 1f 00 01 68', 0],
  ])('PUBREC %s and PUBCOMP %s are accepted, with reason code %i', async (pubrec, pubcomp, reasonCode) => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 2 }))
    await world.settle()
    await world.sendBytes(pubrec)
    expect(world.peer.all('pubrel')).toHaveLength(1)
    await world.sendBytes(pubcomp)
    expect(result.value).toMatchObject({ reasonCode, packetId: 1 })
  })

  it('a second PUBREC gets PUBREL again, PUBLISH never', async () => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 2 }))
    await world.settle()
    await world.send(ack('pubrec', 1), ack('pubrec', 1))
    await world.send(ack('pubrec', 1))
    expect(world.peer.all('pubrel').map((packet) => [packet.packetId, packet.reasonCode])).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ])
    expect(world.peer.all('publish')).toHaveLength(1)
    await world.send(ack('pubcomp', 1))
    expect(result.state).toBe('fulfilled')
  })

  it('PUBCOMP 0x92 completes, flagged', async () => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 2 }))
    await world.settle()
    await world.send(ack('pubrec', 1), ack('pubcomp', 1, 0x92))
    expect(result.value).toMatchObject({ reasonCode: 0x92, reasonName: 'Packet Identifier not found', packetId: 1 })
  })

  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])(
    'PUBREC 0x%s rejects and ends the exchange without PUBREL [MQTT-4.3.3-4]',
    async (reasonCode) => {
      const world = await connected()
      const result = watched(world.client.publish('a', 'x', { qos: 2 }))
      await world.settle()
      await world.send(ack('pubrec', 1, reasonCode))
      expect(result.error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', outcome: 'refused', fault: 'remote', reasonCode })
      expect(world.peer.all('pubrel')).toHaveLength(0)
      expect(world.client.state).toBe('connected')
    },
  )

  it('ten at once complete with distinct identifiers', async () => {
    const world = await connected({}, agreeable)
    const all = Array.from({ length: 10 }, (_, index) => world.client.publish('a', `${index}`, { qos: 2 }))
    await world.settle()
    const receipts = await Promise.all(all)
    expect(new Set(receipts.map((receipt) => receipt.packetId)).size).toBe(10)
    expect(world.peer.all('pubrel')).toHaveLength(10)
  })
})

describe('acknowledgements that do not fit', () => {
  it.each<[string, 1 | 2, string]>([
    ['PUBACK for QoS 2', 2, '40 02 00 01'],
    ['PUBREC for QoS 1', 1, '50 02 00 01'],
    ['PUBCOMP for QoS 1', 1, '70 02 00 01'],
    ['PUBCOMP before PUBREC', 2, '70 02 00 01'],
  ])('%s ends the connection with 0x82', async (_, qos, wrong) => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos }))
    await world.settle()
    await world.sendBytes(wrong)
    expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
    expect(result.error).toMatchObject({ outcome: 'unknown', reasonCode: 0x82 })
    expect(world.client.state).toBe('closed')
  })

  it('PUBACK and PUBCOMP for unknown identifiers are ignored; the link stays usable', async () => {
    const world = await connected()
    await world.send(ack('puback', 7), ack('pubcomp', 8), ack('puback', 65_535))
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect'])
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.settle()
    await world.send(ack('puback', 1))
    expect(result.state).toBe('fulfilled')
  })

  it('PUBREC for an unknown identifier gets PUBREL 0x92, an error PUBREC nothing', async () => {
    const world = await connected()
    await world.send(ack('pubrec', 7), ack('pubrec', 8, 0x80))
    expect(world.peer.all('pubrel')).toEqual([{ type: 'pubrel', packetId: 7, reasonCode: 0x92, properties: {} }])
  })

  it('a flood of them leaves the link usable', async () => {
    const world = await connected()
    for (let round = 0; round < 20; round++) await world.send(...Array.from({ length: 500 }, (_, index) => ack('puback', index + 1)))
    const result = watched(world.client.publish('a', 'x', { qos: 2 }))
    await world.settle()
    await world.send(ack('pubrec', 1), ack('pubcomp', 1))
    expect(result.value).toMatchObject({ packetId: 1 })
  })

  it('an acknowledgement that comes twice settles once', async () => {
    const world = await connected()
    const result = watched(world.client.publish('a', 'x', { qos: 1 }))
    const other = watched(world.client.publish('a', 'y', { qos: 1 }))
    await world.settle()
    await world.send(ack('puback', 1), ack('puback', 1, 0x80))
    expect(result).toMatchObject({ state: 'fulfilled', settled: 1, value: { reasonCode: 0 } })
    expect(other.state).toBe('pending')
  })
})

it('order within a class is the order of the calls, and large payloads arrive whole', async () => {
  const world = await connected({}, accepting(), { split: 16_384 })
  const large = Uint8Array.from({ length: 1_048_576 }, (_, index) => (index * 31 + (index >> 8)) & 0xff)
  const sizes = [1, 32_767, 32_768, 10, 65_536, 3, 1_048_576, 2]
  for (const [index, size] of sizes.entries()) {
    world.client.publish(`q1/${index}`, large.subarray(0, size), { qos: 1 })
    world.client.publish(`q0/${index}`, large.subarray(0, size))
  }
  await world.settle()
  for (const kind of ['q0', 'q1']) {
    const publishes = world.peer.all('publish').filter((packet) => packet.topic.startsWith(kind))
    expect(publishes.map((packet) => packet.topic)).toEqual(sizes.map((_, index) => `${kind}/${index}`))
    for (const [index, packet] of publishes.entries()) expect(Buffer.compare(packet.payload, large.subarray(0, sizes[index]))).toBe(0)
  }
})
