/**
 * The clock of a virtual world: due timers run automatically; only advancing the time must be
 * requested.
 *
 * A program can therefore await anything that takes no time, as outside of tests. Two runs must
 * never overlap, because time would go back.
 */
import { VirtualClock } from './virtual-clock.js'

/** A virtual clock that runs due timers automatically, in tasks of their own. */
export class LiveClock extends VirtualClock {
  /** Settles when all runs requested so far have ended. */
  #last: Promise<void> = Promise.resolve()
  /** Number of runs in progress or waiting. */
  #runs = 0

  override setTimer(callback: () => void, delay: number): () => void {
    const cancel = super.setTimer(callback, delay)
    this.#wake()
    return cancel
  }

  override advance(duration: number): Promise<void> {
    const before = this.#last
    const run = async (): Promise<void> => {
      await before
      await super.advance(duration)
    }
    this.#runs += 1
    const passed = run()
    const over = (): void => {
      this.#runs -= 1
      this.#wake()
    }
    this.#last = passed.then(over, over)
    return passed
  }

  override jump(duration: number): void {
    super.jump(duration)
    this.#wake()
  }

  /** Runs due timers, unless a run in progress will. */
  #wake(): void {
    if (this.#runs > 0 || this.next === undefined || this.next > this.now()) return
    this.advance(0).catch(thrown)
  }
}

/** Throws the error of a timer uncaught, as the platform's timers do. */
function thrown(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
