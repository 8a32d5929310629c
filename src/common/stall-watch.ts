/**
 * Detects that something awaited makes no progress, and reports it once until there is progress
 * again.
 *
 * It must be started whenever something new is awaited. It checks once per interval; starting it
 * again is cheap.
 */

/** Time and timers; `setTimer` returns a function that cancels the timer. */
interface Timers {
  now(): number
  setTimer(callback: () => void, milliseconds: number): () => void
}

/** The watched process. */
export interface Awaited {
  /** The amount awaited; the watch stops at 0. */
  open(): number
  /** A number that changes with each progress; NaN always counts as progress. */
  progress(): number
  /** Milliseconds without progress until it is reported. */
  patience(): number
  /** There was no progress for `age` milliseconds. */
  report(age: number): void
}

/** Milliseconds between checks, and the usual time without progress until it is reported. */
export const stallCheck = 1000
export const stallAge = 10_000

/** Watches one process. */
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

  /** Something may be awaited now. */
  start(): void {
    if (this.#cancel !== undefined || this.#awaited.open() === 0) return
    this.#seen = Number.NaN
    this.#look()
  }

  /** There was progress: a later stall is reported again. */
  renew(): void {
    if (!this.#reported) return
    this.stop()
    this.start()
  }

  /** Nothing is awaited any more. */
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
