/**
 * Common rules of the WebSocket transports of browsers and Node: limits, sub-protocol, meaning of a
 * close.
 *
 * MQTT uses a WebSocket as a byte stream: packets may span or share messages [MQTT-6.0.0-2]. No
 * platform API, so that both sides can import it.
 */

import { MqttError, printable } from '../errors.js'
import type { Target } from './transport.js'

/** Name of the first setting that the platform's WebSocket class does not support, or undefined. */
export function unsupportedSetting(target: Target): string | undefined {
  return (['tls', 'socket', 'headers'] as const).find((name) =>
    Object.values(target[name]).some((value) => value !== undefined),
  )
}

/** Most bytes of one outgoing message; larger writes are split. */
export const messageSize = 64 * 1024

/** With more bytes than this waiting to be sent, `write()` returns false. */
export const highWaterMark = 128 * 1024

/**
 * Most bytes of one incoming message from a client: the largest packet, plus space for others in
 * the same message.
 */
export function messageLimit(maximumPacketSize = 1024 * 1024): number {
  return maximumPacketSize + 256 * 1024
}

/**
 * The same for messages from a server. Larger, because packets that are too large are skipped but
 * the platform holds the whole message. `maximumPacketSize` defaults to 16 MiB.
 */
export function serverMessageLimit(maximumPacketSize = 16 * 1024 * 1024): number {
  return Math.max(4 * maximumPacketSize, messageLimit(maximumPacketSize))
}

/**
 * Most parts of an incoming message: frames, or chunks of the underlying stream. Each costs about
 * 110 additional bytes.
 */
export function partLimit(messageLimit: number): number {
  return Math.min(65_536, Math.max(4096, Math.ceil(messageLimit / 256)))
}

/**
 * The error of a failed sub-protocol negotiation, or undefined when the server selected an offered
 * one [MQTT-6.0.0-3].
 */
export function protocolError(picked: string, offered: readonly string[]): Error | undefined {
  return offered.includes(picked) ? undefined : new Error(`no sub-protocol of ${offered}: path?`)
}

/**
 * The error for a close: undefined for an orderly one (1000, or no code), otherwise with `code` and
 * `reason` as received.
 */
export function closeCause(code: number, reason: string, hint = ''): Error | undefined {
  if (code === 1000 || code === 1005) return undefined
  return Object.assign(
    new Error(`WebSocket closed with ${code}${reason && ` ${printable(reason)}`}${hint}`),
    { code, reason },
  )
}

/**
 * The error for a text message: MQTT requires binary messages, and the connection must end
 * [MQTT-6.0.0-1].
 */
export function textError(): Error {
  return new Error('A text message came, not a binary one')
}

/** The error for an incoming message above the limit, with its length if known. */
export function sizeError(limit: number, length?: number): MqttError {
  const size = length === undefined ? '' : ` of ${length} bytes`
  const text = `a WebSocket message${size} is over the limit of ${limit} bytes: raise maximumPacketSize, or use mqtt:`
  return new MqttError('ERR_PACKET_TOO_LARGE', text, { fault: 'remote', outcome: 'unknown' })
}

/** The error when too much data came in before it was read. */
export function earlyError(): Error {
  return new Error('Too much came before it was read')
}
