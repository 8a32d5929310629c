/** Pieces of memory in which messages lie: which share one, what is copied, and what would keep too much alive. */
import { describe, expect, it } from 'vitest'
import { Piece, Pieces } from '../../../src/client/memory/message-memory.js'
import { PublishView } from '../../../src/wire/publish.js'

/** A view of a message at a place, with so many bytes from its properties to its end. */
function at(bytes: Uint8Array, start: number, size: number): PublishView {
  const places = {
    propertiesStart: start,
    propertiesEnd: start,
    payloadStart: start,
    payloadEnd: start + size,
  }
  return Object.assign(new PublishView(), { bytes, ...places })
}

const numbered = (size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => index % 251)
const source = numbered(64 * 1024)
const end = source.length

describe('Pieces', () => {
  it('messages near each other share a piece of 7 KiB, and see their bytes in it', () => {
    const pieces = new Pieces()
    const made = new Set<Piece>()
    for (let start = 0; start + 50 <= end; start += 64) {
      const piece = pieces.hold(at(source, start, 50), end)
      made.add(piece)
      expect(piece.bytes.subarray(start - pieces.shift, start - pieces.shift + 50)).toEqual(
        source.slice(start, start + 50),
      )
    }
    expect([9, 10]).toContain(made.size)
    expect(Math.max(...[...made].map(({ bytes }) => bytes.length))).toBe(7168)
    for (const piece of made)
      expect([piece.bytes.buffer === source.buffer, piece.window, piece.offset]).toEqual([
        false,
        false,
        0,
      ])
  })

  it.each([130, 120])('takes no byte from behind the limit of %i', (limit) => {
    expect(new Pieces().hold(at(source, 100, 20), limit).bytes).toEqual(source.slice(100, limit))
  })

  it('a message of more than 4 KiB has one of exactly its size; the next begins another', () => {
    const pieces = new Pieces()
    const large = pieces.hold(at(source, 10, 4097), end)
    expect(large.bytes).toEqual(source.slice(10, 4107))
    expect(pieces.hold(at(source, 10, 4097), end)).toBe(large)
    expect(pieces.hold(at(source, 4110, 10), end)).not.toBe(large)
    expect(pieces.hold(at(source, 5000, 3584), end).bytes.length).toBe(7168)
  })

  it.each([
    ['before it', 90, 5],
    ['across its end', 8180, 200],
    ['across its beginning', 95, 20],
  ])('one that lies %s has another piece', (_where, start, size) => {
    const pieces = new Pieces()
    const first = pieces.hold(at(source, 100, 20), end)
    const other = pieces.hold(at(source, start, size), end)
    expect(other).not.toBe(first)
    expect(other.bytes.subarray(0, size)).toEqual(source.slice(start, start + size))
  })

  it('after forget() the same places are other bytes', () => {
    const pieces = new Pieces()
    const bytes = numbered(1000)
    const first = pieces.hold(at(bytes, 0, 100), 1000)
    pieces.forget()
    bytes.fill(7)
    expect([first.bytes[1], pieces.hold(at(bytes, 0, 100), 1000).bytes[1]]).toEqual([1, 7])
  })

  it('a payload that lies apart is taken as it is by the first, and copied for the others', () => {
    const pieces = new Pieces()
    const apart = numbered(20_000)
    const view = Object.assign(at(numbered(100), 10, 20_000), { apart })
    const [first, ...others] = [1, 2, 3].map(() => pieces.hold(view, 100).bytes)
    expect(first).toBe(apart)
    for (const bytes of others)
      expect([bytes, bytes.buffer === apart.buffer]).toEqual([apart, false])
    expect(others[0]).not.toBe(others[1])
    expect(pieces.hold(at(view.bytes, 10, 20), 100).bytes.length).toBe(90)
  })
})

// Owners, and how many bytes each is given of 100.
it.each<[when: string, owners: string, sizes: number[], wasteful: boolean]>([
  ['nothing of it is in use', '', [], true],
  ['less than half of it is one owner’s', 'a', [49], true],
  ['half of it is one owner’s', 'a', [50], false],
  ['messages of one owner fill half of it', 'aa', [20, 30], false],
  ['it is full, and of two owners', 'ab', [50, 50], true],
  ['it is full, and of two owners in turn', 'aba', [40, 20, 40], true],
])('a piece wastes memory when %s; a window always', (_when, owners, sizes, wasteful) => {
  const symbols = new Map([...'ab'].map((name) => [name, Symbol(name)]))
  for (const window of [false, true]) {
    const piece = new Piece(new Uint8Array(100), window)
    for (const [index, size] of sizes.entries())
      piece.give(symbols.get(owners.charAt(index)) as symbol, size)
    expect(piece.wasteful).toBe(wasteful || window)
  }
})
