/**
 * What every transport has to do, whatever carries its bytes. Each transport's test file calls this with a way to make connected pairs.
 */

import { afterEach, describe, expect, it } from 'vitest'
import type { Transport } from '../../../src/transport/transport.js'
import { pause } from '../../support/pausing.js'
import { pattern, Recorder } from './rig.js'

/** A connected pair; `cleanup` removes what stands behind it. */
export interface Pair {
  readonly a: Transport
  readonly b: Transport
  readonly cleanup: () => Promise<void> | void
}

export interface Subject {
  readonly name: string
  readonly pair: () => Promise<Pair>
}

const block = new Uint8Array(64 * 1024).fill(7)

export function transportContract({ name, pair }: Subject): void {
  suite(`${name}, forward`, pair)
  suite(`${name}, backward`, async () => {
    const { a, b, cleanup } = await pair()
    return { a: b, b: a, cleanup }
  })
}

function suite(name: string, pair: () => Promise<Pair>): void {
  describe(name, () => {
    const pairs: Pair[] = []
    const recorders: Recorder[] = []

    afterEach(async () => {
      for (const { a, b } of pairs) for (const transport of [a, b]) transport.destroy()
      await pause(20)
      for (const { cleanup } of pairs.splice(0)) await cleanup()
      for (const { violations, ends } of recorders.splice(0)) {
        expect(violations).toEqual([])
        expect(ends).toBeLessThanOrEqual(1)
      }
    })

    async function make(): Promise<{ a: Recorder; b: Recorder }> {
      const made = await pair()
      pairs.push(made)
      const result = { a: new Recorder(made.a), b: new Recorder(made.b) }
      recorders.push(result.a, result.b)
      return result
    }

    async function connected(): Promise<{ a: Recorder; b: Recorder }> {
      const { a, b } = await make()
      a.open()
      b.open()
      return { a, b }
    }

    /** Writes until told to stop; how often that took is what the carrier holds. */
    function fill(to: Recorder, written?: (error?: unknown) => void): number {
      for (let count = 1; count <= 2000; count++) if (!to.write(block, written)) return count
      throw new Error('write() never returned false')
    }

    it('carries 1 MB in odd chunks, in order and unchanged, with backpressure honoured', async () => {
      const { a, b } = await connected()
      const data = pattern(1_000_003)
      const sizes = [1, 7, 333, 4099, 2, 65537, 100_003]
      for (let at = 0, turn = 0; at < data.length; turn++) {
        const end = at + (sizes[turn % sizes.length] as number)
        const { drains } = a
        if (!a.write(data.subarray(at, end))) await a.until(() => a.drains > drains, 'drain')
        at = end
      }
      await b.until(() => b.length >= data.length, 'all bytes')
      expect(b.bytes.equals(data)).toBe(true)
    })

    it('carries both directions at once', async () => {
      const { a, b } = await connected()
      a.write(pattern(50_000, 1))
      b.write(pattern(60_000, 2))
      await a.until(() => a.length >= 60_000, 'bytes at a')
      await b.until(() => b.length >= 50_000, 'bytes at b')
      expect(a.bytes.equals(pattern(60_000, 2))).toBe(true)
      expect(b.bytes.equals(pattern(50_000, 1))).toBe(true)
    })

    it('keeps bytes that come before open(), in order', async () => {
      const { a, b } = await make()
      a.open()
      a.write(pattern(10, 1))
      await pause(30)
      a.write(pattern(5000, 2))
      await pause(30)
      b.open()
      await pause(30)
      a.write(pattern(20, 3))
      await b.until(() => b.length >= 5030, 'all bytes')
      expect(
        b.bytes.equals(Buffer.concat([pattern(10, 1), pattern(5000, 2), pattern(20, 3)])),
      ).toBe(true)
    })

    it('keeps bytes and an end that come before open()', async () => {
      const { a, b } = await make()
      a.open()
      a.write(pattern(3000))
      a.close()
      await pause(30)
      b.open()
      await b.untilClosed()
      expect(b.bytes.equals(pattern(3000))).toBe(true)
      expect(b.cause).toBeUndefined()
    })

    it('write() returns false above the high-water mark, and drain() follows exactly once', async () => {
      const { a, b } = await connected()
      const count = fill(a)
      expect(a.drains).toBe(0)
      await a.until(() => a.drains > 0, 'drain')
      await b.until(() => b.length >= count * block.length, 'all bytes')
      await pause(30)
      expect(a.drains).toBe(1)
      const more = fill(a)
      await a.until(() => a.drains > 1, 'second drain')
      await b.until(() => b.length >= (count + more) * block.length, 'all bytes')
      await pause(30)
      expect(a.drains).toBe(2)
    })

    it('calls written() in order, once each, without an error', async () => {
      const { a, b } = await connected()
      const calls: [number, unknown][] = []
      for (let index = 0; index < 20; index++)
        a.write(pattern(1 + index * 997), (error) => calls.push([index, error]))
      await b.until(() => b.length >= 20 + 997 * 190, 'all bytes')
      await pause(30)
      expect(calls).toEqual(Array.from({ length: 20 }, (_, index) => [index, undefined]))
    })

    it('close() sends what is queued, then ends both sides in order', async () => {
      const { a, b } = await connected()
      const errors: unknown[] = []
      const count = fill(a, (error) => errors.push(error))
      a.write(pattern(333), (error) => errors.push(error))
      a.close()
      await Promise.all([b.untilClosed(), a.untilClosed()])
      expect(b.length).toBe(count * block.length + 333)
      expect(b.bytes.subarray(-333).equals(pattern(333))).toBe(true)
      expect(errors).toEqual(new Array(count + 1).fill(undefined))
      expect([a.cause, b.cause]).toEqual([undefined, undefined])
    })

    it('close() twice, and from both sides at once, ends each side once', async () => {
      const { a, b } = await connected()
      a.close()
      a.close()
      b.close()
      await Promise.all([a.untilClosed(), b.untilClosed()])
      await pause(30)
      expect([a.ends, b.ends, a.cause, b.cause]).toEqual([1, 1, undefined, undefined])
    })

    it('close() before open() still ends both sides', async () => {
      const { a, b } = await make()
      a.close()
      b.open()
      await pause(30)
      a.open()
      await Promise.all([a.untilClosed(), b.untilClosed()])
      expect([a.cause, b.cause]).toEqual([undefined, undefined])
    })

    it('destroy() ends this side once with the cause, delivers no more, and the peer ends too', async () => {
      const { a, b } = await connected()
      b.write(pattern(1000))
      const cause = new Error('enough')
      a.destroy(cause)
      a.destroy(new Error('again'))
      await Promise.all([a.untilClosed(), b.untilClosed()])
      await pause(30)
      expect([a.ends, b.ends]).toEqual([1, 1])
      expect(a.cause).toBe(cause)
      expect(a.length).toBe(0)
    })

    it('destroy() reports bytes that did not leave', async () => {
      const { a, b } = await connected()
      const errors: unknown[] = []
      const count = fill(a, (error) => errors.push(error))
      a.destroy()
      await Promise.all([a.untilClosed(), b.untilClosed()])
      await pause(30)
      expect(errors).toHaveLength(count)
      expect(errors.at(-1)).toBeInstanceOf(Error)
      expect(b.length).toBeGreaterThanOrEqual(
        errors.filter((error) => error === undefined).length * block.length,
      )
      expect(a.cause).toBeUndefined()
    })

    it('destroy() reports a write that was under way', async () => {
      const { a } = await connected()
      const errors: unknown[] = []
      a.write(new Uint8Array(24 * 1024 * 1024), (error) => errors.push(error))
      a.destroy()
      await a.untilClosed()
      await pause(30)
      expect(errors).toEqual([expect.any(Error)])
    })

    it('destroy() before open() is told at open()', async () => {
      const { a, b } = await make()
      b.open()
      b.write(pattern(100))
      await pause(30)
      const cause = new Error('unwanted')
      a.destroy(cause)
      await b.untilClosed()
      a.open()
      await a.untilClosed()
      expect([a.length, a.ends, a.cause]).toEqual([0, 1, cause])
    })

    it('destroy() from inside a delivery stops it at once', async () => {
      const { a, b } = await make()
      a.open()
      const cause = new Error('bad bytes')
      a.write(pattern(100_000))
      await pause(30)
      b.onEvent = () => b.destroy(cause)
      b.open()
      await pause(60)
      b.onEvent = () => {}
      await Promise.all([a.untilClosed(), b.untilClosed()])
      expect(b.parts).toHaveLength(1)
      expect(b.cause).toBe(cause)
    })

    it('a peer that vanishes ends this side and fails what is on its way', async () => {
      const { a, b } = await connected()
      fill(a)
      b.destroy()
      await a.untilClosed()
      await pause(30)
      expect(a.ends).toBe(1)
    })

    it.each(['close', 'destroy'] as const)(
      'write() after %s() throws nothing, returns false and reports an error',
      async (how) => {
        const { a, b } = await connected()
        a[how]()
        const errors: unknown[] = []
        expect(a.write(pattern(10), (error) => errors.push(error))).toBe(false)
        await Promise.all([a.untilClosed(), b.untilClosed()])
        expect(a.write(pattern(10), (error) => errors.push(error))).toBe(false)
        a.close()
        a.destroy(new Error('late'))
        await pause(30)
        expect(errors).toEqual([expect.any(Error), expect.any(Error)])
        expect(b.length).toBe(0)
        expect(a.ends).toBe(1)
      },
    )

    it('a written array may be changed once written() was called', async () => {
      const { a, b } = await connected()
      const bytes = pattern(2000)
      await new Promise<void>((resolve) => a.write(bytes, () => resolve()))
      bytes.fill(0)
      expect(bytes.byteLength).toBe(2000)
      await b.until(() => b.length >= 2000, 'all bytes')
      expect(b.bytes.equals(pattern(2000))).toBe(true)
    })
  })
}
