/**
 * The time of one world: timers in a heap, run one by one, and between two of them every promise gets its turn.
 *
 * Of several timers at one time the one that was set first runs first. Nothing here waits in real time but for the hop that lets microtasks
 * finish. Some timers are steps: points at which a fault may strike; they are counted.
 */

interface Timer {
  readonly at: number
  readonly order: number
  readonly step: string | undefined
  callback: (() => void) | undefined
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
  /** Steps that have run. */
  steps = 0
  /** Timers that have run. */
  events = 0
  /** Rises whenever timers ran late on purpose. */
  jumps = 0
  #now = 0
  #order = 0
  readonly #heap: Timer[] = []
  #live = 0

  now(): number {
    return this.#now
  }

  /** Timers that have not run. */
  get pending(): number {
    return this.#live
  }

  /** Calls back once, `delay` milliseconds from now; gives a function that cancels. `step` names it as a point for faults. */
  setTimer(callback: () => void, delay: number, step?: string): () => void {
    const timer: Timer = {
      at: this.#now + Math.max(0, delay),
      order: this.#order++,
      step,
      callback,
    }
    this.#live += 1
    this.#push(timer)
    return () => {
      if (timer.callback === undefined) return
      timer.callback = undefined
      this.#live -= 1
    }
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
    for (let timer = this.#pop(until); timer !== undefined; timer = this.#pop(until)) {
      if (timer.callback !== undefined && timer.at > this.#now) this.onGap?.(this.#now, timer.at)
      this.#now = Math.max(this.#now, timer.at)
      if (timer.step !== undefined) this.onStep?.(this.steps++, timer.step)
      const { callback } = timer
      // The fault may have cancelled it.
      if (callback === undefined) continue
      timer.callback = undefined
      this.#live -= 1
      this.events += 1
      callback()
      await quiescence()
      if (this.events > mostEvents) throw new Error('the world does not come to rest')
      if (this.onQuiet?.() === true) return
    }
    this.#now = Math.max(this.#now, until)
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(timer)
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!before(timer, heap[parent] as Timer)) break
      heap[index] = heap[parent] as Timer
      index = parent
    }
    heap[index] = timer
  }

  #pop(until: number): Timer | undefined {
    for (let top = this.#heap[0]; top !== undefined && top.at <= until; top = this.#heap[0]) {
      this.#removeTop()
      if (top.callback !== undefined) return top
    }
    return undefined
  }

  #removeTop(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    let index = 0
    for (;;) {
      let child = index * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Timer, heap[child] as Timer))
        child += 1
      if (!before(heap[child] as Timer, last)) break
      heap[index] = heap[child] as Timer
      index = child
    }
    heap[index] = last
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** Fulfils when all microtasks that are queued, and those that they queue, have run. A task of its own is the cheapest way to know. */
function quiescence(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
