/**
 * Reads of transports that ask where they may go, as sockets do: into windows, or to where the rest of a large payload is to stay.
 *
 * Platforms that have sockets give it to their connections; without it such reads are copied, as chunks are. It may assume that a read is consumed
 * before the next one begins.
 */
import type { ReadWindow } from '../wire/frames.js'
import type { Piece } from './message-memory.js'
import { Windows } from './read-windows.js'

/** What is read of a packet that follows a large one before its payload has a place: the room for each byte that came, and what stands before it. */
const peekShare = 16
const peekHead = 512

/** Who may hold memory that reads went into. */
export interface Lender {
  readonly borrowers: { readonly size: number }
  moveOut(must: boolean): void
}

/** Whose packets the reads are cut into. */
export interface ReadTaker {
  /** Where the rest of a large payload may be read into. */
  readonly room: Uint8Array | undefined
  /** Takes the first `length` of these bytes; without any, those in the room that was given. `window` is what they lie in, where that may be lent. */
  receive(
    bytes: Uint8Array | undefined,
    length: number,
    data: DataView | undefined,
    window: Piece | undefined,
  ): void
}

/** The reads of one connection. */
export class Reads {
  readonly #router: Lender
  readonly #taker: ReadTaker
  readonly #windows = new Windows()
  #room: Uint8Array | undefined

  constructor(router: Lender, taker: ReadTaker) {
    this.#router = router
    this.#taker = taker
  }

  /** Reads go here instead of the thread's window: for a scanner that reads in place. */
  useWindow(window: ReadWindow | undefined): void {
    this.#windows.instead = window
  }

  /** As {@link Sink.buffer}. */
  buffer(): Uint8Array {
    // The rest of a large payload goes where it is to stay.
    const before = this.#room
    this.#room = this.#taker.room
    if (this.#room !== undefined) return this.#room
    const { bytes } = this.#windows.give(this.#router.borrowers.size > 0, () =>
      this.#router.moveOut(true),
    )
    const latest = before?.buffer.byteLength ?? 0
    // Behind one that no window holds there may be another: of that, only what makes room for the rest need be copied.
    return latest < bytes.length ? bytes : bytes.subarray(0, latest / peekShare + peekHead)
  }

  /** As {@link Sink.read}. */
  read(length: number): void {
    if (this.#room !== undefined)
      return this.#taker.receive(undefined, length, undefined, undefined)
    const { bytes, data } = this.#windows.take(length)
    this.#taker.receive(bytes, length, data, this.#windows.piece)
  }
}
