/**
 * What a client does once for many events of one turn of the event loop: telling turns apart, and letting acknowledgements leave together.
 *
 * It must never keep what is queued beyond the end of the turn.
 */
import type { Platform } from '../platform/platform.js'

/** Microtasks without news after which a turn counts as over: a loop over messages that are there needs fewer from one to the next. */
const quietHops = 8

/** The turns of one client. */
export class Turns {
  /** Rises when consumers had a turn since `mark` was called last. */
  readerTurns = 0
  readonly #platform: Platform
  /** Hands what is queued to the transport. */
  readonly #flush: () => void
  #counting = false
  #flushing = false
  /** Microtasks since something became due. */
  #quiet = 0

  constructor(platform: Platform, flush: () => void) {
    this.#platform = platform
    this.#flush = flush
  }

  /** Gives `marks`, which rises once consumers have had their turn: they have theirs after all reads of this one. */
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

  /** Acknowledgements may leave: once for all that become due before this turn has ended. */
  flush(): void {
    const { turnEnd, microtask } = this.#platform
    this.#quiet = turnEnd === undefined ? 0 : quietHops
    if (this.#flushing) return
    this.#flushing = true
    const later = turnEnd ?? microtask
    later(this.#look)
  }

  // Where nothing tells the end of a turn: once the readers have had several microtasks in a row and nothing became due.
  readonly #look = (): void => {
    this.#quiet += 1
    if (this.#quiet < quietHops) return this.#platform.microtask(this.#look)
    this.#flushing = false
    this.#flush()
  }
}
