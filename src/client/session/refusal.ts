/**
 * The peer's doing, as errors: reason codes that a packet carried, and connections that broke.
 *
 * Pure. It must never put text of the peer into a message: that stays in `reasonString`.
 */

import { SparseMap } from '../../common/sparse.js'
import { describe, MqttError, type MqttErrorCode, type Outcome, printable } from '../../errors.js'
import { speaksHttp, speaksTls } from '../../wire/framer.js'
import type { ServerPacket } from '../../wire/packets.js'
import { reasonName } from '../../wire/reason-codes.js'
import type { AckQueue, Action, PersistPort } from './actions.js'

/** What does not fit, and whose limit it is. */
export function tooLarge(size: number, limit: number): MqttError {
  return new MqttError(
    'ERR_PACKET_TOO_LARGE',
    `packet too large: ${size} bytes, the server takes ${limit}`,
  )
}

// What to look at, by 0x84 and on.
const advice = ['protocolVersion auto', 'clientId', 'username, password', 'username, password']

/** The standard's name of a reason code (section 2.4); 0x00 has several, by `packetType`. */
export function nameOf(reasonCode: number, packetType?: number): string {
  return reasonName(reasonCode, packetType) ?? 'unknown'
}

export { speaksHttp, speaksTls }

/** What the reason code of a packet says went wrong. */
export function refusal(
  code: MqttErrorCode,
  reasonCode: number,
  reasonString?: string,
  packetType?: number,
  outcome: Outcome = 'refused',
): MqttError {
  const name = nameOf(reasonCode, packetType)
  const hint = code === 'ERR_CONNECT_REFUSED' && advice[reasonCode - 0x84]
  const details = { fault: 'remote', outcome, reasonCode, reasonName: name, reasonString } as const
  return new MqttError(
    code,
    describe(
      code,
      hint ? `${name} (${hint}?)` : reasonCode === 0x8e ? 'another client has this clientId' : name,
    ),
    details,
  )
}

/** What ends a connection that the server closed before it answered CONNECT. */
export const closedEarly = 'closed before CONNACK'

/** What ends a connection whose server used an alias that it did not define there. */
export const unknownAlias = 'unknown topic alias'

/** The peer or the network broke off what was under way: whatever was sent may have arrived. */
export function broken(code: MqttErrorCode, message?: string, cause?: unknown): MqttError {
  return new MqttError(code, message, { fault: 'remote', outcome: 'unknown', cause })
}

/** What the end of a connection says about requests without an answer: they may be its cause, the only one is, or nothing. */
export type Blame = 'suspected' | 'blamed' | undefined

/** True when the peer ended the connection, with DISCONNECT or without a word; false when we did, or gave it up. */
export function isEndedByPeer({ code, fault }: MqttError): boolean {
  return (
    fault === 'remote' &&
    (code === 'ERR_CONNECTION_LOST' ||
      code === 'ERR_SERVER_DISCONNECT' ||
      code === 'ERR_SESSION_TAKEN_OVER')
  )
}

/** The peer ends connections at a request for this filter: that is its answer. */
export function refusedByEnding(code: MqttErrorCode, filter: string, cause: MqttError): MqttError {
  const { reasonCode: given = 0, reasonString } = cause
  const reasonCode = given < 0x80 ? 0x80 : given
  const text = `the server ends the connection at ${printable(filter)}: does its access rule or its limit forbid it?`
  return new MqttError(code, describe(code, text), {
    fault: 'remote',
    outcome: 'refused',
    reasonCode,
    reasonName: nameOf(reasonCode),
    reasonString,
    cause,
  })
}

/** The 5.0 reason code that says what a 3.1.1 CONNACK return code says (3.1.1, table 3.1). */
export function version5Code(returnCode: number): number {
  return [0, 0x84, 0x85, 0x88, 0x86, 0x87][returnCode] ?? 0x80
}

/** A packet that has no place here ends the connection. */
export function failUnexpected(
  session: { fail(reasonCode: number, message: string, code: MqttErrorCode): void },
  { type }: ServerPacket,
): void {
  session.fail(0x82, `${type.toUpperCase()} is not expected here`, 'ERR_UNEXPECTED_PACKET')
}

/** A window answers this when the peer broke the protocol; `fail` was called. */
export const FAULT = -2

/** The session, as its windows see it. */
export interface WindowHost {
  readonly acks: AckQueue
  readonly actions: Action[]
  readonly persistence: PersistPort
  /** The peer broke the protocol: ends the connection with this reason code, whose name is the message where none is given. */
  fail(reasonCode: number, message?: string): void
}

/** Connections in a row that a message ends before it is read past. */
export const mostFaultyEnds = 3
/** Messages that are known, at most. */
const mostFaulty = 64

/**
 * Messages of the server whose contents break a rule: how many connections in a row ended at each of them.
 *
 * A retained one comes again on each connection and ends that too. One that ended three in a row is read past from then on. Bounded in number.
 */
export class FaultyMessages {
  /** A Will Delay Interval came in a PUBLISH: that is reported once. */
  willDelay = false
  readonly #ends = new SparseMap<string, number>()
  /** This connection ends at one. */
  #ended = false

  /** True for a message that is read past from now on. */
  isPassed(key: string): boolean {
    return (this.#ends.get(key) ?? 0) >= mostFaultyEnds
  }

  /** This connection ends at the message. */
  note(key: string): void {
    if (this.#ended) return
    this.#ended = true
    const ends = (this.#ends.get(key) ?? 0) + 1
    this.#ends.delete(key)
    this.#ends.set(key, ends)
    for (const oldest of this.#ends.keys())
      if (this.#ends.size > mostFaulty) this.#ends.delete(oldest)
  }

  /** A connection that was up is over. Where something else ended it, no message ended several in a row. */
  handleLost(): void {
    if (!this.#ended)
      for (const key of this.#ends.keys()) if (!this.isPassed(key)) this.#ends.delete(key)
    this.#ended = false
  }
}
