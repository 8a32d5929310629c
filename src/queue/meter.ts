/**
 * Number of entries delivered in the last seconds. `now` is an argument: milliseconds of a
 * monotonic clock.
 */

/** Seconds that are counted. */
const seconds = 10

/** Counts by second. */
export class Meter {
  readonly #counts = new Float64Array(seconds)
  /** The current second. */
  #second = 0

  /** Counts one delivery. */
  count(now: number): void {
    this.#advance(now)
    this.#add(this.#second, 1)
  }

  /** Entries per second since the first counted one; over at least one second. */
  rate(now: number): number {
    this.#advance(now)
    const sum = this.#counts.reduce((all, count) => all + count, 0)
    return sum / Math.min(seconds, Math.max(1, now / 1000 - this.#oldest))
  }

  /** The first of the counted seconds that is not empty. */
  get #oldest(): number {
    let oldest = Math.max(0, this.#second - seconds + 1)
    while (oldest < this.#second && this.#counts[oldest % seconds] === 0) oldest++
    return oldest
  }

  #advance(now: number): void {
    const second = Math.floor(now / 1000)
    if (second <= this.#second) return
    const from = Math.max(this.#second + 1, second - seconds + 1)
    for (let at = from; at <= second; at++) this.#counts[at % seconds] = 0
    this.#second = second
  }

  #add(second: number, count: number): void {
    const at = second % seconds
    this.#counts[at] = (this.#counts[at] ?? 0) + count
  }
}
