/**
 * Buffers for transports that ask where to read to, as sockets do: windows, or the final place of a
 * large payload.
 *
 * Used on platforms with sockets; elsewhere, chunks are copied. A read must be consumed before the
 * next one begins.
 */
import type { ReadWindow } from '../wire/frames.js'
import type { Piece } from './message-memory.js'
import { Windows } from './read-windows.js'

/**
 * How much to read of a packet that follows a large one: a share of the last payload, and its head.
 * Little, because it must be copied if its payload gets a place of its own.
 */
const peekShare = 16
const peekHead = 512

/** The owner of messages in read buffers. */
export interface Lender {
  readonly borrowers: { readonly size: number }
  moveOut(must: boolean): void
}

/** The receiver of reads. */
export interface ReadTaker {
  /** Where the rest of a large payload can be read into. */
  readonly room: Uint8Array | undefined
  /**
   * Processes the first `length` bytes; without `bytes`, they are in `room`. `window` is the piece
   * of the window, if it may be lent.
   */
  receive(
    bytes: Uint8Array | undefined,
    length: number,
    data: DataView | undefined,
    window: Piece | undefined,
  ): void
}

/** The read buffers of one connection. */
export class Reads {
  readonly #router: Lender
  readonly #taker: ReadTaker
  readonly #windows = new Windows()
  #room: Uint8Array | undefined

  constructor(router: Lender, taker: ReadTaker) {
    this.#router = router
    this.#taker = taker
  }

  /** Reads into this window instead of the thread's, for a scanner that scans in place. */
  useWindow(window: ReadWindow | undefined): void {
    this.#windows.instead = window
  }

  /** As {@link Sink.buffer}. */
  buffer(): Uint8Array {
    // The rest of a large payload is read directly into its final place.
    const before = this.#room
    this.#room = this.#taker.room
    if (this.#room !== undefined) return this.#room
    const { bytes } = this.#windows.give(this.#router.borrowers.size > 0, () =>
      this.#router.moveOut(true),
    )
    const latest = before?.buffer.byteLength ?? 0
    // After a payload larger than a window, another one may follow: reads only a small part,
    // because that is copied.
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
