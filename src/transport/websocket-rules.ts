/**
 * What the WebSocket transports of browser and Node have in common: limits, sub-protocol, what a close means.
 *
 * MQTT takes a WebSocket as a byte stream: packets may span messages and share them [MQTT-6.0.0-2].
 * No platform API at all, so that both sides can import it.
 */

import { MqttError, printable } from '../errors.js'
import type { Target } from './transport.js'

/** Name of the first setting that the platform's class cannot honour, or undefined. */
export function unsupportedSetting(target: Target): string | undefined {
  return (['tls', 'socket', 'headers'] as const).find((name) =>
    Object.values(target[name]).some((value) => value !== undefined),
  )
}

/** Most bytes of one outgoing message; a larger write leaves as several. */
export const messageSize = 64 * 1024

/** Bytes waiting to be sent above which `write()` returns false. */
export const highWaterMark = 128 * 1024

/** Most bytes of one incoming message of a client: the largest packet, and room for others that share its message. */
export function messageLimit(maximumPacketSize = 1024 * 1024): number {
  return maximumPacketSize + 256 * 1024
}

/**
 * The same for messages of a server: a packet that is too large is read past, but the platform holds the whole message. `maximumPacketSize` defaults to
 * 16 MiB.
 */
export function serverMessageLimit(maximumPacketSize = 16 * 1024 * 1024): number {
  return Math.max(4 * maximumPacketSize, messageLimit(maximumPacketSize))
}

/** Most pieces that an incoming message may come in: frames, or chunks of the stream below. Each costs about 110 bytes beside its own. */
export function partLimit(messageLimit: number): number {
  return Math.min(65_536, Math.max(4096, Math.ceil(messageLimit / 256)))
}

/** The reason of a failed sub-protocol negotiation, or undefined when the server picked one that was offered [MQTT-6.0.0-3]. */
export function protocolError(picked: string, offered: readonly string[]): Error | undefined {
  return offered.includes(picked) ? undefined : new Error(`no sub-protocol of ${offered}: path?`)
}

/** What a close means: undefined for an orderly one (1000, or none given), else an error that has the `code` and the `reason` as received. */
export function closeCause(code: number, reason: string, hint = ''): Error | undefined {
  if (code === 1000 || code === 1005) return undefined
  return Object.assign(
    new Error(`WebSocket closed with ${code}${reason && ` ${printable(reason)}`}${hint}`),
    { code, reason },
  )
}

/** A text message came: MQTT travels in binary ones only, and the connection has to end [MQTT-6.0.0-1]. */
export function textError(): Error {
  return new Error('A text message came, not a binary one')
}

/** An incoming message is larger than the limit; of how many bytes, where that is known. */
export function sizeError(limit: number, length?: number): MqttError {
  const size = length === undefined ? '' : ` of ${length} bytes`
  const text = `a WebSocket message${size} is over the limit of ${limit} bytes: raise maximumPacketSize, or use mqtt:`
  return new MqttError('ERR_PACKET_TOO_LARGE', text, { fault: 'remote', outcome: 'unknown' })
}

/** More came before anybody read than can be kept. */
export function earlyError(): Error {
  return new Error('Too much came before it was read')
}
