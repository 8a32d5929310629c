/** Measures this process: the memory that is in use, and how late timers run. It needs `--expose-gc`, and must take nothing itself while it measures. */
import { getHeapStatistics } from 'node:v8'

/** How often the clock takes a sample, and how seldom the reads of a connection do. Milliseconds. */
const interval = 2
const leastBetween = 0.5

const collect = (globalThis as { readonly gc?: () => void }).gc

/** The JavaScript heap and what lies outside of it for it (`external`, which holds the ArrayBuffers too). */
function inUse(): number {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

/** What was measured, in bytes above the baseline. */
export interface Measured {
  /** Most that was in use at any sample, garbage included. */
  readonly peak: number
  /** Most that was in use after a collection, at any pause. */
  readonly held: number
  /** Growth of the resident set to its highest. */
  readonly resident: number
  readonly samples: number
}

/** One measurement of memory, from `start()` to `stop()`. */
export class Meter {
  #baseline = 0
  #resident = 0
  #peak = 0
  #held = 0
  #samples = 0
  #sampledAt = 0
  #timer: ReturnType<typeof setInterval> | undefined

  /** What is in use now is not counted. */
  async start(): Promise<void> {
    await settle()
    this.#baseline = inUse()
    this.#resident = process.memoryUsage.rss()
    this.#timer = setInterval(() => this.sample(), interval)
    this.#timer.unref()
  }

  /** Takes a sample, also inside a read: not more often than makes sense. */
  sample(): void {
    if (this.#timer === undefined) return
    const now = performance.now()
    if (now - this.#sampledAt < leastBetween) return
    this.#sampledAt = now
    this.#take()
  }

  /** Everything stands still: a sample as it is, and one after a collection. Gives the latter. */
  async pause(): Promise<number> {
    if (this.#timer === undefined) return 0
    this.#take()
    await settle()
    const held = inUse() - this.#baseline
    this.#held = Math.max(this.#held, held)
    return held
  }

  async stop(): Promise<Measured> {
    await this.pause()
    clearInterval(this.#timer)
    const resident = process.resourceUsage().maxRSS * 1024 - this.#resident
    return {
      peak: Math.max(this.#peak, this.#held),
      held: this.#held,
      resident: Math.max(0, resident),
      samples: this.#samples,
    }
  }

  #take(): void {
    this.#samples += 1
    this.#peak = Math.max(this.#peak, inUse() - this.#baseline)
  }
}

// What is freed beside the heap is given back later; what comes in after the last collection would count as held.
async function settle(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect?.()
  }
  collect?.()
}

/** Milliseconds between two due times. */
const period = 5
/** A process that has the processor for less of the time shares it with others: only its own time says something about it then. */
const leastShare = 0.75

const used = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** How late timers run, from now to `stop()`. One long stop weighs as much as it lasts: it is late for every due time that passes meanwhile. */
export class Lateness {
  readonly #late: number[] = []
  /** The same in the processor's time of this process, which does not pass while others have the processor. */
  readonly #busy: number[] = []
  readonly #started = performance.now()
  readonly #usedBefore = used()
  #usedAtTurn = this.#usedBefore
  #due = this.#started + period
  #turns = 0
  #running = true

  constructor() {
    this.#arm()
    this.#turn()
  }

  stop() {
    this.#running = false
    const share = (used() - this.#usedBefore) / (performance.now() - this.#started)
    const alone = share >= leastShare
    const sorted = (alone ? this.#late : this.#busy).sort((first, second) => first - second)
    return {
      p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
      worst: sorted.at(-1) ?? 0,
      turns: this.#turns,
      what: alone ? 'by the clock' : "of the process's own time",
    }
  }

  #arm(): void {
    if (this.#running) setTimeout(() => this.#ring(), Math.max(0, this.#due - performance.now()))
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
