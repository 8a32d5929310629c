/**
 * The peer's doing, as errors: reason codes that a packet carried, and connections that broke.
 *
 * Pure. It must never put text of the peer into a message: that stays in `reasonString`.
 */
import { describe, MqttError, type MqttErrorCode, type Outcome } from '../../errors.js'
import type { ServerPacket } from '../../wire/packets.js'
import { reasonName } from '../../wire/reason-codes.js'

/** What does not fit, and whose limit it is. */
export function tooLarge(size: number, limit: number): MqttError {
  return new MqttError('ERR_PACKET_TOO_LARGE', `packet too large: ${size} bytes, the server takes ${limit}`)
}

// What to look at, by 0x84 and on.
const advice = ['protocolVersion auto', 'clientId', 'username, password', 'username, password']

/** The standard's name of a reason code (section 2.4); `packetType` tells apart those of 0x00. */
export function nameOf(reasonCode: number, packetType?: number): string {
  return reasonName(reasonCode, packetType) ?? 'unknown'
}

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
  return new MqttError(code, describe(code, hint ? `${name} (${hint}?)` : reasonCode === 0x8e ? 'another client has this clientId' : name), details)
}

/** What ends a connection whose server used an alias that it did not define there. */
export const unknownAlias = 'unknown topic alias'

/** The peer or the network broke off what was under way: whatever was sent may have arrived. */
export function broken(code: MqttErrorCode, message?: string, cause?: unknown): MqttError {
  return new MqttError(code, message, { fault: 'remote', outcome: 'unknown', cause })
}

/** The 5.0 reason code that says what a 3.1.1 CONNACK return code says (3.1.1, table 3.1). */
export function version5Code(returnCode: number): number {
  return [0, 0x84, 0x85, 0x88, 0x86, 0x87][returnCode] ?? 0x80
}

/** A packet that has no place here ends the connection. */
export function failUnexpected(session: { fail(reasonCode: number, message: string, code: MqttErrorCode): void }, { type }: ServerPacket): void {
  session.fail(0x82, `${type.toUpperCase()} is not expected here`, 'ERR_UNEXPECTED_PACKET')
}
