/**
 * The encoder is as strict as the decoder: what it writes, the decoder takes; what it would refuse, the encoder refuses by name.
 *
 * Shapes that only JavaScript has: holes, inherited and hidden fields, getters, look-alikes of bytes.
 */
import { describe, expect, it } from 'vitest'
import type { DecodeOptions, PacketInput } from '../../../src/wire/index.js'
import { Decoder, decode, encode, MqttError, WireError } from '../../../src/wire/index.js'
import { thrown } from './hex.js'

const refusal = (packet: unknown): unknown => thrown(() => encode(packet as PacketInput))
const local = (option: string): unknown => expect.objectContaining({ fault: 'local', option })

describe('lists with holes', () => {
  const hole = (name: string, list: unknown[]): object => ({ properties: { [name]: list } })
  it.each([
    ['subscriptions[0]', 'subscribe', { subscriptions: new Array(1) }],
    [
      'subscriptions[1]',
      'subscribe',
      { subscriptions: Object.assign([{ filter: 'a' }], { length: 2 }) },
    ],
    ['filters[0]', 'unsubscribe', { filters: new Array(2) }],
    ['reasonCodes[0]', 'suback', { reasonCodes: new Array(1) }],
    ['reasonCodes[0]', 'unsuback', { reasonCodes: new Array(1) }],
    [
      'properties.subscriptionIdentifiers',
      'publish',
      hole('subscriptionIdentifiers', new Array(1)),
    ],
    ['properties.userProperties', 'publish', hole('userProperties', new Array(1))],
    ['properties.userProperties', 'publish', hole('userProperties', [new Array(2)])],
  ])('%s of a %s is missing: refused [MQTT-3.8.3-2] [MQTT-3.10.3-2]', (option, type, fields) => {
    const error = refusal({
      type,
      topic: 'a',
      packetId: type === 'publish' ? undefined : 1,
      ...fields,
    })
    expect(error).toBeInstanceOf(WireError)
    expect(error).toEqual(local(option))
  })
})

/** Each way in which a field can be there to be read, and not be written. */
const elsewhere: [name: string, make: (key: string, value: unknown) => object][] = [
  ['inherited', (key, value) => Object.create({ [key]: value }) as object],
  ['hidden', (key, value) => Object.defineProperty({}, key, { value })],
  [
    'gone when it is read again',
    (key, value) => {
      let left = 1
      return Object.defineProperty({}, key, {
        enumerable: true,
        get: () => (left-- > 0 ? value : undefined),
      })
    },
  ],
]

describe('fields that others depend on', () => {
  for (const [name, make] of elsewhere) {
    it(`a topic alias that is ${name} stands for no topic [MQTT-4.7.3-1]`, () => {
      const packet: PacketInput = { type: 'publish', topic: '', properties: make('topicAlias', 5) }
      const error = thrown(() => decode(encode(packet), { from: 'client' }))
      // Written with its alias, or refused by name; never without.
      if (error !== undefined) expect(error).toEqual(local('topic'))
    })

    it(`an authentication method that is ${name} is none (sections 3.1.2.11.10, 3.15.2.2.2)`, () => {
      const data = { authenticationData: Uint8Array.of(1) }
      const withData = Object.assign(make('authenticationMethod', 'm'), data)
      for (const packet of [
        { type: 'auth', reasonCode: 0x18, properties: make('authenticationMethod', 'm') } as const,
        { type: 'connect', properties: withData } as const,
      ]) {
        const error = thrown(() => decode(encode(packet), { from: 'client' }))
        if (error !== undefined) expect(error).toEqual(local('properties.authenticationMethod'))
      }
    })
  }

  it('are looked for where they are written: objects without a prototype, and class instances, do', () => {
    class Given {
      topicAlias = 5
    }
    const bare = Object.assign(Object.create(null) as object, { topicAlias: 5 })
    for (const properties of [bare, new Given()]) {
      const bytes = encode({ type: 'publish', topic: '', properties })
      expect(decode(bytes, { from: 'client' })).toMatchObject({ properties: { topicAlias: 5 } })
    }
  })
})

describe('look-alikes', () => {
  const { prototype } = Uint8Array
  const tag = { value: 'Uint8Array' }
  const fakes: [string, unknown][] = [
    ['a tag', { [Symbol.toStringTag]: 'Uint8Array', length: 3, 0: 0x30 }],
    ['a prototype', Object.create(Uint8Array.prototype)],
    ['a DataView', new DataView(new ArrayBuffer(3))],
    ['clamped bytes', new Uint8ClampedArray(3)],
    ['wider integers', new Uint16Array(3)],
    ['an ArrayBuffer', new ArrayBuffer(3)],
    ['a list', [0xd0, 0]],
    ['a text', 'd000'],
    ['null', null],
    ['floats with a tag', Object.defineProperty(new Float64Array(3), Symbol.toStringTag, tag)],
    ['floats with a prototype', Object.setPrototypeOf(new Float64Array(3), prototype)],
    [
      'a DataView with a prototype',
      Object.setPrototypeOf(new DataView(new ArrayBuffer(3)), prototype),
    ],
    ['a Proxy', new Proxy(new Uint8Array(3), {})],
  ]
  it.each(fakes)('%s is not bytes', (_name, value) => {
    expect(refusal({ type: 'publish', topic: 'a', payload: value })).toEqual(local('payload'))
    expect(refusal({ type: 'connect', password: value })).toEqual(local('password'))
    const properties = { correlationData: value }
    const error = refusal({ type: 'publish', topic: 'a', properties })
    expect(error).toEqual(local('properties.correlationData'))
    const invalid = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'bytes' })
    expect(thrown(() => decode(value as Uint8Array, { from: 'server' }))).toEqual(invalid)
    expect(thrown(() => new Decoder({ from: 'server' }).push(value as Uint8Array))).toEqual(invalid)
  })

  it('wrapped texts, booleans and numbers are none', () => {
    expect(refusal({ type: 'publish', topic: new String('a') })).toEqual(local('topic'))
    expect(refusal({ type: 'publish', topic: 'a', retain: new Boolean(true) })).toEqual(
      local('retain'),
    )
    expect(refusal({ type: 'puback', packetId: new Number(1) })).toEqual(local('packetId'))
  })
})

describe('lengths that are none', () => {
  it.each([
    ['a BigInt', 1n],
    ['a Symbol', Symbol('length')],
    ['a text', '268435456'],
    ['an object', {}],
    ['infinity', Number.POSITIVE_INFINITY],
  ])(
    '%s as the length of what should be a text of a user property is refused by name',
    (_name, length) => {
      for (const pair of [
        [{ length }, { length: 1 }],
        [{ length: 1 }, { length }],
        ['a', { length }],
        { length },
      ]) {
        expect(
          refusal({ type: 'publish', topic: 'a', properties: { userProperties: [pair] } }),
        ).toEqual(local('properties.userProperties'))
      }
    },
  )

  it.each([1n, Symbol('length'), 'x', -1, {}])(
    '%s as the length of a topic is refused by name',
    (length) => {
      expect(refusal({ type: 'publish', topic: { length } })).toEqual(local('topic'))
      expect(refusal({ type: 'connect', clientId: { length } })).toEqual(local('clientId'))
      expect(refusal({ type: 'subscribe', packetId: 1, subscriptions: { length } })).toEqual(
        local('subscriptions'),
      )
    },
  )
})

describe('options', () => {
  const wrong = [
    { protocolVersion: 3 },
    ...[0, Number.NaN, 1.5].map((maximumPacketSize) => ({ maximumPacketSize })),
  ]
  const odd = [
    undefined,
    null,
    42,
    'server',
    {},
    { from: 'broker' },
    ...wrong.map((each) => ({ from: 'server', ...each })),
  ]
  it.each(odd)('of %j are refused by decode and Decoder, as ERR_INVALID_OPTION', (options) => {
    const given = options as unknown as DecodeOptions
    for (const attempt of [() => decode(Uint8Array.of(0xd0, 0), given), () => new Decoder(given)]) {
      const error = thrown(attempt)
      expect(error).toBeInstanceOf(MqttError)
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    }
  })

  it('of encode may be absent; what is no object is refused', () => {
    expect(encode({ type: 'pingreq' }, undefined)).toEqual(Uint8Array.of(0xc0, 0))
    const error = thrown(() => encode({ type: 'pingreq' }, null as never))
    if (error !== undefined) expect(error).toBeInstanceOf(MqttError)
  })
})
