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

  /** The current time in milliseconds. */
  now(): number {
    return this.#now
  }

  /** Number of timers that are set and have not run. */
  get pending(): number {
    return this.#timers.live
  }

  /** When the next timer runs, in milliseconds of this clock; undefined without one. */
  get next(): number | undefined {
    return this.#timers.first?.at
  }

  /**
   * Calls back once, `delay` milliseconds from now; returns a function that cancels it. Can be used
   * as `schedule` of the memory transport.
   */
  setTimer(callback: () => void, delay: number): () => void {
    const timer: Timer = { at: this.#now + Math.max(0, delay), order: ++this.#order, callback }
    this.#timers.add(timer)
    return () => void this.#timers.end(timer)
  }

  /**
   * Runs all due timers, including those that become due thereby, and lets all queued microtasks
   * run.
   */
  async settle(): Promise<void> {
    await this.advance(0)
  }

  /**
   * Advances the time and runs each timer at its own time. Calls must not overlap.
   *
   * Rejects with `ERR_INVALID_OPTION` unless the duration is a number of milliseconds from 0 to
   * 2^53 - 1, and with the error that a timer throws.
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
   * Advances the time without running timers, as when a machine sleeps. Timers that became due run
   * late.
   *
   * @throws MqttError ERR_INVALID_OPTION unless the duration is a number of milliseconds from 0 to
   * 2^53 - 1
   */
  jump(duration: number): void {
    checkDuration('duration', duration)
    this.#now += duration
  }

  /** The next timer, if it is due by `until`. */
  #dueBy(until: number): Timer | undefined {
    const { first } = this.#timers
    return first === undefined || first.at > until ? undefined : first
  }
}

/** Fulfils when all microtasks that are queued, and those that they queue, have run. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => {
    // Some test environments remove MessageChannel.
    if (globalThis.MessageChannel === undefined) return void setTimeout(resolve)
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(undefined)
  })
}
