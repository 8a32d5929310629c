/**
 * Buffers that transports read into. All quiet connections of a thread share one window, because
 * each read is consumed before the next begins. A connection that lends memory to borrowed messages
 * has its own windows.
 *
 * A socket keeps the array that it was last given until it reads again, so the shared window is
 * never lent. A window with lent messages is never read into.
 */
import type { ReadWindow } from '../wire/frames.js'
import { Piece } from './message-memory.js'

/** Bytes of a window. */
export const windowSize = 65_536
/** Most windows of one connection; when all are lent, waiting messages are copied out. */
const mostWindows = 4
/** From reads of this many bytes on, a connection counts as busy and gets its own windows. */
const busyRead = 4096

let shared: ReadWindow | undefined

function readWindow(): ReadWindow {
  const bytes = new Uint8Array(windowSize)
  return { bytes, data: new DataView(bytes.buffer) }
}

/** A window that is not shared, with the piece for messages in it. */
interface LentWindow extends ReadWindow {
  readonly piece: Piece
}

/** The windows of one connection. */
export class Windows {
  /**
   * Used instead of the thread's window: the window of a scanner that scans in place. Also shared.
   */
  instead: ReadWindow | undefined
  #own: LentWindow[] = []
  /** The window that the transport was given and has not read into. */
  #given: ReadWindow | undefined
  #piece: Piece | undefined
  /** The latest read was large. */
  #busy = false

  /** The piece of the latest window, if it may be lent. */
  get piece(): Piece | undefined {
    return this.#piece
  }

  /**
   * The window for the next read. `lends`: there are consumers that borrow messages. `moveOut`
   * copies waiting messages out of their windows.
   */
  give(lends: boolean, moveOut: () => void): ReadWindow {
    this.#given ??= lends && this.#busy ? (this.#free() ?? this.#another(moveOut)) : this.#shared()
    return this.#given
  }

  /** This many bytes were read into the last window. */
  take(length: number): ReadWindow {
    const window = this.#given ?? this.#shared()
    this.#given = undefined
    this.#busy = length >= busyRead
    this.#piece = this.#own.find((own) => own === window)?.piece
    return window
  }

  #shared(): ReadWindow {
    this.#own.length = 0
    if (this.instead !== undefined) return this.instead
    shared ??= readWindow()
    return shared
  }

  #free(): LentWindow | undefined {
    return this.#own.find(({ piece }) => piece.lent === 0)
  }

  #another(moveOut: () => void): LentWindow {
    if (this.#own.length === mostWindows) {
      moveOut()
      const free = this.#free()
      if (free !== undefined) return free
      // A borrower still holds it: it is not read into again, and is freed when the borrower has
      // finished.
      this.#own.shift()
    }
    const made = readWindow()
    const window = { ...made, piece: new Piece(made.bytes, true) }
    this.#own.push(window)
    return window
  }
}
