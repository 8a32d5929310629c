/**
 * Measures the memory of this process: what is in use, with and without what the collector has yet to take away.
 *
 * "In use" is the JavaScript heap and what lies outside of it for it (`external`, which holds the ArrayBuffers too: they are not added twice).
 * It may assume `--expose-gc`. It must take nothing itself while it measures.
 */
import { getHeapStatistics } from 'node:v8'

/** How often the clock takes a sample, and how seldom the reads of a connection do. Milliseconds. */
const interval = 2
const leastBetween = 0.5

const collect = (globalThis as { readonly gc?: () => void }).gc

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

/** One measurement, from `start()` to `stop()`. */
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
    this.#timer = undefined
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
