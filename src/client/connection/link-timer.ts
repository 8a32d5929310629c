/**
 * The one timer of a connection: for all deadlines of its session, and at the end for the stream. It tells how late it was.
 */
import type { CancelTimer } from '../platform/platform.js'
import type { ConnectionHost } from './ports.js'

/** Calls back when the nearest deadline has come. */
export class LinkTimer {
  readonly #host: ConnectionHost
  readonly #due: () => void
  #cancel: CancelTimer | undefined
  #at = Number.POSITIVE_INFINITY

  constructor(host: ConnectionHost, due: () => void) {
    this.#host = host
    this.#due = due
  }

  /** Moves it only when a deadline comes nearer: those that move away are looked up when it fires. */
  arm(at: number): void {
    if (at >= this.#at) return
    const due = (): void => {
      this.#tellLateness()
      this.#due()
    }
    this.#set(at, due, Math.max(0, at - this.#host.platform.now()))
  }

  /** Calls back after so many milliseconds, and for no deadline any more. */
  replace(callback: () => void, delay: number): void {
    this.#set(Number.NEGATIVE_INFINITY, callback, delay)
  }

  /** The connection is over: it may have waited for this timer until now. */
  stop(): void {
    this.#tellLateness()
    this.#cancel?.()
  }

  #set(at: number, callback: () => void, delay: number): void {
    this.#cancel?.()
    this.#at = at
    this.#cancel = this.#host.platform.setTimer(callback, delay)
  }

  // The server gives us up after one and a half keep-alives.
  #tellLateness(): void {
    const { events, platform, session } = this.#host
    const lateness = platform.now() - this.#at
    const keepAlive = session.negotiated?.keepAlive ?? 0
    this.#at = Number.POSITIVE_INFINITY
    if (keepAlive > 0 && lateness >= keepAlive * 500 && lateness < Number.POSITIVE_INFINITY) events.emit('late', { lateness, keepAlive })
  }
}
