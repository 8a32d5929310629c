/**
 * Memory of messages that outlive the read that brought them: copied out of it many at a time, or
 * lent in the read buffer.
 *
 * A piece is a copy of a stretch of a read, up to 7 KiB: far cheaper than an array for each
 * message, and a message kept for ever pins no more than that. Larger messages get pieces of their
 * own. A message that waits for long in a piece that it hardly fills is copied out, so that the
 * memory used is close to the memory counted. Borrowed messages stay in the read window if it can
 * be lent, otherwise in a piece that is reused.
 */
import type { PublishView } from '../wire/publish.js'

/** Most bytes shared by messages; with the objects, less than 8 KiB. */
const pieceSize = 7 * 1024
/** A stretch of a read up to this size goes into the piece that all connections share. */
const smallRead = 1024
/** Fewest bytes of a reusable piece, and how often it may be found lent before it is replaced. */
const leastLendable = 1024
const mostMisses = 64
const nothing = new Uint8Array(0)

/** Bytes that messages lie in. */
export class Piece {
  readonly bytes: Uint8Array
  /** Buffer and offset of `bytes`. */
  readonly buffer: ArrayBuffer
  readonly offset: number
  /** True for a read window: it is read into again once nothing is lent. */
  readonly window: boolean
  /** Number of borrowed messages in it that are not released. */
  lent = 0
  #used = 0
  #owner: symbol | undefined
  /** Several consumers have messages in it. */
  mixed = false

  constructor(bytes: Uint8Array, window = false) {
    this.bytes = bytes
    this.buffer = bytes.buffer as ArrayBuffer
    this.offset = bytes.byteOffset
    this.window = window
  }

  /**
   * Records that a consumer got a message of this size. A symbol, because the piece may outlive its
   * consumers.
   */
  give(owner: symbol, size: number): void {
    this.#used += size
    if (this.#owner === owner) return
    this.mixed = this.#owner !== undefined
    this.#owner = owner
  }

  /** True when messages of one consumer may keep much more memory alive than their own. */
  get wasteful(): boolean {
    return this.window || this.mixed || this.#used * 2 < this.bytes.length
  }
}

// Shared by all connections for single small messages, for which an array each would cost far more
// than the bytes. Its array is never visible through a message.
let common: Piece | undefined
let commonUsed = 0

/** Creates pieces from the reads of one connection. */
export class Pieces {
  /** The latest piece, and the stretch of the source array that it copies. */
  #piece: Piece | undefined
  /** The latest piece is the shared one. */
  #shared = false
  /** The piece for borrowed messages, overwritten once they are released. */
  #lendable: Piece | undefined
  #misses = 0
  #source: Uint8Array = nothing
  #from = 0
  #to = 0
  /** Subtract this from positions in the source to get positions in the latest piece. */
  shift = 0

  /**
   * The piece that contains the message of `view`, from its properties to the end of its payload;
   * what follows up to `limit` is copied along.
   * @param seen true when the program may see the piece's array
   */
  hold(view: PublishView, limit: number, seen = true): Piece {
    const { bytes, propertiesStart, payloadEnd, apart } = view
    // The first consumer gets the payload itself, each other one a copy.
    if (apart !== undefined) {
      const given = this.#source === apart
      this.#source = apart
      this.#piece = undefined
      return new Piece(given ? apart.slice() : apart)
    }
    const latest = this.#piece
    const holds = this.#source === bytes && propertiesStart >= this.#from && payloadEnd <= this.#to
    if (latest !== undefined && holds && !(seen && this.#shared)) return latest
    const size = payloadEnd - propertiesStart
    const end = size > pieceSize / 2 ? payloadEnd : Math.min(limit, propertiesStart + pieceSize)
    this.#shared = !seen && end - propertiesStart <= smallRead
    const piece = this.#shared
      ? this.#share(bytes, propertiesStart, end)
      : new Piece(bytes.slice(propertiesStart, end))
    if (!this.#shared) this.shift = propertiesStart
    this.#piece = piece
    this.#source = bytes
    this.#from = propertiesStart
    this.#to = end
    return piece
  }

  /** The same for a borrowed message, which is counted in the piece's `lent`. */
  lend(view: PublishView, limit: number): Piece {
    const { bytes, propertiesStart, payloadEnd, apart } = view
    const size = payloadEnd - propertiesStart
    if (apart !== undefined || size > pieceSize) return this.hold(view, limit)
    const latest = this.#lendable
    if (latest !== undefined && latest.lent > 0) {
      // If it stays lent for long, it is left to the borrower and replaced.
      this.#misses += 1
      if (this.#misses % mostMisses === 0) this.#lendable = undefined
      return this.hold(view, limit)
    }
    const piece =
      latest !== undefined && latest.bytes.length >= size
        ? latest
        : new Piece(new Uint8Array(Math.max(leastLendable, size)))
    piece.bytes.set(bytes.subarray(propertiesStart, payloadEnd))
    this.#lendable = piece
    this.#piece = undefined
    this.shift = propertiesStart
    return piece
  }

  #share(bytes: Uint8Array, start: number, end: number): Piece {
    if (common === undefined || commonUsed + end - start > pieceSize) {
      common = new Piece(new Uint8Array(pieceSize))
      commonUsed = 0
    }
    common.bytes.set(bytes.subarray(start, end), commonUsed)
    this.shift = start - commonUsed
    commonUsed += end - start
    return common
  }

  /** The read buffer is about to change: its pieces are complete. */
  forget(): void {
    this.#piece = undefined
    this.#source = nothing
  }
}
