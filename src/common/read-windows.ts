/**
 * Where reads go. All quiet connections of a thread share one window, because each read is consumed before the next begins; a connection that lends
 * its memory to borrowed messages has windows of its own.
 *
 * A socket keeps the array that it was given last until it reads again: the shared window is never lent. A window of which something is lent is
 * never read into.
 */
import type { ReadWindow } from '../wire/frames.js'
import { Piece } from './message-memory.js'

/** Bytes of a window. */
export const windowSize = 65_536
/** Windows of one connection; when all are lent, messages that wait move out of them. */
const mostWindows = 4
/** Bytes of a read from which on a connection is busy enough for windows of its own. */
const busyRead = 4096

let shared: ReadWindow | undefined

function readWindow(): ReadWindow {
  const bytes = new Uint8Array(windowSize)
  return { bytes, data: new DataView(bytes.buffer) }
}

/** A window that is not shared, and the piece that messages in it lie in. */
interface LentWindow extends ReadWindow {
  readonly piece: Piece
}

/** The windows of one connection. */
export class Windows {
  /** Where reads go instead of the thread's window: of a scanner that reads there in place. Shared as well. */
  instead: ReadWindow | undefined
  #own: LentWindow[] = []
  /** What the transport was given, and has not read into. */
  #given: ReadWindow | undefined
  #piece: Piece | undefined
  /** The latest read was large. */
  #busy = false

  /** The piece of the window that was taken last, where it may be lent. */
  get piece(): Piece | undefined {
    return this.#piece
  }

  /** Where the next read may go. `lends`: messages are borrowed here. `moveOut` makes messages that wait leave their windows. */
  give(lends: boolean, moveOut: () => void): ReadWindow {
    this.#given ??= lends && this.#busy ? (this.#free() ?? this.#another(moveOut)) : this.#shared()
    return this.#given
  }

  /** So many bytes were read into what was given last. */
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
      // A borrower still holds it: no read goes into it again, and it is freed when the borrower is done.
      this.#own.shift()
    }
    const made = readWindow()
    const window = { ...made, piece: new Piece(made.bytes, true) }
    this.#own.push(window)
    return window
  }
}
