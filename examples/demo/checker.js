/**
 * Sequence bookkeeping: did every message arrive, and none twice?
 *
 * A device numbers its messages 1, 2, 3 … for each QoS by itself; such a stream is one `Sequence`. Memory is bounded, however long the demo runs:
 * a sequence remembers one bit for each of the last 4,096 numbers, and counts for everything older.
 */

/** Numbers that a sequence remembers one by one. Messages of one stream arrive in order, so this is far more than is needed. */
export const window = 4096

/** One stream of numbered messages. */
export class Sequence {
  /** Different numbers that have arrived. */
  received = 0
  /** Arrivals of a number that had arrived before. */
  repeated = 0
  #highest = 0
  #seen = new Uint32Array(window / 32)

  /** Numbers below the highest one that have not arrived. */
  get gaps() {
    return this.#highest - this.received
  }

  /** A message with this number (1 or more) arrived; true when it is the first one. */
  record(number) {
    // Too old to tell: a repeat, unless a gap was there. Then the gap stays counted, and either way the check fails.
    const first = number > this.#highest - window && !this.#has(number)
    if (number > this.#highest) this.#moveTo(number)
    if (!first) {
      this.repeated += 1
      return false
    }
    this.#seen[(number % window) >>> 5] |= 1 << (number & 31)
    this.received += 1
    return true
  }

  #has(number) {
    return (
      number <= this.#highest && (this.#seen[(number % window) >>> 5] & (1 << (number & 31))) !== 0
    )
  }

  // Forgets the bits whose places the new numbers take.
  #moveTo(highest) {
    if (highest - this.#highest >= window) this.#seen.fill(0)
    else
      for (let n = this.#highest + 1; n <= highest; n += 1)
        this.#seen[(n % window) >>> 5] &= ~(1 << (n & 31))
    this.#highest = highest
  }
}

/** All streams of a run: three for each device. */
export class Checker {
  #sequences

  constructor(devices) {
    this.#sequences = Array.from({ length: devices }, () => [
      new Sequence(),
      new Sequence(),
      new Sequence(),
    ])
  }

  /** A message arrived. False when no such device exists or the number is none: it is not one of ours. */
  record(device, qos, number) {
    const sequence = this.#sequences[device]?.[qos]
    if (sequence === undefined || !Number.isSafeInteger(number) || number < 1) return false
    sequence.record(number)
    return true
  }

  /** Different messages that arrived. */
  get total() {
    return this.received(0) + this.received(1) + this.received(2)
  }

  /** Different messages that arrived at this QoS. */
  received(qos) {
    return this.#sum((sequences) => sequences[qos].received)
  }

  /** Messages that arrived once more at this QoS. */
  repeated(qos) {
    return this.#sum((sequences) => sequences[qos].repeated)
  }

  /** Messages at this QoS that later ones have overtaken: the loss that shows while the demo runs. */
  gaps(qos) {
    return this.#sum((sequences) => sequences[qos].gaps)
  }

  /** Messages at this QoS that never arrived; `sent` has, for each device, how many it sent at QoS 0, 1 and 2. */
  missing(qos, sent) {
    return this.#sum((sequences, device) =>
      Math.max(0, sent[device][qos] - sequences[qos].received),
    )
  }

  /** True when any message that was sent has not arrived. */
  isMissingAny(sent) {
    return [0, 1, 2].some((qos) => this.missing(qos, sent) > 0)
  }

  #sum(count) {
    return this.#sequences.reduce((sum, sequences, device) => sum + count(sequences, device), 0)
  }
}

/**
 * What is wrong with the outcome, one sentence for each finding; nothing when all is well.
 *
 * Loss at QoS 1 and 2 and repetition at QoS 2 and 0 are failures. QoS 1 may repeat. QoS 0 may be lost by a broker that is not ours
 * (`foreign`), and by the subscriber's own full buffer, which counts it (`dropped`).
 */
export function failures({ missing, repeated, foreign, dropped }) {
  const excused = foreign ? missing[0] : Math.min(missing[0], dropped)
  return [
    ...[missing[0] - excused, missing[1], missing[2]].map(
      (count, qos) => count > 0 && `${count} missing at QoS ${qos}`,
    ),
    ...[0, 2].map((qos) => repeated[qos] > 0 && `${repeated[qos]} twice at QoS ${qos}`),
  ].filter(Boolean)
}
