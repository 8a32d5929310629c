/**
 * What callers hand to the encoder may say something else each time it is asked: getters, proxies, odd lists, memory that is resized in between.
 * What gets out is one valid packet all the same, or nothing.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Decoder, decode, Encoder, encode, MqttError, type Packet, type PacketInput, WireError } from '../../../src/wire/index.js'
import { samples } from './arbitrary-packets.js'

type Options = { readonly protocolVersion: 4 | 5 }

/** What `encode` and `Encoder` write, which must be the same; a refusal is undefined. */
function written(packet: () => unknown, options: Options): Uint8Array | undefined {
  const attempt = (write: (packet: PacketInput) => Uint8Array): Uint8Array | undefined => {
    try {
      return write(packet() as PacketInput)
    } catch (error) {
      if (error instanceof WireError && error.fault === 'local') return undefined
      throw error
    }
  }
  const bytes = attempt((each) => encode(each, options))
  const encoder = new Encoder(options)
  const again = attempt((each) => {
    encoder.write(each)
    return encoder.take()
  })
  expect(again).toEqual(bytes)
  return bytes
}

/** Exactly one packet, from whichever side. */
function isValid(bytes: Uint8Array, options: Options): boolean {
  return (['client', 'server'] as const).some((from) => {
    try {
      decode(bytes, { ...options, from })
      return true
    } catch {
      return false
    }
  })
}

/** Tells what `first` says at the first reading of a field, what `second` says at the next, and so on; in everything that hangs on it, too. */
function fickle(first: unknown, second: unknown): unknown {
  if (typeof first !== 'object' || first === null || first instanceof Uint8Array) return first
  const reads = new Map<PropertyKey, number>()
  const other = typeof second === 'object' && second !== null ? second : first
  return new Proxy(first, {
    get(target, key) {
      const count = reads.get(key) ?? 0
      reads.set(key, count + 1)
      const [now, later] = count % 2 === 0 ? [target, other] : [other, target]
      return fickle(Reflect.get(now, key), Reflect.get(later, key))
    },
  })
}

const versions = fc.constantFrom(4 as const, 5 as const)
/** Fields of any packet, right and wrong. */
const anyFields = fc.record(
  {
    topic: fc.constantFrom('', 'a', 'a/#'),
    qos: fc.constantFrom(0, 1, 2, 3),
    dup: fc.boolean(),
    retain: fc.boolean(),
    packetId: fc.constantFrom(undefined, 0, 1, 70_000),
    reasonCode: fc.constantFrom(0, 0x87, 0x8c, 4, 300),
    reasonCodes: fc.constantFrom([], [0], [0, 0x87], [300]),
    protocolVersion: fc.constantFrom(undefined, 4, 5),
    cleanStart: fc.boolean(),
    clientId: fc.constantFrom('', 'c'),
    username: fc.constantFrom(undefined, 'u'),
    password: fc.constantFrom(undefined, Uint8Array.of(1)),
    sessionPresent: fc.boolean(),
    filters: fc.constantFrom([], ['a'], ['a#', 'b']),
    subscriptions: fc.constantFrom(
      [],
      [{ filter: 'a', noLocal: true }],
      [{ filter: 'a' }, { filter: '$share/g/a', noLocal: true, retainHandling: 2 }],
    ),
    properties: fc.constantFrom<object | undefined>(
      undefined,
      {},
      { topicAlias: 1 },
      { sessionExpiryInterval: 5 },
      { serverReference: 'x' },
      { authenticationMethod: 'm', authenticationData: Uint8Array.of(1) },
      { authenticationData: Uint8Array.of(1) },
      { subscriptionIdentifiers: [1, 2], userProperties: [['a', 'b']] },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
)

describe('a packet that says something else each time', () => {
  it('gets out as one valid packet, or not at all: two valid ones in turn', () => {
    fc.assert(
      fc.property(samples, samples, versions, (one, two, protocolVersion) => {
        const second = { ...two.packet, type: one.packet.type }
        const bytes = written(() => fickle(one.packet, second), { protocolVersion })
        if (bytes !== undefined) expect(isValid(bytes, { protocolVersion }), Buffer.from(bytes).toString('hex')).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  it('gets out as one valid packet, or not at all: any fields in turn', () => {
    const types = fc.constantFrom(
      'connect',
      'connack',
      'publish',
      'puback',
      'pubrel',
      'subscribe',
      'suback',
      'unsubscribe',
      'unsuback',
      'disconnect',
      'auth',
    )
    fc.assert(
      fc.property(types, types, anyFields, anyFields, versions, (type, other, one, two, protocolVersion) => {
        const bytes = written(() => fickle({ type, ...one }, { type: other, ...two }), { protocolVersion })
        if (bytes !== undefined) expect(isValid(bytes, { protocolVersion }), Buffer.from(bytes).toString('hex')).toBe(true)
      }),
      { numRuns: process.env['MQWIRE_LONG'] === undefined ? 2000 : 20_000 },
    )
  })
})

describe('a payload that changes while the packet is written', () => {
  const resizable = (): { memory: ArrayBuffer & { resize(size: number): void }; payload: Uint8Array } => {
    const Resizable = ArrayBuffer as unknown as new (size: number, options: { maxByteLength: number }) => ArrayBuffer & { resize(size: number): void }
    const memory = new Resizable(100, { maxByteLength: 1000 })
    return { memory, payload: new Uint8Array(memory).fill(1) }
  }

  it.each([0, 99, 101, 1000])('is refused when a getter of the properties resizes it to %i bytes: the stream stays in step', (size) => {
    const { memory, payload } = resizable()
    const properties = {
      get contentType() {
        memory.resize(size)
        return 'x'
      },
    }
    const packet: PacketInput = { type: 'publish', topic: 'a', payload, properties }
    const encoder = new Encoder()
    encoder.write({ type: 'pingreq' })
    expect(() => encoder.write(packet)).toThrow(expect.objectContaining({ fault: 'local', option: 'payload' }))
    expect([...encoder.take()]).toEqual([0xc0, 0])
    memory.resize(100)
    expect(() => encode(packet)).toThrow(WireError)
  })

  it.each(['qos', 'dup', 'retain'] as const)('is refused when a getter of %s resizes it', (field) => {
    const { memory, payload } = resizable()
    const packet = {
      type: 'publish' as const,
      topic: 'a',
      payload,
      get [field]() {
        memory.resize(3)
        return undefined
      },
    }
    const encoder = new Encoder()
    encoder.write({ type: 'pingreq' })
    expect(() => encoder.write(packet as PacketInput)).toThrow(expect.objectContaining({ fault: 'local', option: 'payload' }))
    expect([...encoder.take()]).toEqual([0xc0, 0])
  })

  it('is refused when it is given away', () => {
    const payload = new Uint8Array(100)
    const properties = {
      get contentType() {
        structuredClone(payload, { transfer: [payload.buffer] })
        return 'x'
      },
    }
    expect(() => encode({ type: 'publish', topic: 'a', payload, properties })).toThrow(expect.objectContaining({ option: 'payload' }))
  })

  it('is taken as it is then, when a field that is read before it resizes it', () => {
    const { memory, payload } = resizable()
    const packet = {
      type: 'publish' as const,
      topic: 'a',
      get payload() {
        memory.resize(3)
        return payload
      },
    }
    expect(decode(encode(packet), { from: 'client' })).toMatchObject({ payload: Uint8Array.of(1, 1, 1) })
  })
})

describe('lists that are no plain lists', () => {
  const iterating = (list: unknown[], items: Iterable<unknown>): unknown[] =>
    Object.assign(list, { [Symbol.iterator]: () => items[Symbol.iterator]() })
  function* endless(): Generator<number> {
    for (;;) yield 1
  }

  it('are what they hold, not what their iterator says: one Subscription Identifier at most in SUBSCRIBE (section 3.8.2.1.2)', () => {
    for (const items of [[1, 2], endless()]) {
      const subscriptionIdentifiers = iterating([7], items) as number[]
      const bytes = encode({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a' }], properties: { subscriptionIdentifiers } })
      expect(decode(bytes, { from: 'client' })).toMatchObject({ properties: { subscriptionIdentifiers: [7] } })
    }
    const userProperties = iterating([['a', 'b']], endless()) as [string, string][]
    expect(decode(encode({ type: 'publish', topic: 'a', properties: { userProperties } }), { from: 'client' })).toMatchObject({
      properties: { userProperties: [['a', 'b']] },
    })
  })

  it.each(['subscriptions', 'filters', 'reasonCodes'])(
    '%s that are longer at the first look than at the next are no empty list [MQTT-3.8.3-2]',
    (name) => {
      let looks = 0
      const list = new Proxy([] as unknown[], { get: (target, key) => (key === 'length' ? (looks++ === 0 ? 1 : 0) : Reflect.get(target, key)) })
      const type = { subscriptions: 'subscribe', filters: 'unsubscribe', reasonCodes: 'suback' }[name]
      for (const protocolVersion of [4, 5] as const) {
        looks = 0
        expect(() => encode({ type, packetId: 1, [name]: list } as PacketInput, { protocolVersion })).toThrow(
          expect.objectContaining({ fault: 'local', option: `${name}[0]` }),
        )
      }
    },
  )
})

describe('bytes that tell lies about themselves', () => {
  const secret = Uint8Array.from(Buffer.from('the password of somebody else, long enough to be seen'))

  it.each([
    ['a longer length', 60],
    ['a shorter length', 1],
    ['no length', Number.NaN],
    ['a length that is no number', {}],
  ])('are written as they are: %s', (_name, length) => {
    const given = Object.defineProperty(Uint8Array.of(1, 2, 3), 'length', { value: length })
    const encoder = new Encoder()
    encoder.write({ type: 'connect', username: 'u', password: secret })
    encoder.clear()
    for (const packet of [
      { type: 'publish', topic: 'a', payload: given },
      { type: 'publish', topic: 'a', properties: { correlationData: given } },
      { type: 'connect', password: given, will: { topic: 'w', payload: given } },
    ] as PacketInput[]) {
      encode({ type: 'connect', username: 'u', password: secret })
      const bytes = encode(packet)
      encoder.write(packet)
      expect(encoder.take()).toEqual(bytes)
      encoder.clear()
      expect(JSON.stringify(decode(bytes, { from: 'client' }))).toContain('{"0":1,"1":2,"2":3}')
      expect(Buffer.from(bytes).includes('pass')).toBe(false)
    }
  })

  it('are read as they are', () => {
    const lying = Object.defineProperty(Uint8Array.from(Buffer.from('d000d000', 'hex')), 'length', { value: 2 })
    expect([...new Decoder({ from: 'server' }).push(lying)].length).toBe(2)
  })

  it.each([
    ['floats with a tag', Object.defineProperty(new Float64Array(3), Symbol.toStringTag, { value: 'Uint8Array' })],
    ['floats with a prototype', Object.setPrototypeOf(new Float64Array(3), Uint8Array.prototype)],
    ['a DataView with a prototype', Object.setPrototypeOf(new DataView(new ArrayBuffer(3)), Uint8Array.prototype)],
    ['a Proxy', new Proxy(new Uint8Array(3), {})],
  ])('are none: %s', (_name, value) => {
    expect(() => encode({ type: 'publish', topic: 'a', payload: value as Uint8Array })).toThrow(expect.objectContaining({ option: 'payload' }))
    expect(() => decode(value as Uint8Array, { from: 'server' })).toThrow(expect.objectContaining({ option: 'bytes' }))
  })

  it('whose memory is gone are empty', () => {
    const gone = new Uint8Array(8)
    const buffer = Buffer.from(gone.buffer)
    structuredClone(gone, { transfer: [gone.buffer] })
    for (const bytes of [gone, buffer]) {
      expect(() => decode(bytes, { from: 'server' })).toThrow(expect.objectContaining({ kind: 'incomplete' }))
      expect(decode(encode({ type: 'publish', topic: 'a', payload: bytes }), { from: 'client' })).toMatchObject({ payload: new Uint8Array(0) })
    }
  })
})

describe('an Encoder that a getter comes back to', () => {
  const busy = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'packet' })

  it.each([
    ['clear', (encoder: Encoder) => encoder.clear()],
    ['write', (encoder: Encoder) => encoder.write({ type: 'pingreq' })],
  ])('refuses %s, and writes nothing of the packet', (_name, comeBack) => {
    const encoder = new Encoder()
    encoder.write({ type: 'pingresp' })
    const sly = (seen: unknown[]): PacketInput => ({
      type: 'publish',
      topic: 'outer',
      properties: {
        get contentType() {
          try {
            comeBack(encoder)
          } catch (error) {
            seen.push(error)
            throw error
          }
          return 'x'
        },
      },
    })
    const seen: unknown[] = []
    expect(() => encoder.write(sly(seen))).toThrow(MqttError)
    expect(seen).toEqual([busy])
    expect([...encoder.take()]).toEqual([0xd0, 0])
  })

  it('shows whole packets only', () => {
    const encoder = new Encoder()
    encoder.write({ type: 'pingresp' })
    const seen: unknown[] = []
    const properties = {
      get contentType() {
        seen.push(encoder.length, [...encoder.bytes], [...encoder.take()])
        return 'x'
      },
    }
    encoder.write({ type: 'publish', topic: 'outer', properties })
    expect(seen).toEqual([2, [0xd0, 0], [0xd0, 0]])
    expect(encoder.length).toBe(2 + encode({ type: 'publish', topic: 'outer', properties: { contentType: 'x' } }).length)
  })
})

describe('what was decoded', () => {
  it.each([
    ['DUP at QoS 0 on 3.1.1', '3803000161', 'client', 4],
    ['DUP at QoS 0 on 3.1.1', '3803000161', 'server', 4],
    ['DISCONNECT 0x8C, which section 2.4 has and section 3.14.2.1 has not', 'e0018c', 'server', 5],
  ] as const)('is written again: %s, %s from a %s', (_name, hex, from, protocolVersion) => {
    const packet: Packet = decode(Buffer.from(hex, 'hex'), { from, protocolVersion })
    expect(Buffer.from(encode(packet, { protocolVersion })).toString('hex')).toBe(hex)
  })

  it('is refused in its other version, by name: DUP at QoS 0 on 5.0 [MQTT-3.3.1-2]', () => {
    const packet = decode(Buffer.from('3803000161', 'hex'), { from: 'client', protocolVersion: 4 })
    expect(() => encode(packet)).toThrow(expect.objectContaining({ option: 'dup' }))
  })
})
