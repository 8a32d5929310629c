/**
 * What the broker has to say to one session at QoS 0 to 2 (sections 4.3, 4.4, 4.6 and 4.9): what is sent next, what waits, what finds no room.
 *
 * Lives as long as the session and outlasts connections; while one is attached, it sends as much as the client takes. Waiting messages and their bytes
 * are bounded; what finds no room is dropped by policy and counted. Retained messages do not wait here: they are fetched from where they are when the
 * client takes more. It keeps no time but asks its settings' clock.
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

/** Where the next message comes from. */
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
  /** Whose turn it was last, where both retained messages and others wait. */
  #retainedWent = false
  #busy = false
  // valid for the connection
  /** Stands for the question that the hook thinks about. */
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

  /** Starts sending: what was sent before, then what waits. */
  attach(link: DeliveryLink): void {
    this.#asking = undefined
    this.inflight.attach(link)
    this.flush()
  }

  detach(link: DeliveryLink): void {
    this.inflight.detach(link)
  }

  /** Whether the message would be sent at once or wait, rather than be dropped. */
  hasRoom(delivery: Delivery): boolean {
    if (this.ledger.bytes + delivery.message.size > this.#settings.maxQueuedBytes) return false
    return this.#couldGo(delivery) || this.waiting.size < this.#settings.maxQueuedMessages
  }

  /** Sends the message, lets it wait, or drops it. */
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

  /** Sends retained messages from now on, as the client takes them. */
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
      // What a hook publishes meanwhile waits here too.
      while (this.#mayWrite() && this.#sendNext()) {}
    } finally {
      this.#busy = false
    }
  }

  /** Empties it for good; gives what may go to other members of a share: all that was not sent, and QoS 1 that was (section 4.8.2). */
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

  /** Expired messages go first, then, if the policy says so, the oldest. */
  #makeRoom(delivery: Delivery): boolean {
    this.waiting.dropExpired(this.#settings.clock.now())
    while (this.#settings.overflow === 'drop-oldest' && !this.hasRoom(delivery)) {
      if (!this.waiting.dropOldest()) break
    }
    return this.hasRoom(delivery)
  }

  #sendNext(): boolean {
    if (this.fetches.isEmpty) return this.#sendWaiting()
    // Turn about, so that neither waits for the other's end.
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
    // What is to be replayed has gone first, or there is no quota.
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

  /** Sends the next message of a source, or drops it, as the hook decides; false while it thinks. */
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
    // The hook, or what happened while it thought, may have ended the connection or replaced the message.
    if (this.inflight.link !== link || source.peek() !== delivery) return
    source.take()
    if (source instanceof RetainedCursor) this.ledger.hold(delivery)
    if (isAllowed) this.inflight.send(delivery)
    else this.ledger.drop(delivery, 'discarded')
  }
}
