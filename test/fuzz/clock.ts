/**
 * Virtual time for `client` runs: timers run in the order of their times, and between two of them every promise gets its turn.
 *
 * Made for thousands of short runs a second: microtasks are waited for by the tick queue, which is empty only after them. Now and then a whole task
 * passes, so that a rejection that nobody handles is told of. It must never wait in real time.
 */

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/** After so many timers a task passes. */
const stride = 8

/** Virtual milliseconds. */
export class FuzzClock {
  /** Timers that have run. */
  events = 0
  #now = 0
  #order = 0
  #timers: Timer[] = []
  readonly #most: number
  readonly #atRest: () => void

  /**
   * @param most timers that may run; time stands still after them
   * @param atRest called whenever all that a timer began has come to its end
   */
  constructor(most: number, atRest: () => void = () => undefined) {
    this.#most = most
    this.#atRest = atRest
  }

  now(): number {
    return this.#now
  }

  /** Calls back once, `delay` milliseconds from now; gives a function that cancels. */
  setTimer(callback: () => void, delay: number): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, delay), order: this.#order++, callback }
    this.#timers.push(timer)
    return () => {
      const index = this.#timers.indexOf(timer)
      if (index >= 0) this.#timers.splice(index, 1)
    }
  }

  /** Time passes and no timer runs: they are all late afterwards. */
  jump(duration: number): void {
    this.#now += duration
  }

  /** Lets time pass. */
  async advance(duration: number): Promise<void> {
    const until = this.#now + duration
    await task()
    this.#atRest()
    for (let timer = this.#take(until); timer !== undefined; timer = this.#take(until)) {
      this.#now = Math.max(this.#now, timer.at)
      this.events += 1
      if (this.events > this.#most) return
      timer.callback()
      await (this.events % stride === 0 ? task() : microtasks())
      this.#atRest()
    }
    this.#now = Math.max(this.#now, until)
  }

  #take(until: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.at <= until && (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))) first = timer
    }
    if (first !== undefined) this.#timers.splice(this.#timers.indexOf(first), 1)
    return first
  }
}

function microtasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}

function task(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
