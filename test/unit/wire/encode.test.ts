/** What the encoder refuses, by name, and what it writes. */
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import * as client from '../../../src/wire/encode-client.js'
import { writeMessage, writePublish } from '../../../src/wire/encode-publish.js'
import type { PacketInput } from '../../../src/wire/index.js'
import { decode, encode, WireError } from '../../../src/wire/index.js'
import { Writer } from '../../../src/wire/writer.js'
import { hexOf, thrown } from './hex.js'

const { writeAck, writeConnect, writeDisconnect, writePackedAck, writeSubscribe } = client

const noStrings: unknown[] = ['a\0', 'a\ud800', '\udc00a', 42, null, {}, new Uint8Array(1)]
const badStrings = ['x'.repeat(65_536), 'ü'.repeat(32_768), ...noStrings]
const noBytes: unknown[] = ['text', [1, 2], null, new ArrayBuffer(2)]
const badIntegers: unknown[] = [
  ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY],
  '1',
  null,
  true,
  1n,
  {},
  [1],
]
const badObjects: unknown[] = [42, 'text', null, [], true]

const reasonString = { reasonString: 'r' }
const ack = { packetId: 1, properties: reasonString }
const will = {
  topic: 'w',
  payload: Uint8Array.of(2),
  qos: 1,
  retain: true,
  properties: { willDelayInterval: 5 },
}
const message = {
  dup: true,
  retain: true,
  payload: Uint8Array.of(1),
  properties: { contentType: 'x' },
}
const secret = { username: 'u', password: Uint8Array.of(1) }
const properties = { subscriptionIdentifiers: [1], userProperties: [['a', 'b']] }

const valid: Record<string, object> = {
  connect: { clientId: 'c', ...secret, will, properties: { sessionExpiryInterval: 1 } },
  connack: { sessionPresent: true, reasonCode: 0, properties: { serverKeepAlive: 1 } },
  publish: { topic: 'a', qos: 1, packetId: 1, ...message },
  puback: { reasonCode: 0x10, ...ack },
  pubrec: { reasonCode: 0x10, ...ack },
  pubrel: { reasonCode: 0x92, ...ack },
  pubcomp: { reasonCode: 0x92, ...ack },
  subscribe: { packetId: 1, subscriptions: [{ filter: 'a' }], properties },
  suback: { reasonCodes: [0], ...ack },
  unsubscribe: { packetId: 1, filters: ['a'], properties: { userProperties: [['a', 'b']] } },
  unsuback: { reasonCodes: [0], ...ack },
  disconnect: { reasonCode: 0x82, properties: reasonString },
  auth: { reasonCode: 0x18, properties: { authenticationMethod: 'm' } },
}
const types = Object.keys(valid)
const acknowledgements = ['puback', 'pubrec', 'pubrel', 'pubcomp']

const packetOf = (type: string, fields: object): PacketInput => ({ type, ...fields }) as PacketInput

/** A valid packet with one field replaced, the path in the form of `option`. */
function changed(type: string, path: string, value: unknown): PacketInput {
  const packet = structuredClone(packetOf(type, valid[type] as object)) as unknown as Record<
    string,
    unknown
  >
  const keys = path.replaceAll(/\[(\d)\]/g, '.$1').split('.')
  const last = keys.pop() as string
  let target = packet
  for (const key of keys) {
    target[key] ??= {}
    target = target[key] as Record<string, unknown>
  }
  target[last] = value
  return packet as unknown as PacketInput
}

function refusal(packet: PacketInput, protocolVersion: 4 | 5 = 5): WireError {
  const error = thrown(() => encode(packet, { protocolVersion }))
  expect(error).toBeInstanceOf(WireError)
  expect(error).toBeInstanceOf(MqttError)
  const { fault, reasonCode, outcome } = error as WireError
  expect([fault, reasonCode, outcome]).toEqual(['local', undefined, 'not-sent'])
  return error as WireError
}

function expectRefused(option: string, type: string, fields: object, version?: 4 | 5): void {
  expect(refusal(packetOf(type, fields), version).option).toBe(option)
}

/** A valid packet is refused by the name of this field with each of these values in it. */
function expectEachRefused(type: string, path: string, values: readonly unknown[]): void {
  for (const value of values) expect(refusal(changed(type, path, value)).option).toBe(path)
}

const expectTaken = (type: string, fields: object): void =>
  expect(() => encode(packetOf(type, fields))).not.toThrow()

/** Lines of a packet type and fields, @ for properties, as `[type, path]`. */
function fieldsOf(text: string): [type: string, path: string][] {
  return text.split(';').flatMap((line) => {
    const [type = '', ...paths] = line.trim().split(/\s+/)
    return paths.map((path): [string, string] => [type, path.replace('@', 'properties.')])
  })
}

it('the packets that the refusals start from are valid', () => {
  for (const type of types) expectTaken(type, valid[type] as object)
})

const strings =
  fieldsOf(`connect clientId username will.topic will.@contentType will.@responseTopic @authenticationMethod;
  connack @assignedClientIdentifier @responseInformation @serverReference @reasonString @authenticationMethod;
  publish topic @contentType @responseTopic; puback @reasonString; pubrec @reasonString; pubrel @reasonString;
  pubcomp @reasonString; subscribe subscriptions[0].filter; suback @reasonString; unsubscribe filters[0];
  unsuback @reasonString; disconnect @reasonString @serverReference; auth @authenticationMethod @reasonString`)
const binaries =
  fieldsOf(`connect password will.payload will.@correlationData; publish @correlationData;
  connack @authenticationData; auth @authenticationData`)
const flags = fieldsOf(`connect cleanStart will.retain; connack sessionPresent; publish dup retain;
  subscribe subscriptions[0].noLocal subscriptions[0].retainAsPublished`)

describe.each([
  ['string', strings, badStrings],
  ['binary value', binaries, [new Uint8Array(65_536), ...noBytes]],
  ['boolean', flags, [0, 1, 'true', null, {}]],
] as const)('a %s', (_kind, fields, bad) => {
  it.each(fields)('of %s, %s: is refused by name when it is none', (type, path) => {
    expectEachRefused(type, path, bad)
  })
})

describe('strings', () => {
  it.each(types)('refuses bad user properties in %s', (type) => {
    const pairs = badStrings.flatMap((value) => [[['a', value]], [[value, 'a']]])
    const lists = [[['a']], [['a', 'b', 'c']], ['ab'], [null], [{}]]
    expectEachRefused(type, 'properties.userProperties', [...pairs, ...lists, {}, 'ab', null, 42])
  })

  it('writes each width of UTF-8', () => {
    const topic = '\u0001\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}\ufeff'
    const bytes = encode({ type: 'publish', topic })
    expect(hexOf(bytes.subarray(4, -1))).toBe(hexOf(Buffer.from(topic)))
    expect(decode(bytes, { from: 'client' })).toMatchObject({ topic })
  })
})

describe('payloads', () => {
  it('are refused when they are no Uint8Array', () => {
    expectEachRefused('publish', 'payload', noBytes)
  })

  it('may be views with an offset, and Buffers', () => {
    for (const payload of [Uint8Array.of(0, 1, 2, 3).subarray(1, 3), Buffer.of(1, 2)]) {
      const packet = decode(encode({ type: 'publish', topic: 'a', payload }), { from: 'client' })
      expect(packet).toMatchObject({ payload: Uint8Array.of(1, 2) })
    }
  })
})

describe('integers', () => {
  const ranges: [lowest: number, highest: number, fields: string][] = [
    [
      0,
      1,
      'connect will.@payloadFormatIndicator @requestProblemInformation @requestResponseInformation',
    ],
    [0, 1, 'connack @maximumQoS @retainAvailable @wildcardSubscriptionAvailable'],
    [0, 1, 'connack @subscriptionIdentifierAvailable @sharedSubscriptionAvailable'],
    [0, 2, 'connect will.qos; subscribe subscriptions[0].qos subscriptions[0].retainHandling'],
    [0, 65_535, 'connect keepAlive @topicAliasMaximum; connack @serverKeepAlive'],
    [1, 65_535, 'connect @receiveMaximum; publish packetId @topicAlias; puback packetId'],
    [1, 65_535, 'subscribe packetId; suback packetId; unsubscribe packetId; unsuback packetId'],
    [
      0,
      4_294_967_295,
      'connect will.@willDelayInterval @sessionExpiryInterval; publish @messageExpiryInterval',
    ],
    [1, 4_294_967_295, 'connect @maximumPacketSize'],
  ]
  const rows = ranges.flatMap(([lowest, highest, fields]) => {
    return fieldsOf(fields).map(([type, path]) => [path, type, lowest, highest] as const)
  })

  it.each(rows)('%s of %s is taken from %i to %i', (path, type, lowest, highest) => {
    for (const value of [lowest, highest])
      expect(() => encode(changed(type, path, value))).not.toThrow()
    expectEachRefused(type, path, [...badIntegers, lowest - 1, highest + 1])
  })

  it('refuses a QoS that is none', () => {
    expectEachRefused('publish', 'qos', [...badIntegers, 3])
  })

  it('takes Subscription Identifiers from 1 to 268,435,455, one in a SUBSCRIBE', () => {
    const path = 'properties.subscriptionIdentifiers'
    for (const value of [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]) {
      const bytes = encode(changed('subscribe', path, [value]))
      expect(decode(bytes, { from: 'client' })).toHaveProperty(path, [value])
      expect(
        decode(encode(changed('publish', path, [value, 1])), { from: 'server' }),
      ).toHaveProperty(path, [value, 1])
    }
    expectEachRefused('subscribe', path, [[0], [268_435_456], [1, 2], [1.5], ['1'], 1, null])
  })

  it('refuses reason codes that are none, or none of the packet', () => {
    const bad = [...badIntegers, 256, 0x03, 0xff]
    for (const type of ['connack', ...acknowledgements, 'disconnect', 'auth'])
      expectEachRefused(type, 'reasonCode', bad)
    for (const type of acknowledgements)
      expectRefused('reasonCode', type, { packetId: 1, reasonCode: 1 })
    for (const type of ['suback', 'unsuback']) {
      expectEachRefused(type, 'reasonCodes[0]', bad)
      expectEachRefused(type, 'reasonCodes', [[], {}, null, 'x', 0, undefined])
    }
  })
})

describe('objects and lists', () => {
  it('refuses what is no object', () => {
    for (const value of badObjects) {
      expect(() => encode(value as never)).toThrow(
        expect.objectContaining({ fault: 'local', option: 'packet' }),
      )
    }
    expectEachRefused('connect', 'will', badObjects)
    expectEachRefused('subscribe', 'subscriptions[0]', badObjects)
    for (const type of types) expectEachRefused(type, 'properties', badObjects)
  })

  it('refuses lists that are none, or empty', () => {
    const bad = [[], {}, 'a', null, undefined, 42]
    expectEachRefused('subscribe', 'subscriptions', bad)
    expectEachRefused('unsubscribe', 'filters', bad)
  })

  it('refuses types that are none', () => {
    const names = ['CONNECT', '', 'reserved', '__proto__', 'toString']
    for (const type of [...names, undefined, null, 3, ['connect'], Object.create(null)])
      expectRefused('type', type, {})
    for (const protocolVersion of [3, 6, '5', null]) {
      const attempt = (): unknown => encode({ type: 'pingreq' }, { protocolVersion } as never)
      expect(attempt).toThrow(expect.objectContaining({ option: 'protocolVersion' }))
      expectEachRefused('connect', 'protocolVersion', [protocolVersion])
    }
    expectEachRefused('connect', 'protocolName', ['MQIsdp'])
  })

  it('refuses properties that the packet does not have, and names that are none', () => {
    const strangers =
      'connect @willDelayInterval; publish @reasonString @contenttype; disconnect @toString'
    for (const [type, path] of fieldsOf(strangers)) expectEachRefused(type, path, [1])
    const named = Object.defineProperty({}, '__proto__', { value: 'x', enumerable: true })
    expectRefused('properties.__proto__', 'publish', { topic: 'a', properties: named })
    // N36: what a caller names is escaped as well.
    const colored = refusal(packetOf('disconnect', { properties: { '\u001b[2J': 1 } }))
    expect(colored.message).not.toContain('\u001b')
  })
})

describe('topics and filters', () => {
  it('takes an empty topic with an alias, on 5.0', () => {
    const bytes = encode({ type: 'publish', topic: '', properties: { topicAlias: 1 } })
    expect(hexOf(bytes)).toBe('3006000003230001')
    expectRefused('topic', 'publish', { topic: '' }, 4)
    expectRefused('properties.topicAlias', 'publish', { topic: '', properties: { topicAlias: 0 } })
  })
})

describe('fields that depend on each other', () => {
  it('leaves out what is undefined, and a will without a payload is empty', () => {
    const given = { receiveMaximum: undefined, topicAliasMaximum: 1 }
    const bytes = encode({ type: 'connect', will: { topic: 'w' }, properties: given })
    expect(decode(bytes, { from: 'client' })).toMatchObject({
      will: { topic: 'w', payload: new Uint8Array(0), qos: 0, retain: false },
      properties: { topicAliasMaximum: 1 },
    })
    expect(encode({ type: 'connect', will: undefined })).toEqual(encode({ type: 'connect' }))
  })

  it('refuses DUP and packet identifiers at QoS 0 [MQTT-3.3.1-2] [MQTT-2.2.1-2]', () => {
    expectRefused('dup', 'publish', { topic: 'a', dup: true })
    expectRefused('packetId', 'publish', { topic: 'a', packetId: 1 })
    expectRefused('packetId', 'publish', { topic: 'a', qos: 1 })
    expectTaken('publish', { topic: 'a', packetId: 0 })
  })

  it('refuses Session Present in a refusal [MQTT-3.2.2-6]', () => {
    expectRefused('sessionPresent', 'connack', { sessionPresent: true, reasonCode: 0x87 })
    expectRefused('sessionPresent', 'connack', { sessionPresent: true, reasonCode: 5 }, 4)
  })

  it('refuses authentication without a method', () => {
    const method = 'properties.authenticationMethod'
    const data = { authenticationData: Uint8Array.of(1) }
    expectRefused(method, 'connect', { properties: data })
    for (const given of [data, undefined])
      expectRefused(method, 'auth', { reasonCode: 0x18, properties: given })
  })

  it('wants one side for all of a DISCONNECT [MQTT-3.14.2-2]', () => {
    const [expiry, reference] = [{ sessionExpiryInterval: 1 }, { serverReference: 'x' }]
    expectRefused('reasonCode', 'disconnect', { reasonCode: 0x8b, properties: expiry })
    expectRefused('reasonCode', 'disconnect', { reasonCode: 4, properties: reference })
    expectRefused('properties.serverReference', 'disconnect', {
      properties: { ...expiry, ...reference },
    })
    expectTaken('disconnect', { reasonCode: 4, properties: expiry })
    expectTaken('disconnect', { reasonCode: 0x9c, properties: reference })
  })
})

describe('3.1.1', () => {
  it('refuses what only 5.0 has', () => {
    for (const type of types.filter((name) => name !== 'auth' && name !== 'connect')) {
      expect(refusal(packetOf(type, valid[type] as object), 4).option).toMatch(
        /^(properties|reasonCode)/,
      )
    }
    expectRefused('properties', 'connect', {
      protocolVersion: 4,
      properties: { receiveMaximum: 1 },
    })
    expectRefused('will.properties', 'connect', { protocolVersion: 4, will })
    expectRefused('type', 'auth', { properties: { authenticationMethod: 'm' } }, 4)
    for (const reasonCode of [0x80, null])
      expectRefused('reasonCode', 'puback', { packetId: 1, reasonCode }, 4)
    for (const reasonCode of [4, 0x80]) expectRefused('reasonCode', 'disconnect', { reasonCode }, 4)
    expectRefused('reasonCodes', 'unsuback', { packetId: 1, reasonCodes: [0] }, 4)
    expectRefused('reasonCodes[0]', 'suback', { packetId: 1, reasonCodes: [0x87] }, 4)
    expectRefused('reasonCode', 'connack', { reasonCode: 6 }, 4)
    for (const option of [{ noLocal: true }, { retainAsPublished: true }, { retainHandling: 1 }]) {
      const subscriptions = [{ filter: 'a', ...option }]
      expectRefused('subscriptions[0]', 'subscribe', { packetId: 1, subscriptions }, 4)
    }
  })

  it('refuses a password without a user name, and an empty client identifier that keeps a session', () => {
    const { password } = secret
    expectRefused('password', 'connect', { protocolVersion: 4, password })
    expectRefused('clientId', 'connect', { protocolVersion: 4, cleanStart: false })
    expectTaken('connect', { password, cleanStart: false })
  })

  it('takes what says nothing: properties and codes that are undefined, options beyond the QoS that are the default', () => {
    const options = { noLocal: false, retainAsPublished: undefined, retainHandling: 0 }
    const silent = { reasonCode: undefined, properties: { reasonString: undefined } }
    const old = (type: string, fields: object): string =>
      hexOf(encode(packetOf(type, fields), { protocolVersion: 4 }))
    expect(old('publish', { topic: 'a', properties: { contentType: undefined } })).toBe(
      '3003000161',
    )
    expect(old('puback', { packetId: 1, ...silent })).toBe('40020001')
    expect(hexOf(encode(packetOf('puback', { packetId: 1, ...silent })))).toBe('40020001')
    expect(old('pubrel', { packetId: 1, reasonCode: 0 })).toBe('62020001')
    expect(old('disconnect', { reasonCode: undefined })).toBe('e000')
    const subscriptions = [{ filter: 'a', qos: 2, ...options }]
    expect(old('subscribe', { packetId: 1, subscriptions })).toBe('8206000100016102')
  })

  it('refuses subscriptions that are none, by name', () => {
    for (const subscriptions of ['a', undefined, null, { 0: { filter: 'a' }, length: 1 }, []]) {
      expectRefused('subscriptions', 'subscribe', { packetId: 1, subscriptions }, 4)
    }
    for (const subscriptions of [[null], [undefined], [{ filter: 'a' }, 'b']]) {
      expectRefused(
        `subscriptions[${subscriptions.length - 1}]`,
        'subscribe',
        { packetId: 1, subscriptions },
        4,
      )
    }
  })

  it('is what options say, unless a CONNECT says otherwise', () => {
    const level = (protocolVersion?: 5) =>
      encode({ type: 'connect', protocolVersion }, { protocolVersion: 4 })[8]
    expect([level(), level(5), encode({ type: 'connect' }, { protocolVersion: 4 })[8]]).toEqual([
      4, 5, 4,
    ])
  })
})

describe('sizes', () => {
  it('refuses a packet and a Property Length above 268,435,455 bytes before it takes the memory', () => {
    const before = process.memoryUsage().arrayBuffers
    const writer = new Writer()
    const settings = { qos: 0, retain: false, properties: undefined } as const
    const head = (length: number) => () =>
      writeMessage(writer, 'a', { length }, settings, 0, 0, false, 5, true)
    const tooLarge = { kind: 'too-large', code: 'ERR_PACKET_TOO_LARGE', fault: 'local' }
    expect(thrown(head(268_435_455 - 3))).toMatchObject({ ...tooLarge, option: 'payload' })
    expect(writer.length).toBe(0)
    expect(head(268_435_455 - 4)).not.toThrow()
    expect(hexOf(writer.take())).toBe('30ffffff7f00016100')
    const text = 'x'.repeat(65_535)
    const userProperties = Array.from({ length: 2049 }, (): [string, string] => [text, text])
    const error = refusal({ type: 'publish', topic: 'a', properties: { userProperties } })
    expect(error).toMatchObject({ ...tooLarge, option: 'properties.userProperties' })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
  })

  it('moves what was written when a length needs more bytes', () => {
    const round = (packet: PacketInput, from: 'client' | 'server') =>
      expect(decode(encode(packet), { from }))
    for (const size of [100, 120, 127, 128, 200, 16_000, 16_383, 16_384, 65_000]) {
      const fields = {
        topic: 'ä',
        properties: { contentType: 'x'.repeat(size) },
        payload: Uint8Array.of(1, 2),
      }
      round({ type: 'publish', ...fields }, 'server').toMatchObject(fields)
      const filters = ['f'.repeat(size), 'g']
      round({ type: 'unsubscribe', packetId: 1, filters }, 'client').toMatchObject({ filters })
    }
  })
})

describe('the writers of the client', () => {
  it('leave the writer as it was when they refuse', () => {
    const writer = new Writer()
    writer.raw(Uint8Array.of(1, 2, 3))
    const subscriptions = [{ filter: 'a' }, { filter: '' }]
    const attempts = [
      () => writeConnect(writer, { clientId: '\0' }),
      ...['a/#', 42, undefined, null, {}].map(
        (topic) => () => writePublish(writer, { topic: topic as never }, 5),
      ),
      () => writePublish(writer, { topic: 'a', payload: 'x' as never }, 5),
      () => writeAck(writer, 4, 0, 0, undefined, 5),
      () => writeAck(writer, 4, 1, 0x87, { reasonString: '\0' }, 5),
      () => writeSubscribe(writer, { packetId: 1, subscriptions }, 5),
      () => writeDisconnect(writer, 0x8b, undefined, 5),
    ]
    for (const attempt of attempts) {
      expect(attempt).toThrow(WireError)
      expect(writer.take()).toEqual(Uint8Array.of(1, 2, 3))
    }
  })

  it('refuse what only a server sends', () => {
    const writer = new Writer()
    const by = (option: string): object => expect.objectContaining({ option }) as object
    const publish = { topic: 'a', properties: { subscriptionIdentifiers: [1] } }
    expect(() => writePublish(writer, publish, 5)).toThrow(by('properties.subscriptionIdentifiers'))
    expect(() => writeAck(writer, 4, 1, 0x10, undefined, 5)).toThrow(by('reasonCode'))
    expect(() => writeDisconnect(writer, 0, { serverReference: 'x' }, 5)).toThrow(
      by('properties.serverReference'),
    )
  })

  it('write a topic from the cache as they wrote it first, and keep only so many', () => {
    const cached = new Writer(64, true)
    const plain = new Writer(64)
    const topics = Array.from({ length: 300 }, (_, index) => `plant/ü/${index}`)
    for (const topic of [...topics, ...topics, 'x'.repeat(300), 'x'.repeat(300)]) {
      for (const writer of [cached, plain])
        writePublish(writer, { topic, payload: Uint8Array.of(1) }, 5)
    }
    expect(cached.take()).toEqual(plain.take())
    for (let i = 0; i < 2; i++) {
      for (const topic of ['', 'a/#', 'a\0', 42]) {
        expect(() => writePublish(cached, { topic: topic as string }, 5)).toThrow(
          expect.objectContaining({ option: 'topic' }),
        )
      }
    }
  })

  it('write acknowledgements that are packed into integers as any others', () => {
    const [packed, plain] = [new Writer(0), new Writer(0)]
    for (const version of [4, 5] as const) {
      for (const type of [4, 5, 6, 7]) {
        for (const id of [1, 255, 256, 65_535]) {
          for (const reasonCode of type > 5 ? [0, 0x92] : [0, 0x80, 0x99]) {
            writePackedAck(packed, (type << 24) | (reasonCode << 16) | id, version)
            writeAck(plain, type, id, version === 4 ? 0 : reasonCode, undefined, version)
          }
        }
      }
    }
    expect(packed.take()).toEqual(plain.take())
  })

  it('write a message with its payload, as bytes or as ASCII, or up to it', () => {
    const settings = { qos: 1, retain: true, properties: undefined } as const
    const written = (payload: Uint8Array | string, headOnly: boolean): [boolean, string] => {
      const writer = new Writer(0, true)
      const done = writeMessage(writer, 'a', payload, settings, 5, 0, true, 5, headOnly)
      return [done, hexOf(writer.take())]
    }
    expect(written(Uint8Array.of(0x78, 0x79), false)).toEqual([true, '3b080001610005007879'])
    expect(written('xy', false)).toEqual([true, '3b080001610005007879'])
    expect(written('xy', true)).toEqual([true, '3b08000161000500'])
    expect(written('xü', false)).toEqual([false, ''])
  })

  it('write one packet behind the other, and start again after reset', () => {
    const writer = new Writer(1)
    writeAck(writer, 4, 258, 0, undefined, 5)
    writeAck(writer, 6, 1, 0x92, undefined, 5)
    writeAck(writer, 5, 1, 0, {}, 4)
    writePublish(writer, { topic: 'a', payload: Uint8Array.of(7) }, 4)
    expect(hexOf(writer.take())).toBe('40020102620300019250020001300400016107')
    writer.reset()
    expect(writer.take()).toHaveLength(0)
    writeDisconnect(writer, 0, undefined, 5)
    expect(hexOf(writer.take())).toBe('e000')
  })
})

describe('encode within encode', () => {
  it('a getter that encodes another packet changes neither', () => {
    const payload = Uint8Array.of(1, 2)
    const inner: Uint8Array[] = []
    const sly = {
      type: 'publish',
      topic: 'outer',
      get payload() {
        inner.push(encode({ type: 'puback', packetId: 7 }))
        return payload
      },
    } as const
    expect(encode(sly)).toEqual(encode({ type: 'publish', topic: 'outer', payload }))
    expect(inner.map(hexOf)).toEqual(['40020007'])
  })
})
