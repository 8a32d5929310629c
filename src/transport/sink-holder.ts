/**
 * Common receiving half of transports: data that comes in before `open()` is kept in order, and
 * `closed()` is called exactly once and last.
 *
 * Belongs to one transport. Bytes passed to `chunk()` before `open()` must not change. The sink is
 * never called synchronously from `open()`, `end()` or `drop()`. No platform API except
 * `queueMicrotask`.
 */

import type { Sink } from './transport.js'

/** Most bytes kept before there is a sink. */
const earlyLimit = 2 * 1024 * 1024

/** Delivers to a {@link Sink} that may be added later than the first bytes. */
export class SinkHolder {
  /** The sink while it may be called: after `open()`, before the end or `drop()`. */
  live: Sink | undefined
  /** True once the end is decided: only `closed` follows. */
  over = false

  #sink: Sink | undefined
  #opened = false
  /** Data from before `open()`; undefined once that was delivered, and after `drop()`. */
  #early: Uint8Array[] | undefined = []
  #room = earlyLimit
  #cause: unknown

  /**
   * Adds the sink. In a microtask, it gets what was kept; then `start` is called, or `closed` if
   * the end came first.
   */
  open(sink: Sink, start?: () => void): void {
    if (this.#sink) return
    this.#sink = sink
    queueMicrotask(() => {
      for (let bytes = this.#early?.shift(); bytes; bytes = this.#early?.shift()) sink.chunk(bytes)
      this.#opened = true
      if (this.over) return sink.closed(this.#cause)
      if (!this.#early) return
      this.#early = undefined
      this.live = sink
      start?.()
    })
  }

  /**
   * Delivers bytes, or keeps them until `open()`. False when they are too many to keep: the
   * transport must then be destroyed.
   */
  chunk(bytes: Uint8Array): boolean {
    if (this.live) this.live.chunk(bytes)
    else if (this.#early && !this.over) {
      this.#room -= bytes.length
      if (this.#room < 0) return false
      this.#early.push(bytes)
    }
    return true
  }

  /** Discards what was kept and delivers nothing more; `end()` must follow. */
  drop(): void {
    this.#early = undefined
    this.live = undefined
  }

  /** Calls `closed` in a microtask, after what was kept. Only the first call has an effect. */
  end(cause: unknown): void {
    if (this.over) return
    this.over = true
    this.#cause = cause
    this.live = undefined
    if (this.#opened) queueMicrotask(() => this.#sink?.closed(cause))
  }
}

/**
 * Reports in a microtask that bytes cannot be sent any more. Returns false, for use as the result
 * of `write()`.
 */
export function refuse(written: ((error?: unknown) => void) | undefined): false {
  if (written) queueMicrotask(() => written(new Error('The stream is closed')))
  return false
}
