import { expect, it } from 'vitest'
import type { Piece } from '../../../src/common/message-memory.js'
import { Windows } from '../../../src/common/read-windows.js'

const nothing = (): void => undefined
const busy = 4096

/** One read of so many bytes; gives the window that it went into, and what may be lent of it. */
function read(windows: Windows, length = busy, lends = true, moveOut = nothing) {
  const given = windows.give(lends, moveOut)
  expect(windows.give(lends, moveOut)).toBe(given)
  const taken = windows.take(length)
  expect(taken).toBe(given)
  return { bytes: taken.bytes, piece: windows.piece }
}

it('quiet connections share one, which is never lent', () => {
  const [one, other] = [new Windows(), new Windows()]
  const first = read(one, 100)
  expect(read(other, 100)).toEqual(first)
  expect(read(one, busy - 1).bytes).toBe(first.bytes)
  expect([first.piece, first.bytes.length]).toEqual([undefined, 65_536])
  expect(read(one, 100).bytes).toBe(first.bytes)
})

it('nobody who lends nothing leaves it, however busy', () => {
  const windows = new Windows()
  const shared = read(windows, busy, false)
  for (let round = 0; round < 5; round++) expect(read(windows, busy, false)).toEqual(shared)
})

it('a busy one that lends has its own from the next read on, and the same again while nothing of it is lent', () => {
  const windows = new Windows()
  const shared = read(windows)
  const own = read(windows)
  expect(own.bytes).not.toBe(shared.bytes)
  expect(own.piece?.bytes).toBe(own.bytes)
  expect(own.piece?.window).toBe(true)
  expect(read(windows).bytes).toBe(own.bytes)
  const other = new Windows()
  read(other)
  expect(read(other).bytes).not.toBe(own.bytes)
})

it('never reads into one of which something is lent', () => {
  const windows = new Windows()
  read(windows)
  const lent = read(windows)
  if (lent.piece !== undefined) lent.piece.lent = 1
  const seen = Array.from({ length: 10 }, () => read(windows).bytes)
  expect(seen).not.toContain(lent.bytes)
  if (lent.piece !== undefined) lent.piece.lent = 0
  expect(Array.from({ length: 3 }, () => read(windows).bytes)).toContain(lent.bytes)
})

it('has four; then what waits moves out, and a window that is free again is used', () => {
  const windows = new Windows()
  read(windows)
  const lent: Piece[] = []
  let moves = 0
  const moveOut = (): void => {
    moves += 1
    for (const piece of lent) piece.lent = 0
  }
  const seen = new Set<Uint8Array>()
  for (let round = 0; round < 20; round++) {
    const { bytes, piece } = read(windows, busy, true, moveOut)
    seen.add(bytes)
    if (piece === undefined) continue
    piece.lent = 1
    lent.push(piece)
  }
  expect([seen.size, moves]).toEqual([4, 4])
})

it('gives up the oldest when all are in hand: it is read into no more, though it comes back', () => {
  const windows = new Windows()
  read(windows)
  const lent: { readonly bytes: Uint8Array; readonly piece: Piece | undefined }[] = []
  for (let round = 0; round < 6; round++) {
    const window = read(windows)
    if (window.piece !== undefined) window.piece.lent = 1
    lent.push(window)
  }
  expect(new Set(lent.map(({ bytes }) => bytes)).size).toBe(6)
  for (const { piece } of lent) if (piece !== undefined) piece.lent = 0
  const seen = Array.from({ length: 10 }, () => read(windows).bytes)
  expect(seen).not.toContain(lent[0]?.bytes)
  expect(seen).not.toContain(lent[1]?.bytes)
})

it('gives its own back when it falls quiet', () => {
  const windows = new Windows()
  const shared = read(windows)
  const own = read(windows, 100)
  expect(read(windows, 100).bytes).toBe(shared.bytes)
  read(windows)
  expect(read(windows).bytes).not.toBe(own.bytes)
})

it('a scanner’s window takes the place of the shared one, and is not lent either; what was given before stays until it is read into', () => {
  const windows = new Windows()
  const given = windows.give(true, nothing)
  const bytes = new Uint8Array(1024)
  const instead = { bytes, data: new DataView(bytes.buffer) }
  windows.instead = instead
  expect(windows.take(busy)).toBe(given)
  expect(windows.piece).toBeUndefined()
  expect(read(windows, 10, false).bytes).toBe(bytes)
  expect(read(windows, 10, false).piece).toBeUndefined()
})

it('a read without a question goes where it always does', () => {
  const windows = new Windows()
  const shared = read(windows, 10)
  expect(windows.take(10).bytes).toBe(shared.bytes)
})
