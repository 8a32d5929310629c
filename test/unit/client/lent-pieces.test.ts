/** Memory for borrowed messages of small reads: used again as soon as nobody looks at it, and never before. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../src/client/api/index.js'
import { type Piece, Pieces } from '../../../src/client/memory/message-memory.js'
import { PublishView } from '../../../src/wire/publish.js'
import { agreed, gate, quick, subscribe } from './incoming.js'

function at(bytes: Uint8Array, start: number, size: number): PublishView {
  const view = new PublishView()
  return Object.assign(view, {
    bytes,
    propertiesStart: start,
    propertiesEnd: start,
    payloadStart: start,
    payloadEnd: start + size,
  })
}

/** A read of so many bytes, all the same. */
const read = (size: number, value: number): Uint8Array => new Uint8Array(size).fill(value)

/** Borrows the first bytes of a read, as a message does. */
function lend(pieces: Pieces, value: number, size = 100): Piece {
  const piece = pieces.lend(at(read(size, value), 0, size), size)
  piece.lent += 1
  return piece
}

describe('what is lent of small reads', () => {
  it('lies where the one before lay, once that is given back', () => {
    const pieces = new Pieces()
    const first = lend(pieces, 1)
    first.lent -= 1
    const second = lend(pieces, 2)
    expect(second).toBe(first)
    expect(second.bytes.subarray(0, 100)).toEqual(read(100, 2))
  })

  it('lies elsewhere while that is looked at', () => {
    const pieces = new Pieces()
    const first = lend(pieces, 1)
    expect(lend(pieces, 2)).not.toBe(first)
    expect(first.bytes.subarray(0, 100)).toEqual(read(100, 1))
  })

  it('is no place for messages that are owned', () => {
    const pieces = new Pieces()
    const source = read(200, 1)
    const lent = pieces.lend(at(source, 0, 100), 200)
    expect(pieces.hold(at(source, 0, 100), 200, false)).not.toBe(lent)
    expect(pieces.hold(at(source, 0, 100), 200, true)).not.toBe(lent)
  })

  it('never lies in what others of the thread see', () => {
    const pieces = new Pieces()
    lend(pieces, 1)
    const view = at(read(200, 2), 0, 100)
    const common = pieces.hold(view, 200, false)
    expect(common.bytes.length).toBeGreaterThan(1000)
    const lent = pieces.lend(view, 200)
    expect(lent).not.toBe(common)
    expect(lent.bytes).toEqual(read(200, 2))
  })

  it('is made anew when one is never given back', () => {
    const pieces = new Pieces()
    const stuck = lend(pieces, 1)
    const others = Array.from({ length: 200 }, (_, index) => {
      const piece = lend(pieces, index)
      piece.lent -= 1
      return piece
    })
    expect(others).not.toContain(stuck)
    expect(new Set(others).size).toBeLessThan(70)
    expect(stuck.bytes.subarray(0, 100)).toEqual(read(100, 1))
  })

  it('stays what it is as long as it is lent, whatever else is read, borrowed and owned meanwhile', () => {
    const step = fc.record({
      kind: fc.constantFrom('lend', 'own', 'give back', 'read'),
      value: fc.integer({ min: 0, max: 255 }),
      size: fc.integer({ min: 1, max: 9000 }),
    })
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 200, size: 'max' }), (steps) => {
        const pieces = new Pieces()
        let source = read(10_000, 0)
        const held: { piece: Piece; from: number; bytes: Uint8Array; lent: boolean }[] = []
        for (const { kind, value, size } of steps) {
          if (kind === 'read') {
            // The window is read into again.
            pieces.forget()
            source.fill(value)
            if (value > 200) source = read(10_000, value)
          } else if (kind === 'give back') {
            const index = held.findIndex(({ lent }) => lent)
            for (const { piece } of held.splice(Math.max(0, index), index < 0 ? 0 : 1))
              piece.lent -= 1
          } else {
            const start = (value * 37) % (10_000 - size)
            const view = at(source, start, size)
            const piece =
              kind === 'lend' ? pieces.lend(view, 10_000) : pieces.hold(view, 10_000, false)
            if (kind === 'lend') piece.lent += 1
            held.push({
              piece,
              from: start - pieces.shift,
              bytes: source.slice(start, start + size),
              lent: kind === 'lend',
            })
          }
          for (const { piece, from, bytes } of held)
            expect(Buffer.compare(piece.bytes.subarray(from, from + bytes.length), bytes)).toBe(0)
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('borrowed messages of small reads', () => {
  it('are shown to a handler while they are read, in memory that is used again', async () => {
    const world = await agreed()
    const buffers = new Set<ArrayBufferLike>()
    const texts: string[] = []
    const record = (message: Message): void => {
      buffers.add(message.payload.buffer)
      texts.push(message.text())
    }
    const listening = world.client.listen('a', record, { lifetime: 'borrowed' })
    await world.settle()
    await listening
    for (const message of quick('a', 50)) await world.send(message)
    expect(texts).toEqual(Array.from({ length: 50 }, (_, index) => String(index + 1)))
    expect(buffers.size).toBe(1)
  })

  it('stay while an asynchronous handler looks at them, though reads go on; owned ones stay for ever', async () => {
    const world = await agreed()
    const doors = Array.from({ length: 20 }, gate)
    const wrong: string[] = []
    let begun = 0
    const handler = async (message: Message): Promise<void> => {
      const { payload } = message
      const before = String(payload)
      await doors[begun++]?.promise
      if (String(payload) !== before || message.text() !== String(begun)) wrong.push(message.text())
    }
    const listening = world.client.listen('a', handler, { lifetime: 'borrowed' })
    const owned = await subscribe(world, 'a')
    await listening
    for (const message of quick('a', 20)) await world.send(message)
    for (const door of doors) {
      door.open()
      await world.settle()
    }
    expect([begun, wrong]).toEqual([20, []])
    const kept = Array.from({ length: 20 }, () => owned.read()?.text())
    expect(kept).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 1)))
  })
})
