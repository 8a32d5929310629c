/** Memory in which messages lie: the windows that are read into, the pieces that messages share, what is copied, and what would keep too much alive. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Message } from '../../../src/client/options/index.js'
import { Piece, Pieces } from '../../../src/common/message-memory.js'
import { Windows } from '../../../src/common/read-windows.js'
import { PublishView } from '../../../src/wire/publish.js'
import { times } from './harness.js'
import { agreed, quick } from './incoming.js'
import { listen } from './steps.js'

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
  for (const bytes of others) expect([bytes, bytes.buffer === apart.buffer]).toEqual([apart, false])
  expect(others[0]).not.toBe(others[1])
  expect(pieces.hold(at(view.bytes, 10, 20), 100).bytes.length).toBe(90)
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

const read = (size: number, value: number): Uint8Array => new Uint8Array(size).fill(value)

/** Borrows the first bytes of a read, as a message does. */
function lend(pieces: Pieces, value: number, size = 100): Piece {
  const piece = pieces.lend(at(read(size, value), 0, size), size)
  piece.lent += 1
  return piece
}

it('what is lent lies where the one before lay, once that is given back', () => {
  const pieces = new Pieces()
  const first = lend(pieces, 1)
  first.lent -= 1
  const second = lend(pieces, 2)
  expect(second).toBe(first)
  expect(second.bytes.subarray(0, 100)).toEqual(read(100, 2))
})

it('what is lent never lies in what others of the thread see', () => {
  const pieces = new Pieces()
  lend(pieces, 1)
  const view = at(read(200, 2), 0, 100)
  const common = pieces.hold(view, 200, false)
  expect(common.bytes.length).toBeGreaterThan(1000)
  const lent = pieces.lend(view, 200)
  expect(lent).not.toBe(common)
  expect(lent.bytes).toEqual(read(200, 2))
})

it('what is lent stays what it is as long as it is lent, whatever else is read, borrowed and owned meanwhile', () => {
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

it('borrowed messages of small reads are shown to a handler while they are read, in memory that is used again', async () => {
  const world = await agreed()
  const buffers = new Set<ArrayBufferLike>()
  const texts: string[] = []
  const record = (message: Message): void => {
    buffers.add(message.payload.buffer)
    texts.push(message.text())
  }
  await listen(world, 'a', record, { lifetime: 'borrowed' })
  for (const message of quick('a', 50)) await world.send(message)
  expect(texts).toEqual(times(50, (index) => String(index + 1)))
  expect(buffers.size).toBe(1)
})

const nothing = (): void => undefined
const busy = 4096

/** One read of so many bytes; gives the window that it went into, and what may be lent of it. */
function readInto(windows: Windows, length = busy, lends = true, moveOut = nothing) {
  const given = windows.give(lends, moveOut)
  expect(windows.give(lends, moveOut)).toBe(given)
  const taken = windows.take(length)
  expect(taken).toBe(given)
  return { bytes: taken.bytes, piece: windows.piece }
}

it('quiet connections share one, which is never lent', () => {
  const [one, other] = [new Windows(), new Windows()]
  const first = readInto(one, 100)
  expect(readInto(other, 100)).toEqual(first)
  expect(readInto(one, busy - 1).bytes).toBe(first.bytes)
  expect([first.piece, first.bytes.length]).toEqual([undefined, 65_536])
  expect(readInto(one, 100).bytes).toBe(first.bytes)
})

it('nobody who lends nothing leaves it, however busy', () => {
  const windows = new Windows()
  const shared = readInto(windows, busy, false)
  for (let round = 0; round < 5; round++) expect(readInto(windows, busy, false)).toEqual(shared)
})

it('a busy one that lends has its own from the next read on, and the same again while nothing of it is lent', () => {
  const windows = new Windows()
  const shared = readInto(windows)
  const own = readInto(windows)
  expect(own.bytes).not.toBe(shared.bytes)
  expect(own.piece?.bytes).toBe(own.bytes)
  expect(own.piece?.window).toBe(true)
  expect(readInto(windows).bytes).toBe(own.bytes)
  const other = new Windows()
  readInto(other)
  expect(readInto(other).bytes).not.toBe(own.bytes)
})

it('never reads into one of which something is lent', () => {
  const windows = new Windows()
  readInto(windows)
  const lent = readInto(windows)
  if (lent.piece !== undefined) lent.piece.lent = 1
  const seen = times(10, () => readInto(windows).bytes)
  expect(seen).not.toContain(lent.bytes)
  if (lent.piece !== undefined) lent.piece.lent = 0
  expect(times(3, () => readInto(windows).bytes)).toContain(lent.bytes)
})

it('has four; then what waits moves out, and a window that is free again is used', () => {
  const windows = new Windows()
  readInto(windows)
  const lent: Piece[] = []
  let moves = 0
  const moveOut = (): void => {
    moves += 1
    for (const piece of lent) piece.lent = 0
  }
  const seen = new Set<Uint8Array>()
  for (let round = 0; round < 20; round++) {
    const { bytes, piece } = readInto(windows, busy, true, moveOut)
    seen.add(bytes)
    if (piece === undefined) continue
    piece.lent = 1
    lent.push(piece)
  }
  expect([seen.size, moves]).toEqual([4, 4])
})

it('gives up the oldest when all are in hand: it is read into no more, though it comes back', () => {
  const windows = new Windows()
  readInto(windows)
  const lent: { readonly bytes: Uint8Array; readonly piece: Piece | undefined }[] = []
  for (let round = 0; round < 6; round++) {
    const window = readInto(windows)
    if (window.piece !== undefined) window.piece.lent = 1
    lent.push(window)
  }
  expect(new Set(lent.map(({ bytes }) => bytes)).size).toBe(6)
  for (const { piece } of lent) if (piece !== undefined) piece.lent = 0
  const seen = times(10, () => readInto(windows).bytes)
  expect(seen).not.toContain(lent[0]?.bytes)
  expect(seen).not.toContain(lent[1]?.bytes)
})

it('gives its own back when it falls quiet', () => {
  const windows = new Windows()
  const shared = readInto(windows)
  const own = readInto(windows, 100)
  expect(readInto(windows, 100).bytes).toBe(shared.bytes)
  readInto(windows)
  expect(readInto(windows).bytes).not.toBe(own.bytes)
})

it('a scanner’s window takes the place of the shared one, and is not lent either; what was given before stays until it is read into', () => {
  const windows = new Windows()
  const given = windows.give(true, nothing)
  const bytes = new Uint8Array(1024)
  const instead = { bytes, data: new DataView(bytes.buffer) }
  windows.instead = instead
  expect(windows.take(busy)).toBe(given)
  expect(windows.piece).toBeUndefined()
  expect(readInto(windows, 10, false).bytes).toBe(bytes)
  expect(readInto(windows, 10, false).piece).toBeUndefined()
})

it('a read without a question goes where it always does', () => {
  const windows = new Windows()
  const shared = readInto(windows, 10)
  expect(windows.take(10).bytes).toBe(shared.bytes)
})
