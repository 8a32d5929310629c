/**
 * A clock that advances only when a test requests it: timers run in order, and all promises settle
 * between two of them.
 *
 * Nothing waits in real time, except for the hop that lets microtasks finish.
 */
import { checkDuration } from './broker/common/check.js'
import { type Timer, Timers } from './timers.js'

/** Virtual milliseconds, starting at 0. */
export class VirtualClock {
  #now = 0
  #order = 0
  readonly #timers = new Timers()

  /** The time. */
  now(): number {
    return this.#now
  }

  /** Timers that have not run. */
  get pending(): number {
    return this.#timers.live
  }

  /** When the next timer runs, in milliseconds of this clock; undefined without one. */
  get next(): number | undefined {
    return this.#timers.first?.at
  }

  /**
   * Calls back once, `delay` milliseconds from now; returns a function that cancels it. Fits
   * `schedule` of the memory transport.
   */
  setTimer(callback: () => void, delay: number): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, delay), order: ++this.#order, callback }
    this.#timers.add(timer)
    return () => void this.#timers.end(timer)
  }

  /**
   * Runs everything that is due, and what becomes due thereby, until nothing is left and every
   * promise has had its turn.
   */
  async settle(): Promise<void> {
    await this.advance(0)
  }

  /**
   * Lets time pass: runs every timer that falls into it, at its own time. One call at a time.
   *
   * Rejects with `ERR_INVALID_OPTION` unless the duration is a number of milliseconds from 0 to 2^53 - 1, and with what a timer has thrown.
   */
  async advance(duration: number): Promise<void> {
    checkDuration('duration', duration)
    const until = this.#now + duration
    await microtasks()
    for (let timer = this.#dueBy(until); timer !== undefined; timer = this.#dueBy(until)) {
      const callback = this.#timers.end(timer)
      this.#now = Math.max(this.#now, timer.at)
      callback?.()
      await microtasks()
    }
    this.#now = Math.max(this.#now, until)
  }

  /**
   * Time passes without any timer running, as when a machine sleeps: they are all late afterwards.
   *
   * @throws MqttError ERR_INVALID_OPTION unless the duration is a number of milliseconds from 0 to 2^53 - 1
   */
  jump(duration: number): void {
    checkDuration('duration', duration)
    this.#now += duration
  }

  /** The next timer, if it runs by then. */
  #dueBy(until: number): Timer | undefined {
    const { first } = this.#timers
    return first === undefined || first.at > until ? undefined : first
  }
}

/** Fulfils when all microtasks that are queued, and those that they queue, have run. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => {
    // Some test environments take it away.
    if (globalThis.MessageChannel === undefined) return void setTimeout(resolve)
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}
