/**
 * Outgoing QoS 1 and 2 publishes, and requests that wait for their answer (sections 4.3, 4.9).
 *
 * Data plane: integers in, integers out. The send quota is the server's Receive Maximum
 * [MQTT-4.9.0-1]. When a connection ends, its exchanges are held until they are replayed. An
 * acknowledgement counts only if its kind fits the exchange and this connection carried the packet
 * that it answers.
 *
 * PUBLISH, SUBSCRIBE and UNSUBSCRIBE share the packet identifiers (section 2.2.1). These run from 1
 * to 65,535 and wrap, skipping those in use [MQTT-2.2.1-2] [MQTT-2.2.1-3]. If this process resumes
 * a session that it does not know (a *foreign* session), an earlier process may have left
 * unfinished QoS 2 exchanges. Identifiers are then cleared by a PUBREL before they are used for
 * QoS 2, on 3.1.1 also for QoS 1.
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

/** Most identifiers of a session that are abandoned as in use. */
const mostDisowned = 256
/** Identifiers of a foreign session cleared at a time. */
const clearBatch = 16

// Results of the send window.
/** The exchange is over; its identifier is free. */
export const DONE = 1
/** PUBREC was accepted: PUBREL is queued, PUBCOMP is expected. */
export const RELEASED = 2
/** An identifier was cleared: a publish that waits for one may be sent. */
export const CLEARED = 3
/** No such exchange: nothing to settle. */
export const UNKNOWN = 0

/** The outgoing half of the session state. */
export class SendWindow extends IdTable {
  /** Acknowledgements for unknown exchanges: counted, otherwise ignored. */
  unsolicited = 0
  /** Identifier of a request whose answer had the wrong number of reason codes; 0: none. */
  mismatched = 0
  /** QoS 1 and 2 publishes carried by this connection that lack their last acknowledgement. */
  inFlight = 0
  /**
   * Requests (section 4.10) waiting for their answering message, including unsent ones, and a
   * pending re-authentication (section 4.12.1).
   */
  asking = 0
  /** The response topic of requests; undefined before the first one. */
  answersOn: string | undefined
  /** Publishes in flight at QoS 2, and their limit. */
  #exchanges = 0
  #mostExchanges = Number.POSITIVE_INFINITY
  /** Number of filters of each SUBSCRIBE or UNSUBSCRIBE in flight. */
  readonly #expected = new SparseMap<number, number>()
  readonly #host: WindowHost
  /** Number of sessions that are gone. */
  #session = 0
  // the next identifier
  #last = 0
  readonly #foreignBase: number
  /** The session is foreign. */
  #foreign = false
  #disowned = 0
  /** 3.1.1 cannot report an identifier as in use, so QoS 1 uses cleared ones, too. */
  #cautious = false
  readonly #clear: number[] = []
  // valid for the connection
  #clearing = 0
  /** The send quota, which limits publishes in flight and also identifiers being cleared. */
  #quota = 0

  /**
   * @param foreignBase first identifier in a foreign session, 0 to 65,534: far from those that an
   * earlier process left in use
   */
  constructor(host: WindowHost, foreignBase = 0) {
    super()
    this.#host = host
    this.#foreignBase = foreignBase
  }

  /**
   * True when a QoS 1 or 2 publish may be sent: there is quota [MQTT-4.9.0-2] and an identifier.
   */
  get mayPublish(): boolean {
    return this.inFlight < this.#quota && this.hasIdentifier
  }

  /** True when one more publish at this QoS is allowed: on 3.1.1, QoS 2 has its own limit. */
  admits(qos: number): boolean {
    return qos < 2 || this.#exchanges < this.#mostExchanges
  }

  /**
   * False while a QoS 2 publish would have to wait for something that QoS 1 does not need: its own
   * limit, or an identifier being cleared.
   */
  get exact(): boolean {
    return this.admits(2) && (this.#clearing === 0 || this.#clear.length > 0)
  }

  /**
   * A connection is up, with the quota of its CONNACK.
   *
   * @param foreign it resumes a session that this process does not know
   * @param cautious see `#cautious`
   * @param exchanges how many of the quota may be QoS 2
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

  /**
   * Takes an identifier for a QoS 1 or 2 PUBLISH. Only while `mayPublish` and `admits`; for QoS 2,
   * after `prepare` returned true.
   */
  publish(qos: number): number {
    this.inFlight += 1
    if (qos === 2) this.#exchanges += 1
    const state = qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK
    const cleared = qos === 2 || this.#cautious ? this.#clear.shift() : undefined
    if (cleared === undefined) return this.#take(state)
    this.set(cleared, state)
    return cleared
  }

  /**
   * The connection is over: publishes are held for replay, requests are forgotten, the quota is 0.
   */
  suspend(): void {
    this.update((state) => (state <= AWAIT_PUBCOMP ? state | held : state >= CLEAR ? state : 0))
    this.#clearing = 0
    this.#expected.clear()
    this.inFlight = 0
    this.#exchanges = 0
    this.#quota = 0
  }

  /**
   * True while the answer to a publish, a request or a re-authentication is outstanding. SUBSCRIBE
   * and UNSUBSCRIBE do not count, because a server may answer a SUBSCRIBE only after delivering all
   * messages that wait for it.
   */
  get awaits(): boolean {
    return this.inFlight + this.asking > 0
  }

  /** True while quota remains to replay a publish of an earlier connection. */
  get mayReplay(): boolean {
    return this.inFlight < this.#quota
  }

  /**
   * A publish of an earlier connection is resent with DUP [MQTT-4.4.0-1]. Only while `mayReplay`
   * and `admits`.
   */
  replay(id: number): void {
    const state = this.get(id) & ~held
    this.set(id, state)
    this.inFlight += 1
    if (state !== AWAIT_PUBACK) this.#exchanges += 1
  }

  /**
   * An exchange of an earlier connection continues with PUBREL, which needs no quota but counts
   * against it [MQTT-4.4.0-1].
   */
  replayRelease(id: number): void {
    this.replay(id)
    if (this.get(id) === AWAIT_PUBCOMP) this.#host.acks.push(PUBREL, id, 0)
  }

  /**
   * A publish of an earlier connection will not be resent. A QoS 2 identifier stays taken, because
   * the server may remember it.
   */
  abandon(id: number): void {
    if (this.get(id) === (AWAIT_PUBACK | held)) this.set(id, 0)
  }

  /** Frees an identifier whose packet was never sent. */
  withdraw(id: number): void {
    const state = this.get(id)
    if (state === AWAIT_PUBACK || state === AWAIT_PUBREC) this.#finish(id)
    else this.set(id, 0)
    this.#expected.delete(id)
  }

  /**
   * Takes an identifier for a SUBSCRIBE or UNSUBSCRIBE of `count` filters. Only while
   * `hasIdentifier`.
   */
  request(kind: 'subscribe' | 'unsubscribe', count: number): number {
    const id = this.#take(kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)
    this.#expected.set(id, count)
    return id
  }

  /** A PUBACK, PUBREC or PUBCOMP came in. Returns DONE, RELEASED, CLEARED, UNKNOWN or FAULT. */
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
    // The server already has the message: this PUBREC answers a copy.
    if (reasonCode >= errorReason) return this.#refuse(0)
    return state === AWAIT_PUBCOMP ? this.#release(id) : RELEASED
  }

  /**
   * A SUBACK or UNSUBACK with `count` reason codes came in (undefined for UNSUBACK on 3.1.1, which
   * has none).
   */
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

  /** The session is gone. */
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

  // Rejects an acknowledgement. One for an unknown exchange is tolerated; one of the wrong kind or
  // with a wrong count is a protocol error.
  #refuse(state: number): number {
    if (state === 0 || state >= CLEAR) {
      this.unsolicited += 1
      return UNKNOWN
    }
    this.#host.fail(0x82, 'unexpected acknowledgement')
    return FAULT
  }

  // Identifiers

  /** True when an identifier is free. */
  get hasIdentifier(): boolean {
    return this.size < maximumPacketIdentifier
  }

  /** Takes a free identifier. Only while `hasIdentifier`. */
  #take(state: number): number {
    let id = this.#last
    do id = id === maximumPacketIdentifier ? 1 : id + 1
    while (this.get(id) !== 0)
    this.#last = id
    this.set(id, state)
    return id
  }

  /**
   * True when a publish can get an identifier that no message of an earlier process uses. Otherwise
   * starts clearing some; `CLEARED` follows.
   */
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
   * The server reports this identifier as in use (0x91). In a foreign session that is plausible:
   * returns true, and the identifier is not used again.
   */
  disown(id: number): boolean {
    if (!this.#foreign || this.#disowned >= mostDisowned) return false
    this.#disowned += 1
    this.set(id, DISOWNED)
    return true
  }

  /**
   * The server uses this identifier and probably its neighbours for its own messages: the next one
   * is far from it.
   */
  avoid(id: number): void {
    this.#last = (id + 32_768) % maximumPacketIdentifier
  }

  #keepClear(id: number): void {
    this.set(id, CLEAR)
    this.#clear.push(id)
  }
}
