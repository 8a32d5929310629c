/**
 * QoS 1 and 2 deliveries that were sent and are not settled (sections 4.3, 4.4 and 4.9), and their
 * retransmission on the next connection.
 *
 * Lives as long as the session. While a connection is attached, it sends within the client's
 * Receive Maximum. It uses no time; `session-deliveries.ts` decides what is sent next.
 */
import type { DeliveryLedger } from './delivery-ledger.js'
import type { Delivery } from './message-queue.js'
import type { DeliveryLink } from './ports.js'

/** The kinds of acknowledgement. */
export type Ack = 'puback' | 'pubrec' | 'pubcomp'

const identifiers = 65_535

/** See the file's comment. */
export class InflightDeliveries {
  readonly #ledger: DeliveryLedger
  // valid for the session
  /** Messages whose PUBLISH was sent and not acknowledged, in the order of first sending. */
  readonly #unacknowledged = new Map<number, Delivery>()
  /** Identifiers whose PUBREC was received, in that order [MQTT-4.4.0-1]. */
  readonly #released = new Set<number>()
  #lastId = 0
  // valid for the connection
  #link: DeliveryLink | undefined
  /**
   * Identifiers in use that were sent on this connection; they count against the quota
   * [MQTT-4.9.0-2].
   */
  readonly #sent = new Set<number>()
  #replay: number[] = []
  #replayed = 0

  constructor(ledger: DeliveryLedger) {
    this.#ledger = ledger
  }

  /** Number of messages that are not settled. */
  get size(): number {
    return this.#unacknowledged.size + this.#released.size
  }

  /** Number of messages whose PUBLISH was not acknowledged. */
  get unacknowledged(): number {
    return this.#unacknowledged.size
  }

  /** The attached connection. */
  get link(): DeliveryLink | undefined {
    return this.#link
  }

  /** Whether the client is connected and reads. */
  get canWrite(): boolean {
    return this.#link !== undefined && !this.#link.congested
  }

  /** Whether one more message may be sent at QoS 1 or 2. */
  get hasQuota(): boolean {
    return (
      this.#link !== undefined &&
      this.#sent.size < this.#link.receiveMaximum &&
      this.size < identifiers
    )
  }

  /** Whether all retransmissions of PUBLISH are done. */
  get isReplayed(): boolean {
    return this.#replayed >= this.#replay.length
  }

  /**
   * Attaches a connection. Sends PUBREL packets now; {@link replay} sends PUBLISH packets with DUP;
   * each in the original order [MQTT-4.4.0-1].
   */
  attach(link: DeliveryLink): void {
    this.#link = link
    this.#sent.clear()
    this.#replay = [...this.#unacknowledged.keys()]
    this.#replayed = 0
    for (const packetId of [...this.#released]) {
      this.#sent.add(packetId)
      link.release(packetId, 0)
    }
  }

  detach(link: DeliveryLink): void {
    if (this.#link === link) this.#link = undefined
  }

  /** Retransmits as much as quota and connection allow. */
  replay(): void {
    while (this.canWrite && this.#replayed < this.#replay.length && this.hasQuota) {
      const packetId = this.#replay[this.#replayed++] as number
      const delivery = this.#unacknowledged.get(packetId)
      if (delivery === undefined) continue
      this.#sent.add(packetId)
      if (this.#link?.publish(delivery, packetId, true) === false) this.#discard(packetId, delivery)
    }
  }

  /** Sends a message, counted in the ledger, for the first time. */
  send(delivery: Delivery): void {
    if (delivery.qos === 0) {
      this.#ledger.release(delivery)
      if (this.#link?.publish(delivery, undefined, false) === false) this.#ledger.oversized++
      return
    }
    const packetId = this.#nextId()
    this.#unacknowledged.set(packetId, delivery)
    this.#sent.add(packetId)
    if (this.#link?.publish(delivery, packetId, false) === false) this.#discard(packetId, delivery)
  }

  /** Handles an acknowledgement; returns the violation, if it is one. */
  acknowledge(kind: Ack, packetId: number, reasonCode: number): string | undefined {
    if (kind === 'pubcomp') {
      if (!this.#released.delete(packetId))
        return 'PUBCOMP for an identifier that was not released [MQTT-4.3.3-11]'
      this.#sent.delete(packetId)
      return undefined
    }
    const delivery = this.#unacknowledged.get(packetId)
    // A message can be acknowledged only on a connection on which it was sent.
    if (delivery === undefined || !this.#sent.has(packetId))
      return `${kind} for an identifier that is not in use [MQTT-2.2.1-5]`
    if (delivery.qos !== (kind === 'puback' ? 1 : 2))
      return `${kind} for a message of another QoS [MQTT-3.3.4-1]`
    const fault = this.#isFirst(packetId, delivery.qos)
      ? undefined
      : `${kind} out of order [MQTT-4.6.0-${kind === 'puback' ? 2 : 3}]`
    this.#forget(packetId, delivery)
    if (kind === 'pubrec' && reasonCode < 0x80) {
      this.#released.add(packetId)
      this.#sent.add(packetId)
    }
    return fault
  }

  /**
   * Whether the identifier awaits an acknowledgement of another kind on this connection, so that
   * this one violates the protocol.
   */
  contradicts(kind: Ack, packetId: number): boolean {
    if (this.#released.has(packetId)) return kind === 'puback'
    const delivery = this.#sent.has(packetId) ? this.#unacknowledged.get(packetId) : undefined
    return delivery !== undefined && kind !== (delivery.qos === 1 ? 'puback' : 'pubrec')
  }

  /** Whether its PUBREC was received and its PUBCOMP was not. */
  isReleased(packetId: number): boolean {
    return this.#released.has(packetId)
  }

  /**
   * Discards everything when the session ends; returns messages that may go to other members of a
   * share: QoS 1 (section 4.8.2).
   */
  end(): Delivery[] {
    const shared = [...this.#unacknowledged.values()].filter(
      ({ qos, group }) => qos === 1 && group !== undefined,
    )
    this.#unacknowledged.clear()
    this.#released.clear()
    this.#link = undefined
    return shared
  }

  #discard(packetId: number, delivery: Delivery): void {
    this.#forget(packetId, delivery)
    this.#ledger.oversized++
  }

  #forget(packetId: number, delivery: Delivery): void {
    if (this.#unacknowledged.delete(packetId)) this.#ledger.release(delivery)
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
