/**
 * Messages to one session at QoS 0 to 2 (sections 4.3, 4.4, 4.6 and 4.9): decides which is sent
 * next, which waits and which is dropped.
 *
 * Lives as long as the session. While a connection is attached, it sends as much as the client
 * accepts. Waiting messages and their bytes are bounded; when full, messages are dropped by policy
 * and counted. Retained messages do not wait here: they are read from the store when the client
 * accepts more. Time comes only from the clock of the settings.
 */
import { isPromise } from '../common/hooks.js'
import { isExpired } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'
import { DeliveryLedger } from './delivery-ledger.js'
import { InflightDeliveries } from './inflight-deliveries.js'
import type { Delivery, MessageQueue } from './message-queue.js'
import type { DeliveryLink } from './ports.js'
import { RetainedCursor } from './retained-cursor.js'
import { RetainedFetches } from './retained-fetches.js'
import { WaitingDeliveries } from './waiting-deliveries.js'

/** A source of messages. */
interface Source {
  peek(): Delivery | undefined
  take(): unknown
}

/** See the file's comment. */
export class SessionDeliveries {
  // valid for the session
  readonly ledger = new DeliveryLedger()
  readonly waiting: WaitingDeliveries
  readonly inflight: InflightDeliveries
  readonly fetches: RetainedFetches
  readonly #settings: BrokerSettings
  /** Whether the last message sent was a retained one, while both kinds wait. */
  #retainedWent = false
  #busy = false
  // valid for the connection
  /** Identifies the pending hook call. */
  #asking: object | undefined

  constructor(settings: BrokerSettings) {
    this.#settings = settings
    this.waiting = new WaitingDeliveries(this.ledger)
    this.inflight = new InflightDeliveries(this.ledger)
    this.fetches = new RetainedFetches(settings.maxSubscriptions)
  }

  get attached(): boolean {
    return this.inflight.link !== undefined
  }

  /** Attaches a connection and starts sending: retransmissions, then waiting messages. */
  attach(link: DeliveryLink): void {
    this.#asking = undefined
    this.inflight.attach(link)
    this.flush()
  }

  detach(link: DeliveryLink): void {
    this.inflight.detach(link)
  }

  /** Whether the message would be sent or queued rather than dropped. */
  hasRoom(delivery: Delivery): boolean {
    if (this.ledger.bytes + delivery.message.size > this.#settings.maxQueuedBytes) return false
    return this.#couldGo(delivery) || this.waiting.size < this.#settings.maxQueuedMessages
  }

  /** Sends, queues or drops the message. */
  offer(delivery: Delivery): void {
    if (delivery.qos === 0 && !this.attached && !this.#settings.queueQoS0) return
    if (!this.hasRoom(delivery) && !this.#makeRoom(delivery)) {
      this.ledger.dropped++
      return
    }
    const isAlone = this.fetches.isEmpty && this.#settings.authorizeDelivery === undefined
    if (isAlone && this.#couldGo(delivery)) {
      this.ledger.hold(delivery)
      this.inflight.send(delivery)
    } else this.waiting.add(delivery)
    if (!isAlone) this.flush()
  }

  /** Starts sending retained messages, as the client accepts them. */
  fetch(cursor: RetainedCursor): void {
    this.fetches.add(cursor)
    this.flush()
  }

  /** Sends what may be sent now. */
  flush(): void {
    if (this.#busy) return
    this.#busy = true
    try {
      if (this.#asking === undefined) this.inflight.replay()
      // Messages that a hook publishes during the loop are queued and sent by it too.
      while (this.#mayWrite() && this.#sendNext()) {}
    } finally {
      this.#busy = false
    }
  }

  /**
   * Discards everything when the session ends; returns messages that may go to other members of a
   * share: unsent ones, and sent ones at QoS 1 (section 4.8.2).
   */
  end(): Delivery[] {
    const shared = [...this.inflight.end(), ...this.waiting.end()]
    this.ledger.bytes = 0
    this.fetches.clear()
    return shared
  }

  #couldGo(delivery: Delivery): boolean {
    if (!this.#mayWrite() || this.#busy) return false
    const { waiting, inflight } = this
    return delivery.qos === 0
      ? waiting.atQoS0.size === 0
      : waiting.aboveQoS0.size === 0 && inflight.isReplayed && inflight.hasQuota
  }

  #mayWrite(): boolean {
    return this.#asking === undefined && this.inflight.canWrite
  }

  /** Drops expired messages, then, with `'drop-oldest'`, the oldest. */
  #makeRoom(delivery: Delivery): boolean {
    this.waiting.dropExpired(this.#settings.clock.now())
    while (this.#settings.overflow === 'drop-oldest' && !this.hasRoom(delivery)) {
      if (!this.waiting.dropOldest()) break
    }
    return this.hasRoom(delivery)
  }

  #sendNext(): boolean {
    if (this.fetches.isEmpty) return this.#sendWaiting()
    // The two kinds alternate, so that neither delays the other until it is used up.
    const first = this.#retainedWent ? 'waiting' : 'retained'
    return this.#sendOne(first) || this.#sendOne(first === 'waiting' ? 'retained' : 'waiting')
  }

  #sendOne(which: 'waiting' | 'retained'): boolean {
    const isSent = which === 'waiting' ? this.#sendWaiting() : this.#sendRetained()
    if (isSent) this.#retainedWent = which === 'retained'
    return isSent
  }

  #sendWaiting(): boolean {
    const { waiting, inflight } = this
    // Retransmissions have been sent before, or there is no quota.
    return (
      this.#sendFrom(waiting.atQoS0) || (inflight.hasQuota && this.#sendFrom(waiting.aboveQoS0))
    )
  }

  #sendFrom(queue: MessageQueue): boolean {
    const delivery = queue.peek()
    if (delivery === undefined) return false
    if (isExpired(delivery.message, this.#settings.clock.now())) {
      queue.take()
      this.ledger.drop(delivery, 'expired')
      return true
    }
    const cursor = this.fetches.bring(delivery.message.topic, delivery.qos)
    return cursor === undefined ? this.#settle(queue, delivery) : this.#sendFetched(cursor)
  }

  #sendRetained(): boolean {
    const cursor = this.fetches.next()
    return cursor !== undefined && this.#sendFetched(cursor)
  }

  #sendFetched(cursor: RetainedCursor): boolean {
    const delivery = cursor.peek()
    if (delivery === undefined) return false
    const { inflight, ledger } = this
    const isTooMuch =
      inflight.unacknowledged > 0 &&
      ledger.bytes + delivery.message.size > this.#settings.maxQueuedBytes
    if (delivery.qos > 0 && (isTooMuch || !inflight.hasQuota)) return false
    return this.#settle(cursor, delivery)
  }

  /**
   * Sends or drops the next message of a source, as the hook decides; false while the call is
   * pending.
   */
  #settle(source: Source, delivery: Delivery): boolean {
    const link = this.inflight.link as DeliveryLink
    const allowed = this.#settings.authorizeDelivery === undefined || link.allows(delivery)
    if (!isPromise(allowed)) {
      this.#finish(source, delivery, link, allowed)
      return true
    }
    const question = {}
    this.#asking = question
    void allowed.then((verdict) => {
      if (this.#asking !== question) return
      this.#asking = undefined
      this.#finish(source, delivery, link, verdict)
      this.flush()
    })
    return false
  }

  #finish(source: Source, delivery: Delivery, link: DeliveryLink, isAllowed: boolean): void {
    // The connection may have ended, or the message may have been replaced, during the hook call.
    if (this.inflight.link !== link || source.peek() !== delivery) return
    source.take()
    if (source instanceof RetainedCursor) this.ledger.hold(delivery)
    if (isAllowed) this.inflight.send(delivery)
    else this.ledger.drop(delivery, 'discarded')
  }
}
