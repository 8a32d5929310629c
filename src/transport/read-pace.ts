/**
 * Decides when the next read of a busy socket should wait a little, so that more comes with it.
 *
 * A server that writes each message by itself makes a reader wake up for each of them, and that
 * costs more than the message. The wait is short, begins only at rates that no exchange of requests
 * and answers reaches, and is given up where it brings nothing.
 */

/** Milliseconds that a read waits. */
export const lull = 1
/** Reads within `lull` that are too many. */
const fewest = 32
/** As many reads must come as fast after waits that brought nothing. */
const most = 65_536
/** Average bytes of a read that is worth its cost. */
const worthwhile = 2048
/**
 * A read after a wait must bring this share of what came in the same time before. Less means that
 * the server was waiting, too: for acknowledgements, or for an answer.
 */
const share = 0.9

/** The reads of one socket. */
export class ReadPace {
  #count = 0
  #bytes = 0
  #since = 0
  #needed = fewest
  /** Bytes that the reads after a wait must bring; 0 while no read waits. */
  #least = 0
  #isSecond = false

  /** Counts a read. True when the next one should wait. `now`: monotonic milliseconds. */
  waits(length: number, now: () => number): boolean {
    if (this.#least > 0) return this.#waitsAgain(length, now)
    this.#bytes += length
    this.#count += 1
    if (this.#count < this.#needed) return false
    const time = now()
    const elapsed = time - this.#since
    const bytes = this.#bytes
    this.#begin(time)
    if (elapsed > (lull * this.#needed) / fewest || bytes >= worthwhile * this.#needed) return false
    this.#least = (share * bytes * lull) / elapsed
    return true
  }

  // The first read after a wait may be small all the same: where the server's small writes wait for
  // an acknowledgement of TCP, that read causes it, and the second one brings the rest.
  #waitsAgain(length: number, now: () => number): boolean {
    this.#bytes += length
    const isEnough = this.#bytes >= this.#least
    if (!isEnough && !this.#isSecond) {
      this.#isSecond = true
      return false
    }
    this.#isSecond = false
    this.#bytes = 0
    if (isEnough) {
      this.#needed = fewest
      return true
    }
    this.#needed = Math.min(most, this.#needed * 2)
    this.#least = 0
    this.#begin(now())
    return false
  }

  #begin(time: number): void {
    this.#count = 0
    this.#bytes = 0
    this.#since = time
  }
}
