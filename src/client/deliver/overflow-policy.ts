/**
 * The overflow policy of one consumer: what goes when more waits than its limits allow, and how a message goes unread.
 *
 * It acts only when the consumer had a turn since the buffer filled: a burst within one read is not its fault.
 */
import type { ConsumerConfig } from '../options/check-calls.js'
import { isOwed } from './arrival.js'
import type { DeliveredMessage } from './message.js'
import type { ConsumerHost } from './ports.js'
import type { ReceiveBuffer } from './receive-buffer.js'

/** The consumer, as its policy sees it. */
export interface Dropping {
  readonly config: ConsumerConfig
  readonly buffer: ReceiveBuffer
  /** Where it is counted what was dropped. */
  readonly subscription: { dropped: number }
  /** True from when the client began to end. */
  readonly closing: boolean
  /** True when nothing more comes. */
  readonly ended: boolean
  /** True while it takes messages and hands them out. */
  readonly open: boolean
}

/** Decides what is dropped. */
export class OverflowPolicy {
  readonly #host: ConsumerHost
  readonly #consumer: Dropping
  #filledAt = -1

  constructor(host: ConsumerHost, consumer: Dropping) {
    this.#host = host
    this.#consumer = consumer
  }

  /** True when a message may wait; one that may not is dropped. */
  makeRoom(message: DeliveredMessage): boolean {
    if (this.#consumer.buffer.fits(message.size)) this.#filledAt = -1
    else if (this.#filledAt < 0) this.#filledAt = this.#host.turns.readerTurn()
    if (this.#filledAt < 0 || this.#filledAt === this.#host.turns.readerTurns) return true
    const { overflow } = this.#consumer.config
    if (overflow === 'drop-newest') return this.drop(message)
    // Backpressure: Receive Maximum stops what is owed an acknowledgement, so only the rest can be in excess.
    const any = overflow === 'drop-oldest'
    if (!any && !message.settled) return true
    while (!this.#consumer.ended && !this.#consumer.buffer.fits(message.size))
      if (
        (!any && !this.#consumer.buffer.hasSpare) ||
        !this.dropOldest((waiting) => any || waiting.settled)
      )
        return this.drop(message)
    return true
  }

  /** The reader had a turn: what is too much goes, also when nothing further can come. False when there is nothing to look after. */
  relieve(): boolean {
    const consumer = this.#consumer
    const { buffer, overflow } = consumer.config
    const { receiveWindow } = this.#host.session
    const { messages } = consumer.buffer
    let youngest: DeliveredMessage | undefined
    while (consumer.open && consumer.buffer.exceeds) {
      if (overflow === 'drop-newest')
        messages.youngest(1, (message) => {
          youngest = message
        })
      this.dropOldest((message) => (youngest ?? message) === message)
    }
    // As much as fits, or all that the server may send: the oldest keeps it from sending. To drop another would free nothing.
    const { oldestTicket } = receiveWindow
    const blocks = (): boolean =>
      receiveWindow.full &&
      messages.length >= Math.min(buffer, receiveWindow.open) &&
      messages.find(isOwed)?.ticket === oldestTicket
    while (consumer.open && overflow === 'drop-oldest' && blocks()) {
      // The last one stays to be read: it goes when another comes.
      if (messages.length === 1) messages.find(isOwed)?.settle(0)
      else this.dropOldest(() => true)
    }
    return consumer.open && messages.length > 0
  }

  /** Drops the oldest that is wanted; false without one. */
  dropOldest(wanted: (message: DeliveredMessage) => boolean): boolean {
    const oldest = this.#consumer.buffer.remove(wanted)
    if (oldest === undefined) return false
    this.drop(oldest)
    return true
  }

  /** Lets a message go unread, and says that it does not fit. */
  drop(message: DeliveredMessage): false {
    const consumer = this.#consumer
    // While the client ends it stays unacknowledged; what the session keeps comes again, and is not lost.
    if (!consumer.closing) message.settle(0)
    if (message.settled || this.#host.states.sessionEnds) {
      consumer.subscription.dropped += 1
      this.#host.router.drops.handleDrop(consumer.config, message)
    }
    message.release()
    return false
  }
}
