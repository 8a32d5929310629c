/** The framer of a connection, with a cap for each kind of packet, and the Decoder on top of it. */
import { describe, expect, it } from 'vitest'
import { Framer } from '../../../src/wire/framer.js'
import type { Packet, PublishPacket } from '../../../src/wire/index.js'
import { Decoder, decode, encode, MAXIMUM_PACKET_SIZE, WireError } from '../../../src/wire/index.js'
import { block, thrown } from './hex.js'

const hex = (text: string): Buffer => Buffer.from(text, 'hex')
const publish = hex('300500016100')
const whole = hex('30050001610078')

function framer(maximumPacketSize = MAXIMUM_PACKET_SIZE): Framer {
  return new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize })
}

describe('Framer', () => {
  it('exposes frames of a chunk in place', () => {
    const chunk = Buffer.concat([whole, whole])
    const frames = framer()
    frames.push(chunk)
    for (const at of [0, 7]) {
      expect([frames.next(), frames.bytes === chunk]).toEqual([true, true])
      expect([frames.start, frames.body, frames.end]).toEqual([at, at + 2, at + 7])
    }
    expect([frames.next(), frames.pending, frames.bytes.length]).toEqual([false, 0, 0])
  })

  it('carries the rest of a chunk over, at every cut, and lets go of the chunk', () => {
    const two = Buffer.concat([whole, whole])
    for (let cut = 8; cut < 14; cut++) {
      const frames = framer()
      const first = Uint8Array.from(two.subarray(0, cut))
      frames.push(first)
      expect([frames.next(), frames.next(), frames.pending]).toEqual([true, false, cut - 7])
      first.fill(0xee)
      frames.push(two.subarray(cut))
      expect([frames.next(), frames.pending, frames.start, frames.body, frames.end]).toEqual([
        true,
        0,
        0,
        2,
        7,
      ])
      expect(Buffer.compare(frames.bytes.subarray(frames.start, frames.end), whole)).toBe(0)
      expect([frames.next(), frames.bytes.length]).toEqual([false, 0])
    }
  })

  it('reads a chunk from the byte that it is told', () => {
    const frames = framer()
    frames.push(Buffer.concat([publish, whole, publish]), 15, undefined, 6)
    expect([frames.unread, frames.next(), frames.start, frames.body, frames.end]).toEqual([
      9,
      true,
      6,
      8,
      13,
    ])
    expect([frames.next(), frames.pending]).toEqual([false, 2])
  })

  it('measures a frame that is not its own, as strictly', () => {
    const frames = framer(7)
    expect(frames.measure(Buffer.concat([publish, whole]), 6, 13)).toBe(7)
    expect(frames.body).toBe(8)
    expect(frames.measure(whole, 0, 1)).toBe(0)
    expect(() => frames.measure(hex('100000'), 0, 3)).toThrow(
      expect.objectContaining({ kind: 'protocol', offset: 0 }),
    )
    expect(() => frames.measure(hex('3006'), 0, 2)).toThrow(
      expect.objectContaining({ kind: 'too-large', offset: 1 }),
    )
  })

  it('refuses a packet over the maximum size at its header, with nothing of it held', () => {
    for (const header of ['30ffffff7f', '30808001', '3007']) {
      const frames = framer(8)
      frames.push(hex(header))
      const tooLarge = {
        kind: 'too-large',
        reasonCode: 0x95,
        code: 'ERR_PACKET_TOO_LARGE',
        fault: 'remote',
      }
      expect(() => frames.next()).toThrow(expect.objectContaining(tooLarge))
      expect(frames.pending).toBe(0)
    }
    const frames = framer(8)
    frames.push(hex('30060001610062'))
    expect(frames.next()).toBe(false)
  })

  it('counts the fixed header against the maximum size, at each of its sizes', () => {
    for (const length of [127, 128, 16_383, 16_384]) {
      const bytes = hex(`30${block('00'.repeat(length))}`)
      const exact = framer(bytes.length)
      exact.push(bytes)
      expect([exact.next(), exact.body]).toEqual([true, bytes.length - length])
      const smaller = framer(bytes.length - 1)
      smaller.push(bytes)
      expect(() => smaller.next()).toThrow(WireError)
    }
  })

  it('reports a bad first byte although the length is missing', () => {
    for (const first of [0x00, 0x0f, 0x36, 0x38, 0x10, 0x82, 0xa2, 0xc0, 0x41, 0xd1]) {
      const frames = framer()
      frames.push(Uint8Array.of(first))
      expect(() => frames.next(), String(first)).toThrow(WireError)
    }
  })

  it.each([
    [0x48, ['HTTP']],
    [0x15, ['TLS']],
    [0x00, []],
    [0x41, []],
  ])('says of the first byte %i which other protocol it may be: %j', (first, expected) => {
    const frames = framer()
    frames.push(Uint8Array.of(first))
    const said = String(thrown(() => frames.next()))
    expect(['HTTP', 'TLS'].filter((name) => said.includes(name))).toEqual(expected)
  })

  it('grows its buffer with what arrived, not with what was announced', () => {
    const frames = framer()
    const size = 1_000_000
    frames.push(Uint8Array.of(0x30, 0xc0, 0x84, 0x3d))
    expect(frames.next()).toBe(false)
    const one = Uint8Array.of(0x61)
    let early = false
    for (let received = 4; received < size; received++) {
      frames.push(one)
      early ||= frames.next()
    }
    expect(early).toBe(false)
    expect(frames.pending).toBe(size)
    frames.push(new Uint8Array(10))
    expect(frames.next()).toBe(true)
    // Never larger than the frame.
    expect(frames.bytes).toHaveLength(size + 4)
  })
})

const pingresp = [0xd0, 0]

/** Caps PINGRESP at 10 bytes, SUBACK at 200, and everything else at 1000. */
function capped(maximumPacketSize = 100): Framer {
  const sizeLimit = (type: number): number => ({ 13: 10, 9: 200 })[type] ?? 1000
  return new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize, sizeLimit })
}

function refused(framer: Framer, ...bytes: number[]): unknown {
  framer.push(Uint8Array.from(bytes))
  return thrown(() => framer.next())
}

const tooLarge = { kind: 'too-large', reasonCode: 0x95, offset: 1 }

describe('a cap for each kind of packet', () => {
  it('acts at the header: nothing behind it is needed, nothing is held', () => {
    const framer = capped()
    expect(refused(framer, 0xd0, 9)).toMatchObject(tooLarge)
    expect(framer.pending).toBe(0)
    expect(refused(capped(), 0xd0, 8)).toBeUndefined()
  })

  it('never lifts the maximum packet size, and leaves PUBLISH alone', () => {
    expect(refused(capped(), 0x90, 99)).toMatchObject(tooLarge)
    expect(refused(capped(), 0x90, 98)).toBeUndefined()
    expect(refused(capped(1000), 0x90, 0xc6, 1)).toMatchObject(tooLarge)
    expect(refused(capped(1000), 0x90, 0xc5, 1)).toBeUndefined()
    expect(refused(capped(10_000), 0x30, 0x90, 0x4e)).toMatchObject(tooLarge)
    expect(refused(capped(10_000), 0x30, 0x8d, 0x4e)).toBeUndefined()
  })

  it('holds for a header that comes in pieces', () => {
    const framer = capped(1000)
    framer.push(Uint8Array.of(0x90))
    expect(framer.next()).toBe(false)
    framer.push(Uint8Array.of(0xc6))
    expect(framer.next()).toBe(false)
    expect(refused(framer, 1)).toMatchObject(tooLarge)
  })
})

describe('a chunk that is read on later', () => {
  it('is copied, once, and belongs to its owner again; the frames come out as they would have', () => {
    const framer = capped()
    const chunk = Uint8Array.from([...pingresp, ...whole, ...pingresp, ...[...whole].slice(0, 3)])
    framer.push(chunk)
    expect([framer.next(), framer.end - framer.start, framer.unread]).toEqual([true, 2, 12])
    framer.keep()
    chunk.fill(0xff)
    framer.keep()
    expect([framer.bytes.length, framer.unread, framer.pending]).toEqual([0, 12, 0])
    expect([framer.next(), [...framer.bytes.subarray(framer.start, framer.end)]]).toEqual([
      true,
      [...whole],
    ])
    // Kept again in the middle: still the same copy.
    const { bytes } = framer
    framer.keep()
    expect([framer.next(), framer.bytes === bytes, framer.unread]).toEqual([true, true, 3])
    expect([framer.next(), framer.pending, framer.unread]).toEqual([false, 3, 0])
    framer.push(Uint8Array.from([...whole].slice(3)))
    expect([framer.next(), [...framer.bytes.subarray(framer.start, framer.end)]]).toEqual([
      true,
      [...whole],
    ])
  })

  it('the next chunk is kept for itself', () => {
    const framer = capped()
    for (let round = 0; round < 2; round++) {
      const chunk = Uint8Array.from([...pingresp, ...pingresp])
      framer.push(chunk)
      expect(framer.next()).toBe(true)
      framer.keep()
      chunk.fill(0)
      expect([framer.next(), framer.bytes[framer.start]]).toEqual([true, 0xd0])
      expect(framer.next()).toBe(false)
    }
  })
})

describe('Decoder', () => {
  it('works at the time of the call and keeps nothing of the chunk', () => {
    const decoder = new Decoder({ from: 'server' })
    const chunk = Uint8Array.from(hex('300c00016105090002aabb787878'))
    const packets = decoder.push(chunk)
    chunk.fill(0)
    const [packet] = [...packets] as [PublishPacket]
    const correlationData = Uint8Array.of(0xaa, 0xbb)
    expect(packet).toMatchObject({
      topic: 'a',
      payload: Uint8Array.of(0x78, 0x78, 0x78),
      properties: { correlationData },
    })
    expect(Object.getPrototypeOf(packet.payload)).toBe(Uint8Array.prototype)
  })

  it.each([1, 63, 64, 256, 8192, 8193, 70_000])(
    'gives payloads of %d bytes that are theirs alone, whatever comes later',
    (size) => {
      const decoder = new Decoder({ from: 'server' })
      const payloads = Array.from({ length: 40 }, (_, index) =>
        new Uint8Array(size).fill(index + 1),
      )
      const packets = payloads.flatMap((payload) => [
        ...decoder.push(encode({ type: 'publish', topic: 'a', payload })),
      ]) as PublishPacket[]
      packets.forEach(({ payload }, index) => {
        expect(payload).toEqual(payloads[index])
        payload.fill(0xff)
        if (size > 8192) expect(payload.buffer.byteLength).toBe(size)
      })
    },
  )

  it('goes on when the memory of a payload was transferred', () => {
    const decoder = new Decoder({ from: 'server' })
    const [first] = [...decoder.push(whole)] as [PublishPacket]
    structuredClone(first.payload.buffer, { transfer: [first.payload.buffer] })
    const packets = [
      ...decoder.push(Buffer.concat([hex('300400016100'), whole])),
    ] as PublishPacket[]
    expect(packets.map(({ payload }) => [...payload])).toEqual([[], [0x78]])
    // An empty one has memory of its own, too.
    const { buffer } = (packets[0] as PublishPacket).payload
    structuredClone(buffer, { transfer: [buffer] })
    for (const byte of hex('30040001')) decoder.push(Uint8Array.of(byte))
    expect([...decoder.push(hex('6100'))]).toMatchObject([{ payload: new Uint8Array(0) }])
  })

  it('yields the good packets, then throws, each time its result is walked, and throws the same error ever after', () => {
    const decoder = new Decoder({ from: 'server' })
    const result = decoder.push(hex('d000d0003600d000'))
    const errors = [1, 2].map(() => {
      const packets: Packet[] = []
      const error = thrown(() => {
        for (const packet of result) packets.push(packet)
      })
      expect(packets.map(({ type }) => type)).toEqual(['pingresp', 'pingresp'])
      return error
    })
    errors.push(...[1, 2].map(() => thrown(() => decoder.push(hex('d000')))))
    expect(errors[0]).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
    expect(new Set(errors).size).toBe(1)
  })

  it('nothing is pending behind an error: what was held of a packet is let go', () => {
    const decoder = new Decoder({ from: 'server' })
    decoder.push(hex('d000308080'))
    expect(decoder.pending).toBe(3)
    const result = decoder.push(hex('8080'))
    expect(() => [...result]).toThrow(expect.objectContaining({ kind: 'malformed' }))
    expect(decoder.pending).toBe(0)
  })

  it('reads a CONNECT by its own version and what follows too', () => {
    const decoder = new Decoder({ from: 'client' })
    expect(decoder.protocolVersion).toBe(5)
    const connect = '100d00044d51545404020000000163'
    const [first, second] = [...decoder.push(hex(`${connect}82060001000161018206000100016101`))]
    expect(first).toMatchObject({ type: 'connect', protocolVersion: 4 })
    expect(second).toMatchObject({ type: 'subscribe', subscriptions: [{ filter: 'a', qos: 1 }] })
    expect(decoder.protocolVersion).toBe(4)
    const older = new Decoder({ from: 'client', protocolVersion: 4 })
    expect([...older.push(hex('100d00044d51545405020000000000'))]).toMatchObject([
      { protocolVersion: 5 },
    ])
    expect(older.protocolVersion).toBe(5)
  })

  it('counts offsets from the start of the packet at fault', () => {
    const decoder = new Decoder({ from: 'server' })
    expect(() => [...decoder.push(hex('d0003006000361006200'))]).toThrow(
      expect.objectContaining({ offset: 2 }),
    )
    const split = new Decoder({ from: 'server' })
    split.push(hex('d00030060003'))
    expect(() => [...split.push(hex('61006200'))]).toThrow(expect.objectContaining({ offset: 2 }))
  })

  it('decode refuses bytes left over', () => {
    expect(() => decode(hex('d000d000'), { from: 'server' })).toThrow(
      expect.objectContaining({ kind: 'malformed', offset: 2 }),
    )
    expect(() => decode(new Uint8Array(0), { from: 'server' })).toThrow(
      expect.objectContaining({ kind: 'incomplete', code: 'ERR_MALFORMED_PACKET' }),
    )
  })
})
