/**
 * The clock of a virtual world: timers that are due run by themselves; only advancing the time must
 * be requested.
 *
 * A program can therefore await whatever takes no time, as it does outside of tests. No two runs
 * overlap, because time would go back.
 */
import { VirtualClock } from './virtual-clock.js'

/** A virtual clock that runs timers that are due in tasks of their own, without being asked. */
export class LiveClock extends VirtualClock {
  /** Fulfils when those that were asked for so far are over. */
  #last: Promise<void> = Promise.resolve()
  /** Runs that are under way, or wait for it. */
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

  /** Runs what is due, unless a run is under way, which does. */
  #wake(): void {
    if (this.#runs > 0 || this.next === undefined || this.next > this.now()) return
    this.advance(0).catch(thrown)
  }
}

/** What a timer throws cannot be caught: as with the platform's timers. */
function thrown(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
