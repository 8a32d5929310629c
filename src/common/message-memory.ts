/**
 * Memory of messages that have to outlive the read that brought them: copied out of it many at a time, or lent where it was read into.
 *
 * A piece holds a stretch of a read, up to 7 KiB: copying and making it costs far less than one array for each message, and a message that is kept
 * for ever pins no more than that. A larger message has a piece of its own. What waits for long in a piece that it hardly fills moves out of it, so
 * that memory is what is counted. Borrowed messages lie in the read window itself where that can be lent, else in a piece that is used again.
 */
import type { PublishView } from '../wire/publish.js'

/** Most bytes that messages share: with the objects around them less than 8 KiB. */
const pieceSize = 7 * 1024
/** Bytes of a read that go into the piece which all share, rather than into one of their own. */
const smallRead = 1024
/** Bytes of a piece that is used again, at least; and times that it is found lent before it is given up. */
const leastLendable = 1024
const mostMisses = 64
const nothing = new Uint8Array(0)

/** Bytes that messages lie in. */
export class Piece {
  readonly bytes: Uint8Array
  /** What `bytes` is a view of, and from where. */
  readonly buffer: ArrayBuffer
  readonly offset: number
  /** A read window: reads go into it again once nothing is lent. */
  readonly window: boolean
  /** Borrowed messages in it that were not given back. */
  lent = 0
  #used = 0
  #owner: symbol | undefined
  /** Several got messages of it. */
  mixed = false

  constructor(bytes: Uint8Array, window = false) {
    this.bytes = bytes
    this.buffer = bytes.buffer as ArrayBuffer
    this.offset = bytes.byteOffset
    this.window = window
  }

  /** Notes who got a message of so many bytes; a symbol, as the piece may be there for longer than they are. */
  give(owner: symbol, size: number): void {
    this.#used += size
    if (this.#owner === owner) return
    this.mixed = this.#owner !== undefined
    this.#owner = owner
  }

  /** True when what waits here for one owner may keep much more than itself alive. */
  get wasteful(): boolean {
    return this.window || this.mixed || this.#used * 2 < this.bytes.length
  }
}

// For what comes in by itself: an array for each would cost far more than the bytes. The array is never visible through a message.
let common: Piece | undefined
let commonUsed = 0

/** Makes pieces out of one connection's reads. */
export class Pieces {
  /** The latest piece, and what stretch of which array it copies. */
  #piece: Piece | undefined
  /** It is the one that all share. */
  #shared = false
  /** What a borrowed message lies in: overwritten as soon as it is given back. */
  #lendable: Piece | undefined
  #misses = 0
  #source: Uint8Array = nothing
  #from = 0
  #to = 0
  /** Places in the latest piece are those in its source, less this. */
  shift = 0

  /**
   * The piece that holds what `view` shows, from the properties to the end of the payload; what lies behind it up to `limit` comes along.
   * @param seen whether the program may see the piece's array
   */
  hold(view: PublishView, limit: number, seen = true): Piece {
    const { bytes, propertiesStart, payloadEnd, apart } = view
    // Each who gets such a payload, but for the first, has a copy.
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

  /** The same for a message that is borrowed, and says so in `lent` of the piece. */
  lend(view: PublishView, limit: number): Piece {
    const { bytes, propertiesStart, payloadEnd, apart } = view
    const size = payloadEnd - propertiesStart
    if (apart !== undefined || size > pieceSize) return this.hold(view, limit)
    const latest = this.#lendable
    if (latest !== undefined && latest.lent > 0) {
      // A reader that has borrowed it for long, or never gives it back, keeps it.
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

  /** The bytes of the read are about to change: pieces of it are complete. */
  forget(): void {
    this.#piece = undefined
    this.#source = nothing
  }
}
