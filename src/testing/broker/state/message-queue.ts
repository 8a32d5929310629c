/**
 * A FIFO queue of messages for a session.
 *
 * It is not bounded: the session enforces limits over all its queues. Taking and adding take
 * constant time.
 */
import type { QoS } from '../../../wire/packets.js'
import type { BrokerMessage } from '../common/message.js'

/** A share (section 4.8.2), as its deliveries use it. */
export interface DeliveryGroup {
  /** Delivers the message to a member; false if the share has no member. */
  deliver(message: BrokerMessage): boolean
}

/** A message on its way to one session. */
export interface Delivery {
  readonly message: BrokerMessage
  /** The lower of published and granted QoS [MQTT-3.8.4-8]. */
  readonly qos: QoS
  readonly retain: boolean
  /** Subscription Identifiers of all matching subscriptions. */
  readonly identifiers: readonly number[]
  /** The share that it came through. */
  readonly group: DeliveryGroup | undefined
}

/** See the file's comment. */
export class MessageQueue {
  #items: Delivery[] = []
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  add(delivery: Delivery): void {
    this.#items.push(delivery)
  }

  peek(): Delivery | undefined {
    return this.#items[this.#head]
  }

  take(): Delivery | undefined {
    const delivery = this.#items[this.#head]
    if (delivery === undefined) return undefined
    this.#head++
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return delivery
  }

  /** Removes and returns matching deliveries. */
  remove(test: (delivery: Delivery) => boolean): Delivery[] {
    const removed: Delivery[] = []
    this.#items = this.#items.slice(this.#head).filter((delivery) => {
      if (!test(delivery)) return true
      removed.push(delivery)
      return false
    })
    this.#head = 0
    return removed
  }
}
