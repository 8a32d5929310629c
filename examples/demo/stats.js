/**
 * Figures of a run: how many messages came in, and how long they took.
 *
 * Latencies go into a histogram of fixed size: its buckets grow with the value, so that a percentile is off by 3% at most, whether it is a
 * microsecond or an hour.
 */

const perDoubling = 32
const doublings = 32
const buckets = perDoubling * doublings

/** Counts durations in milliseconds. */
export class Histogram {
  count = 0
  /** The longest, in milliseconds. */
  max = 0
  #counts = new Float64Array(buckets)

  /** Adds a duration in milliseconds; what is no duration counts as 0. */
  record(milliseconds) {
    const value = milliseconds > 0 ? milliseconds : 0
    this.#counts[bucketOf(value)] += 1
    this.count += 1
    if (value > this.max) this.max = value
  }

  /** The duration that this share (0 to 1) of all stays within, in milliseconds; 0 when there is none. */
  percentile(share) {
    const rank = Math.max(1, Math.ceil(share * this.count))
    let sum = 0
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      sum += this.#counts[bucket]
      if (sum >= rank) return Math.min(this.max, middleOf(bucket))
    }
    return this.max
  }

  reset() {
    this.#counts.fill(0)
    this.count = 0
    this.max = 0
  }
}

// Bucket 0 holds all up to a microsecond; from there on each doubling has the same number of buckets.
function bucketOf(milliseconds) {
  const microseconds = milliseconds * 1000
  if (microseconds <= 1) return 0
  return Math.min(buckets - 1, 1 + Math.floor(Math.log2(microseconds) * perDoubling))
}

function middleOf(bucket) {
  return bucket === 0 ? 0.001 : 2 ** ((bucket - 0.5) / perDoubling) / 1000
}

/** Latencies and rates, of the whole run and since the last look. */
export class Stats {
  /** Of the whole run. */
  latency = new Histogram()
  #recent = new Histogram()
  #since = performance.now()

  /** A message arrived that took so many milliseconds. */
  record(milliseconds) {
    this.latency.record(milliseconds)
    this.#recent.record(milliseconds)
  }

  /** Figures since the last call: messages per second, and latencies in milliseconds, undefined when there is none. */
  recent() {
    const now = performance.now()
    const rate = (this.#recent.count * 1000) / Math.max(1, now - this.#since)
    const [p50, p99] = [0.5, 0.99].map((share) =>
      this.#recent.count > 0 ? this.#recent.percentile(share) : undefined,
    )
    this.#recent.reset()
    this.#since = now
    return { rate, p50, p99 }
  }
}
