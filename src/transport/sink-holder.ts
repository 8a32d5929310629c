/**
 * The receiving half that transports share: what comes in before `open()` is kept in order, and `closed()` is called exactly once and last.
 *
 * It may assume that one transport owns it and that bytes given to `chunk()` before `open()` stay as they are.
 * It must never call the sink synchronously from `open()`, `end()` or `drop()`. No platform API beyond `queueMicrotask`.
 */

import type { Sink } from './transport.js'

/** Most bytes that are kept for a sink that is not there yet. */
const earlyLimit = 2 * 1024 * 1024

/** Delivers to a {@link Sink} that may come later than the bytes. */
export class SinkHolder {
  /** The sink while it may be called: after `open()`, before the end or `drop()`. */
  live: Sink | undefined
  /** True once the end is decided: nothing but `closed` follows. */
  over = false

  #sink: Sink | undefined
  #opened = false
  /** What came before `open()`; none any more after `drop()`. */
  #early: Uint8Array[] | undefined = []
  #room = earlyLimit
  #cause: unknown

  /** Hands over in a microtask: first what was kept, then `start` is called, or `closed` when the end came first. */
  open(sink: Sink, start?: () => void): void {
    if (this.#sink) return
    this.#sink = sink
    queueMicrotask(() => {
      for (let bytes = this.#early?.shift(); bytes; bytes = this.#early?.shift()) sink.chunk(bytes)
      this.#opened = true
      if (this.over) return sink.closed(this.#cause)
      if (!this.#early) return
      this.live = sink
      start?.()
    })
  }

  /** Delivers bytes, or keeps them until `open()`. False when there are too many to keep: the transport is to be destroyed then. */
  chunk(bytes: Uint8Array): boolean {
    if (this.live) this.live.chunk(bytes)
    else if (this.#early && !this.over) {
      this.#room -= bytes.length
      if (this.#room < 0) return false
      this.#early.push(bytes)
    }
    return true
  }

  /** Forgets what was kept and delivers nothing any more; `end()` is still to come. */
  drop(): void {
    this.#early = undefined
    this.live = undefined
  }

  /** Calls `closed` in a microtask, after what was kept. Only the first call counts. */
  end(cause: unknown): void {
    if (this.over) return
    this.over = true
    this.#cause = cause
    this.live = undefined
    if (this.#opened) queueMicrotask(() => this.#sink?.closed(cause))
  }
}

/** Reports, outside the caller's stack, bytes that can no longer leave. Always false, as `write()` returns then. */
export function refuse(written: ((error?: unknown) => void) | undefined): false {
  if (written) queueMicrotask(() => written(new Error('The stream is closed')))
  return false
}
