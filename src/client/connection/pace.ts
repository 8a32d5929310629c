/**
 * A careful start, where the connection before did not hold: acknowledgements leave a few at a time, for a while.
 */
import { carefulAcks, carefulTime } from './bounds.js'

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
    return this.careful ? carefulAcks * (1 + Math.floor(passed)) - this.#acked : Number.POSITIVE_INFINITY
  }

  /** So many have left. */
  handleSent(count: number): void {
    this.#acked += count
  }
}
