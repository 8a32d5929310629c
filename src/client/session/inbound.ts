/**
 * Incoming PUBLISH packets at QoS 1 and 2: what to deliver, and acknowledgements in the order of arrival (sections 4.3, 4.6).
 *
 * Data plane: integers in, integers out. Each message that is to be delivered gets a ticket, a number that rises by one; `settle(ticket, code)`
 * may come in any order, acknowledgements leave in ticket order [MQTT-4.6.0-2] [MQTT-4.6.0-3]. It must never acknowledge what was not settled.
 */
import { PUBACK, PUBCOMP, PUBREC } from '../../wire/constants.js'
import type { AckQueue } from './ack-queue.js'
import { IdTable } from './id-table.js'
import type { PersistPort } from './persistence.js'

/** `handlePublish` answers a ticket (0 or above) or one of these. */
export const REPEAT = -1
/** The peer broke the protocol; `PublishFault` and the reason code say how. */
export const FAULT = -2

// States of an incoming packet identifier.
const QOS1_IN_HAND = 1
const QOS2_IN_HAND = 2
const QOS2_RECEIVED = 3

// Low bits of a slot: what happened to the message so far.
const PENDING = 0
const STORING = 1
const READY = 2
const statusMask = 3
const qos2Flag = 4
const reasonShift = 8
const idShift = 16

const initialSlots = 16
const errorReason = 0x80

/** Called when the peer broke the protocol: ends the connection with this reason code, whose name is the message where none is given. */
export type Fault = (reasonCode: number, message?: string) => void

/** Incoming half of the session state. */
export class Inbound {
  /** Messages in hand or half done, bounded by our Receive Maximum [MQTT-3.3.4-9]. */
  #open = 0
  #receiveMaximum: number
  #slots = new Uint32Array(0)
  /** Ticket of the oldest message that is not acknowledged, and the ticket that comes next. */
  #oldest = 0
  #next = 0
  readonly #ids = new IdTable()
  readonly #acks: AckQueue
  readonly #persist: PersistPort
  readonly #fault: Fault

  constructor(receiveMaximum: number, acks: AckQueue, persist: PersistPort, fault: Fault) {
    this.#receiveMaximum = receiveMaximum
    this.#acks = acks
    this.#persist = persist
    this.#fault = fault
  }

  /** Messages that the application has not settled, or whose turn to be acknowledged has not come. */
  get unsettled(): number {
    return this.#next - this.#oldest
  }

  /** Exchanges that count against our Receive Maximum. */
  get open(): number {
    return this.#open
  }

  /** The oldest message without an acknowledgement; equal to the next ticket when there is none. */
  get oldestTicket(): number {
    return this.#oldest
  }

  /** True when the peer may send no further QoS 1 or 2 message. */
  get full(): boolean {
    return this.#open >= this.#receiveMaximum
  }

  /** A PUBLISH at QoS 1 or 2 came in. Gives its ticket, REPEAT (deliver nothing) or FAULT. */
  handlePublish(id: number, qos: number): number {
    const state = this.#ids.get(id)
    if (state !== 0) return this.#handleRepeat(id, qos, state)
    if (this.#open >= this.#receiveMaximum) return this.#break(0x93)
    this.#open += 1
    this.#ids.set(id, qos === 2 ? QOS2_IN_HAND : QOS1_IN_HAND)
    return this.#take(id, qos)
  }

  /** A PUBREL came in [MQTT-4.3.3-11]. */
  handlePubrel(id: number): void {
    const state = this.#ids.get(id)
    if (state === 0) this.#acks.push(PUBCOMP, id, 0x92)
    else if (state !== QOS2_RECEIVED) this.#break(0x82, 'PUBREL before PUBREC')
    else {
      this.#release(id)
      this.#persist.note('delete-inbound', id)
      this.#acks.push(PUBCOMP, id, 0)
    }
  }

  /**
   * The application is done with a message. False when the ticket is stale: settled before, or of a session that is gone.
   * A reason code of 0x80 or above refuses the message (sections 3.4.2.1, 3.5.2.1).
   */
  settle(ticket: number, reasonCode: number): boolean {
    if (ticket < this.#oldest || ticket >= this.#next) return false
    const index = ticket & (this.#slots.length - 1)
    const slot = this.#slots[index] as number
    if ((slot & statusMask) !== PENDING) return false
    const store = (slot & qos2Flag) !== 0 && reasonCode < errorReason && this.#persist.durable
    this.#slots[index] = (slot & ~statusMask) | (reasonCode << reasonShift) | (store ? STORING : READY)
    if (store) this.#persist.request('put-inbound', slot >>> idShift, () => this.#stored(ticket))
    else this.#drain()
    return true
  }

  /** Nothing of the old session counts any more: every ticket given so far is stale. */
  reset(): void {
    this.#oldest = this.#next
    this.#open = 0
    this.#ids.clear()
    this.#slots = new Uint32Array(0)
  }

  // The identifier of an exchange that is not finished: the same QoS 2 message again [MQTT-4.3.3-10], or an identifier used twice.
  #handleRepeat(id: number, qos: number, state: number): number {
    if (qos !== 2 || state === QOS1_IN_HAND) return this.#break(0x82, 'packet identifier in use')
    if (state === QOS2_RECEIVED) this.#acks.push(PUBREC, id, 0)
    return REPEAT
  }

  #break(reasonCode: number, message?: string): number {
    this.#fault(reasonCode, message)
    return FAULT
  }

  #take(id: number, qos: number): number {
    if (this.#next - this.#oldest === this.#slots.length) this.#grow()
    const ticket = this.#next++
    this.#slots[ticket & (this.#slots.length - 1)] = (id << idShift) | (qos === 2 ? qos2Flag : 0)
    return ticket
  }

  #stored(ticket: number): void {
    if (ticket < this.#oldest) return
    const index = ticket & (this.#slots.length - 1)
    this.#slots[index] = ((this.#slots[index] as number) & ~statusMask) | READY
    this.#drain()
  }

  #drain(): void {
    const mask = this.#slots.length - 1
    while (this.#oldest < this.#next) {
      const slot = this.#slots[this.#oldest & mask] as number
      if ((slot & statusMask) !== READY) return
      this.#oldest += 1
      this.#acknowledge(slot >>> idShift, (slot & qos2Flag) !== 0, (slot >>> reasonShift) & 0xff)
    }
  }

  #acknowledge(id: number, qos2: boolean, reasonCode: number): void {
    if (!qos2) this.#release(id)
    else if (reasonCode >= errorReason) this.#release(id)
    else this.#ids.set(id, QOS2_RECEIVED)
    this.#acks.push(qos2 ? PUBREC : PUBACK, id, reasonCode)
  }

  #release(id: number): void {
    this.#ids.set(id, 0)
    this.#open -= 1
  }

  #grow(): void {
    const old = this.#slots
    const slots = new Uint32Array(old.length === 0 ? initialSlots : old.length * 2)
    for (let ticket = this.#oldest; ticket < this.#next; ticket++) slots[ticket & (slots.length - 1)] = old[ticket & (old.length - 1)] as number
    this.#slots = slots
  }
}
