/**
 * Bookkeeping of one device's messages at one QoS: what was sent, what the broker acknowledged, what arrived at the consumer.
 *
 * A message counts as lost when the broker acknowledged it and it did not arrive: a publish that was rejected promised nothing. Memory is bounded:
 * a stream remembers what is under way, and one bit for each of the last 4,096 numbers.
 */
import { Sequence } from '../demo/checker.js'

/** Messages that are remembered until they arrive, or until their publish settles. */
const mostAwaited = 2000

/** One stream of numbered messages. */
export class Stream {
  sent = 0
  acknowledged = 0
  /** Rejected with outcome `'unknown'`: they may have arrived. */
  unsure = 0
  /** Rejected, and known not to have arrived. */
  refused = 0
  /** Acknowledged and given up, of which so many are remembered: one that comes late was not lost. */
  #lost = 0
  #givenUp = new Set()
  #arrivals = new Sequence()
  // Acknowledged and not arrived, with the time of the acknowledgement; oldest first.
  #awaited = new Map()
  // Arrived, and the publish has not settled.
  #early = new Set()

  /** Different messages that arrived. */
  get arrived() {
    return this.#arrivals.received
  }

  /** Messages that arrived once more. */
  get repeated() {
    return this.#arrivals.repeated
  }

  /** Acknowledged messages whose arrival is awaited. */
  get awaited() {
    return this.#awaited.size
  }

  /** Publishes that have not settled. At QoS 0 nothing settles. */
  get open() {
    return this.sent - this.acknowledged - this.unsure - this.refused
  }

  get lost() {
    return this.#lost
  }

  /** The number of the next message. */
  next() {
    this.sent += 1
    return this.sent
  }

  /** The number that was given last was not sent at all. */
  takeBack() {
    this.sent -= 1
  }

  acknowledge(number, now) {
    this.acknowledged += 1
    if (this.#early.delete(number)) return
    this.#awaited.set(number, now)
    if (this.#awaited.size > mostAwaited) this.#giveUpOne(this.#awaited.keys().next().value)
  }

  fail(number, outcome) {
    if (outcome === 'unknown') this.unsure += 1
    else this.refused += 1
    this.#early.delete(number)
  }

  /** A message arrived; true when it is the first with its number. */
  arrive(number, qos) {
    if (!this.#arrivals.record(number)) return false
    if (this.#givenUp.delete(number)) this.#lost -= 1
    else if (qos > 0 && !this.#awaited.delete(number)) {
      this.#early.add(number)
      // Left over are those whose publish was rejected before they arrived.
      if (this.#early.size > mostAwaited) this.#early.delete(this.#early.values().next().value)
    }
    return true
  }

  /** Counts as lost what was acknowledged at this time or before, and has not arrived. */
  giveUp(until) {
    for (const [number, time] of this.#awaited) {
      if (time > until) return
      this.#giveUpOne(number)
    }
  }

  #giveUpOne(number) {
    this.#awaited.delete(number)
    this.#lost += 1
    this.#givenUp.add(number)
    if (this.#givenUp.size > mostAwaited) this.#givenUp.delete(this.#givenUp.values().next().value)
  }
}
