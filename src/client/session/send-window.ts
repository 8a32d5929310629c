/**
 * Outgoing QoS 1 and 2 publishes, and requests that wait for their answer (sections 4.3, 4.9).
 *
 * Data plane: integers in, integers out. The send quota is the server's Receive Maximum
 * [MQTT-4.9.0-1]. When a connection ends, its exchanges are held until they are replayed. An
 * acknowledgement must match the kind of exchange, and this connection must have carried it.
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
  held,
  PacketIdentifiers,
  STORING_RELEASE,
} from './packet-identifiers.js'
import { FAULT, type WindowHost } from './refusal.js'

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
export class SendWindow extends PacketIdentifiers {
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

  constructor(host: WindowHost, foreignBase = 0) {
    super(host.acks, foreignBase)
    this.#host = host
  }

  /**
   * True when a QoS 1 or 2 publish may be sent: there is quota [MQTT-4.9.0-2] and an identifier.
   */
  get mayPublish(): boolean {
    return this.inFlight < this.quota && this.hasIdentifier
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
    return this.admits(2) && !this.awaitsCleared
  }

  /**
   * A connection is up, with the quota of its CONNACK. `exchanges`: how many of those may be QoS 2.
   */
  start(
    quota: number,
    foreign = false,
    cautious = false,
    exchanges = Number.POSITIVE_INFINITY,
  ): void {
    this.quota = quota
    this.#mostExchanges = exchanges
    this.mismatched = 0
    this.resume(foreign, cautious)
  }

  /**
   * Takes an identifier for a QoS 1 or 2 PUBLISH. Only while `mayPublish` and `admits`; for QoS 2,
   * after `prepare` returned true.
   */
  publish(qos: number): number {
    this.inFlight += 1
    if (qos === 2) this.#exchanges += 1
    return this.takeForPublish(qos === 2 ? AWAIT_PUBREC : AWAIT_PUBACK)
  }

  /**
   * The connection is lost: publishes are held for replay, requests are forgotten, the quota is 0.
   */
  override suspend(): void {
    super.suspend()
    this.#expected.clear()
    this.inFlight = 0
    this.#exchanges = 0
    this.quota = 0
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
    return this.inFlight < this.quota
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

  /** Takes an identifier for a SUBSCRIBE or UNSUBSCRIBE of `count` filters. Only while `hasIdentifier`. */
  request(kind: 'subscribe' | 'unsubscribe', count: number): number {
    const id = this.take(kind === 'subscribe' ? AWAIT_SUBACK : AWAIT_UNSUBACK)
    this.#expected.set(id, count)
    return id
  }

  /** A PUBACK, PUBREC or PUBCOMP came in. Returns DONE, RELEASED, CLEARED, UNKNOWN or FAULT. */
  handleAck(packetType: number, id: number, reasonCode: number): number {
    const state = this.get(id)
    if (packetType === PUBREC) return this.#handlePubrec(id, reasonCode, state)
    if (state === (packetType === PUBACK ? AWAIT_PUBACK : AWAIT_PUBCOMP)) return this.#end(id)
    if (packetType === PUBACK || state !== CLEARING) return this.#refuse(state)
    this.handleCleared(id)
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
  override reset(): void {
    this.#session += 1
    this.suspend()
    super.reset()
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
    this.free(id)
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
}
