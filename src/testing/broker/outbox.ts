/**
 * What the broker has to say to one session at QoS 0 to 2 (sections 4.3, 4.4, 4.6 and 4.9): waiting, sent, released.
 *
 * Lives as long as the session and outlasts connections; while one is attached, it sends as much as the client's Receive Maximum allows. Waiting
 * messages and their bytes are bounded; what finds no room is dropped by policy and counted. Retained messages do not wait here: they are fetched from
 * where they are when the client takes more. It keeps no time but asks its settings' clock.
 */
import { type Eventually, isPromise } from './hooks.js'
import { isExpired } from './message.js'
import { type Delivery, MessageQueue } from './message-queue.js'
import type { BrokerSettings } from './options.js'
import type { RetainedCursor } from './retained-cursor.js'

/** The connection, as far as messages to the client go. */
export interface OutboxLink {
  /** The client's, within the broker's own bound. */
  readonly receiveMaximum: number
  /** True while the client does not read. */
  readonly congested: boolean
  /** Sends a PUBLISH; false when it is larger than the client takes. */
  publish(delivery: Delivery, packetId: number | undefined, dup: boolean): boolean
  release(packetId: number, reasonCode: number): void
  /** Asks the hook whether the client may have the message. */
  allows(delivery: Delivery): Eventually<boolean>
}

/** Where the next message comes from. */
interface Source {
  peek(): Delivery | undefined
  take(): unknown
}

/** The kinds of acknowledgement. */
export type Ack = 'puback' | 'pubrec' | 'pubcomp'

const identifiers = 65_535

/** See the file's comment. */
export class Outbox {
  /** Messages that found no room. */
  dropped = 0
  /** Messages that expired while they waited. */
  expired = 0
  /** Messages larger than the client takes [MQTT-3.1.2-25]. */
  oversized = 0
  /** Messages that the hook kept from the client. */
  discarded = 0

  readonly #settings: BrokerSettings
  // valid for the session
  readonly #waiting = new MessageQueue()
  readonly #waiting0 = new MessageQueue()
  /** PUBLISH sent, in order of first sending. */
  readonly #unacknowledged = new Map<number, Delivery>()
  /** PUBREC received, in that order [MQTT-4.4.0-1]. */
  readonly #released = new Set<number>()
  #bytes = 0
  #lastId = 0
  /** Retained messages on their way, in the order of their SUBSCRIBEs. */
  #cursors: RetainedCursor[] = []
  /** Whose turn it was last, where both retained messages and others wait. */
  #retainedWent = false
  // valid for the connection
  #link: OutboxLink | undefined
  /** Identifiers in use that went out on this connection: they take from the quota [MQTT-4.9.0-2]. */
  readonly #sent = new Set<number>()
  #replay: number[] = []
  #replayed = 0
  /** Stands for the question that the hook thinks about. */
  #asking: object | undefined
  #busy = false

  constructor(settings: BrokerSettings) {
    this.#settings = settings
  }

  get waiting(): number {
    return this.#waiting.size + this.#waiting0.size
  }

  get inflight(): number {
    return this.#unacknowledged.size + this.#released.size
  }

  get attached(): boolean {
    return this.#link !== undefined
  }

  /** Starts sending: PUBREL, then PUBLISH with DUP, each in their order, then what waits [MQTT-4.4.0-1]. */
  attach(link: OutboxLink): void {
    this.#link = link
    this.#sent.clear()
    this.#replay = [...this.#unacknowledged.keys()]
    this.#replayed = 0
    this.#asking = undefined
    for (const packetId of [...this.#released]) {
      this.#sent.add(packetId)
      link.release(packetId, 0)
    }
    this.flush()
  }

  detach(link: OutboxLink): void {
    if (this.#link === link) this.#link = undefined
  }

  /** Whether the message would be sent at once or wait, rather than be dropped. */
  hasRoom(delivery: Delivery): boolean {
    if (this.#bytes + delivery.message.size > this.#settings.maxQueuedBytes) return false
    return this.#couldGo(delivery) || this.waiting < this.#settings.maxQueuedMessages
  }

  /** Sends the message, lets it wait, or drops it. */
  offer(delivery: Delivery): void {
    if (delivery.qos === 0 && this.#link === undefined && !this.#settings.queueQoS0) return
    if (!this.hasRoom(delivery) && !this.#makeRoom(delivery)) {
      this.dropped++
      return
    }
    const isAlone = this.#cursors.length === 0 && this.#settings.authorizeDelivery === undefined
    if (isAlone && this.#couldGo(delivery)) {
      this.#bytes += delivery.message.size
      this.#send(delivery)
    } else this.#enqueue(delivery)
    if (!isAlone) this.flush()
  }

  /** Sends retained messages from now on, as the client takes them. One of the same filter makes room where there are too many. */
  fetch(cursor: RetainedCursor): void {
    if (this.#cursors.length >= this.#settings.maxSubscriptions) this.#cursors.splice(Math.max(0, this.#indexOf(cursor.filter)), 1)
    this.#cursors.push(cursor)
    this.flush()
  }

  /** Stops what {@link fetch} began for a filter [MQTT-3.10.4-2]. */
  stopFetching(filter: string): void {
    for (const cursor of this.#cursors) if (cursor.filter === filter) cursor.stop()
  }

  /** Sends what may be sent now. */
  flush(): void {
    if (this.#busy) return
    this.#busy = true
    try {
      this.#sendReplay()
      // What a hook publishes meanwhile waits here too.
      while (this.#mayWrite() && this.#sendNext()) {}
    } finally {
      this.#busy = false
    }
  }

  /** Takes an acknowledgement; gives what is wrong with it, if anything is. */
  acknowledge(kind: Ack, packetId: number, reasonCode: number): string | undefined {
    if (kind === 'pubcomp') {
      if (!this.#released.delete(packetId)) return 'PUBCOMP for an identifier that was not released [MQTT-4.3.3-11]'
      this.#sent.delete(packetId)
      return undefined
    }
    const delivery = this.#unacknowledged.get(packetId)
    // Nothing is acknowledged on a connection where it was not sent.
    if (delivery === undefined || !this.#sent.has(packetId)) return `${kind} for an identifier that is not in use [MQTT-2.2.1-5]`
    if (delivery.qos !== (kind === 'puback' ? 1 : 2)) return `${kind} for a message of another QoS [MQTT-3.3.4-1]`
    const fault = this.#isFirst(packetId, delivery.qos) ? undefined : `${kind} out of order [MQTT-4.6.0-${kind === 'puback' ? 2 : 3}]`
    this.#forget(packetId, delivery)
    if (kind === 'pubrec' && reasonCode < 0x80) {
      this.#released.add(packetId)
      this.#sent.add(packetId)
    }
    return fault
  }

  /** Whether the identifier awaits an acknowledgement of another kind on this connection: no client that follows the protocol sends this one. */
  contradicts(kind: Ack, packetId: number): boolean {
    if (this.#released.has(packetId)) return kind === 'puback'
    const delivery = this.#sent.has(packetId) ? this.#unacknowledged.get(packetId) : undefined
    return delivery !== undefined && kind !== (delivery.qos === 1 ? 'puback' : 'pubrec')
  }

  /** Whether PUBREC came for it and PUBCOMP did not. */
  isReleased(packetId: number): boolean {
    return this.#released.has(packetId)
  }

  /** Empties it for good; gives what may go to other members of a share: all that was not sent, and QoS 1 that was (section 4.8.2). */
  end(): Delivery[] {
    const shared = [...this.#unacknowledged.values()].filter(({ qos, group }) => qos === 1 && group !== undefined)
    for (const queue of [this.#waiting, this.#waiting0]) {
      for (const delivery of queue.remove(() => true)) if (delivery.group !== undefined && delivery.qos > 0) shared.push(delivery)
    }
    this.#unacknowledged.clear()
    this.#released.clear()
    this.#bytes = 0
    this.#cursors = []
    this.#link = undefined
    return shared
  }

  #couldGo(delivery: Delivery): boolean {
    if (!this.#mayWrite() || this.#busy) return false
    return delivery.qos === 0 ? this.#waiting0.size === 0 : this.#waiting.size === 0 && this.#replayed >= this.#replay.length && this.#hasQuota()
  }

  #mayWrite(): boolean {
    return this.#link !== undefined && !this.#link.congested && this.#asking === undefined
  }

  #indexOf(filter: string): number {
    return this.#cursors.findIndex((cursor) => cursor.filter === filter)
  }

  #hasQuota(): boolean {
    return this.#link !== undefined && this.#sent.size < this.#link.receiveMaximum && this.inflight < identifiers
  }

  #enqueue(delivery: Delivery): void {
    this.#bytes += delivery.message.size
    ;(delivery.qos === 0 ? this.#waiting0 : this.#waiting).add(delivery)
  }

  /** Expired messages go first, then, if the policy says so, the oldest. */
  #makeRoom(delivery: Delivery): boolean {
    const now = this.#settings.clock.now()
    for (const queue of [this.#waiting0, this.#waiting]) {
      for (const gone of queue.remove(({ message }) => isExpired(message, now))) this.#drop(gone, 'expired')
    }
    while (this.#settings.overflow === 'drop-oldest' && !this.hasRoom(delivery)) {
      const oldest = this.#waiting0.take() ?? this.#waiting.take()
      if (oldest === undefined) break
      this.#drop(oldest, 'dropped')
    }
    return this.hasRoom(delivery)
  }

  #drop(delivery: Delivery, why: 'dropped' | 'expired' | 'discarded'): void {
    this.#bytes -= delivery.message.size
    this[why]++
  }

  #sendNext(): boolean {
    if (this.#cursors.length === 0) return this.#sendWaiting()
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
    // What is to be replayed has gone first, or there is no quota.
    return this.#sendFrom(this.#waiting0) || (this.#hasQuota() && this.#sendFrom(this.#waiting))
  }

  #sendFrom(queue: MessageQueue): boolean {
    const delivery = queue.peek()
    if (delivery === undefined) return false
    if (isExpired(delivery.message, this.#settings.clock.now())) {
      queue.take()
      this.#drop(delivery, 'expired')
      return true
    }
    const { message, qos } = delivery
    for (const cursor of this.#cursors) if (cursor.bring(message.topic, qos)) return this.#sendFetched(cursor)
    return this.#settle(queue, delivery)
  }

  #sendRetained(): boolean {
    while (this.#cursors[0] !== undefined && this.#cursors[0].peek() === undefined) this.#cursors.shift()
    return this.#cursors[0] !== undefined && this.#sendFetched(this.#cursors[0])
  }

  #sendFetched(cursor: RetainedCursor): boolean {
    const delivery = cursor.peek()
    if (delivery === undefined) return false
    const isTooMuch = this.#unacknowledged.size > 0 && this.#bytes + delivery.message.size > this.#settings.maxQueuedBytes
    if (delivery.qos > 0 && (isTooMuch || !this.#hasQuota())) return false
    return this.#settle(cursor, delivery)
  }

  /** Sends the next message of a source, or drops it, as the hook decides; false while it thinks. */
  #settle(source: Source, delivery: Delivery): boolean {
    const link = this.#link as OutboxLink
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

  #finish(source: Source, delivery: Delivery, link: OutboxLink, isAllowed: boolean): void {
    // The hook, or what happened while it thought, may have ended the connection or replaced the message.
    if (this.#link !== link || source.peek() !== delivery) return
    source.take()
    if (source !== this.#waiting && source !== this.#waiting0) this.#bytes += delivery.message.size
    if (isAllowed) this.#send(delivery)
    else this.#drop(delivery, 'discarded')
  }

  #send(delivery: Delivery): void {
    if (delivery.qos === 0) {
      this.#bytes -= delivery.message.size
      if (this.#link?.publish(delivery, undefined, false) === false) this.oversized++
      return
    }
    const packetId = this.#nextId()
    this.#unacknowledged.set(packetId, delivery)
    this.#sent.add(packetId)
    if (this.#link?.publish(delivery, packetId, false) === false) this.#discard(packetId, delivery)
  }

  #sendReplay(): void {
    while (this.#mayWrite() && this.#replayed < this.#replay.length && this.#hasQuota()) {
      const packetId = this.#replay[this.#replayed++] as number
      const delivery = this.#unacknowledged.get(packetId)
      if (delivery === undefined) continue
      this.#sent.add(packetId)
      if (this.#link?.publish(delivery, packetId, true) === false) this.#discard(packetId, delivery)
    }
  }

  #discard(packetId: number, delivery: Delivery): void {
    this.#forget(packetId, delivery)
    this.oversized++
  }

  #forget(packetId: number, delivery: Delivery): void {
    if (this.#unacknowledged.delete(packetId)) this.#bytes -= delivery.message.size
    this.#sent.delete(packetId)
  }

  /** [MQTT-2.2.1-4] */
  #nextId(): number {
    do this.#lastId = (this.#lastId % identifiers) + 1
    while (this.#unacknowledged.has(this.#lastId) || this.#released.has(this.#lastId))
    return this.#lastId
  }

  #isFirst(packetId: number, qos: number): boolean {
    for (const [id, delivery] of this.#unacknowledged) {
      if (delivery.qos === qos) return id === packetId
    }
    return true
  }
}
