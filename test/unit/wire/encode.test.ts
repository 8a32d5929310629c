import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { writeAck, writeConnect, writeDisconnect, writePackedAck, writeSubscribe } from '../../../src/wire/encode-client.js'
import { writeMessage, writePublish } from '../../../src/wire/encode-publish.js'
import type { PacketInput } from '../../../src/wire/index.js'
import { decode, encode, WireError } from '../../../src/wire/index.js'
import { Writer } from '../../../src/wire/writer.js'

const tooLong = 'x'.repeat(65_536)
const tooManyBytes = 'ü'.repeat(32_768)
const badStrings: [string, unknown][] = [
  ['too long', tooLong],
  ['too long in UTF-8', tooManyBytes],
  ['U+0000', 'a\0'],
  ['a high surrogate', 'a\ud800'],
  ['a low surrogate', '\udc00a'],
  ['a number', 42],
  ['null', null],
  ['an object', {}],
  ['bytes', new Uint8Array(1)],
]
const badBytes: [string, unknown][] = [
  ['too long', new Uint8Array(65_536)],
  ['a string', 'text'],
  ['a list', [1, 2]],
  ['null', null],
  ['an ArrayBuffer', new ArrayBuffer(2)],
]
const badIntegers: unknown[] = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null, true, 1n, {}, [1]]
const badFlags: unknown[] = [0, 1, 'true', null, {}]
const badObjects: unknown[] = [42, 'text', null, [], true]

const valid: Record<string, PacketInput> = {
  connect: {
    type: 'connect',
    clientId: 'c',
    username: 'u',
    password: Uint8Array.of(1),
    will: { topic: 'w', payload: Uint8Array.of(2), qos: 1, retain: true, properties: { willDelayInterval: 5 } },
    properties: { sessionExpiryInterval: 1 },
  },
  connack: { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { serverKeepAlive: 1 } },
  publish: { type: 'publish', topic: 'a', qos: 1, packetId: 1, dup: true, retain: true, payload: Uint8Array.of(1), properties: { contentType: 'x' } },
  puback: { type: 'puback', packetId: 1, reasonCode: 0x10, properties: { reasonString: 'r' } },
  pubrec: { type: 'pubrec', packetId: 1, reasonCode: 0x10, properties: { reasonString: 'r' } },
  pubrel: { type: 'pubrel', packetId: 1, reasonCode: 0x92, properties: { reasonString: 'r' } },
  pubcomp: { type: 'pubcomp', packetId: 1, reasonCode: 0x92, properties: { reasonString: 'r' } },
  subscribe: { type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a' }], properties: { subscriptionIdentifiers: [1] } },
  suback: { type: 'suback', packetId: 1, reasonCodes: [0], properties: { reasonString: 'r' } },
  unsubscribe: { type: 'unsubscribe', packetId: 1, filters: ['a'], properties: { userProperties: [['a', 'b']] } },
  unsuback: { type: 'unsuback', packetId: 1, reasonCodes: [0], properties: { reasonString: 'r' } },
  disconnect: { type: 'disconnect', reasonCode: 0x82, properties: { reasonString: 'r' } },
  auth: { type: 'auth', reasonCode: 0x18, properties: { authenticationMethod: 'm' } },
}

/** A deep copy of a valid packet with one field replaced, the path in the form of `option`. */
function changed(type: string, path: string, value: unknown): PacketInput {
  const packet = structuredClone(valid[type]) as unknown as Record<string, unknown>
  const keys = path.replaceAll('[', '.').replaceAll(']', '').split('.')
  let target = packet
  for (const key of keys.slice(0, -1)) {
    target[key] ??= {}
    target = target[key] as Record<string, unknown>
  }
  target[keys.at(-1) as string] = value
  return packet as unknown as PacketInput
}

function refusal(packet: PacketInput, protocolVersion: 4 | 5 = 5): WireError {
  try {
    encode(packet, { protocolVersion })
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
  throw new Error(`encoded ${packet.type}`)
}

function expectRefused(packet: PacketInput, option: string, protocolVersion: 4 | 5 = 5): void {
  const error = refusal(packet, protocolVersion)
  expect(error).toBeInstanceOf(MqttError)
  expect(error).toMatchObject({ fault: 'local', option, reasonCode: undefined, outcome: 'not-sent' })
}

describe('the packets that the refusals start from', () => {
  it('are valid', () => {
    for (const packet of Object.values(valid)) expect(() => encode(packet)).not.toThrow()
  })
})

describe('strings', () => {
  const paths: [type: string, path: string][] = [
    ['connect', 'clientId'],
    ['connect', 'username'],
    ['connect', 'will.topic'],
    ['connect', 'will.properties.contentType'],
    ['connect', 'will.properties.responseTopic'],
    ['connect', 'properties.authenticationMethod'],
    ['connack', 'properties.assignedClientIdentifier'],
    ['connack', 'properties.responseInformation'],
    ['connack', 'properties.serverReference'],
    ['connack', 'properties.reasonString'],
    ['connack', 'properties.authenticationMethod'],
    ['publish', 'topic'],
    ['publish', 'properties.contentType'],
    ['publish', 'properties.responseTopic'],
    ['puback', 'properties.reasonString'],
    ['pubrec', 'properties.reasonString'],
    ['pubrel', 'properties.reasonString'],
    ['pubcomp', 'properties.reasonString'],
    ['subscribe', 'subscriptions[0].filter'],
    ['suback', 'properties.reasonString'],
    ['unsubscribe', 'filters[0]'],
    ['unsuback', 'properties.reasonString'],
    ['disconnect', 'properties.reasonString'],
    ['disconnect', 'properties.serverReference'],
    ['auth', 'properties.authenticationMethod'],
    ['auth', 'properties.reasonString'],
  ]
  for (const [type, path] of paths) {
    it(`refuses a bad ${path} of ${type}`, () => {
      for (const [, value] of badStrings) expectRefused(changed(type, path, value), path)
    })
  }

  it('refuses bad user properties in every packet', () => {
    for (const type of Object.keys(valid)) {
      for (const [, value] of badStrings) {
        expectRefused(changed(type, 'properties.userProperties', [['a', value]]), 'properties.userProperties')
        expectRefused(changed(type, 'properties.userProperties', [[value, 'a']]), 'properties.userProperties')
      }
      for (const value of [{}, 'ab', null, [['a']], [['a', 'b', 'c']], ['ab'], [null], [{}], 42]) {
        expectRefused(changed(type, 'properties.userProperties', value), 'properties.userProperties')
      }
    }
  })

  it('takes strings of exactly 65,535 bytes, and text that its bytes only make long', () => {
    for (const topic of ['x'.repeat(65_535), `${'ü'.repeat(32_767)}x`, '日'.repeat(21_845), `${'😀'.repeat(16_383)}日`]) {
      expect(decode(encode({ type: 'publish', topic }), { from: 'client' })).toMatchObject({ topic })
    }
  })

  it('writes each width of UTF-8', () => {
    const topic = '\u0001\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}\ufeff'
    const bytes = encode({ type: 'publish', topic })
    expect(Buffer.from(bytes).subarray(4, -1).toString('hex')).toBe(Buffer.from(topic).toString('hex'))
    expect(decode(bytes, { from: 'client' })).toMatchObject({ topic })
  })
})

describe('binary values', () => {
  for (const [type, path] of [
    ['connect', 'password'],
    ['connect', 'will.payload'],
    ['connect', 'will.properties.correlationData'],
    ['publish', 'properties.correlationData'],
    ['connack', 'properties.authenticationData'],
    ['auth', 'properties.authenticationData'],
  ] as const) {
    it(`refuses a bad ${path} of ${type}`, () => {
      for (const [, value] of badBytes) expectRefused(changed(type, path, value), path)
    })
  }

  it('refuses a payload that is no Uint8Array', () => {
    for (const [, value] of badBytes.slice(1)) expectRefused(changed('publish', 'payload', value), 'payload')
  })

  it('takes views with an offset, Buffers, and arrays of another realm', () => {
    const bytes = Uint8Array.of(0, 1, 2, 3)
    const expected = { payload: Uint8Array.of(1, 2) }
    expect(decode(encode({ type: 'publish', topic: 'a', payload: bytes.subarray(1, 3) }), { from: 'client' })).toMatchObject(expected)
    expect(decode(encode({ type: 'publish', topic: 'a', payload: Buffer.of(1, 2) }), { from: 'client' })).toMatchObject(expected)
  })
})

describe('integers', () => {
  const ranges: [type: string, path: string, lowest: number, highest: number][] = [
    ['connect', 'keepAlive', 0, 65_535],
    ['connect', 'will.qos', 0, 2],
    ['connect', 'will.properties.willDelayInterval', 0, 4_294_967_295],
    ['connect', 'will.properties.payloadFormatIndicator', 0, 1],
    ['connect', 'properties.sessionExpiryInterval', 0, 4_294_967_295],
    ['connect', 'properties.receiveMaximum', 1, 65_535],
    ['connect', 'properties.maximumPacketSize', 1, 4_294_967_295],
    ['connect', 'properties.topicAliasMaximum', 0, 65_535],
    ['connect', 'properties.requestProblemInformation', 0, 1],
    ['connect', 'properties.requestResponseInformation', 0, 1],
    ['connack', 'properties.serverKeepAlive', 0, 65_535],
    ['connack', 'properties.maximumQoS', 0, 1],
    ['connack', 'properties.retainAvailable', 0, 1],
    ['connack', 'properties.wildcardSubscriptionAvailable', 0, 1],
    ['connack', 'properties.subscriptionIdentifierAvailable', 0, 1],
    ['connack', 'properties.sharedSubscriptionAvailable', 0, 1],
    ['publish', 'packetId', 1, 65_535],
    ['publish', 'properties.messageExpiryInterval', 0, 4_294_967_295],
    ['publish', 'properties.topicAlias', 1, 65_535],
    ['puback', 'packetId', 1, 65_535],
    ['subscribe', 'packetId', 1, 65_535],
    ['subscribe', 'subscriptions[0].qos', 0, 2],
    ['subscribe', 'subscriptions[0].retainHandling', 0, 2],
    ['suback', 'packetId', 1, 65_535],
    ['unsubscribe', 'packetId', 1, 65_535],
    ['unsuback', 'packetId', 1, 65_535],
  ]
  for (const [type, path, lowest, highest] of ranges) {
    it(`takes ${path} of ${type} from ${lowest} to ${highest}`, () => {
      for (const value of [lowest, highest]) expect(() => encode(changed(type, path, value))).not.toThrow()
      for (const value of [...badIntegers, lowest - 1, highest + 1]) expectRefused(changed(type, path, value), path)
    })
  }

  it('refuses a QoS that is none', () => {
    for (const qos of [...badIntegers, 3]) expectRefused(changed('publish', 'qos', qos), 'qos')
  })

  it('takes Subscription Identifiers from 1 to 268,435,455, one in a SUBSCRIBE', () => {
    for (const value of [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]) {
      const bytes = encode(changed('subscribe', 'properties.subscriptionIdentifiers', [value]))
      expect(decode(bytes, { from: 'client' })).toMatchObject({ properties: { subscriptionIdentifiers: [value] } })
      expect(decode(encode(changed('publish', 'properties.subscriptionIdentifiers', [value, 1])), { from: 'server' })).toMatchObject({
        properties: { subscriptionIdentifiers: [value, 1] },
      })
    }
    for (const value of [[0], [268_435_456], [1, 2], [1.5], ['1'], 1, null]) {
      expectRefused(changed('subscribe', 'properties.subscriptionIdentifiers', value), 'properties.subscriptionIdentifiers')
    }
  })

  it('refuses reason codes that are none, or none of the packet', () => {
    for (const type of ['connack', 'puback', 'pubrec', 'pubrel', 'pubcomp', 'disconnect', 'auth']) {
      for (const value of [...badIntegers, 256, 0x03, 0xff]) expectRefused(changed(type, 'reasonCode', value), 'reasonCode')
    }
    for (const type of ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const) expectRefused({ type, packetId: 1, reasonCode: 1 }, 'reasonCode')
    for (const type of ['suback', 'unsuback']) {
      for (const value of [...badIntegers, 256, 0x03, 0xff]) expectRefused(changed(type, 'reasonCodes', [value]), 'reasonCodes[0]')
      for (const value of [[], {}, null, 'x', 0]) expectRefused(changed(type, 'reasonCodes', value), 'reasonCodes')
      expectRefused(changed(type, 'reasonCodes', undefined), 'reasonCodes')
    }
  })
})

describe('booleans, objects and lists', () => {
  for (const [type, path] of [
    ['connect', 'cleanStart'],
    ['connect', 'will.retain'],
    ['connack', 'sessionPresent'],
    ['publish', 'dup'],
    ['publish', 'retain'],
    ['subscribe', 'subscriptions[0].noLocal'],
    ['subscribe', 'subscriptions[0].retainAsPublished'],
  ] as const) {
    it(`refuses a bad ${path} of ${type}`, () => {
      for (const value of badFlags) expectRefused(changed(type, path, value), path)
    })
  }

  it('refuses what is no object', () => {
    for (const value of badObjects) {
      expect(() => encode(value as never)).toThrow(expect.objectContaining({ fault: 'local', option: 'packet' }))
      expectRefused(changed('connect', 'will', value), 'will')
      expectRefused(changed('subscribe', 'subscriptions[0]', value), 'subscriptions[0]')
      for (const type of Object.keys(valid)) expectRefused(changed(type, 'properties', value), 'properties')
    }
  })

  it('refuses lists that are none, or empty', () => {
    for (const value of [[], {}, 'a', null, undefined, 42]) {
      expectRefused(changed('subscribe', 'subscriptions', value), 'subscriptions')
      expectRefused(changed('unsubscribe', 'filters', value), 'filters')
    }
  })

  it('refuses types that are none', () => {
    for (const type of ['CONNECT', '', 'reserved', undefined, null, 3, ['connect'], Object.create(null), '__proto__', 'toString']) {
      expectRefused({ type } as never, 'type')
    }
    for (const protocolVersion of [3, 6, '5', null]) {
      expect(() => encode({ type: 'pingreq' }, { protocolVersion } as never)).toThrow(expect.objectContaining({ option: 'protocolVersion' }))
      expectRefused(changed('connect', 'protocolVersion', protocolVersion), 'protocolVersion')
    }
    expectRefused(changed('connect', 'protocolName', 'MQIsdp'), 'protocolName')
  })

  it('refuses properties that the packet does not have, and names that are none', () => {
    expectRefused(changed('connect', 'properties.willDelayInterval', 1), 'properties.willDelayInterval')
    expectRefused(changed('publish', 'properties.reasonString', 'x'), 'properties.reasonString')
    expectRefused(changed('publish', 'properties.contenttype', 'x'), 'properties.contenttype')
    expectRefused(changed('disconnect', 'properties.toString', 'x'), 'properties.toString')
    const named = structuredClone(valid['publish']) as { properties: object }
    Object.defineProperty(named.properties, '__proto__', { value: 'x', enumerable: true })
    expectRefused(named as PacketInput, 'properties.__proto__')
    // N36: what a caller names is escaped as well.
    expect(refusal({ type: 'disconnect', properties: { '\u001b[2J': 1 } } as never).message).not.toContain('\u001b')
  })
})

describe('topics and filters', () => {
  it('refuses topics that are no topic names', () => {
    for (const topic of ['', '#', 'a/+', '+']) {
      expectRefused(changed('publish', 'topic', topic), 'topic')
      expectRefused(changed('connect', 'will.topic', topic), 'will.topic')
      expectRefused(changed('publish', 'properties.responseTopic', topic), 'properties.responseTopic')
      expectRefused(changed('connect', 'will.properties.responseTopic', topic), 'will.properties.responseTopic')
    }
  })

  it('takes an empty topic with an alias, on 5.0', () => {
    const packet = { type: 'publish', topic: '', properties: { topicAlias: 1 } } as const
    expect(Buffer.from(encode(packet)).toString('hex')).toBe('3006000003230001')
    expectRefused({ type: 'publish', topic: '' }, 'topic', 4)
    expectRefused({ type: 'publish', topic: '', properties: { topicAlias: 0 } }, 'properties.topicAlias')
  })

  it('refuses filters that are none', () => {
    for (const filter of ['', '#/a', 'a#', 'a/#/b', '+a', '$share/g', '$share//a', '$share/+/a']) {
      expectRefused(changed('subscribe', 'subscriptions[0].filter', filter), 'subscriptions[0].filter')
      expectRefused(changed('unsubscribe', 'filters[0]', filter), 'filters[0]')
    }
    expectRefused(
      { type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a' }, { filter: '$share/g/a', noLocal: true }] },
      'subscriptions[1].noLocal',
    )
  })
})

describe('fields that depend on each other', () => {
  it('leaves out what is undefined, and a will without a payload is empty', () => {
    const bytes = encode({ type: 'connect', will: { topic: 'w' }, properties: { receiveMaximum: undefined, topicAliasMaximum: 1 } })
    expect(decode(bytes, { from: 'client' })).toMatchObject({
      will: { topic: 'w', payload: new Uint8Array(0), qos: 0, retain: false },
      properties: { topicAliasMaximum: 1 },
    })
    expect(encode({ type: 'connect', will: undefined })).toEqual(encode({ type: 'connect' }))
  })

  it('refuses DUP and packet identifiers at QoS 0 [MQTT-3.3.1-2] [MQTT-2.2.1-2]', () => {
    expectRefused({ type: 'publish', topic: 'a', dup: true }, 'dup')
    expectRefused({ type: 'publish', topic: 'a', packetId: 1 }, 'packetId')
    expectRefused({ type: 'publish', topic: 'a', qos: 1 }, 'packetId')
    expect(() => encode({ type: 'publish', topic: 'a', packetId: 0 })).not.toThrow()
  })

  it('refuses Session Present in a refusal [MQTT-3.2.2-6]', () => {
    expectRefused({ type: 'connack', sessionPresent: true, reasonCode: 0x87 }, 'sessionPresent')
    expectRefused({ type: 'connack', sessionPresent: true, reasonCode: 5 }, 'sessionPresent', 4)
  })

  it('refuses authentication without a method', () => {
    const data = { authenticationData: Uint8Array.of(1) }
    expectRefused({ type: 'connect', properties: data }, 'properties.authenticationMethod')
    expectRefused({ type: 'auth', reasonCode: 0x18, properties: data }, 'properties.authenticationMethod')
    expectRefused({ type: 'auth', reasonCode: 0x18, properties: undefined } as never, 'properties.authenticationMethod')
  })

  it('wants one side for all of a DISCONNECT [MQTT-3.14.2-2]', () => {
    expectRefused({ type: 'disconnect', reasonCode: 0x8b, properties: { sessionExpiryInterval: 1 } }, 'reasonCode')
    expectRefused({ type: 'disconnect', reasonCode: 4, properties: { serverReference: 'x' } }, 'reasonCode')
    expectRefused({ type: 'disconnect', properties: { sessionExpiryInterval: 1, serverReference: 'x' } }, 'properties.serverReference')
    expect(() => encode({ type: 'disconnect', reasonCode: 4, properties: { sessionExpiryInterval: 1 } })).not.toThrow()
    expect(() => encode({ type: 'disconnect', reasonCode: 0x9c, properties: { serverReference: 'x' } })).not.toThrow()
  })
})

describe('3.1.1', () => {
  it('refuses what only 5.0 has', () => {
    for (const type of Object.keys(valid)) {
      if (type === 'auth' || type === 'connect') continue
      expect(refusal(valid[type] as PacketInput, 4).option).toMatch(/^(properties|reasonCode)/)
    }
    expectRefused({ type: 'connect', protocolVersion: 4, properties: { receiveMaximum: 1 } }, 'properties', 5)
    expectRefused({ type: 'connect', protocolVersion: 4, will: { topic: 'a', properties: { willDelayInterval: 1 } } }, 'will.properties', 5)
    expectRefused({ type: 'auth', properties: { authenticationMethod: 'm' } }, 'type', 4)
    expectRefused({ type: 'puback', packetId: 1, reasonCode: 0x80 }, 'reasonCode', 4)
    expectRefused({ type: 'disconnect', reasonCode: 4 }, 'reasonCode', 4)
    expectRefused({ type: 'unsuback', packetId: 1, reasonCodes: [0] }, 'reasonCodes', 4)
    expectRefused({ type: 'suback', packetId: 1, reasonCodes: [0x87] }, 'reasonCodes[0]', 4)
    expectRefused({ type: 'connack', reasonCode: 6 }, 'reasonCode', 4)
    for (const option of [{ noLocal: true }, { retainAsPublished: true }, { retainHandling: 1 }]) {
      expectRefused({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a', ...option }] }, 'subscriptions[0]', 4)
    }
  })

  it('refuses a password without a user name, and an empty client identifier that keeps a session', () => {
    expectRefused({ type: 'connect', protocolVersion: 4, password: Uint8Array.of(1) }, 'password')
    expectRefused({ type: 'connect', protocolVersion: 4, cleanStart: false }, 'clientId')
    expect(() => encode({ type: 'connect', password: Uint8Array.of(1), cleanStart: false })).not.toThrow()
  })

  it('takes properties whose values are all undefined', () => {
    expect(encode({ type: 'publish', topic: 'a', properties: { contentType: undefined } }, { protocolVersion: 4 })).toEqual(
      Uint8Array.of(0x30, 3, 0, 1, 0x61),
    )
    expect(encode({ type: 'puback', packetId: 1, properties: { reasonString: undefined } })).toEqual(Uint8Array.of(0x40, 2, 0, 1))
  })

  it('is what options say, unless a CONNECT says otherwise', () => {
    expect(encode({ type: 'connect' }, { protocolVersion: 4 })[8]).toBe(4)
    expect(encode({ type: 'connect', protocolVersion: undefined }, { protocolVersion: 4 })[8]).toBe(4)
    expect(encode({ type: 'connect', protocolVersion: 5 }, { protocolVersion: 4 })[8]).toBe(5)
  })
})

describe('sizes', () => {
  it('refuses a packet and a Property Length above 268,435,455 bytes before it takes the memory', () => {
    const before = process.memoryUsage().arrayBuffers
    const writer = new Writer()
    const settings = { qos: 0, retain: false, properties: undefined } as const
    const head = (length: number) => (): unknown => writeMessage(writer, 'a', { length }, settings, 0, 0, false, 5, true)
    expect(head(268_435_455 - 3)).toThrow(
      expect.objectContaining({ kind: 'too-large', code: 'ERR_PACKET_TOO_LARGE', fault: 'local', option: 'payload' }),
    )
    expect(writer.length).toBe(0)
    expect(head(268_435_455 - 4)).not.toThrow()
    expect(Buffer.from(writer.take()).toString('hex')).toBe('30ffffff7f00016100')
    const text = 'x'.repeat(65_535)
    const userProperties = Array.from({ length: 2049 }, (): [string, string] => [text, text])
    expect(refusal({ type: 'publish', topic: 'a', properties: { userProperties } })).toMatchObject({
      kind: 'too-large',
      option: 'properties.userProperties',
    })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
  })

  it('moves what was written when a length needs more bytes', () => {
    for (const size of [100, 120, 127, 128, 200, 16_000, 16_383, 16_384, 65_000]) {
      const properties = { contentType: 'x'.repeat(size) }
      const bytes = encode({ type: 'publish', topic: 'ä', properties, payload: Uint8Array.of(1, 2) })
      expect(decode(bytes, { from: 'server' })).toMatchObject({ topic: 'ä', properties, payload: Uint8Array.of(1, 2) })
      const filters = ['f'.repeat(size), 'g']
      expect(decode(encode({ type: 'unsubscribe', packetId: 1, filters }), { from: 'client' })).toMatchObject({ filters })
    }
  })
})

describe('the writers of the client', () => {
  it('leave the writer as it was when they refuse', () => {
    const writer = new Writer()
    writer.raw(Uint8Array.of(1, 2, 3))
    const attempts = [
      (): void => writeConnect(writer, { clientId: '\0' }),
      (): void => writePublish(writer, { topic: 'a/#' }, 5),
      (): void => writePublish(writer, { topic: 'a', payload: 'x' as never }, 5),
      (): void => writePublish(writer, { topic: 42 as never }, 5),
      (): void => writeAck(writer, 4, 0, 0, undefined, 5),
      (): void => writeAck(writer, 4, 1, 0x87, { reasonString: '\0' }, 5),
      (): void => writeSubscribe(writer, { packetId: 1, subscriptions: [{ filter: 'a' }, { filter: '' }] }, 5),
      (): void => writeDisconnect(writer, 0x8b, undefined, 5),
    ]
    for (const attempt of attempts) {
      expect(attempt).toThrow(WireError)
      expect(writer.take()).toEqual(Uint8Array.of(1, 2, 3))
    }
  })

  it('refuse what only a server sends', () => {
    const writer = new Writer()
    expect(() => writePublish(writer, { topic: 'a', properties: { subscriptionIdentifiers: [1] } }, 5)).toThrow(
      expect.objectContaining({ option: 'properties.subscriptionIdentifiers' }),
    )
    expect(() => writeAck(writer, 4, 1, 0x10, undefined, 5)).toThrow(expect.objectContaining({ option: 'reasonCode' }))
    expect(() => writeDisconnect(writer, 0, { serverReference: 'x' }, 5)).toThrow(expect.objectContaining({ option: 'properties.serverReference' }))
  })

  it('write a topic from the cache as they wrote it first, and keep only so many', () => {
    const cached = new Writer(64, true)
    const plain = new Writer(64)
    const topics = Array.from({ length: 300 }, (_, index) => `plant/ü/${index}`)
    for (const topic of [...topics, ...topics, 'x'.repeat(300), 'x'.repeat(300)]) {
      for (const writer of [cached, plain]) writePublish(writer, { topic, payload: Uint8Array.of(1) }, 5)
    }
    expect(cached.take()).toEqual(plain.take())
    for (let i = 0; i < 2; i++) {
      for (const topic of ['', 'a/#', 'a\0', 42]) {
        expect(() => writePublish(cached, { topic: topic as string }, 5)).toThrow(expect.objectContaining({ option: 'topic' }))
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
      return [done, Buffer.from(writer.take()).toString('hex')]
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
    expect(Buffer.from(writer.take()).toString('hex')).toBe('40020102620300019250020001300400016107')
    writer.reset()
    expect(writer.take()).toHaveLength(0)
    writeDisconnect(writer, 0, undefined, 5)
    expect(Buffer.from(writer.take()).toString('hex')).toBe('e000')
  })
})

describe('encode within encode', () => {
  it('a getter that encodes another packet changes neither', () => {
    let inner: Uint8Array | undefined
    const outer = encode({
      type: 'publish',
      topic: 'outer',
      qos: 0,
      get payload() {
        inner = encode({ type: 'puback', packetId: 7 })
        return Uint8Array.of(1, 2)
      },
    })
    expect([...(inner ?? [])]).toEqual([0x40, 2, 0, 7])
    expect(outer).toEqual(encode({ type: 'publish', topic: 'outer', qos: 0, payload: Uint8Array.of(1, 2) }))
  })

  it('a refused packet leaves nothing behind for the next', () => {
    expect(() => encode({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'ok' }, { filter: 'a#' }] })).toThrow()
    expect([...encode({ type: 'pingreq' })]).toEqual([0xc0, 0])
  })
})
