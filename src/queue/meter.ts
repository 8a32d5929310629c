/**
 * How many entries were delivered in the last seconds. `now` is an argument, in milliseconds of a clock that is never set.
 */

/** Seconds that are looked at. */
const seconds = 10

/** Counts by the second. */
export class Meter {
  readonly #counts = new Float64Array(seconds)
  /** The second that is counted now. */
  #second = 0

  /** One more. */
  count(now: number): void {
    this.#advance(now)
    this.#add(this.#second, 1)
  }

  /** Entries a second, since the first of those that are looked at; never of less than a second. */
  rate(now: number): number {
    this.#advance(now)
    const sum = this.#counts.reduce((all, count) => all + count, 0)
    return sum / Math.min(seconds, Math.max(1, now / 1000 - this.#oldest))
  }

  /** The first second that is looked at in which something was counted. */
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
