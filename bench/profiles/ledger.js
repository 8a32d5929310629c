/**
 * Who got which message how often: each message carries its publisher and its number. Pure.
 */

/** Bytes at the start of a payload that say what it is. */
export const stampSize = 8
/** The number of the message that says that its publisher is done. */
export const lastNumber = 0xffffffff

/** Writes the stamp into a payload. */
export function stamp(payload, publisher, number) {
  payload[0] = publisher >>> 24
  payload[1] = publisher >>> 16
  payload[2] = publisher >>> 8
  payload[3] = publisher
  payload[4] = number >>> 24
  payload[5] = number >>> 16
  payload[6] = number >>> 8
  payload[7] = number
}

const integer = (bytes, at) =>
  ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0

/** What one subscriber has seen of publishers that send `count` messages each. */
export class Ledger {
  /** Messages, the last ones of their publishers not counted. */
  received = 0
  twice = 0
  disordered = 0
  wrong = 0
  /** Settles when every publisher was heard to be done. */
  finished
  #finish
  #open
  #count
  #size
  #seen = new Map()

  /** @param {readonly number[]} publishers those that this subscriber must hear */
  constructor(publishers, count, size) {
    this.#open = new Set(publishers)
    this.#count = count
    this.#size = size
    for (const publisher of publishers)
      this.#seen.set(publisher, { numbers: new Uint8Array(count), last: -1 })
    this.finished = new Promise((resolve) => {
      this.#finish = resolve
    })
    if (publishers.length === 0) this.#finish()
  }

  /** Takes a payload. */
  take(payload) {
    const [publisher, number] = [integer(payload, 0), integer(payload, 4)]
    const seen = this.#seen.get(publisher)
    if (
      seen === undefined ||
      payload.length !== this.#size ||
      (number >= this.#count && number !== lastNumber)
    ) {
      this.wrong++
      return
    }
    if (number === lastNumber) {
      this.#open.delete(publisher)
      if (this.#open.size === 0) this.#finish()
      return
    }
    this.received++
    if (seen.numbers[number] === 1) this.twice++
    if (number <= seen.last) this.disordered++
    seen.numbers[number] = 1
    seen.last = number
  }

  /** Messages that never came. */
  get missing() {
    let missing = 0
    for (const { numbers } of this.#seen.values()) for (const seen of numbers) missing += 1 - seen
    return missing
  }
}
