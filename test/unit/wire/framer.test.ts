import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { Framer } from '../../../src/wire/framer.js'
import type { Packet } from '../../../src/wire/index.js'
import { Decoder, decode, MAXIMUM_PACKET_SIZE, WireError } from '../../../src/wire/index.js'

const publish = Buffer.from('300500016100', 'hex').subarray(0, 6)
const whole = Buffer.from('30050001610078', 'hex')

function framer(maximumPacketSize = MAXIMUM_PACKET_SIZE): Framer {
  return new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize })
}

describe('Framer', () => {
  it('exposes frames of a chunk in place', () => {
    const chunk = Buffer.concat([whole, whole])
    const frames = framer()
    frames.push(chunk)
    expect(frames.next()).toBe(true)
    expect(frames.bytes).toBe(chunk)
    expect([frames.start, frames.body, frames.end]).toEqual([0, 2, 7])
    expect(frames.next()).toBe(true)
    expect(frames.bytes).toBe(chunk)
    expect([frames.start, frames.body, frames.end]).toEqual([7, 9, 14])
    expect(frames.next()).toBe(false)
    expect(frames.pending).toBe(0)
    expect(frames.bytes).toHaveLength(0)
  })

  it('carries the rest of a chunk over, at every cut, and lets go of the chunk', () => {
    const two = Buffer.concat([whole, whole])
    for (let cut = 8; cut < 14; cut++) {
      const frames = framer()
      const first = Uint8Array.from(two.subarray(0, cut))
      frames.push(first)
      expect(frames.next()).toBe(true)
      expect(frames.next()).toBe(false)
      expect(frames.pending).toBe(cut - 7)
      first.fill(0xee)
      frames.push(two.subarray(cut))
      expect(frames.next()).toBe(true)
      expect(frames.pending).toBe(0)
      expect([frames.start, frames.body, frames.end]).toEqual([0, 2, 7])
      expect(Buffer.compare(frames.bytes.subarray(frames.start, frames.end), whole)).toBe(0)
      expect(frames.next()).toBe(false)
      expect(frames.bytes).toHaveLength(0)
    }
  })

  it('reads a chunk from the byte that it is told', () => {
    const frames = framer()
    frames.push(Buffer.concat([publish, whole, publish]), 15, undefined, 6)
    expect(frames.unread).toBe(9)
    expect(frames.next()).toBe(true)
    expect([frames.start, frames.body, frames.end]).toEqual([6, 8, 13])
    expect(frames.next()).toBe(false)
    expect(frames.pending).toBe(2)
  })

  it('measures a frame that is not its own, as strictly', () => {
    const frames = framer(7)
    expect(frames.measure(Buffer.concat([publish, whole]), 6, 13)).toBe(7)
    expect(frames.body).toBe(8)
    expect(frames.measure(whole, 0, 1)).toBe(0)
    expect(() => frames.measure(Buffer.from('100000', 'hex'), 0, 3)).toThrow(expect.objectContaining({ kind: 'protocol', offset: 0 }))
    expect(() => frames.measure(Buffer.from('3006', 'hex'), 0, 2)).toThrow(expect.objectContaining({ kind: 'too-large', offset: 1 }))
  })

  it('does nothing with an empty chunk', () => {
    const frames = framer()
    frames.push(new Uint8Array(0))
    expect(frames.next()).toBe(false)
    frames.push(publish)
    expect(frames.next()).toBe(false)
    frames.push(new Uint8Array(0))
    expect(frames.next()).toBe(false)
    expect(frames.pending).toBe(6)
  })

  it('refuses a packet over the maximum size at its header, with nothing of it held', () => {
    for (const header of ['30ffffff7f', '30808001', '3007']) {
      const frames = framer(8)
      frames.push(Buffer.from(header, 'hex'))
      expect(() => frames.next()).toThrow(
        expect.objectContaining({ kind: 'too-large', reasonCode: 0x95, code: 'ERR_PACKET_TOO_LARGE', fault: 'remote' }),
      )
      expect(frames.pending).toBe(0)
    }
    const frames = framer(8)
    frames.push(Buffer.from('30060001610062', 'hex'))
    expect(frames.next()).toBe(false)
  })

  it('counts the fixed header against the maximum size, at each of its sizes', () => {
    for (const [length, header] of [
      [127, 2],
      [128, 3],
      [16_383, 3],
      [16_384, 4],
    ] as const) {
      const bytes = Buffer.alloc(length + header)
      bytes[0] = 0x30
      for (let left = length, at = 1; at < header; at++, left >>= 7) bytes[at] = (left & 127) | (at < header - 1 ? 128 : 0)
      const exact = framer(length + header)
      exact.push(bytes)
      expect(exact.next()).toBe(true)
      expect(exact.body).toBe(header)
      const smaller = framer(length + header - 1)
      smaller.push(bytes)
      expect(() => smaller.next()).toThrow(WireError)
    }
  })

  it('follows a maximum size that changes', () => {
    const frames = framer(100)
    frames.push(whole)
    expect(frames.next()).toBe(true)
    frames.maximumPacketSize = 6
    frames.push(whole)
    expect(() => frames.next()).toThrow(expect.objectContaining({ kind: 'too-large' }))
  })

  it('reports a bad first byte although the length is missing', () => {
    for (const first of [0x00, 0x0f, 0x36, 0x38, 0x10, 0x82, 0xa2, 0xc0, 0x41, 0xd1]) {
      const frames = framer()
      frames.push(Uint8Array.of(first))
      expect(() => frames.next(), String(first)).toThrow(WireError)
    }
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

  it('holds at most twice what arrived', () => {
    const before = process.memoryUsage().arrayBuffers
    const held: Framer[] = []
    for (let i = 0; i < 1000; i++) {
      const frames = framer()
      frames.push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1))
      frames.next()
      held.push(frames)
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
    expect(held).toHaveLength(1000)
  })

  it('takes one byte at a time in linear time', () => {
    // Two million bytes: quadratic work would copy 2 TB, and never come to an end.
    const count = 2_000_000
    const frames = framer()
    frames.push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f))
    frames.next()
    const one = new Uint8Array(1)
    for (let i = 0; i < count; i++) {
      frames.push(one)
      frames.next()
    }
    expect(frames.pending).toBe(count + 5)
  })
})

describe('Decoder', () => {
  it('works at the time of the call and keeps nothing of the chunk', () => {
    const decoder = new Decoder({ from: 'server' })
    const chunk = Uint8Array.from([...Buffer.from('300c00016105090002aabb', 'hex'), ...Buffer.from('787878', 'hex')])
    const packets = decoder.push(chunk)
    chunk.fill(0)
    const [packet] = [...packets]
    expect(packet).toMatchObject({ topic: 'a', payload: Uint8Array.of(0x78, 0x78, 0x78), properties: { correlationData: Uint8Array.of(0xaa, 0xbb) } })
    expect((packet as { payload: Uint8Array }).payload.buffer.byteLength).toBe(3)
    expect(Object.getPrototypeOf((packet as { payload: Uint8Array }).payload)).toBe(Uint8Array.prototype)
  })

  it('gives plain arrays of their own memory also from a Buffer of a pool', () => {
    const packet = decode(Buffer.from('30050001610078', 'hex'), { from: 'server' }) as { payload: Uint8Array }
    expect(Buffer.isBuffer(packet.payload)).toBe(false)
    expect(packet.payload.buffer.byteLength).toBe(1)
  })

  it('yields the good packets, then throws, and throws the same error ever after', () => {
    const decoder = new Decoder({ from: 'server' })
    const packets: Packet[] = []
    let thrown: unknown
    try {
      for (const packet of decoder.push(Buffer.from('d000d0003600d000', 'hex'))) packets.push(packet)
    } catch (error) {
      thrown = error
    }
    expect(packets).toHaveLength(2)
    expect(thrown).toBeInstanceOf(WireError)
    for (let i = 0; i < 2; i++) {
      let again: unknown
      try {
        decoder.push(Buffer.from('d000', 'hex'))
      } catch (error) {
        again = error
      }
      expect(again).toBe(thrown)
    }
  })

  it('throws at the next call when the failing chunk was not iterated', () => {
    const decoder = new Decoder({ from: 'server' })
    decoder.push(Uint8Array.of(0))
    expect(() => decoder.push(Uint8Array.of(0xd0, 0))).toThrow(WireError)
  })

  it('reads a CONNECT by its own version and what follows too', () => {
    const decoder = new Decoder({ from: 'client' })
    expect(decoder.protocolVersion).toBe(5)
    const connect = '100d00044d51545404020000000163'
    const [first, second] = [...decoder.push(Buffer.from(`${connect}82060001000161018206000100016101`, 'hex'))]
    expect(first).toMatchObject({ type: 'connect', protocolVersion: 4 })
    expect(second).toMatchObject({ type: 'subscribe', subscriptions: [{ filter: 'a', qos: 1 }] })
    expect(decoder.protocolVersion).toBe(4)
    const older = new Decoder({ from: 'client', protocolVersion: 4 })
    expect([...older.push(Buffer.from('100d00044d51545405020000000000', 'hex'))]).toMatchObject([{ protocolVersion: 5 }])
    expect(older.protocolVersion).toBe(5)
  })

  it('counts offsets from the start of the packet at fault', () => {
    const decoder = new Decoder({ from: 'server' })
    expect(() => [...decoder.push(Buffer.from('d0003006000361006200', 'hex'))]).toThrow(expect.objectContaining({ offset: 2 }))
    const split = new Decoder({ from: 'server' })
    split.push(Buffer.from('d00030060003', 'hex'))
    expect(() => [...split.push(Buffer.from('61006200', 'hex'))]).toThrow(expect.objectContaining({ offset: 2 }))
  })

  it('refuses options that it cannot work with', () => {
    const make = (options: object) => (): unknown => new Decoder(options as never)
    for (const options of [
      {},
      { from: 'broker' },
      { from: 'server', protocolVersion: 3 },
      { from: 'server', maximumPacketSize: 0 },
      { from: 'server', maximumPacketSize: Number.NaN },
      { from: 'server', maximumPacketSize: 1.5 },
    ]) {
      expect(make(options)).toThrow(MqttError)
      expect(make(options)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
    }
    for (const bytes of ['d000', [0xd0, 0], new ArrayBuffer(2), null]) {
      expect(() => decode(bytes as never, { from: 'server' })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'bytes' }))
      expect(() => new Decoder({ from: 'server' }).push(bytes as never)).toThrow(expect.objectContaining({ option: 'bytes' }))
    }
  })

  it('decode refuses bytes left over', () => {
    expect(() => decode(Buffer.from('d000d000', 'hex'), { from: 'server' })).toThrow(expect.objectContaining({ kind: 'malformed', offset: 2 }))
    expect(() => decode(new Uint8Array(0), { from: 'server' })).toThrow(expect.objectContaining({ kind: 'incomplete', code: 'ERR_MALFORMED_PACKET' }))
  })

  it('accepts topics of length 1, of 65,535 bytes and of 65,000 levels', () => {
    for (const topic of ['a', 'x'.repeat(65_535), '/'.repeat(65_000)]) {
      const body = Buffer.concat([Buffer.of(topic.length >> 8, topic.length & 255), Buffer.from(topic), Buffer.of(0)])
      const length: number[] = []
      for (let left = body.length; left > 0 || length.length === 0; left >>= 7) length.push((left & 127) | (left > 127 ? 128 : 0))
      expect(decode(Buffer.concat([Buffer.of(0x30, ...length), body]), { from: 'server' })).toMatchObject({ topic })
    }
  })

  it('keeps user properties of any name as plain data', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const pairs = names.map((name) => Buffer.concat([Buffer.of(0x26, 0, name.length), Buffer.from(name), Buffer.from('000178', 'hex')]))
    const properties = Buffer.concat(pairs)
    const packet = decode(Buffer.concat([Buffer.of(0x30, properties.length + 4, 0, 1, 0x61, properties.length), properties]), { from: 'server' })
    expect(packet).toMatchObject({ properties: { userProperties: names.map((name) => [name, 'x']) } })
    expect(Object.keys((packet as { properties: object }).properties)).toEqual(['userProperties'])
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  it('takes a million user properties in linear time', () => {
    // Quadratic work would look at 10^12 properties, and never come to an end.
    const count = 1_000_000
    const size = count * 5
    const bytes = Buffer.alloc(size + 20)
    const varint = (value: number): number[] => [(value & 127) | 128, ((value >> 7) & 127) | 128, ((value >> 14) & 127) | 128, value >> 21]
    bytes.set([0x30, ...varint(size + 7), 0, 1, 0x61, ...varint(size)])
    for (let i = 0; i < count; i++) bytes[12 + i * 5] = 0x26
    const packet = decode(bytes.subarray(0, 12 + size), { from: 'server' }) as { properties: { userProperties: unknown[] } }
    expect(packet.properties.userProperties).toHaveLength(count)
  })

  it('names the rule and nothing of the packet in its errors', () => {
    for (const hex of ['101400044d51545405c20000000001630002716a003f', '300900066100247a717a78']) {
      try {
        decode(Buffer.from(hex, 'hex'), { from: hex.startsWith('10') ? 'client' : 'server' })
        expect.unreachable()
      } catch (error) {
        expect((error as WireError).message).toMatch(/^[a-z0-9 A-Z-]+$/)
        expect(JSON.stringify(error)).not.toMatch(/qj|zqzx/)
      }
    }
  })
})
