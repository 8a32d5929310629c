/**
 * What the deliveries of one session count for: the bytes that it holds, and how many of them never reached the client, by reason.
 *
 * Each delivery that is taken in or let go is noted here. It holds no deliveries and decides nothing.
 */
import type { Delivery } from './message-queue.js'

/** See the file's comment. */
export class DeliveryLedger {
  /** Of messages that wait or were not acknowledged. */
  bytes = 0
  /** Messages that found no room. */
  dropped = 0
  /** Messages that expired while they waited. */
  expired = 0
  /** Messages larger than the client takes [MQTT-3.1.2-25]. */
  oversized = 0
  /** Messages that the hook kept from the client. */
  discarded = 0

  /** The session holds it from now on. */
  hold({ message }: Delivery): void {
    this.bytes += message.size
  }

  /** The session holds it no longer. */
  release({ message }: Delivery): void {
    this.bytes -= message.size
  }

  /** One that the session held will not be sent. */
  drop(delivery: Delivery, why: 'dropped' | 'expired' | 'discarded'): void {
    this.release(delivery)
    this[why]++
  }
}
