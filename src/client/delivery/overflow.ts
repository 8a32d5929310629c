/**
 * The overflow policy of one consumer: what goes when more waits than its limits allow.
 *
 * It acts only when the consumer had a turn since the buffer filled: a burst within one read is not its fault.
 */

import type { ConsumerConfig } from '../api/parse-calls.js'
import type { ClientContext } from '../context/context.js'
import type { DeliveredMessage } from './message.js'
import type { DeliveryOwner } from './ports.js'
import type { Waiting } from './waiting.js'

/** The client, as the policy sees it. */
type OverflowHost = ClientContext & Pick<DeliveryOwner, 'turns'>

/** The consumer, as its policy sees it. */
export interface Dropping {
  readonly config: ConsumerConfig
  /** True when nothing more is handed out. */
  readonly ended: boolean
  /** True while it takes messages and hands them out. */
  readonly reads: boolean
  /** Lets a message go unread, and says that it does not fit. */
  drop(message: DeliveredMessage): false
}

/** Decides what is dropped. */
export class Overflow {
  readonly #host: OverflowHost
  readonly #consumer: Dropping
  readonly #waiting: Waiting
  #filledAt = -1

  constructor(host: OverflowHost, consumer: Dropping, waiting: Waiting) {
    this.#host = host
    this.#consumer = consumer
    this.#waiting = waiting
  }

  /** True when a message may wait; one that may not is dropped. */
  makeRoom(message: DeliveredMessage): boolean {
    if (this.#waiting.fits(message.size)) this.#filledAt = -1
    else if (this.#filledAt < 0) this.#filledAt = this.#host.turns.readerTurn()
    if (this.#filledAt < 0 || this.#filledAt === this.#host.turns.readerTurns) return true
    const { overflow } = this.#consumer.config
    if (overflow === 'drop-newest') return this.#consumer.drop(message)
    // Backpressure: Receive Maximum stops what is owed an acknowledgement, so only the rest can be in excess.
    const any = overflow === 'drop-oldest'
    if (!any && !message.settled) return true
    while (!this.#consumer.ended && !this.#waiting.fits(message.size))
      if ((!any && !this.#waiting.hasSpare) || !this.dropOldest((waiting) => any || waiting.settled)) return this.#consumer.drop(message)
    return true
  }

  /** The reader had a turn: what is too much goes, also when nothing further can come. False when there is nothing to look after. */
  relieve(): boolean {
    const consumer = this.#consumer
    const { buffer, overflow } = consumer.config
    const { receiveWindow } = this.#host.session
    const waiting = this.#waiting.messages
    let youngest: DeliveredMessage | undefined
    while (consumer.reads && this.#waiting.exceeds) {
      if (overflow === 'drop-newest')
        waiting.youngest(1, (message) => {
          youngest = message
        })
      this.dropOldest((message) => (youngest ?? message) === message)
    }
    // As much as fits, or all that the server may send: the oldest keeps it from sending. To drop another would free nothing.
    const { oldestTicket } = receiveWindow
    const blocks = (): boolean =>
      receiveWindow.full && waiting.length >= Math.min(buffer, receiveWindow.open) && waiting.find(isOwed)?.ticket === oldestTicket
    while (consumer.reads && overflow === 'drop-oldest' && blocks()) {
      // The last one stays to be read: it goes when another comes.
      if (waiting.length === 1) waiting.find(isOwed)?.settle(0)
      else this.dropOldest(() => true)
    }
    return consumer.reads && waiting.length > 0
  }

  /** Drops the oldest that is wanted; false when there is none. */
  dropOldest(wanted: (message: DeliveredMessage) => boolean): boolean {
    const oldest = this.#waiting.take(wanted)
    if (oldest === undefined) return false
    this.#consumer.drop(oldest)
    return true
  }
}

/** True for a message that is not settled. */
export const isOwed = ({ settled }: DeliveredMessage): boolean => !settled
