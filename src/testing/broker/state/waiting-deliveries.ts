/**
 * Deliveries not yet sent to the client. QoS 0 has its own queue, because it needs no quota
 * (section 4.9).
 *
 * It is not bounded. Each queue is first in, first out.
 */
import { isExpired } from '../common/message.js'
import type { DeliveryLedger } from './delivery-ledger.js'
import { type Delivery, MessageQueue } from './message-queue.js'

/** See the file's comment. */
export class WaitingDeliveries {
  readonly atQoS0 = new MessageQueue()
  /** At QoS 1 and 2. */
  readonly aboveQoS0 = new MessageQueue()
  readonly #ledger: DeliveryLedger

  constructor(ledger: DeliveryLedger) {
    this.#ledger = ledger
  }

  get size(): number {
    return this.aboveQoS0.size + this.atQoS0.size
  }

  add(delivery: Delivery): void {
    this.#ledger.hold(delivery)
    ;(delivery.qos === 0 ? this.atQoS0 : this.aboveQoS0).add(delivery)
  }

  /** Drops expired messages. */
  dropExpired(now: number): void {
    for (const queue of [this.atQoS0, this.aboveQoS0]) {
      for (const gone of queue.remove(({ message }) => isExpired(message, now)))
        this.#ledger.drop(gone, 'expired')
    }
  }

  /**
   * Drops the oldest QoS 0 message, or else the oldest one of QoS 1 and 2; false when none waits.
   */
  dropOldest(): boolean {
    const oldest = this.atQoS0.take() ?? this.aboveQoS0.take()
    if (oldest !== undefined) this.#ledger.drop(oldest, 'dropped')
    return oldest !== undefined
  }

  /**
   * Discards everything; returns messages that may go to other members of a share (section 4.8.2).
   */
  end(): Delivery[] {
    const shared: Delivery[] = []
    for (const queue of [this.aboveQoS0, this.atQoS0]) {
      for (const delivery of queue.remove(() => true))
        if (delivery.group !== undefined && delivery.qos > 0) shared.push(delivery)
    }
    return shared
  }
}
