/**
 * Memory of messages that have to outlive the read that brought them: copied out of it many at a time, or lent where it was read into.
 *
 * A piece holds a stretch of a read, up to 8 KiB: copying and making it costs far less than one array for each message, and a message that is kept
 * for ever pins no more than that. A larger message has a piece of its own. What waits for long in a piece that it hardly fills moves out of it, so
 * that memory is what is counted. Borrowed messages lie in the read window itself where that can be lent, else in a piece that is used again.
 */
import type { PublishView } from '../wire/publish.js'

/** Most bytes that messages share. */
const pieceSize = 8 * 1024
/** Bytes of a read that go into the piece which all share, rather than into one of their own. */
const smallRead = 1024
/** Bytes that are made for borrowed messages, at least; and times that they are found lent before they are given up. */
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

  /** Nothing of it is lent any more: it is about to hold something else. */
  reuse(): void {
    this.#used = 0
    this.#owner = undefined
    this.mixed = false
  }

  /** True when what waits here for one owner may keep much more than itself alive. */
  get wasteful(): boolean {
    return this.window || this.mixed || this.#used * 2 < this.bytes.length
  }
}

// For what comes in by itself: an array for each would cost far more than the bytes. Nobody who gets a message of it sees the array.
let common: Piece | undefined
let commonUsed = 0

/** A stretch of an array, and the place in a piece where its copy begins, as `shift` says it. */
class Stretch {
  #source: Uint8Array = nothing
  #from = 0
  #to = 0
  shift = 0

  set(source: Uint8Array, from: number, to: number, shift: number): void {
    this.#source = source
    this.#from = from
    this.#to = to
    this.shift = shift
  }

  clear(): void {
    this.#source = nothing
  }

  holds({ bytes, propertiesStart, payloadEnd }: PublishView): boolean {
    return this.#source === bytes && propertiesStart >= this.#from && payloadEnd <= this.#to
  }
}

/** Makes pieces out of one connection's reads. */
export class Pieces {
  /** The latest piece, and what it copies. */
  #piece: Piece | undefined
  readonly #copied = new Stretch()
  /** It is the one that all share. */
  #shared = false
  /** The payload apart that was taken last. */
  #taken: Uint8Array | undefined
  /** What borrowed messages lie in, again and again, and what it copies; overwritten as soon as nothing of it is lent. */
  #lendable: Piece | undefined
  readonly #lent = new Stretch()
  #misses = 0
  /** Places in the latest piece are those in its source, less this. */
  shift = 0

  /**
   * The piece that holds what `view` shows, from the properties to the end of the payload; what lies behind it up to `limit` comes along.
   * @param seen whether whoever gets the message may see the piece's array
   */
  hold(view: PublishView, limit: number, seen = true): Piece {
    const { bytes, propertiesStart, apart } = view
    // Each who gets such a payload, but for the first, has a copy.
    if (apart !== undefined) {
      const given = this.#taken === apart
      this.#taken = apart
      return new Piece(given ? apart.slice() : apart)
    }
    const copied = this.#copied
    if (this.#piece === undefined || !copied.holds(view) || (seen && this.#shared)) {
      const end = endOf(view, limit)
      this.#shared = !seen && end - propertiesStart <= smallRead
      const shift = this.#shared ? this.#share(bytes, propertiesStart, end) : propertiesStart
      this.#piece = this.#shared ? (common as Piece) : new Piece(bytes.slice(propertiesStart, end))
      copied.set(bytes, propertiesStart, end, shift)
    }
    this.shift = copied.shift
    return this.#piece
  }

  /** The same for a message that is borrowed, and says so in `lent` of the piece before anything else is held. */
  lend(view: PublishView, limit: number): Piece {
    const { bytes, propertiesStart, apart } = view
    const lent = this.#lent
    if (apart === undefined && !lent.holds(view)) {
      const end = endOf(view, limit)
      const piece = this.#free(end - propertiesStart)
      if (piece === undefined) return this.hold(view, limit)
      piece.reuse()
      piece.bytes.set(bytes.subarray(propertiesStart, end))
      lent.set(bytes, propertiesStart, end, propertiesStart)
    }
    if (apart !== undefined || this.#lendable === undefined) return this.hold(view, limit)
    this.shift = lent.shift
    return this.#lendable
  }

  // Whoever has borrowed of it for long, or never gives it back, has it for themselves.
  #free(size: number): Piece | undefined {
    const latest = this.#lendable
    if (size > pieceSize) return undefined
    if (latest !== undefined && latest.lent > 0) {
      this.#misses += 1
      if (this.#misses === mostMisses) this.#forgetLent()
      return undefined
    }
    if (latest === undefined || latest.bytes.length < size) this.#lendable = new Piece(new Uint8Array(Math.max(leastLendable, size)))
    this.#misses = 0
    return this.#lendable
  }

  #forgetLent(): void {
    this.#lendable = undefined
    this.#lent.clear()
  }

  // Gives the shift.
  #share(bytes: Uint8Array, start: number, end: number): number {
    if (common === undefined || commonUsed + end - start > pieceSize) {
      common = new Piece(new Uint8Array(pieceSize))
      commonUsed = 0
    }
    common.bytes.set(bytes.subarray(start, end), commonUsed)
    const shift = start - commonUsed
    commonUsed += end - start
    return shift
  }

  /** The bytes of the read are about to change: pieces of it are complete. */
  forget(): void {
    this.#piece = undefined
    this.#taken = undefined
    this.#copied.clear()
    this.#lent.clear()
  }
}

// What lies behind the message comes along, unless it is large.
function endOf({ propertiesStart, payloadEnd }: PublishView, limit: number): number {
  return payloadEnd - propertiesStart > pieceSize / 2 ? payloadEnd : Math.min(limit, propertiesStart + pieceSize)
}
