/**
 * Decides when the next read of a busy socket should wait a little, so that more comes with it.
 *
 * A server that writes each message by itself makes a reader wake up for each of them, and that
 * costs more than the message. The wait is short, begins only at rates that no exchange of requests
 * and answers reaches, and is given up where it brings less than reading at once.
 */

/** Milliseconds that a read waits. */
export const lull = 1
/** More reads than this in a millisecond are too many. */
const usual = 32
/** So many reads in a row must be too fast before one waits: a wait in vain costs its time. */
export const fewest = 256
/** After waits in vain, four times as many; at most this many. */
const most = 16_384
/** Average bytes of a read that is worth its cost. */
const worthwhile = 2048
/**
 * The reads after a wait must bring this share of what came in the same time before. Less means
 * that the server was waiting, too: for acknowledgements, or for an answer.
 */
const share = 0.9
/** After this many waits, the rate without them is measured again. */
const row = 16

/** The reads of one socket. */
export class ReadPace {
  #count = 0
  #bytes = 0
  /** Monotonic milliseconds: when counting, or the wait, began. */
  #since = Number.NEGATIVE_INFINITY
  #needed = fewest
  /** Bytes in a millisecond without waits; 0 while no read waits. */
  #rate = 0
  #waits = 0

  /** Counts a read. True when the next one should wait. `now`: monotonic milliseconds. */
  waits(length: number, now: () => number): boolean {
    this.#bytes += length
    this.#count += 1
    if (this.#rate > 0) return this.#waitsAgain(now())
    if (this.#count < this.#needed) return false
    const time = now()
    const elapsed = time - this.#since
    const isBusy =
      elapsed > 0 && this.#count >= usual * elapsed && this.#bytes < worthwhile * this.#count
    if (isBusy) this.#rate = this.#bytes / elapsed
    this.#begin(time)
    return isBusy
  }

  #waitsAgain(time: number): boolean {
    const isEnough = this.#bytes >= share * this.#rate * (time - this.#since)
    // The first read after a wait may be small all the same: where the server's small writes wait
    // for an acknowledgement of TCP, that read causes it, and the second one brings the rest.
    if (!isEnough && this.#count === 1) return false
    this.#waits += 1
    const goesOn = isEnough && this.#waits < row
    // A stream that has waited well is measured again in few reads.
    if (isEnough) this.#needed = usual
    else this.#needed = Math.min(most, this.#needed * 4)
    if (!goesOn) {
      this.#rate = 0
      this.#waits = 0
    }
    this.#begin(time)
    return goesOn
  }

  #begin(time: number): void {
    this.#count = 0
    this.#bytes = 0
    this.#since = time
  }
}
