/** Large packets that come in several reads: their payload goes where it is to stay, and memory grows with what came in. */
import { describe, expect, it } from 'vitest'
import { Framer } from '../../../src/wire/framer.js'
import { Decoder, encode, type PacketInput } from '../../../src/wire/index.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { thrown } from './hex.js'
import { shownError } from './vector-files.js'

const payload = Uint8Array.from({ length: 40_000 }, (_, index) => index % 253)

function packet(given: object = {}, protocolVersion: 4 | 5 = 5): Uint8Array {
  const whole = { type: 'publish', topic: 'a/b', payload, ...given } as PacketInput
  return encode(whole, { protocolVersion })
}

const limits = { from: 'server', protocolVersion: 5, maximumPacketSize: 268_435_460 } as const

/** A framer that splits, its view, and the sizes that memory was asked for. */
function rig(protocolVersion: 4 | 5 = 5) {
  const allocated: number[] = []
  const view = new PublishView()
  const topics = new TopicTable()
  const allocate = (size: number): Uint8Array => {
    allocated.push(size)
    return new Uint8Array(size).fill(0xdd)
  }
  const framer = new Framer({ ...limits, protocolVersion, splits: true, allocate })
  const read = (): PublishView => {
    framer.read(view, topics)
    return view
  }
  return { framer, allocated, read }
}

/** Puts the bytes into the room, as a socket does that reads so much at a time. */
function fill(framer: Framer, bytes: Uint8Array, step: number): number {
  let at = 0
  for (let { room } = framer; room !== undefined && at < bytes.length; { room } = framer) {
    const part = bytes.subarray(at, at + Math.min(step, room.length))
    room.set(part)
    framer.fill(part.length)
    at += part.length
    if (framer.next()) break
  }
  return at
}

describe('a large payload', () => {
  it.each([
    ['QoS 0', {}, 5],
    [
      'QoS 1 with properties',
      { qos: 1, packetId: 9, properties: { contentType: 'x'.repeat(300) } },
      5,
    ],
    ['QoS 2 of 3.1.1', { qos: 2, packetId: 9 }, 4],
    ['an alias alone', { topic: '', properties: { topicAlias: 3 } }, 5],
  ] as const)(
    '%s: lies in memory of exactly its size, read there as it comes',
    (_name, given, version) => {
      const bytes = packet(given, version)
      for (const first of [bytes.length >> 4, 5000, 20_000, bytes.length - 1]) {
        for (const step of [1, 997, 65_536]) {
          if (step === 1 && first < 20_000) continue
          const { framer, allocated, read } = rig(version)
          framer.push(bytes.subarray(0, first + 1))
          if (first + 1 < bytes.length) {
            expect([framer.next(), framer.pending]).toEqual([false, first + 1])
            expect(framer.room?.length).toBe(bytes.length - first - 1)
            expect(fill(framer, bytes.subarray(first + 1), step)).toBe(bytes.length - first - 1)
          } else expect(framer.next()).toBe(true)
          const view = read()
          expect(view.payload()).toEqual(payload)
          expect(view.packet()).toMatchObject(given as object)
          if (first + 1 === bytes.length) continue
          expect(allocated).toEqual([payload.length])
          expect(view.apart?.buffer.byteLength).toBe(payload.length)
          expect([framer.next(), framer.pending, framer.room]).toEqual([false, 0, undefined])
        }
      }
    },
  )

  it('begins behind properties whose length takes four bytes', () => {
    const userProperties = new Array<[string, string]>(33).fill(['a', 'x'.repeat(65_000)])
    const bytes = packet({ properties: { userProperties } })
    const { framer, read, allocated } = rig()
    framer.push(bytes.subarray(0, bytes.length - 30_000))
    expect(framer.next()).toBe(false)
    expect(allocated).toEqual([payload.length])
    fill(framer, bytes.subarray(bytes.length - 30_000), 10_000)
    expect(read().packet()).toMatchObject({ payload, properties: { userProperties } })
  })

  it('may be pushed all the same, with what comes behind it', () => {
    const bytes = packet({ qos: 1, packetId: 1 })
    const { framer, read } = rig()
    framer.push(bytes.subarray(0, 30_000))
    framer.next()
    const next = packet({ payload: Uint8Array.of(7) })
    framer.push(new Uint8Array([...bytes.subarray(30_000), 0xd0, 0, ...next]))
    expect(framer.room).toBeUndefined()
    expect(framer.next()).toBe(true)
    expect(read().payload()).toEqual(payload)
    expect([framer.next(), framer.bytes[framer.start]]).toEqual([true, 0xd0])
    expect(framer.next()).toBe(true)
    expect([...read().payload()]).toEqual([7])
    expect(read().apart).toBeUndefined()
    expect(framer.next()).toBe(false)
  })

  it.each([1, 50, 1000, 2400])(
    'whose first %i bytes are too few gets its memory when more of it is there',
    (first) => {
      const bytes = packet({ qos: 1, packetId: 7, properties: { contentType: 'x'.repeat(30) } })
      const { framer, allocated, read } = rig()
      framer.push(bytes.subarray(0, first))
      expect([framer.next(), allocated]).toEqual([false, []])
      framer.push(bytes.subarray(first, 3000))
      expect([framer.next(), framer.pending, allocated]).toEqual([false, 3000, [payload.length]])
      expect(fill(framer, bytes.subarray(3000), 997)).toBe(bytes.length - 3000)
      expect(read().payload()).toEqual(payload)
      expect(read().packet()).toMatchObject({ packetId: 7 })
    },
  )

  it('of a Decoder is an array of its own, whatever the chunks', () => {
    const large = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251)
    const bytes = packet({ payload: large })
    const both = new Uint8Array([...bytes, ...bytes])
    for (const size of [700, 20_000, 65_536, 299_000, bytes.length]) {
      const decoder = new Decoder({ from: 'server' })
      const payloads: Uint8Array[] = []
      for (let at = 0; at < both.length; at += size) {
        for (const each of decoder.push(both.subarray(at, at + size)))
          if (each.type === 'publish') payloads.push(each.payload)
      }
      expect(payloads).toEqual([large, large])
      for (const { buffer, byteOffset } of payloads)
        expect([buffer.byteLength, byteOffset]).toEqual([large.length, 0])
    }
  })

  it('gets no memory of its own before a sixteenth of it is there, and none when the topic is all that came', () => {
    const bytes = packet()
    const late = rig()
    late.framer.push(bytes.subarray(0, Math.floor(bytes.length / 16)))
    expect([late.framer.next(), late.framer.room, late.allocated]).toEqual([false, undefined, []])
    const long = packet({ topic: 't'.repeat(20_000), payload: new Uint8Array(10) })
    const named = rig()
    named.framer.push(long.subarray(0, 15_000))
    expect([named.framer.next(), named.framer.room, named.allocated]).toEqual([
      false,
      undefined,
      [],
    ])
    named.framer.push(long.subarray(15_000))
    expect(named.framer.next()).toBe(true)
    expect(named.read().topic()).toBe('t'.repeat(20_000))
  })

  it('there is no room, rather than an empty one, behind a payload that is whole and was not asked for', () => {
    const bytes = packet({ qos: 1, packetId: 9 })
    const { framer } = rig()
    framer.push(bytes.subarray(0, 20_000))
    expect(framer.next()).toBe(false)
    const { room } = framer
    room?.set(bytes.subarray(20_000))
    framer.fill(bytes.length - 20_000)
    // Whoever reads into an empty array never gets on.
    expect([room?.length, framer.room]).toEqual([bytes.length - 20_000, undefined])
    expect([framer.next(), framer.end]).toEqual([true, bytes.length])
  })

  it('what is wrong with the packet is told when it is complete, as if it had come whole', () => {
    const bytes = packet({ qos: 1, packetId: 9, properties: { contentType: 'abc' } })
    for (let place = 4; place < 20; place++) {
      for (const value of [0, 0x23, 0x7f, 0x80, 0xff]) {
        const wrong = bytes.slice()
        wrong[place] = value
        const tell = (cut: number): unknown => {
          const { framer, read } = rig()
          let packet: unknown
          const error = thrown(() => {
            framer.push(wrong.subarray(0, cut))
            if (!framer.next()) {
              framer.push(wrong.subarray(cut))
              framer.next()
            }
            packet = read().packet()
          })
          return error === undefined ? packet : shownError(error)
        }
        expect(tell(20_000), `${place}: ${value}`).toEqual(tell(wrong.length))
      }
    }
  })

  it('is forgotten by clear()', () => {
    const { framer } = rig()
    framer.push(packet().subarray(0, 10_000))
    framer.next()
    framer.clear()
    expect([framer.pending, framer.room]).toEqual([0, undefined])
  })

  it('other large packets, and those of readers that want no split, are put together whole', () => {
    const suback = encode({
      type: 'suback',
      packetId: 1,
      reasonCodes: new Array(30_000).fill(0),
      properties: {},
    })
    const { framer, allocated } = rig()
    framer.push(suback.subarray(0, 20_000))
    expect([framer.next(), framer.room, allocated]).toEqual([false, undefined, []])
    const plain = new Framer(limits)
    const bytes = packet()
    plain.push(bytes.subarray(0, 30_000))
    expect([plain.next(), plain.room]).toEqual([false, undefined])
    plain.push(bytes.subarray(30_000))
    expect(plain.next()).toBe(true)
    expect(plain.bytes.subarray(plain.start, plain.end)).toEqual(bytes)
  })
})

describe('memory of what is incomplete', () => {
  it('is at most sixteen times what came in, whatever was announced', () => {
    for (const received of [6, 100, 1000, 10_000, 100_000]) {
      const { framer, allocated } = rig()
      const bytes = new Uint8Array(received)
      bytes.set([0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1, 0x61, 0].slice(0, received))
      const before = process.memoryUsage().arrayBuffers
      framer.push(bytes)
      expect(framer.next()).toBe(false)
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(received * 16 + 100_000)
      expect(allocated).toEqual([])
    }
  })
})
