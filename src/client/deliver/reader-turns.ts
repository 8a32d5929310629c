/**
 * Turns of consumers: a burst does not count against a reader that had no turn since.
 */
import type { Platform } from '../platform.js'

/** The turns of one client's consumers. */
export class ReaderTurns {
  /** Rises when consumers had a turn since `readerTurn` was called last. */
  readerTurns = 0
  readonly #platform: Platform
  #counting = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Gives `readerTurns`, which rises once consumers have had their turn: they have theirs after all reads of this one. */
  readerTurn(): number {
    if (!this.#counting) {
      this.#counting = true
      this.#platform.microtask(() => {
        this.#counting = false
        this.readerTurns += 1
      })
    }
    return this.readerTurns
  }
}
