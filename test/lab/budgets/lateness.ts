/**
 * How late timers run: a due time every few milliseconds, and how long after it the event loop came round.
 *
 * A loop that stands still is late for every due time that passes meanwhile, so that one long stop weighs as much as it lasted. The same is kept
 * in the processor's time of this process, which does not pass while others have the processor.
 */

/** Milliseconds between two due times. */
const period = 5

/** What was seen. Milliseconds. */
export interface Late {
  readonly p99: number
  readonly worst: number
}

/** One observation. */
export interface Lateness {
  /** By the clock. */
  readonly clock: Late
  /** By the processor's time. */
  readonly processor: Late
  /** Share of the time in which this process had a processor. */
  readonly share: number
  /** Turns of the event loop, by `setImmediate`. */
  readonly turns: number
}

const used = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Watches from `start()` to `stop()`. */
export class Watch {
  readonly #late: number[] = []
  readonly #busy: number[] = []
  #started = 0
  #usedBefore = 0
  #usedAtTurn = 0
  #due = 0
  #turns = 0
  #running = false

  start(): void {
    this.#running = true
    this.#started = performance.now()
    this.#usedBefore = used()
    this.#usedAtTurn = this.#usedBefore
    this.#due = this.#started + period
    this.#arm()
    this.#turn()
  }

  stop(): Lateness {
    this.#running = false
    const share = (used() - this.#usedBefore) / (performance.now() - this.#started)
    return { clock: late(this.#late), processor: late(this.#busy), share, turns: this.#turns }
  }

  #arm(): void {
    if (!this.#running) return
    setTimeout(() => this.#ring(), Math.max(0, this.#due - performance.now()))
  }

  #ring(): void {
    const now = performance.now()
    for (; this.#due <= now; this.#due += period) this.#late.push(now - this.#due)
    this.#arm()
  }

  #turn(): void {
    if (!this.#running) return
    this.#turns += 1
    const now = used()
    for (let rest = now - this.#usedAtTurn; rest > 0; rest -= period) this.#busy.push(rest)
    this.#usedAtTurn = now
    setImmediate(() => this.#turn())
  }
}

function late(given: number[]): Late {
  const sorted = given.sort((first, second) => first - second)
  return { p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0, worst: sorted.at(-1) ?? 0 }
}
