/** The framer of a connection: a cap for each kind of packet, and a chunk that is read on later. */
import { describe, expect, it } from 'vitest'
import { Framer } from '../../../src/wire/framer.js'
import { WireError } from '../../../src/wire/index.js'

const pingresp = [0xd0, 0]
const publish = [0x30, 5, 0, 1, 0x61, 0, 0x78]

/** Caps PINGRESP at 10 bytes, SUBACK at 200, and everything else at 1000. */
function capped(maximumPacketSize = 100): Framer {
  const sizeLimit = (type: number): number => ({ 13: 10, 9: 200 })[type] ?? 1000
  return new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize, sizeLimit })
}

function refused(framer: Framer, ...bytes: number[]): WireError | undefined {
  framer.push(Uint8Array.from(bytes))
  try {
    framer.next()
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
  return undefined
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
    const chunk = Uint8Array.from([...pingresp, ...publish, ...pingresp, ...publish.slice(0, 3)])
    framer.push(chunk)
    expect([framer.next(), framer.end - framer.start, framer.unread]).toEqual([true, 2, 12])
    framer.keep()
    chunk.fill(0xff)
    framer.keep()
    expect([framer.bytes.length, framer.unread, framer.pending]).toEqual([0, 12, 0])
    expect([framer.next(), [...framer.bytes.subarray(framer.start, framer.end)]]).toEqual([true, publish])
    // Kept again in the middle: still the same copy.
    const { bytes } = framer
    framer.keep()
    expect([framer.next(), framer.bytes === bytes, framer.unread]).toEqual([true, true, 3])
    expect([framer.next(), framer.pending, framer.unread]).toEqual([false, 3, 0])
    framer.push(Uint8Array.from(publish.slice(3)))
    expect([framer.next(), [...framer.bytes.subarray(framer.start, framer.end)]]).toEqual([true, publish])
  })

  it('may have been read to its end', () => {
    const framer = capped()
    framer.push(Uint8Array.from(pingresp))
    expect(framer.next()).toBe(true)
    framer.keep()
    expect([framer.unread, framer.next(), framer.pending]).toEqual([0, false, 0])
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
