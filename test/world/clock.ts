/**
 * The time of one world: timers in a heap, run one by one, and between two of them every promise gets its turn. Queues, pools and groups take timers
 * and dates from the platform: while a world runs, these are the world's.
 */
import { type Timer, Timers } from '../../src/testing/timers.js'

interface Step extends Timer {
  /** Its name as a point for faults. */
  readonly step: string | undefined
}

/** No run needs more: what does is a storm. */
const mostEvents = 300_000

/** Virtual milliseconds. */
export class WorldClock {
  /** Told of each step before it runs; `step` counts from 0. */
  onStep: ((step: number, name: string) => void) | undefined
  /** Told before time passes in which nothing happens: from, and to. */
  onGap: ((from: number, to: number) => void) | undefined
  /** Told after each timer, when every promise had its turn; gives true to stop. */
  onQuiet: (() => boolean) | undefined
  steps = 0
  events = 0
  /** Rises whenever timers ran late on purpose. */
  jumps = 0
  #now = 0
  #order = 0
  readonly #timers = new Timers()

  now(): number {
    return this.#now
  }

  get pending(): number {
    return this.#timers.live
  }

  /** Calls back once, `delay` milliseconds from now; gives a function that cancels. `step` names it as a point for faults. */
  setTimer(callback: () => void, delay: number, step?: string): () => void {
    const at = this.#now + Math.max(0, delay)
    const timer: Step = { at, order: this.#order++, step, callback }
    this.#timers.add(timer)
    return () => void this.#timers.end(timer)
  }

  /** Time passes without any timer running, as when a machine sleeps: they are all late afterwards. */
  jump(duration: number): void {
    this.#now += duration
    this.jumps += 1
  }

  /** Lets time pass. Ends early when `onQuiet` says so. */
  async advance(duration: number): Promise<void> {
    const until = this.#now + duration
    await quiescence()
    for (let timer = this.#due(until); timer !== undefined; timer = this.#due(until)) {
      if (timer.at > this.#now) this.onGap?.(this.#now, timer.at)
      this.#now = Math.max(this.#now, timer.at)
      if (timer.step !== undefined) this.onStep?.(this.steps++, timer.step)
      const callback = this.#timers.end(timer)
      // The fault may have cancelled it.
      if (callback === undefined) continue
      this.events += 1
      callback()
      await quiescence()
      if (this.events > mostEvents) throw new Error('the world does not come to rest')
      if (this.onQuiet?.() === true) return
    }
    this.#now = Math.max(this.#now, until)
  }

  #due(until: number): Step | undefined {
    const { first } = this.#timers
    return first === undefined || first.at > until ? undefined : (first as Step)
  }
}

/** Fulfils when all microtasks that are queued, and those that they queue, have run. A task of its own is the cheapest way to know. */
function quiescence(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

interface TimeSource {
  now(): number
  /** Sets a timer of whatever process runs now. */
  setTimer(callback: () => void, delay: number): () => void
}

/** Puts the timers and the clocks of a world in place of the platform's; gives what puts them back. */
export function takeOverTime(source: TimeSource): () => void {
  const { setTimeout, clearTimeout } = globalThis
  const { now } = Date
  const since = performance.now
  const timers = new Map<number, () => void>()
  let last = 0
  globalThis.setTimeout = ((callback: () => void, delay = 0) => {
    const id = ++last
    const cancel = source.setTimer(() => {
      timers.delete(id)
      callback()
    }, delay)
    timers.set(id, cancel)
    return id
  }) as never
  globalThis.clearTimeout = ((id: number | undefined) => {
    timers.get(id ?? 0)?.()
    timers.delete(id ?? 0)
  }) as never
  Date.now = source.now
  performance.now = source.now
  return () => {
    globalThis.setTimeout = setTimeout
    globalThis.clearTimeout = clearTimeout
    Date.now = now
    performance.now = since
  }
}
