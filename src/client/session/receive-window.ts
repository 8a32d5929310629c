/**
 * Incoming QoS 1 and 2 messages: which to deliver, and acknowledgements in the order of arrival
 * (sections 4.3, 4.6).
 *
 * Data plane: integers in, integers out. Each message to deliver gets a ticket, a rising number.
 * `settle(ticket, code)` may be called in any order; acknowledgements are sent in the order in
 * which this connection brought the messages [MQTT-4.6.0-2] [MQTT-4.6.0-3]. If the connection ends
 * before a message is settled, the message is parked: its ticket stays valid, and its repeat is not
 * delivered. Nothing is acknowledged before it is settled, nor on a connection that did not bring
 * it.
 */
import { SparseMap } from '../../common/sparse.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../wire/constants.js'
import { errorReason } from '../../wire/reason-codes.js'
import { IdTable } from './packet-identifiers.js'
import { FAULT, type WindowHost } from './refusal.js'

/** Initial number of slots, and the number that is kept when everything is settled. */
const initialSlots = 16
const mostIdleSlots = 1024

const noSlots = new Uint32Array(0)

// Results besides tickets, which are 0 or above.
/** Deliver nothing. */
export const REPEAT = -1

// States of an incoming packet identifier.
const QOS1_IN_HAND = 1
const QOS2_IN_HAND = 2
const QOS2_RECEIVED = 3
/**
 * PUBREC was due on an earlier connection. On this one, it is sent only if the server repeats the
 * PUBLISH.
 */
export const QOS2_EARLIER = 4
/**
 * PUBREL came. PUBCOMP waits until the store has deleted the identifier, because the server may
 * then reuse it.
 */
const QOS2_ENDING = 5

// Low bits of a slot: status of an incoming message.
const PENDING = 0
const STORING = 1
const READY = 2
const statusMask = 3
/** Set in a slot for QoS 2. */
const qos2Flag = 4
/** Bit positions of reason code and packet identifier in a slot. */
const reasonShift = 8
const idShift = 16
/** Instead of a place: this connection has not brought the message. */
const nowhere = -1

/** Ticket of a message that needs no acknowledgement. */
export const noTicket = -1

/** An unacknowledged message of an earlier connection. */
interface Parked {
  readonly ticket: number
  /** As a slot. */
  value: number
  /** Its place on this connection once the server has repeated it, otherwise `nowhere`. */
  slot: number
}

/** The incoming half of the session state. */
export class ReceiveWindow {
  // QoS 1 and 2 messages of this connection in the order of arrival, starting with the oldest
  // unacknowledged one. Each has a slot: packet identifier, reason code and status in one integer.
  // A message's place is also its ticket, unless it has a ticket from an earlier connection.
  /** Place of the oldest unacknowledged message, and the next free place. Both only rise. */
  #oldest = 0
  #next = 0
  /** Number of connections that have ended. */
  #ends = 0
  #slots = noSlots
  /** The state of each packet identifier of the server. */
  readonly ids = new IdTable()
  /** Parked messages by packet identifier, and by ticket. */
  readonly #parked = new SparseMap<number, Parked>()
  readonly #byTicket = new SparseMap<number, Parked>()
  readonly #host: WindowHost
  /** A server that exceeds Receive Maximum is tolerated. */
  readonly #tolerant: boolean
  /** Messages received beyond Receive Maximum. */
  excess = 0
  // valid for the connection
  #reported = false
  /**
   * Incoming exchanges that are not finished. Bounded by Receive Maximum [MQTT-3.3.4-9], or by the
   * number of packet identifiers.
   */
  open = 0
  #receiveMaximum: number
  /** 3.1.1: the server may resend a message on the same connection. */
  #repeats = false
  /**
   * DISCONNECT was queued: no acknowledgement may follow. Messages settled later are acknowledged
   * when the next connection repeats them.
   */
  #closing = false

  constructor(host: WindowHost, receiveMaximum: number, tolerant: boolean) {
    this.#host = host
    this.#receiveMaximum = receiveMaximum
    this.#tolerant = tolerant
  }

  /** Messages of this connection without an acknowledgement. */
  get unsettled(): number {
    return this.#next - this.#oldest
  }

  /** Messages of earlier connections without an acknowledgement. */
  get parked(): number {
    return this.#parked.size
  }

  /** The ticket of the oldest unacknowledged message; the next ticket when all are acknowledged. */
  get oldestTicket(): number {
    return this.unsettled === 0
      ? this.#oldest
      : (this.#parkedAt(this.#oldest)?.ticket ?? this.#oldest)
  }

  /** True when the server may not send another QoS 1 or 2 message. */
  get full(): boolean {
    return this.open >= this.#receiveMaximum
  }

  /**
   * A connection begins, with the Receive Maximum of its CONNECT; `repeats`: the peer may resend
   * messages on it (3.1.1).
   */
  start(receiveMaximum: number, repeats: boolean): void {
    this.#receiveMaximum = receiveMaximum
    this.#repeats = repeats
    this.#reported = false
  }

  /** A PUBLISH at QoS 1 or 2 came in. Returns its ticket, REPEAT (do not deliver) or FAULT. */
  handlePublish(id: number, qos: number, dup = false): number {
    const state = this.ids.get(id)
    if (state !== 0 && state !== QOS2_EARLIER) return this.#handleRepeat(id, qos, state, dup)
    if (this.open >= this.#receiveMaximum && !this.#bears()) return this.#break(0x93)
    const { durable, recognises } = this.#host.persistence
    if (state === QOS2_EARLIER && qos === 2 && !recognises) {
      // Already received on an earlier connection. PUBREC is sent behind those of earlier messages
      // of this connection [MQTT-4.6.0-3].
      this.open += 1
      this.ids.set(id, QOS2_IN_HAND)
      this.#push((id << idShift) | qos2Flag | READY)
      this.#drain()
      return REPEAT
    }
    // A QoS 1 message under this identifier proves that the server has dropped the QoS 2 exchange,
    // so the store can delete it.
    if (state === QOS2_EARLIER && qos === 1 && durable)
      this.#host.persistence.request('delete-inbound', id, () => undefined)
    this.open += 1
    this.ids.set(id, qos === 2 ? QOS2_IN_HAND : QOS1_IN_HAND)
    const value = (id << idShift) | (qos === 2 ? qos2Flag : 0)
    const parked = this.#byTicket.size === 0 ? undefined : this.#parked.get(id)
    if (parked !== undefined) {
      // Either another message now uses this identifier, or this is the repeat, which takes its
      // place among the arrivals.
      if (((parked.value ^ value) & qos2Flag) !== 0 || (qos === 1 && !dup)) this.#forget(parked)
      else {
        parked.slot = this.#push(parked.value)
        this.#drain()
        return REPEAT
      }
    }
    return this.#push(value)
  }

  /** A PUBREL came in [MQTT-4.3.3-11]. */
  handlePubrel(id: number): void {
    const state = this.ids.get(id)
    if (state === 0) this.#host.acks.push(PUBCOMP, id, 0x92)
    else if (state === QOS2_ENDING) return
    else if (state !== QOS2_RECEIVED && state !== QOS2_EARLIER)
      this.#break(0x82, 'PUBREL before PUBREC')
    else {
      if (state === QOS2_RECEIVED) this.open -= 1
      if (!this.#host.persistence.durable) return this.#complete(id)
      this.ids.set(id, QOS2_ENDING)
      const connection = this.#ends
      this.#host.persistence.request('delete-inbound', id, () => {
        // On a later connection, the same identifier may be ending again and must wait for its own
        // write.
        if (connection === this.#ends) this.#complete(id)
      })
    }
  }

  /**
   * The application has decided about a message. False when the ticket is stale: settled before, or
   * of a lost session.
   * A reason code of 0x80 or above refuses the message (sections 3.4.2.1, 3.5.2.1).
   *
   * @param from the status that the message must have; STORING when the store has written it
   */
  settle(ticket: number, reasonCode: number, from = PENDING): boolean {
    const parked = this.#byTicket.get(ticket)
    if (parked?.slot === nowhere) {
      if ((parked.value & statusMask) !== from) return false
      parked.value = this.#decided(parked.value, ticket, reasonCode, from)
      return true
    }
    const at = parked?.slot ?? ticket
    if (at < this.#oldest || at >= this.#next) return false
    const slot = this.#slot(at)
    if ((slot & statusMask) !== from) return false
    this.#setSlot(at, this.#decided(slot, ticket, reasonCode, from))
    this.#drain()
    return true
  }

  /**
   * Undoes the latest `handlePublish`: there was no room for the message, and the connection is
   * ended so that it is redelivered.
   */
  takeBack(): void {
    this.#next -= 1
    this.open -= 1
    this.ids.set(this.#slot(this.#next) >>> idShift, 0)
  }

  /** DISCONNECT is the next and last packet. */
  handleClosing(): void {
    this.#closing = true
  }

  /**
   * The connection is over: unacknowledged messages wait for their repeat, and unsent
   * acknowledgements are void.
   */
  suspend(): void {
    for (let place = this.#oldest; place < this.#next; place++) this.#park(place)
    // Their places are not reused.
    this.#ends += 1
    this.#oldest = this.#next
    this.#slots = noSlots
    this.#closing = false
    this.open = 0
    this.ids.update((state) =>
      state === QOS2_RECEIVED || state === QOS2_ENDING ? QOS2_EARLIER : state,
    )
  }

  /** The session is gone: every ticket so far is stale. */
  reset(): void {
    this.suspend()
    this.ids.clear()
    this.#parked.clear()
    this.#byTicket.clear()
  }

  #complete(id: number): void {
    this.ids.set(id, 0)
    this.#host.acks.push(PUBCOMP, id, 0)
  }

  // A PUBLISH under an identifier that is in use: the same QoS 2 message again [MQTT-4.3.3-10], or
  // a protocol error.
  #handleRepeat(id: number, qos: number, state: number, dup: boolean): number {
    if (this.#repeats && dup && qos === 1 && state === QOS1_IN_HAND) return REPEAT
    if (qos !== 2 || state === QOS1_IN_HAND) return this.#break(0x82, 'packet identifier in use')
    if (state === QOS2_RECEIVED) this.#host.acks.push(PUBREC, id, 0)
    return REPEAT
  }

  #break(reasonCode: number, message?: string): number {
    this.#host.fail(reasonCode, message)
    return FAULT
  }

  // The server exceeded Receive Maximum, as several do. Section 4.13.1 recommends, but does not
  // require, to end the connection.
  #bears(): boolean {
    this.excess += 1
    if (this.#tolerant && !this.#reported) this.#host.actions.push({ type: 'exceeded' })
    this.#reported = true
    return this.#tolerant
  }

  #park(place: number): void {
    const value = this.#slot(place)
    const id = value >>> idShift
    // A parked message with this identifier must be the one in this slot; others were rebound or
    // forgotten when the slot was filled.
    const parked = this.#parked.get(id) ?? { ticket: place, value, slot: nowhere }
    parked.value = value
    parked.slot = nowhere
    this.ids.set(id, 0)
    this.#parked.set(id, parked)
    this.#byTicket.set(parked.ticket, parked)
  }

  #forget(parked: Parked): void {
    this.#parked.delete(parked.value >>> idShift)
    this.#byTicket.delete(parked.ticket)
  }

  #parkedAt(place: number): Parked | undefined {
    const parked = this.#parked.get(this.#slot(place) >>> idShift)
    return parked?.slot === place ? parked : undefined
  }

  // Records the outcome. An accepted QoS 2 message must be stored before PUBREC is sent.
  #decided(value: number, ticket: number, reasonCode: number, from: number): number {
    const store =
      from === PENDING &&
      (value & qos2Flag) !== 0 &&
      reasonCode < errorReason &&
      this.#host.persistence.durable
    if (store)
      this.#host.persistence.request('put-inbound', value >>> idShift, () =>
        this.settle(ticket, reasonCode, STORING),
      )
    return (value & ~statusMask) | (reasonCode << reasonShift) | (store ? STORING : READY)
  }

  #drain(): void {
    if (this.#closing) return
    while (this.unsettled > 0) {
      const slot = this.#slot(this.#oldest)
      if ((slot & statusMask) !== READY) return
      const parked = this.#byTicket.size === 0 ? undefined : this.#parkedAt(this.#oldest)
      if (parked !== undefined) this.#forget(parked)
      this.#oldest += 1
      this.#acknowledge(slot)
    }
    // An array that has grown large is freed.
    if (this.#slots.length > mostIdleSlots) this.#slots = noSlots
  }

  #acknowledge(slot: number): void {
    const id = slot >>> idShift
    const qos2 = (slot & qos2Flag) !== 0
    const reasonCode = (slot >>> reasonShift) & 0xff
    if (qos2 && reasonCode < errorReason) this.ids.set(id, QOS2_RECEIVED)
    else {
      this.ids.set(id, 0)
      this.open -= 1
    }
    this.#host.acks.push(qos2 ? PUBREC : PUBACK, id, reasonCode)
  }

  #slot(place: number): number {
    return this.#slots[place & (this.#slots.length - 1)] as number
  }

  #setSlot(place: number, slot: number): void {
    this.#slots[place & (this.#slots.length - 1)] = slot
  }

  /** Adds a message and returns its place. */
  #push(slot: number): number {
    if (this.unsettled === this.#slots.length) this.#grow()
    this.#setSlot(this.#next, slot)
    return this.#next++
  }

  #grow(): void {
    const old = this.#slots
    const slots = new Uint32Array(Math.max(initialSlots, old.length * 2))
    for (let place = this.#oldest; place < this.#next; place++)
      slots[place & (slots.length - 1)] = old[place & (old.length - 1)] as number
    this.#slots = slots
  }
}
