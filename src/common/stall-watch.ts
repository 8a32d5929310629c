/**
 * Notices that nothing goes on though something is awaited, and reports it once until there is progress.
 *
 * It may assume to be started whenever something begins to be awaited. It looks once in an interval, and costs a comparison for each start meanwhile.
 */

/** Time, and what calls back after a while; gives what takes that back. */
interface Timers {
  now(): number
  setTimer(callback: () => void, milliseconds: number): () => void
}

/** What is awaited. */
export interface Awaited {
  /** How much: the watch stops by itself at 0. */
  open(): number
  /** A number that is another one after each progress; NaN is progress by itself. */
  progress(): number
  /** Milliseconds without progress that are too many. */
  patience(): number
  /** There was no progress for so many milliseconds. */
  report(age: number): void
}

/** Milliseconds from one look to the next, and without progress until it is reported. */
export const stallCheck = 1000
export const stallAge = 10_000

/** Looks at the progress of one thing. */
export class StallWatch {
  readonly #timers: Timers
  readonly #awaited: Awaited
  #cancel: (() => void) | undefined
  #seen = 0
  #since = 0
  #reported = false

  constructor(timers: Timers, awaited: Awaited) {
    this.#timers = timers
    this.#awaited = awaited
  }

  /** Something is awaited, perhaps. */
  start(): void {
    if (this.#cancel !== undefined || this.#awaited.open() === 0) return
    this.#seen = Number.NaN
    this.#look()
  }

  /** There was progress: a stall may be reported again. */
  renew(): void {
    if (!this.#reported) return
    this.stop()
    this.start()
  }

  /** Nothing is to be expected any more. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #look(): void {
    const now = this.#timers.now()
    const progress = this.#awaited.progress()
    if (progress !== this.#seen) {
      this.#seen = progress
      this.#since = now
      this.#reported = false
    }
    const age = now - this.#since
    if (!this.#reported && age >= this.#awaited.patience()) {
      this.#reported = true
      this.#awaited.report(age)
    }
    this.#cancel = this.#timers.setTimer(() => {
      this.stop()
      if (this.#awaited.open() > 0) this.#look()
    }, stallCheck)
  }
}
