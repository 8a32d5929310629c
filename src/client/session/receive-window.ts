/**
 * Incoming PUBLISH packets at QoS 1 and 2: what to deliver, and acknowledgements in the order of arrival (sections 4.3, 4.6).
 *
 * Data plane: integers in, integers out. Each message that is to be delivered gets a ticket, a number that rises by one; `settle(ticket, code)`
 * may come in any order, acknowledgements leave in the order in which this connection brought the messages [MQTT-4.6.0-2] [MQTT-4.6.0-3]. A
 * message in hand when the connection ends is parked: its ticket stays good, its repeat is not delivered. It must never acknowledge what was
 * not settled, nor anything on a connection that did not bring it.
 */
import { SparseMap } from '../../common/sparse.js'
import { PUBACK, PUBCOMP, PUBREC } from '../../wire/constants.js'
import { errorReason } from '../../wire/reason-codes.js'
import { IdTable } from './packet-identifiers.js'
import { FAULT, type WindowHost } from './refusal.js'

/** Slots to begin with, and most slots that are kept when all is settled. */
const initialSlots = 16
const mostIdleSlots = 1024

const noSlots = new Uint32Array(0)

// What the receive window answers besides tickets, which are 0 or above.
/** Deliver nothing. */
export const REPEAT = -1

// States of an incoming packet identifier.
const QOS1_IN_HAND = 1
const QOS2_IN_HAND = 2
const QOS2_RECEIVED = 3
/** PUBREC was due on an earlier connection: it counts here only when the server starts again with PUBLISH. */
export const QOS2_EARLIER = 4
/** PUBREL came: PUBCOMP leaves once the store has forgotten the identifier, for the server may use it again then. */
const QOS2_ENDING = 5

// Low bits of a slot: what happened to an incoming message so far.
const PENDING = 0
const STORING = 1
const READY = 2
const statusMask = 3
/** A slot's message is one of QoS 2. */
const qos2Flag = 4
/** Where a slot holds the reason code, and the packet identifier. */
const reasonShift = 8
const idShift = 16
/** In place of a slot: this connection has not brought the message. */
const nowhere = -1

/** Ticket of a message that needs no acknowledgement. */
export const noTicket = -1

/** A message of an earlier connection that has no acknowledgement yet. */
interface Parked {
  readonly ticket: number
  /** As a slot. */
  value: number
  /** Its place among the arrivals of this connection, once the server has repeated it. */
  slot: number
}

/** Incoming half of the session state. */
export class ReceiveWindow {
  // QoS 1 and 2 messages of this connection in the order of arrival, from the oldest without an acknowledgement on: each has a slot, which holds packet
  // identifier, reason code and status. A message's place is the ticket it is given, unless an earlier connection gave it one.
  /** Place of the oldest message that is not acknowledged, and the place that comes next. Both only rise. */
  #oldest = 0
  #next = 0
  /** Rises when a connection ends. */
  #ends = 0
  #slots = noSlots
  /** What each packet identifier of the server stands for. */
  readonly ids = new IdTable()
  /** By packet identifier, and by ticket. */
  readonly #parked = new SparseMap<number, Parked>()
  readonly #byTicket = new SparseMap<number, Parked>()
  readonly #host: WindowHost
  /** A server that exceeds Receive Maximum is borne with. */
  readonly #tolerant: boolean
  /** Messages that came although Receive Maximum was reached. */
  excess = 0
  // valid for the connection
  #reported = false
  /** Messages in hand or half done. The server bounds them by our Receive Maximum [MQTT-3.3.4-9], or packet identifiers do. */
  open = 0
  #receiveMaximum: number
  /** 3.1.1: a message may be sent again on the same connection. */
  #repeats = false
  /** DISCONNECT was given: no acknowledgement may follow it. What is settled from then on is answered when the next connection repeats it. */
  #closing = false

  constructor(host: WindowHost, receiveMaximum: number, tolerant: boolean) {
    this.#host = host
    this.#receiveMaximum = receiveMaximum
    this.#tolerant = tolerant
  }

  /** Messages of this connection that the application has not settled, or whose turn to be acknowledged has not come. */
  get unsettled(): number {
    return this.#next - this.#oldest
  }

  /** Messages of earlier connections that have no acknowledgement yet. */
  get parked(): number {
    return this.#parked.size
  }

  /** The oldest message without an acknowledgement; equal to the next ticket when all are acknowledged. */
  get oldestTicket(): number {
    return this.unsettled === 0
      ? this.#oldest
      : (this.#parkedAt(this.#oldest)?.ticket ?? this.#oldest)
  }

  /** True when the server may send no further QoS 1 or 2 message. */
  get full(): boolean {
    return this.open >= this.#receiveMaximum
  }

  /** A connection begins: what CONNECT announced, and whether the peer may repeat messages on it (3.1.1). */
  start(receiveMaximum: number, repeats: boolean): void {
    this.#receiveMaximum = receiveMaximum
    this.#repeats = repeats
    this.#reported = false
  }

  /** A PUBLISH at QoS 1 or 2 came in. Gives its ticket, REPEAT (deliver nothing) or FAULT. */
  handlePublish(id: number, qos: number, dup = false): number {
    const state = this.ids.get(id)
    if (state !== 0 && state !== QOS2_EARLIER) return this.#handleRepeat(id, qos, state, dup)
    if (this.open >= this.#receiveMaximum && !this.#bears()) return this.#break(0x93)
    const { durable, recognises } = this.#host.persistence
    if (state === QOS2_EARLIER && qos === 2 && !recognises) {
      // It was received, once and for all, on an earlier connection; PUBREC leaves behind those of what came before it on this one [MQTT-4.6.0-3].
      this.open += 1
      this.ids.set(id, QOS2_IN_HAND)
      this.#push((id << idShift) | qos2Flag | READY)
      this.#drain()
      return REPEAT
    }
    // At QoS 1 the server has fallen back behind that exchange: it is gone, and its identifier free, also for a later process.
    if (state === QOS2_EARLIER && qos === 1 && durable)
      this.#host.persistence.request('delete-inbound', id, () => undefined)
    this.open += 1
    this.ids.set(id, qos === 2 ? QOS2_IN_HAND : QOS1_IN_HAND)
    const value = (id << idShift) | (qos === 2 ? qos2Flag : 0)
    const parked = this.#byTicket.size === 0 ? undefined : this.#parked.get(id)
    if (parked !== undefined) {
      // Another message has its identifier now, or its repeat, decided or not, takes its place among the arrivals.
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
        // On a later one it may be ending again, and that waits for an answer of its own.
        if (connection === this.#ends) this.#complete(id)
      })
    }
  }

  /**
   * The application is done with a message. False when the ticket is stale: settled before, or of a session that is gone.
   * A reason code of 0x80 or above refuses the message (sections 3.4.2.1, 3.5.2.1).
   *
   * @param from its status so far; what is STORING is settled here once the store has it
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

  /** There is no room for the message that was taken last: as the connection ends, it counts as one that never came. */
  takeBack(): void {
    this.#next -= 1
    this.open -= 1
    this.ids.set(this.#slot(this.#next) >>> idShift, 0)
  }

  /** DISCONNECT is the next packet, and the last. */
  handleClosing(): void {
    this.#closing = true
  }

  /** The connection is over: what has no acknowledgement waits for its repeat, and no acknowledgement of it counts as sent. */
  suspend(): void {
    for (let place = this.#oldest; place < this.#next; place++) this.#park(place)
    // Their places are not given again.
    this.#ends += 1
    this.#oldest = this.#next
    this.#slots = noSlots
    this.#closing = false
    this.open = 0
    this.ids.update((state) =>
      state === QOS2_RECEIVED || state === QOS2_ENDING ? QOS2_EARLIER : state,
    )
  }

  /** Nothing of the old session counts any more: every ticket given so far is stale. */
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

  // The identifier of an exchange that is not finished: the same QoS 2 message again [MQTT-4.3.3-10], or an identifier used twice.
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

  // The server exceeds Receive Maximum: several do. Section 4.13.1 only recommends to end the connection.
  #bears(): boolean {
    this.excess += 1
    if (this.#tolerant && !this.#reported) this.#host.actions.push({ type: 'exceeded' })
    this.#reported = true
    return this.#tolerant
  }

  #park(place: number): void {
    const value = this.#slot(place)
    const id = value >>> idShift
    // One with this identifier has this very slot, as every other was rebound or forgotten when the slot was taken.
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

  // The outcome is known; a QoS 2 message that is taken must be on record before PUBREC says so.
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
    // A number of slots that was needed once is not held for ever.
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

  /** Takes in the next message; gives its place. */
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
