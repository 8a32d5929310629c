/**
 * The end of a turn of the event loop, when what was gathered in it leaves together: called back once for all who asked.
 */
import type { Platform } from '../platform.js'

/** Microtasks without news after which a turn counts as over: a loop over messages that are there needs fewer from one to the next. */
const quietHops = 8

/** Waits for the ends of turns. */
export class TurnEnd {
  readonly #later: (callback: () => void) => void
  readonly #hops: number
  readonly #callback: () => void
  /** Hops until the callback; below 0 when one is under way that no caller needs, 0 when none is under way. */
  #left = 0
  /** Somebody is not patient. */
  #soon = false

  constructor({ turnEnd, microtask }: Platform, callback: () => void) {
    this.#later = turnEnd ?? microtask
    this.#hops = turnEnd === undefined ? quietHops : 1
    this.#callback = callback
  }

  /**
   * Asks for the callback before this turn has ended. Where its end is not signalled: after a microtask, or, if `patient`, once several had no news.
   * True when no callback was waiting for it.
   */
  ask(patient: boolean): boolean {
    // What is due sooner serves as well.
    if (this.#soon) return false
    const left = this.#left
    this.#soon = !patient
    this.#left = patient ? this.#hops : left === 0 ? 1 : 2
    if (left === 0) this.#later(this.#look)
    return left <= 0
  }

  /** Nobody waits any more. */
  cancel(): void {
    if (this.#left > 0) this.#left = -1
    this.#soon = false
  }

  readonly #look = (): void => {
    if (this.#left > 1) {
      this.#left -= 1
      return this.#later(this.#look)
    }
    const due = this.#left > 0
    this.#left = 0
    this.#soon = false
    if (due) this.#callback()
  }
}
