/**
 * What callers hand to the encoder may say something else each time it is asked: getters, proxies, odd lists, memory that is resized in between.
 * What gets out is one valid packet all the same, or nothing.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  Decoder,
  decode,
  Encoder,
  encode,
  MqttError,
  type Packet,
  type PacketInput,
  WireError,
} from '../../../src/wire/index.js'
import { failure, hexOf, senders, thrown } from './hex.js'

/** What `encode` and `Encoder` write, which must be the same: nothing, or exactly one packet from whichever side. */
function expectValid(packet: () => unknown, protocolVersion: 4 | 5): void {
  const attempt = (write: (packet: PacketInput) => Uint8Array): string | undefined => {
    let hex: string | undefined
    const error = thrown(() => {
      hex = hexOf(write(packet() as PacketInput))
    })
    if (error !== undefined) expect(error).toMatchObject({ fault: 'local' })
    return hex
  }
  const hex = attempt((each) => encode(each, { protocolVersion }))
  const encoder = new Encoder({ protocolVersion })
  const again = attempt((each) => {
    encoder.write(each)
    return encoder.take()
  })
  expect(again).toBe(hex)
  if (hex === undefined) return
  const isValid = senders.some(
    (from) => failure(hex as string, from, protocolVersion) === undefined,
  )
  expect(isValid, hex).toBe(true)
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
const names =
  'connect connack publish puback pubrel subscribe suback unsubscribe unsuback disconnect auth'
const types = fc.constantFrom(...names.split(' '))
/** Fields of any packet, right and wrong. */
const anyFields = fc.record(
  {
    ...{
      dup: fc.boolean(),
      retain: fc.boolean(),
      cleanStart: fc.boolean(),
      sessionPresent: fc.boolean(),
    },
    ...{
      topic: fc.constantFrom('', 'a', 'a/#'),
      qos: fc.constantFrom(0, 1, 2, 3),
      clientId: fc.constantFrom('', 'c'),
    },
    packetId: fc.constantFrom(undefined, 0, 1, 70_000),
    reasonCode: fc.constantFrom(0, 0x87, 0x8c, 4, 300),
    reasonCodes: fc.constantFrom([], [0], [0, 0x87], [300]),
    protocolVersion: fc.constantFrom(undefined, 4, 5),
    username: fc.constantFrom(undefined, 'u'),
    password: fc.constantFrom(undefined, Uint8Array.of(1)),
    filters: fc.constantFrom([], ['a'], ['a#', 'b']),
    subscriptions: fc.constantFrom(
      [],
      [{ filter: 'a', noLocal: true }],
      [{ filter: 'a' }, { filter: '$share/g/a', noLocal: true, retainHandling: 2 }],
    ),
    properties: fc.constantFrom<(object | undefined)[]>(
      ...[undefined, {}, { topicAlias: 1 }, { sessionExpiryInterval: 5 }, { serverReference: 'x' }],
      { authenticationMethod: 'm', authenticationData: Uint8Array.of(1) },
      { authenticationData: Uint8Array.of(1) },
      { subscriptionIdentifiers: [1, 2], userProperties: [['a', 'b']] },
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
)

describe('a packet that says something else each time', () => {
  it('gets out as one valid packet, or not at all: any fields in turn', () => {
    const given = fc.tuple(types, anyFields).map(([type, fields]) => ({ type, ...fields }))
    fc.assert(
      fc.property(given, given, versions, (one, two, protocolVersion) => {
        expectValid(() => fickle(one, two), protocolVersion)
      }),
      { numRuns: process.env['MQWIRE_LONG'] === undefined ? 2000 : 20_000 },
    )
  })
})

describe('a payload that changes while the packet is written', () => {
  type Resizable = ArrayBuffer & { resize(size: number): void }
  type ResizableBuffer = new (size: number, options: { maxByteLength: number }) => Resizable
  const resizable = (): { memory: Resizable; payload: Uint8Array } => {
    const memory = new (ArrayBuffer as unknown as ResizableBuffer)(100, { maxByteLength: 1000 })
    return { memory, payload: new Uint8Array(memory).fill(1) }
  }

  /** Refused, and the stream of the encoder stays in step. */
  function expectRefused(packet: object): void {
    const encoder = new Encoder()
    encoder.write({ type: 'pingreq' })
    expect(() => encoder.write(packet as PacketInput)).toThrow(
      expect.objectContaining({ fault: 'local', option: 'payload' }),
    )
    expect([...encoder.take()]).toEqual([0xc0, 0])
  }

  it.each([0, 99, 101, 1000])(
    'is refused when a getter of the properties resizes it to %i bytes: the stream stays in step',
    (size) => {
      const { memory, payload } = resizable()
      const properties = {
        get contentType() {
          memory.resize(size)
          return 'x'
        },
      }
      const packet: PacketInput = { type: 'publish', topic: 'a', payload, properties }
      expectRefused(packet)
      memory.resize(100)
      expect(() => encode(packet)).toThrow(WireError)
    },
  )

  it.each(['qos', 'dup', 'retain'] as const)(
    'is refused when a getter of %s resizes it',
    (field) => {
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
      expectRefused(packet)
    },
  )

  it('is refused when it is given away', () => {
    const payload = new Uint8Array(100)
    const properties = {
      get contentType() {
        structuredClone(payload, { transfer: [payload.buffer] })
        return 'x'
      },
    }
    expect(() => encode({ type: 'publish', topic: 'a', payload, properties })).toThrow(
      expect.objectContaining({ option: 'payload' }),
    )
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
    expect(decode(encode(packet), { from: 'client' })).toMatchObject({
      payload: Uint8Array.of(1, 1, 1),
    })
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
      const properties = { subscriptionIdentifiers }
      const bytes = encode({
        type: 'subscribe',
        packetId: 1,
        subscriptions: [{ filter: 'a' }],
        properties,
      })
      expect(decode(bytes, { from: 'client' })).toHaveProperty('properties', {
        subscriptionIdentifiers: [7],
      })
    }
    const userProperties = iterating([['a', 'b']], endless()) as [string, string][]
    const bytes = encode({ type: 'publish', topic: 'a', properties: { userProperties } })
    expect(decode(bytes, { from: 'client' })).toHaveProperty('properties', {
      userProperties: [['a', 'b']],
    })
  })

  it.each([
    ['subscriptions', 'subscribe'],
    ['filters', 'unsubscribe'],
    ['reasonCodes', 'suback'],
  ])(
    '%s that are longer at the first look than at the next are no empty list [MQTT-3.8.3-2]',
    (name, type) => {
      for (const protocolVersion of [4, 5] as const) {
        let looks = 0
        const get = (target: unknown[], key: PropertyKey): unknown =>
          key === 'length' ? Number(looks++ === 0) : Reflect.get(target, key)
        const packet = {
          type,
          packetId: 1,
          [name]: new Proxy([], { get }),
        } as unknown as PacketInput
        expect(() => encode(packet, { protocolVersion })).toThrow(
          expect.objectContaining({ fault: 'local', option: `${name}[0]` }),
        )
      }
    },
  )
})

describe('bytes that tell lies about themselves', () => {
  const secret = Uint8Array.from(
    Buffer.from('the password of somebody else, long enough to be seen'),
  )

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
    const lying = Object.defineProperty(Uint8Array.from(Buffer.from('d000d000', 'hex')), 'length', {
      value: 2,
    })
    expect([...new Decoder({ from: 'server' }).push(lying)].length).toBe(2)
  })

  it('whose memory is gone are empty', () => {
    const gone = new Uint8Array(8)
    const buffer = Buffer.from(gone.buffer)
    structuredClone(gone, { transfer: [gone.buffer] })
    for (const payload of [gone, buffer]) {
      expect(() => decode(payload, { from: 'server' })).toThrow(
        expect.objectContaining({ kind: 'incomplete' }),
      )
      const bytes = encode({ type: 'publish', topic: 'a', payload })
      expect(decode(bytes, { from: 'client' })).toMatchObject({ payload: new Uint8Array(0) })
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
    const seen: unknown[] = []
    const properties = {
      get contentType(): string {
        seen.push(thrown(() => comeBack(encoder)))
        throw seen[0]
      },
    }
    expect(() => encoder.write({ type: 'publish', topic: 'outer', properties })).toThrow(MqttError)
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
    expect(encoder.length).toBe(
      2 + encode({ type: 'publish', topic: 'outer', properties: { contentType: 'x' } }).length,
    )
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
})
