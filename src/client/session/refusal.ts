/**
 * Errors caused by the peer: reason codes of packets, and broken connections.
 *
 * Pure. The peer's text never goes into an error message, only into `reasonString`.
 */

import { SparseMap } from '../../common/sparse.js'
import { describe, MqttError, type MqttErrorCode, type Outcome, printable } from '../../errors.js'
import { speaksHttp, speaksTls } from '../../wire/framer.js'
import type { ServerPacket } from '../../wire/packets.js'
import { reasonName } from '../../wire/reason-codes.js'
import type { AckQueue, Action, PersistPort } from './actions.js'

/** The error of a packet that exceeds the server's limit. */
export function tooLarge(size: number, limit: number): MqttError {
  return new MqttError(
    'ERR_PACKET_TOO_LARGE',
    `packet too large: ${size} bytes, the server takes ${limit}`,
  )
}

// What to check, for the reason codes from 0x84.
const advice = ['protocolVersion auto', 'clientId', 'username, password', 'username, password']

/**
 * The standard's name of a reason code (section 2.4). `packetType` selects among the names of 0x00.
 */
export function nameOf(reasonCode: number, packetType?: number): string {
  return reasonName(reasonCode, packetType) ?? 'unknown'
}

export { speaksHttp, speaksTls }

/** The error for a reason code in a packet. */
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

/** Error text: the server closed the connection before CONNACK. */
export const closedEarly = 'closed before CONNACK'

/** Error text: the server used an alias that it had not defined on this connection. */
export const unknownAlias = 'unknown topic alias'

/** The peer or the network ended the connection: whatever was sent may have arrived. */
export function broken(code: MqttErrorCode, message?: string, cause?: unknown): MqttError {
  return new MqttError(code, message, { fault: 'remote', outcome: 'unknown', cause })
}

/**
 * What the end of a connection says about unanswered requests: one of them may have caused it, the
 * only one did, or nothing.
 */
export type Blame = 'suspected' | 'blamed' | undefined

/**
 * True when the peer ended the connection, with or without DISCONNECT; false when this client did.
 */
export function isEndedByPeer({ code, fault }: MqttError): boolean {
  return (
    fault === 'remote' &&
    (code === 'ERR_CONNECTION_LOST' ||
      code === 'ERR_SERVER_DISCONNECT' ||
      code === 'ERR_SESSION_TAKEN_OVER')
  )
}

/** The error for a filter on which the server ends connections instead of answering. */
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

/** The 5.0 reason code for a 3.1.1 CONNACK return code (3.1.1, table 3.1). */
export function version5Code(returnCode: number): number {
  return [0, 0x84, 0x85, 0x88, 0x86, 0x87][returnCode] ?? 0x80
}

/** Ends the connection because of a packet that is not allowed here. */
export function failUnexpected(
  session: { fail(reasonCode: number, message: string, code: MqttErrorCode): void },
  { type }: ServerPacket,
): void {
  session.fail(0x82, `${type.toUpperCase()} is not expected here`, 'ERR_UNEXPECTED_PACKET')
}

/** Result of a window after a protocol error; `fail` was called. */
export const FAULT = -2

/** The session as its windows see it. */
export interface WindowHost {
  readonly acks: AckQueue
  readonly actions: Action[]
  readonly persistence: PersistPort
  /**
   * Ends the connection because of a protocol error; without a message, the name of the reason code
   * is used.
   */
  fail(reasonCode: number, message?: string): void
}

/** Consecutive connections that one message may end before it is skipped. */
export const mostFaultyEnds = 3
/** Most messages remembered. */
const mostFaulty = 64

/**
 * Incoming messages whose content breaks a rule, with the number of consecutive connections that
 * each one ended.
 *
 * A retained message comes again on every connection and would end each of them. After three in a
 * row it is skipped. Their number is bounded.
 */
export class FaultyMessages {
  /** A PUBLISH contained a Will Delay Interval; reported once. */
  willDelay = false
  readonly #ends = new SparseMap<string, number>()
  /** The current connection ends because of such a message. */
  #ended = false

  /** True for a message that is skipped. */
  isPassed(key: string): boolean {
    return (this.#ends.get(key) ?? 0) >= mostFaultyEnds
  }

  /** The current connection ends because of this message. */
  note(key: string): void {
    if (this.#ended) return
    this.#ended = true
    const ends = (this.#ends.get(key) ?? 0) + 1
    this.#ends.delete(key)
    this.#ends.set(key, ends)
    for (const oldest of this.#ends.keys())
      if (this.#ends.size > mostFaulty) this.#ends.delete(oldest)
  }

  /**
   * A connection that was up is over. If none of these messages ended it, the counts restart,
   * except those of messages that are skipped.
   */
  handleLost(): void {
    if (!this.#ended)
      for (const key of this.#ends.keys()) if (!this.isPassed(key)) this.#ends.delete(key)
    this.#ended = false
  }
}
