/**
 * Messages of the server whose contents break a rule: how often connections ended at each of them, one after the other.
 *
 * A retained one comes again on each connection, and ends that, too. One that ended three in a row is read past from then on. Pure; bounded in number.
 */
import { SparseMap } from '../../common/sparse.js'

/** Connections in a row that a message ends before it is read past. */
export const mostFaultyEnds = 3
/** Messages that are known, at most. */
const mostFaulty = 64

/** Counts by what a message is known again by. */
export class FaultyMessages {
  /** A Will Delay Interval came in a PUBLISH: that is reported once. */
  willDelay = false
  readonly #ends = new SparseMap<string, number>()
  /** This connection ends at one. */
  #ended = false

  /** True for a message that is read past from now on. */
  isPassed(key: string): boolean {
    return (this.#ends.get(key) ?? 0) >= mostFaultyEnds
  }

  /** This connection ends at the message. */
  note(key: string): void {
    if (this.#ended) return
    this.#ended = true
    const ends = (this.#ends.get(key) ?? 0) + 1
    this.#ends.delete(key)
    this.#ends.set(key, ends)
    for (const oldest of this.#ends.keys())
      if (this.#ends.size > mostFaulty) this.#ends.delete(oldest)
  }

  /** A connection that was up is over. Where something else ended it, no message ended several in a row. */
  handleLost(): void {
    if (!this.#ended)
      for (const key of this.#ends.keys()) if (!this.isPassed(key)) this.#ends.delete(key)
    this.#ended = false
  }
}
