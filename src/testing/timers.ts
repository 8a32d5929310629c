/**
 * Timers of a virtual clock, earliest first, in a binary heap. It calls no timers and has no
 * current time.
 */

/** A timer that has not run, or was cancelled. */
export interface Timer {
  readonly at: number
  /** Increases with each timer: of timers due at the same time, the one set first runs first. */
  readonly order: number
  /** Undefined once it has run, or was cancelled. */
  callback: (() => void) | undefined
}

function isBefore(one: Timer, other: Timer): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

/**
 * A binary heap of timers, the earliest on top. Cancelled timers stay in it until they reach the
 * top or outnumber the others.
 */
export class Timers {
  live = 0
  #heap: Timer[] = []

  add(timer: Timer): void {
    this.live += 1
    this.#push(timer)
  }

  /** The earliest that has not run and was not cancelled. */
  get first(): Timer | undefined {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      if (top.callback !== undefined) return top
      this.#dropFirst()
    }
    return undefined
  }

  /** Removes the timer and returns its callback; undefined if it was already removed. */
  end(timer: Timer): (() => void) | undefined {
    const { callback } = timer
    timer.callback = undefined
    if (callback !== undefined) this.live -= 1
    if (this.#heap.length > leastSweep && this.#heap.length > 2 * this.live) this.#sweep()
    return callback
  }

  #sweep(): void {
    const kept = this.#heap.filter((timer) => timer.callback !== undefined)
    this.#heap = []
    for (const timer of kept) this.#push(timer)
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.length
    for (let above = (at - 1) >> 1; at > 0; at = above, above = (at - 1) >> 1) {
      const parent = heap[above] as Timer
      if (isBefore(parent, timer)) break
      heap[at] = parent
    }
    heap[at] = timer
  }

  #dropFirst(): void {
    const heap = this.#heap
    const last = heap.pop() as Timer
    if (heap.length === 0) return
    let at = 0
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && isBefore(heap[below + 1] as Timer, heap[below] as Timer))
        below += 1
      const child = heap[below] as Timer
      if (isBefore(last, child)) break
      heap[at] = child
      at = below
    }
    heap[at] = last
  }
}

/** Number of cancelled timers that may stay, however few others there are. */
const leastSweep = 64
