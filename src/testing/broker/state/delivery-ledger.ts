/**
 * Counts for the deliveries of one session: bytes held, and deliveries that never reached the
 * client, by reason.
 *
 * Each delivery that the session takes or releases is counted here. It stores no deliveries.
 */
import type { Delivery } from './message-queue.js'

/** See the file's comment. */
export class DeliveryLedger {
  /** Bytes of messages that wait or are unacknowledged. */
  bytes = 0
  /** Messages dropped because the queue was full. */
  dropped = 0
  /** Messages that expired in the queue. */
  expired = 0
  /** Messages larger than the client's Maximum Packet Size [MQTT-3.1.2-25]. */
  oversized = 0
  /** Messages withheld by the hook. */
  discarded = 0

  /** Counts a delivery that the session now holds. */
  hold({ message }: Delivery): void {
    this.bytes += message.size
  }

  /** Uncounts a delivery that the session no longer holds. */
  release({ message }: Delivery): void {
    this.bytes -= message.size
  }

  /** Counts a held delivery that will not be sent. */
  drop(delivery: Delivery, why: 'dropped' | 'expired' | 'discarded'): void {
    this.release(delivery)
    this[why]++
  }
}
