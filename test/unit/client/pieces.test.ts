import { describe, expect, it } from 'vitest'
import { Piece, Pieces } from '../../../src/client/memory/message-memory.js'
import { PublishView } from '../../../src/wire/publish.js'

/** A view of a message at a place, with so many bytes from its properties to its end. */
function at(bytes: Uint8Array, start: number, size: number): PublishView {
  const view = new PublishView()
  view.bytes = bytes
  view.propertiesStart = start
  view.propertiesEnd = start
  view.payloadStart = start
  view.payloadEnd = start + size
  return view
}

function numbered(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => index % 251)
}

describe('Pieces', () => {
  it('messages near each other share a piece of 7 KiB, and see their bytes in it', () => {
    const pieces = new Pieces()
    const source = numbered(64 * 1024)
    const made: Piece[] = []
    for (let start = 0; start + 50 <= source.length; start += 64) {
      const piece = pieces.hold(at(source, start, 50), source.length)
      if (made.at(-1) !== piece) made.push(piece)
      expect(piece.bytes.subarray(start - pieces.shift, start - pieces.shift + 50)).toEqual(source.slice(start, start + 50))
    }
    expect(made.length).toBeGreaterThanOrEqual(9)
    expect(made.length).toBeLessThanOrEqual(10)
    expect(Math.max(...made.map(({ bytes }) => bytes.length))).toBe(7168)
    for (const piece of made) expect([piece.bytes.buffer === source.buffer, piece.window, piece.offset]).toEqual([false, false, 0])
  })

  it('takes no byte from behind the limit', () => {
    const source = numbered(64 * 1024)
    expect(new Pieces().hold(at(source, 100, 20), 130).bytes).toEqual(source.slice(100, 130))
    expect(new Pieces().hold(at(source, 100, 20), 120).bytes).toEqual(source.slice(100, 120))
  })

  it('a message of more than 4 KiB has one of exactly its size; the next begins another', () => {
    const pieces = new Pieces()
    const source = numbered(64 * 1024)
    const large = pieces.hold(at(source, 10, 4097), source.length)
    expect(large.bytes).toEqual(source.slice(10, 4107))
    expect(pieces.hold(at(source, 10, 4097), source.length)).toBe(large)
    expect(pieces.hold(at(source, 4110, 10), source.length)).not.toBe(large)
    expect(pieces.hold(at(source, 5000, 3584), source.length).bytes.length).toBe(7168)
  })

  it.each([
    ['before it', 90, 5],
    ['across its end', 8180, 200],
    ['across its beginning', 95, 20],
  ])('one that lies %s has another piece', (_where, start, size) => {
    const pieces = new Pieces()
    const source = numbered(64 * 1024)
    const first = pieces.hold(at(source, 100, 20), source.length)
    const other = pieces.hold(at(source, start, size), source.length)
    expect(other).not.toBe(first)
    expect(other.bytes.subarray(0, size)).toEqual(source.slice(start, start + size))
  })

  it('after forget() the same places are other bytes', () => {
    const pieces = new Pieces()
    const source = numbered(1000)
    const first = pieces.hold(at(source, 0, 100), 1000)
    pieces.forget()
    source.fill(7)
    const second = pieces.hold(at(source, 0, 100), 1000)
    expect([first.bytes[1], second.bytes[1]]).toEqual([1, 7])
  })

  it('a payload that lies apart is taken as it is by the first, and copied for the others', () => {
    const pieces = new Pieces()
    const view = at(numbered(100), 10, 20_000)
    view.apart = numbered(20_000)
    const first = pieces.hold(view, 100)
    const second = pieces.hold(view, 100)
    const third = pieces.hold(view, 100)
    expect(first.bytes).toBe(view.apart)
    for (const piece of [second, third]) {
      expect(piece.bytes).toEqual(view.apart)
      expect(piece.bytes.buffer).not.toBe(view.apart.buffer)
    }
    expect(second.bytes).not.toBe(third.bytes)
    expect(pieces.hold(at(view.bytes, 10, 20), 100).bytes.length).toBe(90)
  })
})

describe('Piece', () => {
  const [mine, yours] = [Symbol(), Symbol()]

  it.each([
    ['nobody has anything of it', [], true],
    ['less than half of it is one owner’s', [[mine, 49]], true],
    ['half of it is one owner’s', [[mine, 50]], false],
    [
      'messages of one owner fill half of it',
      [
        [mine, 20],
        [mine, 30],
      ],
      false,
    ],
    [
      'it is full, and of two owners',
      [
        [mine, 50],
        [yours, 50],
      ],
      true,
    ],
    [
      'it is full, and of two owners in turn',
      [
        [mine, 40],
        [yours, 20],
        [mine, 40],
      ],
      true,
    ],
  ] as const)('wastes memory when %s', (_when, given, wasteful) => {
    const piece = new Piece(new Uint8Array(100))
    for (const [owner, size] of given) piece.give(owner, size)
    expect(piece.wasteful).toBe(wasteful)
  })

  it('a window always would, to keep one message', () => {
    const window = new Piece(new Uint8Array(100), true)
    window.give(mine, 100)
    expect(window.wasteful).toBe(true)
  })
})
