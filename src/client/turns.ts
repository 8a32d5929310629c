/**
 * What a client does once for many events of one turn of the event loop: telling turns apart, and letting acknowledgements leave.
 *
 * It must never delay what is queued beyond the next turn.
 */
import type { Platform } from './platform.js'

/** The turns of one client. */
export class Turns {
  /** Rises when consumers had a turn since `mark` was called last. */
  marks = 0
  readonly #platform: Platform
  /** Hands what is queued to the transport. */
  readonly #flush: () => void
  #counting = false
  #flushing = false

  constructor(platform: Platform, flush: () => void) {
    this.#platform = platform
    this.#flush = flush
  }

  /** Gives `marks`, which rises once consumers have had their turn: they have theirs after all reads of this one. */
  mark(): number {
    if (!this.#counting) {
      this.#counting = true
      this.#platform.microtask(() => {
        this.#counting = false
        this.marks += 1
      })
    }
    return this.marks
  }

  /** Acknowledgements may leave: as soon as what runs now has ended. Over a link that breaks again and again each of them is progress. */
  flush(): void {
    if (this.#flushing) return
    this.#flushing = true
    this.#platform.microtask(() => {
      this.#flushing = false
      this.#flush()
    })
  }
}
