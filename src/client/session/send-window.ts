/**
 * Packet identifiers that we use, and outgoing PUBLISH exchanges at QoS 1 and 2 (sections 2.2.1, 4.3, 4.9).
 *
 * Data plane: integers in, integers out. Identifiers run from 1 to 65,535 and wrap, skipping those in use [MQTT-2.2.1-2] [MQTT-2.2.1-3];
 * PUBLISH, SUBSCRIBE and UNSUBSCRIBE share them. The send quota is the server's Receive Maximum [MQTT-4.9.0-1]. After a connection ended its
 * exchanges are held until they are replayed. It must never match an acknowledgement of the wrong kind, nor one for what this connection did
 * not carry.
 */

import { PUBREL } from '../../wire/constants.js'
import { SparseMap } from '../common/sparse.js'
import type { AckQueue } from './ack-queue.js'
import { IdTable, maximumPacketIdentifier } from './id-table.js'
import {
  AWAIT_PUBACK,
  AWAIT_PUBCOMP,
  AWAIT_PUBREC,
  AWAIT_SUBACK,
  AWAIT_UNSUBACK,
  BROKEN,
  CLEAR,
  CLEARED,
  CLEARING,
  clearBatch,
  DISOWNED,
  DONE,
  errorReason,
  held,
  mostDisowned,
  RELEASED,
  STORING_RELEASE,
  UNKNOWN,
} from './numbers.js'
import type { PersistPort } from './persistence.js'
import type { Fault } from './receive-window.js'

/** Outgoing half of the session state. */
export class SendWindow {
  /** Acknowledgements for exchanges that do not exist: counted, otherwise ignored. */
  unsolicited = 0
  /** The request whose answer had another number of reason codes than it had filters; 0 when there was none. */
  mismatched = 0
  readonly #ids = new IdTable()
  /** Number of filters by packet identifier of a SUBSCRIBE or UNSUBSCRIBE in flight. */
  readonly #expected = new SparseMap<number, number>()
  #lastId = 0
  readonly #foreignBase: number
  /** An earlier process may have left QoS 2 exchanges of this session half done: identifiers are cleared before their first use. */
  #foreign = false
  #disowned = 0
  /** 3.1.1 has no way to say that an identifier is in use: QoS 1 takes cleared ones too. */
  #cautious = false
  readonly #clear: number[] = []
  // valid for the connection
  #window = 0
  #inFlight = 0
  #clearing = 0
  readonly #acks: AckQueue
  readonly #persist: PersistPort
  readonly #fault: Fault

  /** @param foreignBase where identifiers begin in a session whose past is unknown, 0 to 65,534: far from what an earlier process left in use */
  constructor(acks: AckQueue, persist: PersistPort, fault: Fault, foreignBase = 0) {
    this.#foreignBase = foreignBase
    this.#acks = acks
    this.#persist = persist
    this.#fault = fault
  }

  /** Publishes at QoS 1 and 2 that this connection carries and that lack their last acknowledgement. */
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

  /** A connection is up: the quota starts from this CONNACK. `foreign`: it resumes a session that this process knows nothing of. */
  start(window: number, foreign = false, cautious = false): void {
    this.#window = window
    this.mismatched = 0
    if (foreign && !this.#foreign) this.#lastId = this.#foreignBase
    this.#foreign ||= foreign
    this.#cautious = cautious
  }

  /** Takes an identifier for a PUBLISH at QoS 1 or 2. Only while `mayPublish`, and for QoS 2 after `prepare` said yes. */
  publish(qos: number): number {
    const clear = qos === 2 || this.#cautious ? this.#clear.shift() : undefined
    const state = qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK
    if (clear !== undefined) this.#ids.set(clear, state)
    const id = clear ?? this.#allocate(state)
    this.#inFlight += 1
    return id
  }

  /** True when a publish has an identifier that no message of an earlier process can hold; if not, it sees to it (`CLEARED` follows). */
  prepare(qos: number): boolean {
    if (!this.#foreign || this.#clear.length > 0 || (qos === 1 && !this.#cautious)) return true
    if (this.#clearing > 0) return false
    while (this.#clearing < Math.min(clearBatch, this.#window) && this.hasIdentifier) {
      const id = this.#allocate(CLEARING)
      this.#clearing += 1
      this.#acks.push(PUBREL, id, 0)
    }
    return false
  }

  /**
   * The server says that it has this identifier in use (0x91). In a session whose past we do not know that is about the identifier: true, and it is
   * not used any more.
   */
  disown(id: number): boolean {
    if (!this.#foreign || this.#disowned >= mostDisowned) return false
    this.#disowned += 1
    this.#ids.set(id, DISOWNED)
    return true
  }

  /** The connection is over: publishes are held for their replay, requests are forgotten, and the quota is gone. */
  suspend(): void {
    this.#ids.update((state) => (state <= AWAIT_PUBCOMP ? state | held : state >= CLEAR ? state : 0))
    this.#expected.clear()
    this.#inFlight = 0
    this.#clearing = 0
    this.#window = 0
  }

  /** True while this connection has quota for one more publish of an earlier one. */
  get mayReplay(): boolean {
    return this.#inFlight < this.#window
  }

  /** A publish of an earlier connection is sent again, with DUP [MQTT-4.4.0-1]. Only while `mayReplay`. */
  replay(id: number): void {
    this.#ids.set(id, this.#ids.get(id) & ~held)
    this.#inFlight += 1
  }

  /** An exchange of an earlier connection goes on with PUBREL, which needs no quota but keeps its place in it [MQTT-4.4.0-1]. */
  replayRelease(id: number): void {
    this.replay(id)
    if (this.#ids.get(id) === AWAIT_PUBCOMP) this.#acks.push(PUBREL, id, 0)
  }

  /** A publish of an earlier connection will not be sent again; a QoS 2 identifier that the server may remember is not used any more. */
  abandon(id: number): void {
    if (this.#ids.get(id) === (AWAIT_PUBACK | held)) this.#ids.set(id, 0)
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

  /** The server uses this identifier, and others near it, for messages of its own: the next one is far from it. */
  avoid(id: number): void {
    this.#lastId = (id + 32_768) % maximumPacketIdentifier
  }

  handlePuback(id: number): number {
    const state = this.#ids.get(id)
    if (state === AWAIT_PUBACK) return this.#end(id)
    return this.#refuse(state)
  }

  handlePubrec(id: number, reasonCode: number): number {
    const state = this.#ids.get(id)
    if (state === 0 || state === CLEARING || state === CLEAR) {
      if (reasonCode < errorReason) this.#acks.push(PUBREL, id, 0x92)
      return this.#ignore()
    }
    if (state === AWAIT_PUBREC) return reasonCode >= errorReason ? this.#end(id) : this.#storeRelease(id)
    if (state !== AWAIT_PUBCOMP && state !== STORING_RELEASE) return this.#refuse(state)
    // The server has taken the message already: this answers a copy of it that we sent again.
    if (reasonCode >= errorReason) return this.#ignore()
    return state === AWAIT_PUBCOMP ? this.#release(id) : RELEASED
  }

  handlePubcomp(id: number): number {
    const state = this.#ids.get(id)
    if (state === AWAIT_PUBCOMP) return this.#end(id)
    if (state === CLEARING) return this.#handleCleared(id)
    return this.#refuse(state)
  }

  /** A SUBACK or UNSUBACK with `count` reason codes (on 3.1.1 an UNSUBACK has none: pass undefined). */
  handleAnswer(kind: 'subscribe' | 'unsubscribe', id: number, count: number | undefined): number {
    const state = this.#ids.get(id)
    if (state !== (kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)) return this.#refuse(state)
    if (count !== undefined && count !== this.#expected.get(id)) {
      this.mismatched = id
      return this.#refuse(state)
    }
    this.#expected.delete(id)
    this.#ids.set(id, 0)
    return DONE
  }

  /** Nothing of the old session counts any more. */
  reset(): void {
    this.suspend()
    this.#ids.clear()
    this.#clear.length = 0
    this.#foreign = false
    this.#disowned = 0
  }

  #allocate(state: number): number {
    let id = this.#lastId
    do id = id === maximumPacketIdentifier ? 1 : id + 1
    while (this.#ids.get(id) !== 0)
    this.#lastId = id
    this.#ids.set(id, state)
    return id
  }

  #storeRelease(id: number): number {
    if (!this.#persist.durable) return this.#release(id)
    this.#ids.set(id, STORING_RELEASE)
    this.#persist.request('put-release', id, () => {
      if (this.#ids.get(id) === STORING_RELEASE) this.#release(id)
      else if (this.#ids.get(id) === (STORING_RELEASE | held)) this.#ids.set(id, AWAIT_PUBCOMP | held)
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
    const clear = this.#foreign && (this.#cautious || this.#ids.get(id) !== AWAIT_PUBACK)
    this.#ids.set(id, clear ? CLEAR : 0)
    if (clear) this.#clear.push(id)
    this.#inFlight -= 1
  }

  #handleCleared(id: number): number {
    this.#ids.set(id, CLEAR)
    this.#clear.push(id)
    this.#clearing -= 1
    return CLEARED
  }

  #ignore(): number {
    this.unsolicited += 1
    return UNKNOWN
  }

  // Of nothing that this connection carries, or of the wrong kind, or with another number of reason codes than there were filters.
  #refuse(state: number): number {
    if (state === 0 || state >= CLEAR) return this.#ignore()
    this.#fault(0x82, 'unexpected acknowledgement')
    return BROKEN
  }
}
