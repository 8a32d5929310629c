/**
 * Outgoing PUBLISH exchanges at QoS 1 and 2, and requests that wait for their answer (sections 4.3, 4.9).
 *
 * Data plane: integers in, integers out. The send quota is the server's Receive Maximum [MQTT-4.9.0-1]. After a connection ended its exchanges are
 * held until they are replayed. It must never match an acknowledgement of the wrong kind, nor one for what this connection did not carry.
 *
 * PUBLISH, SUBSCRIBE and UNSUBSCRIBE share the packet identifiers (section 2.2.1): from 1 to 65,535, and around, skipping those in use [MQTT-2.2.1-2]
 * [MQTT-2.2.1-3]. In a session whose past this process does not know an earlier one may have left QoS 2 exchanges half done: identifiers are cleared
 * there, by a PUBREL of their own, before they are used.
 */

import { SparseMap } from '../../common/sparse.js'
import { PUBACK, PUBREC, PUBREL } from '../../wire/constants.js'
import { errorReason } from '../../wire/reason-codes.js'
import {
  AWAIT_PUBACK,
  AWAIT_PUBCOMP,
  AWAIT_PUBREC,
  AWAIT_SUBACK,
  AWAIT_UNSUBACK,
  CLEAR,
  CLEARING,
  DISOWNED,
  held,
  IdTable,
  maximumPacketIdentifier,
  STORING_RELEASE,
} from './packet-identifiers.js'
import { FAULT, type WindowHost } from './refusal.js'

/** Most identifiers of a session that are given up as in use. */
const mostDisowned = 256
/** Identifiers of unknown past that are cleared at a time. */
const clearBatch = 16

// What the send window answers.
/** The exchange is over; its identifier is free. */
export const DONE = 1
/** PUBREC was accepted: PUBREL is queued, PUBCOMP is to come. */
export const RELEASED = 2
/** An identifier that an earlier process may have left in use is free now: what waits for one may go. */
export const CLEARED = 3
/** No such exchange: nothing to settle. */
export const UNKNOWN = 0

/** Outgoing half of the session state. */
export class SendWindow extends IdTable {
  /** Acknowledgements for exchanges that do not exist: counted, otherwise ignored. */
  unsolicited = 0
  /** The request whose answer had another number of reason codes than it had filters; 0 when there was none. */
  mismatched = 0
  /** Publishes at QoS 1 and 2 that this connection carries and that lack their last acknowledgement. */
  inFlight = 0
  /** Requests whose answer is a message, and has not come, with those that wait to be sent (section 4.10); and a re-authentication (section 4.12.1). */
  asking = 0
  /** The topic on which those answers come; undefined before the first request. */
  answersOn: string | undefined
  /** Those of them at QoS 2, and how many these may be. */
  #exchanges = 0
  #mostExchanges = Number.POSITIVE_INFINITY
  /** Number of filters by packet identifier of a SUBSCRIBE or UNSUBSCRIBE in flight. */
  readonly #expected = new SparseMap<number, number>()
  readonly #host: WindowHost
  /** Rises when the session is gone. */
  #session = 0
  // which identifier is next
  #last = 0
  readonly #foreignBase: number
  /** The session's past is unknown. */
  #foreign = false
  #disowned = 0
  /** 3.1.1 has no way to say that an identifier is in use: QoS 1 takes cleared ones too. */
  #cautious = false
  readonly #clear: number[] = []
  // valid for the connection
  #clearing = 0
  /** The send quota: so many publishes at a time, and so many that are cleared. */
  #quota = 0

  /** @param foreignBase where identifiers begin in a session whose past is unknown, 0 to 65,534: far from what an earlier process left in use */
  constructor(host: WindowHost, foreignBase = 0) {
    super()
    this.#host = host
    this.#foreignBase = foreignBase
  }

  /** True when a publish at QoS 1 or 2 may leave now: there is quota [MQTT-4.9.0-2] and an identifier. */
  get mayPublish(): boolean {
    return this.inFlight < this.#quota && this.hasIdentifier
  }

  /** True when there is room for one more at this QoS: 3.1.1 has a limit of its own for QoS 2. */
  admits(qos: number): boolean {
    return qos < 2 || this.#exchanges < this.#mostExchanges
  }

  /** False while one more at QoS 2 waits for something that QoS 1 has no need of: a place among them, or an identifier that is being cleared. */
  get exact(): boolean {
    return this.admits(2) && (this.#clearing === 0 || this.#clear.length > 0)
  }

  /**
   * A connection is up: the quota starts from this CONNACK.
   *
   * @param foreign it goes on with a session that this process knows nothing of
   * @param cautious see `#cautious`
   * @param exchanges how many of the quota may be at QoS 2
   */
  start(
    quota: number,
    foreign = false,
    cautious = false,
    exchanges = Number.POSITIVE_INFINITY,
  ): void {
    this.#quota = quota
    this.#mostExchanges = exchanges
    this.mismatched = 0
    if (foreign && !this.#foreign) this.#last = this.#foreignBase
    this.#foreign ||= foreign
    this.#cautious = cautious
  }

  /** Takes an identifier for a PUBLISH at QoS 1 or 2. Only while `mayPublish` and `admits`, and for QoS 2 after `prepare` said yes. */
  publish(qos: number): number {
    this.inFlight += 1
    if (qos === 2) this.#exchanges += 1
    const state = qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK
    const cleared = qos === 2 || this.#cautious ? this.#clear.shift() : undefined
    if (cleared === undefined) return this.#take(state)
    this.set(cleared, state)
    return cleared
  }

  /** The connection is over: publishes are held for their replay, requests are forgotten, and the quota is gone. */
  suspend(): void {
    this.update((state) => (state <= AWAIT_PUBCOMP ? state | held : state >= CLEAR ? state : 0))
    this.#clearing = 0
    this.#expected.clear()
    this.inFlight = 0
    this.#exchanges = 0
    this.#quota = 0
  }

  /**
   * True while an answer is awaited, to a publish, a request or a re-authentication. SUBSCRIBE and UNSUBSCRIBE do not count: a server may answer the SUBSCRIBE of a
   * reader that is back only behind all that waits for it.
   */
  get awaits(): boolean {
    return this.inFlight + this.asking > 0
  }

  /** True while this connection has quota for one more publish of an earlier one. */
  get mayReplay(): boolean {
    return this.inFlight < this.#quota
  }

  /** A publish of an earlier connection is sent again, with DUP [MQTT-4.4.0-1]. Only while `mayReplay` and `admits`. */
  replay(id: number): void {
    const state = this.get(id) & ~held
    this.set(id, state)
    this.inFlight += 1
    if (state !== AWAIT_PUBACK) this.#exchanges += 1
  }

  /** An exchange of an earlier connection goes on with PUBREL, which needs no quota but keeps its place in it [MQTT-4.4.0-1]. */
  replayRelease(id: number): void {
    this.replay(id)
    if (this.get(id) === AWAIT_PUBCOMP) this.#host.acks.push(PUBREL, id, 0)
  }

  /** A publish of an earlier connection will not be sent again; a QoS 2 identifier that the server may remember is not used any more. */
  abandon(id: number): void {
    if (this.get(id) === (AWAIT_PUBACK | held)) this.set(id, 0)
  }

  /** Gives an identifier back whose packet could not be encoded and never left. */
  withdraw(id: number): void {
    const state = this.get(id)
    if (state === AWAIT_PUBACK || state === AWAIT_PUBREC) this.#finish(id)
    else this.set(id, 0)
    this.#expected.delete(id)
  }

  /** Takes an identifier for a SUBSCRIBE or UNSUBSCRIBE of `count` filters. Only while `hasIdentifier`. */
  request(kind: 'subscribe' | 'unsubscribe', count: number): number {
    const id = this.#take(kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)
    this.#expected.set(id, count)
    return id
  }

  /** A PUBACK, PUBREC or PUBCOMP came in. Gives DONE, RELEASED, CLEARED, UNKNOWN or FAULT. */
  handleAck(packetType: number, id: number, reasonCode: number): number {
    const state = this.get(id)
    if (packetType === PUBREC) return this.#handlePubrec(id, reasonCode, state)
    if (state === (packetType === PUBACK ? AWAIT_PUBACK : AWAIT_PUBCOMP)) return this.#end(id)
    if (packetType === PUBACK || state !== CLEARING) return this.#refuse(state)
    this.#clearing -= 1
    this.#keepClear(id)
    return CLEARED
  }

  #handlePubrec(id: number, reasonCode: number, state: number): number {
    if (state === 0 || state === CLEARING || state === CLEAR) {
      if (reasonCode < errorReason) this.#host.acks.push(PUBREL, id, 0x92)
      return this.#refuse(0)
    }
    if (state === AWAIT_PUBREC)
      return reasonCode >= errorReason ? this.#end(id) : this.#storeRelease(id)
    if (state !== AWAIT_PUBCOMP && state !== STORING_RELEASE) return this.#refuse(state)
    // The server has taken the message already: this answers a copy of it that we sent again.
    if (reasonCode >= errorReason) return this.#refuse(0)
    return state === AWAIT_PUBCOMP ? this.#release(id) : RELEASED
  }

  /** A SUBACK or UNSUBACK with `count` reason codes (on 3.1.1 an UNSUBACK has none: pass undefined). */
  handleAnswer(kind: 'subscribe' | 'unsubscribe', id: number, count: number | undefined): number {
    const state = this.get(id)
    if (state !== (kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)) return this.#refuse(state)
    if (count !== undefined && count !== this.#expected.get(id)) {
      this.mismatched = id
      return this.#refuse(state)
    }
    this.#expected.delete(id)
    this.set(id, 0)
    return DONE
  }

  /** Nothing of the old session counts any more. */
  reset(): void {
    this.#session += 1
    this.suspend()
    this.clear()
    this.#clear.length = 0
    this.#foreign = false
    this.#disowned = 0
  }

  #storeRelease(id: number): number {
    if (!this.#host.persistence.durable) return this.#release(id)
    this.set(id, STORING_RELEASE)
    const session = this.#session
    this.#host.persistence.request('put-release', id, () => {
      if (session !== this.#session) return
      if (this.get(id) === STORING_RELEASE) this.#release(id)
      else if (this.get(id) === (STORING_RELEASE | held)) this.set(id, AWAIT_PUBCOMP | held)
    })
    return RELEASED
  }

  #release(id: number): number {
    this.set(id, AWAIT_PUBCOMP)
    this.#host.acks.push(PUBREL, id, 0)
    return RELEASED
  }

  #end(id: number): number {
    this.#finish(id)
    return DONE
  }

  #finish(id: number): void {
    if (this.get(id) !== AWAIT_PUBACK) this.#exchanges -= 1
    this.#free(id)
    this.inFlight -= 1
  }

  // Of nothing that this connection carries, which is borne with; or of the wrong kind, or with another number of reason codes than there were filters.
  #refuse(state: number): number {
    if (state === 0 || state >= CLEAR) {
      this.unsolicited += 1
      return UNKNOWN
    }
    this.#host.fail(0x82, 'unexpected acknowledgement')
    return FAULT
  }

  // Identifiers

  /** True when there is one that nothing uses. */
  get hasIdentifier(): boolean {
    return this.size < maximumPacketIdentifier
  }

  /** Takes one that nothing uses. Only while `hasIdentifier`. */
  #take(state: number): number {
    let id = this.#last
    do id = id === maximumPacketIdentifier ? 1 : id + 1
    while (this.get(id) !== 0)
    this.#last = id
    this.set(id, state)
    return id
  }

  /** True when a publish has an identifier that no message of an earlier process can hold; if not, it sees to it (`CLEARED` follows). */
  prepare(qos: number): boolean {
    if (!this.#foreign || this.#clear.length > 0 || (qos === 1 && !this.#cautious)) return true
    if (this.#clearing > 0) return false
    while (this.#clearing < Math.min(clearBatch, this.#quota) && this.hasIdentifier) {
      this.#clearing += 1
      this.#host.acks.push(PUBREL, this.#take(CLEARING), 0)
    }
    return false
  }

  /** The exchange of a publish is over. */
  #free(id: number): void {
    if (this.#foreign && (this.#cautious || this.get(id) !== AWAIT_PUBACK)) this.#keepClear(id)
    else this.set(id, 0)
  }

  /**
   * The server says that it has this identifier in use (0x91). In a session whose past we do not know that is about the identifier: true, and it is
   * not used any more.
   */
  disown(id: number): boolean {
    if (!this.#foreign || this.#disowned >= mostDisowned) return false
    this.#disowned += 1
    this.set(id, DISOWNED)
    return true
  }

  /** The server uses this identifier, and others near it, for messages of its own: the next one is far from it. */
  avoid(id: number): void {
    this.#last = (id + 32_768) % maximumPacketIdentifier
  }

  #keepClear(id: number): void {
    this.set(id, CLEAR)
    this.#clear.push(id)
  }
}
