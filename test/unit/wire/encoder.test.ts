/** The encoder of many packets: what `encode` gives, one behind the other, and nothing of what is refused. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { writeKnownHead, writeMessage } from '../../../src/wire/encode-publish.js'
import { Encoder, encode, type PacketInput, WireError } from '../../../src/wire/index.js'
import { keepTopic, knownTopic, Writer } from '../../../src/wire/writer.js'
import { samples } from './arbitrary-packets.js'
import { thrown } from './hex.js'

const publish: PacketInput = { type: 'publish', topic: 'a/b', payload: Uint8Array.of(1, 2) }

/** Packets that are no packets, each with what is wrong. */
const wrong: [string, unknown][] = [
  ['no object', 5],
  ['no type', { type: 'x' }],
  ['no topic', { type: 'publish' }],
  ['an empty topic', { type: 'publish', topic: '' }],
  ['a wildcard', { type: 'publish', topic: 'a/#' }],
  ['text for a payload', { type: 'publish', topic: 'a/b', payload: 'x' }],
  ['QoS 3', { type: 'publish', topic: 'a/b', qos: 3 }],
  ['DUP at QoS 0', { type: 'publish', topic: 'a/b', dup: true }],
  ['RETAIN that is no boolean', { type: 'publish', topic: 'a/b', retain: 1 }],
  ['QoS 1 without identifier', { type: 'publish', topic: 'a/b', qos: 1 }],
  ['an identifier at QoS 0', { type: 'publish', topic: 'a/b', packetId: 7 }],
  ['an identifier out of range', { type: 'publish', topic: 'a/b', qos: 1, packetId: 65_536 }],
  [
    'a bad filter behind a good one',
    { type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'ok' }, { filter: 'a#' }] },
  ],
]

function refusalOf(run: () => unknown): unknown {
  const error = thrown(run)
  if (error === undefined) return undefined
  expect(error).toBeInstanceOf(WireError)
  const { message, option, kind, code } = error as WireError
  return { message, option, kind, code }
}

describe('Encoder', () => {
  it('writes packet by packet what encode gives', () => {
    fc.assert(
      fc.property(fc.array(samples, { maxLength: 8 }), (list) => {
        for (const protocolVersion of [4, 5] as const) {
          const packets = list
            .filter((sample) => sample.protocolVersion === protocolVersion)
            .map(({ packet }) => packet)
          const encoder = new Encoder({ protocolVersion })
          for (const packet of packets) encoder.write(packet)
          const whole = Buffer.concat(packets.map((packet) => encode(packet, { protocolVersion })))
          expect(Buffer.compare(encoder.bytes, whole)).toBe(0)
          expect(encoder.length).toBe(whole.length)
        }
      }),
    )
  })

  it.each(wrong)(
    'refuses %s as encode does, known topic or not, and writes nothing of it',
    (_, packet) => {
      const encoder = new Encoder()
      for (const round of [1, 2]) {
        const before = encoder.take()
        const refusal = refusalOf(() => encoder.write(packet as PacketInput))
        expect(refusal).toBeDefined()
        expect(refusal).toEqual(refusalOf(() => encode(packet as PacketInput)))
        expect(encoder.take()).toEqual(before)
        encoder.write(publish)
        expect(encoder.length).toBe(encode(publish).length * round)
      }
    },
  )

  it.each([5, 4] as const)(
    'writes the same head for a topic that it knows (version %i), whatever its length',
    (protocolVersion) => {
      const encoder = new Encoder({ protocolVersion })
      for (const topic of [
        't',
        'fifteen-bytes-x',
        'sixteen-bytes-xx',
        'ü'.repeat(100),
        'x'.repeat(300),
      ]) {
        for (const packet of [
          { type: 'publish', topic, payload: new Uint8Array(3) },
          {
            type: 'publish',
            topic,
            payload: new Uint8Array(20_000),
            qos: 2,
            packetId: 258,
            retain: true,
            dup: true,
          },
        ] as PacketInput[]) {
          for (let round = 0; round < 2; round++) {
            encoder.clear()
            encoder.write(packet)
            expect(encoder.take()).toEqual(encode(packet, { protocolVersion }))
          }
        }
      }
    },
  )

  it('gives views, and copies that stay', () => {
    const encoder = new Encoder()
    encoder.write(publish)
    const { bytes } = encoder
    const copy = encoder.take()
    expect([...bytes]).toEqual([...copy])
    encoder.clear()
    expect(encoder.length).toBe(0)
    encoder.write({ type: 'pingreq' })
    expect([...encoder.bytes]).toEqual([0xc0, 0])
    expect([...bytes.subarray(0, 2)]).toEqual([0xc0, 0])
    expect([...copy]).toEqual([...encode(publish)])
  })

  it('version 4 refuses what only 5.0 knows, and a CONNECT brings its own', () => {
    const encoder = new Encoder({ protocolVersion: 4 })
    const typed = { ...publish, properties: { contentType: 'x' } } as PacketInput
    expect(() => encoder.write(typed)).toThrow(expect.objectContaining({ option: 'properties' }))
    encoder.write({ type: 'connect', protocolVersion: 5, clientId: 'c' })
    expect(encoder.take()).toEqual(encode({ type: 'connect', protocolVersion: 5, clientId: 'c' }))
  })
})

describe('the topics written lately', () => {
  it('are forgotten when others come, and kept while they are in use', () => {
    const bytes = Uint8Array.of(0, 1, 0x74)
    keepTopic('lately', bytes)
    bytes[2] = 0
    expect(knownTopic('lately')).toEqual(Uint8Array.of(0, 1, 0x74))
    for (let round = 0; round < 4; round++) {
      for (let index = 0; index < 250; index++) keepTopic(`other/${round}/${index}`, bytes)
      expect(knownTopic('lately')).toBeDefined()
    }
    for (let index = 0; index < 600; index++) keepTopic(`third/${index}`, bytes)
    expect(knownTopic('lately')).toBeUndefined()
    const known = Array.from({ length: 600 }, (_, index) => knownTopic(`third/${index}`)).filter(
      (bytes) => bytes !== undefined,
    )
    expect(known.length).toBeLessThanOrEqual(512)
  })

  it('are found in whatever order they are asked for, each with its own bytes', () => {
    const bytesOf = (name: string): Uint8Array =>
      Uint8Array.from([0, name.length, ...new TextEncoder().encode(name)])
    const asked = (name: string): Uint8Array => {
      if (knownTopic(name) === undefined) keepTopic(name, bytesOf(name))
      return knownTopic(name) as Uint8Array
    }
    const name = fc
      .oneof(
        { weight: 9, arbitrary: fc.integer({ min: 0, max: 9 }) },
        fc.integer({ min: 0, max: 2000 }),
      )
      .map((index) => `order/${index}`)
    fc.assert(
      fc.property(fc.array(name, { minLength: 100, maxLength: 1000, size: 'max' }), (names) => {
        for (const each of names) expect(Buffer.compare(asked(each), bytesOf(each)), each).toBe(0)
      }),
      { numRuns: 30 },
    )
  })

  it('never are those that are long', () => {
    keepTopic('long', new Uint8Array(257))
    expect(knownTopic('long')).toBeUndefined()
  })
})

describe('the fast head of a PUBLISH', () => {
  it.each([0, 7])(
    'under a topic alias is that of the slow one (packet identifier %i)',
    (packetId) => {
      const [fast, slow] = [new Writer(0), new Writer(0)]
      const topic = Uint8Array.of(0, 1, 0x74)
      const firstByte = packetId > 0 ? 0x32 : 0x30
      for (const payloadLength of [0, 200, 20_000]) {
        writeKnownHead(fast, firstByte, topic, packetId, 258, payloadLength, 5)
        const settings = { qos: packetId > 0 ? 1 : 0, retain: false, properties: {} } as const
        writeMessage(slow, 't', { length: payloadLength }, settings, packetId, 258, false, 5, true)
        expect(fast.take()).toEqual(slow.take())
      }
    },
  )
})

const payload = Uint8Array.of(1, 2, 3)

function written(
  topic: string,
  properties: { contentType: string } | undefined,
  alias: number,
  times = 1,
): Uint8Array {
  const writer = new Writer(64, true)
  let start = 0
  for (let time = 0; time < times; time++) {
    start = writer.length
    writeMessage(
      writer,
      topic,
      payload,
      { qos: 0, retain: false, properties },
      0,
      alias,
      false,
      5,
      false,
    )
  }
  return writer.bytes.slice(start, writer.length)
}

describe('a PUBLISH under an alias', () => {
  it.each([
    ['its topic, which is new', 'a/alias/new', undefined, 1],
    ['its topic, which is known', 'a/alias/known', undefined, 2],
    ['its topic and properties', 'a/alias/b', { contentType: 'x' }, 1],
    ['properties and no topic', '', { contentType: 'x' }, 1],
    ['no topic', '', undefined, 1],
  ])('with %s is what the encoder of any packet writes', (_name, topic, properties, times) => {
    const expected = encode({
      type: 'publish',
      topic,
      payload,
      properties: { ...properties, topicAlias: 7 },
    })
    // Properties may stand in any order.
    expect([...written(topic, properties, 7, times)].sort()).toEqual([...expected].sort())
    expect(written(topic, properties, 7, times)).toHaveLength(expected.length)
  })
})

describe('a PUBLISH that is too large', () => {
  it.each([
    ['known', 2],
    ['new', 1],
  ])('is refused where its topic is %s, and nothing of it is written', (name, times) => {
    const writer = new Writer(64, true)
    const settings = { qos: 0, retain: false, properties: undefined } as const
    for (let time = 1; time < times; time++)
      writeMessage(writer, `large/${name}`, payload, settings, 0, 0, false, 5, false)
    const before = writer.length
    const write = (): unknown =>
      writeMessage(writer, `large/${name}`, { length: 268_435_456 }, settings, 0, 0, false, 5, true)
    expect(write).toThrow(expect.objectContaining({ kind: 'too-large' }))
    expect(writer.length).toBe(before)
  })
})

describe('Writer', () => {
  it('takes its memory from whoever gives it, and leaves the old to them', () => {
    const given: { readonly size: number; readonly old: Uint8Array; readonly bytes: Uint8Array }[] =
      []
    const writer = new Writer(0, false, (size, old) => {
      const bytes = new Uint8Array(size + 1)
      given.push({ size, old, bytes })
      return bytes
    })
    expect(writer.bytes.length).toBe(0)
    writer.raw(Uint8Array.of(1, 2))
    writer.u16(0x0304)
    expect([...writer.take()]).toEqual([1, 2, 3, 4])
    expect(given.map(({ size }) => size)).toEqual([2, 6])
    expect(given[1]?.old).toBe(given[0]?.bytes)
    expect(writer.bytes).toBe(given[1]?.bytes)
  })

  it('asks for memory a few times for much, not for each piece', () => {
    const asked: number[] = []
    const writer = new Writer(0, false, (size) => {
      asked.push(size)
      return new Uint8Array(size)
    })
    for (let count = 0; count < 20_000; count++) writer.raw(new Uint8Array(50))
    expect(writer.length).toBe(1_000_000)
    expect(asked.length).toBeLessThan(20)
  })

  it('writes text without its length only where it is ASCII', () => {
    const writer = new Writer(1)
    expect([writer.ascii('ab'), writer.ascii(''), writer.ascii('\0\u007f')]).toEqual([
      true,
      true,
      true,
    ])
    expect([writer.ascii('abc\u0080'), writer.ascii('\ud800'), writer.ascii('abcé')]).toEqual([
      false,
      false,
      false,
    ])
    expect([...writer.take()]).toEqual([0x61, 0x62, 0, 0x7f])
  })
})
