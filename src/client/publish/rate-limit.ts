/**
 * How fast publishes leave: so many messages, and so many bytes, in a time. Evenly, and after a pause no faster than in 50 ms of it.
 *
 * It knows no packet but PUBLISH: whatever else is to be sent does not wait for it. What is owed for a large message is waited for afterwards.
 */

import { longestTimer } from '../../common/schema.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Sending } from '../options/check-calls.js'
import type { RateOptions } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { Backlog } from './backlog.js'
import { sizeOfMessage } from './queued-publish.js'

/** Milliseconds whose messages may leave at once, after a pause: timers are as late as that. */
const slack = 50

/** One limit: each unit takes its time. */
class Lane {
  readonly #cost: number
  /** When all that was sent has had its time. */
  #due = 0

  constructor(amount: number, per: number) {
    this.#cost = per / amount
  }

  /** Milliseconds until the next one may leave. */
  wait(now: number): number {
    return this.#due - now - Math.max(0, slack - this.#cost)
  }

  spend(units: number, now: number): void {
    this.#due = Math.max(this.#due, now) + units * this.#cost
  }
}

/** The rate of one client. */
export class RateLimit {
  /** Whose turn it is, where both wait: that of QoS 1 and 2, or of QoS 0. */
  ordered: boolean | undefined
  readonly #messages: Lane
  readonly #bytes: Lane
  readonly #platform: Platform
  readonly #flush: () => void
  /** Ends the wait for the next one. */
  stop: (() => void) | undefined

  /** @param flush called when the next message may leave, after an answer that it may not */
  constructor(
    {
      messages = Number.POSITIVE_INFINITY,
      bytes = Number.POSITIVE_INFINITY,
      per = 1000,
    }: RateOptions,
    platform: Platform,
    flush: () => void,
  ) {
    this.#messages = new Lane(messages, per)
    this.#bytes = new Lane(bytes, per)
    this.#platform = platform
    this.#flush = flush
  }

  /** May a message leave now? */
  get open(): boolean {
    const now = this.#platform.now()
    const wait = Math.max(this.#messages.wait(now), this.#bytes.wait(now))
    if (wait <= 0) return true
    this.stop ??= this.#platform.setTimer(
      () => {
        this.stop = undefined
        this.#flush()
      },
      Math.min(longestTimer, Math.ceil(wait)),
    )
    return false
  }

  /** Is it the turn of those of the other kind, and do some wait? */
  yields(ordered: boolean, backlog: Backlog, output: PacketWriter): boolean {
    const yields =
      this.ordered === !ordered && (ordered ? backlog.immediate : backlog.ordered).length > 0
    // They may wait for something else.
    if (yields) output.queueFlush()
    return yields
  }

  /** One leaves. */
  spend(topic: string, payload: Uint8Array, how: Sending): void {
    const now = this.#platform.now()
    this.#messages.spend(1, now)
    this.#bytes.spend(sizeOfMessage(topic, payload, how, 5), now)
    this.ordered = how.qos === 0
  }
}
