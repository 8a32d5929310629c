/**
 * Packet identifiers that we use, and outgoing PUBLISH exchanges at QoS 1 and 2 (sections 2.2.1, 4.3, 4.9).
 *
 * Data plane: integers in, integers out. Identifiers run from 1 to 65,535 and wrap, skipping those in use [MQTT-2.2.1-2] [MQTT-2.2.1-3];
 * PUBLISH, SUBSCRIBE and UNSUBSCRIBE share them. The send quota is the server's Receive Maximum [MQTT-4.9.0-1]. It must never match an
 * acknowledgement of the wrong kind.
 */
import { PUBREL } from '../../wire/constants.js'
import type { AckQueue } from './ack-queue.js'
import { IdTable, maximumPacketIdentifier } from './id-table.js'
import type { Fault } from './inbound.js'
import type { PersistPort } from './persistence.js'

/** The exchange is over; its identifier is free. */
export const DONE = 1
/** PUBREC was accepted: PUBREL is queued, PUBCOMP is to come. */
export const RELEASED = 2
/** No such exchange: nothing to settle. */
export const UNKNOWN = 0
/** The peer broke the protocol. */
export const BROKEN = -2

// States of a packet identifier of ours.
const AWAIT_PUBACK = 1
const AWAIT_PUBREC = 2
const STORING_RELEASE = 3
const AWAIT_PUBCOMP = 4
const AWAIT_SUBACK = 5
const AWAIT_UNSUBACK = 6

const errorReason = 0x80

/** Outgoing half of the session state. */
export class Outbound {
  /** Acknowledgements for exchanges that do not exist: counted, otherwise ignored. */
  unsolicited = 0
  readonly #ids = new IdTable()
  /** Number of filters by packet identifier of a SUBSCRIBE or UNSUBSCRIBE in flight. */
  readonly #expected = new Map<number, number>()
  #lastId = 0
  // valid for the connection
  #window = 0
  #inFlight = 0
  readonly #acks: AckQueue
  readonly #persist: PersistPort
  readonly #fault: Fault

  constructor(acks: AckQueue, persist: PersistPort, fault: Fault) {
    this.#acks = acks
    this.#persist = persist
    this.#fault = fault
  }

  /** Publishes at QoS 1 and 2 without their last acknowledgement. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** True when a publish at QoS 1 or 2 may leave now: there is quota [MQTT-4.9.0-2] and an identifier. */
  get mayPublish(): boolean {
    return this.#inFlight < this.#window && this.#ids.size < maximumPacketIdentifier
  }

  /** True when a SUBSCRIBE or UNSUBSCRIBE may leave now; it needs an identifier, no quota [MQTT-4.9.0-3]. */
  get hasIdentifier(): boolean {
    return this.#ids.size < maximumPacketIdentifier
  }

  /** A connection is up: the quota starts from this CONNACK. */
  start(window: number): void {
    this.#window = window
  }

  /** Takes an identifier for a PUBLISH at QoS 1 or 2. Only while `mayPublish`. */
  publish(qos: number): number {
    const id = this.#allocate(qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK)
    this.#inFlight += 1
    return id
  }

  /** Gives an identifier back whose packet could not be encoded and never left. */
  withdraw(id: number): void {
    const state = this.#ids.get(id)
    if (state === AWAIT_PUBACK || state === AWAIT_PUBREC) this.#finish(id)
    else this.#ids.set(id, 0)
    this.#expected.delete(id)
  }

  /** Takes an identifier for a SUBSCRIBE or UNSUBSCRIBE of `count` filters. Only while `hasIdentifier`. */
  request(kind: 'subscribe' | 'unsubscribe', count: number): number {
    const id = this.#allocate(kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)
    this.#expected.set(id, count)
    return id
  }

  handlePuback(id: number): number {
    const state = this.#ids.get(id)
    if (state === AWAIT_PUBACK) return this.#end(id)
    return state === 0 ? this.#ignore() : this.#break()
  }

  handlePubrec(id: number, reasonCode: number): number {
    const state = this.#ids.get(id)
    if (state === 0) return this.#answerUnknownPubrec(id, reasonCode)
    if (state === AWAIT_PUBREC) return reasonCode >= errorReason ? this.#end(id) : this.#storeRelease(id)
    if (state === STORING_RELEASE && reasonCode < errorReason) return RELEASED
    if (state !== AWAIT_PUBCOMP || reasonCode >= errorReason) return this.#break()
    this.#acks.push(PUBREL, id, 0)
    return RELEASED
  }

  handlePubcomp(id: number): number {
    const state = this.#ids.get(id)
    if (state === AWAIT_PUBCOMP) return this.#end(id)
    return state === 0 ? this.#ignore() : this.#break()
  }

  /** A SUBACK or UNSUBACK with `count` reason codes (on 3.1.1 an UNSUBACK has none: pass undefined). */
  handleAnswer(kind: 'subscribe' | 'unsubscribe', id: number, count: number | undefined): number {
    const state = this.#ids.get(id)
    if (state === 0) return this.#ignore()
    if (state !== (kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)) return this.#break()
    if (count !== undefined && count !== this.#expected.get(id)) return this.#break()
    this.#expected.delete(id)
    this.#ids.set(id, 0)
    return DONE
  }

  /** Nothing of the old session counts any more. */
  reset(): void {
    this.#ids.clear()
    this.#expected.clear()
    this.#inFlight = 0
    this.#window = 0
  }

  #allocate(state: number): number {
    let id = this.#lastId
    do id = id === maximumPacketIdentifier ? 1 : id + 1
    while (this.#ids.get(id) !== 0)
    this.#lastId = id
    this.#ids.set(id, state)
    return id
  }

  #answerUnknownPubrec(id: number, reasonCode: number): number {
    if (reasonCode < errorReason) this.#acks.push(PUBREL, id, 0x92)
    return this.#ignore()
  }

  #storeRelease(id: number): number {
    if (!this.#persist.durable) return this.#release(id)
    this.#ids.set(id, STORING_RELEASE)
    this.#persist.request('put-release', id, () => {
      if (this.#ids.get(id) === STORING_RELEASE) this.#release(id)
    })
    return RELEASED
  }

  #release(id: number): number {
    this.#ids.set(id, AWAIT_PUBCOMP)
    this.#acks.push(PUBREL, id, 0)
    return RELEASED
  }

  #end(id: number): number {
    this.#finish(id)
    this.#persist.note('delete-outbound', id)
    return DONE
  }

  #finish(id: number): void {
    this.#ids.set(id, 0)
    this.#inFlight -= 1
  }

  #ignore(): number {
    this.unsolicited += 1
    return UNKNOWN
  }

  // An acknowledgement of the wrong kind, or with another number of reason codes than there were filters.
  #break(): number {
    this.#fault(0x82, 'unexpected acknowledgement')
    return BROKEN
  }
}
