/**
 * A careful start, where the connection before did not hold: acknowledgements leave a few at a time, for a while.
 */

/**
 * Where the connection before did not hold, so many acknowledgements leave in a millisecond, for so many milliseconds. What leaves in one go over a
 * link that breaks again is lost in one go, and a server that sends everything again reads nothing meanwhile: some have to get through.
 */
const carefulAcks = 8
const carefulTime = 100

/** How fast acknowledgements may leave. */
export class Pace {
  /** True while they are counted. */
  careful = false
  #since = -1
  #acked = 0

  /** How many may leave now. A timer that comes late lets all of them go. */
  room(now: number): number {
    if (this.#since < 0) this.#since = now
    const passed = now - this.#since
    if (passed >= carefulTime) this.careful = false
    return this.careful
      ? carefulAcks * (1 + Math.floor(passed)) - this.#acked
      : Number.POSITIVE_INFINITY
  }

  /** So many have left. */
  handleSent(count: number): void {
    this.#acked += count
  }
}
