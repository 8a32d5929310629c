/**
 * What the server says of our publishes: PUBACK, PUBREC and PUBCOMP, and PUBREL for what it sends us, taken to the session and to the calls that wait.
 *
 * The usual ones, which hold nothing but an identifier and perhaps a reason code, are read where they lie. By the rules of `decodeServerPacket`:
 * what is not the usual, right or wrong, is left to that.
 */
import { PUBREL } from '../../wire/constants.js'
import type { Properties, ProtocolVersion } from '../../wire/packets.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { CLEARED, DONE, RELEASED } from '../session/send-window.js'
import type { ConnectionHost } from './ports.js'

/** Reads an acknowledgement in `bytes[body..end)` where it lies and takes it to its end; false for one that has to be decoded. */
export function takeAck(
  host: ConnectionHost,
  packetType: number,
  bytes: Uint8Array,
  body: number,
  end: number,
  version: ProtocolVersion,
): boolean {
  const size = end - body
  if (size !== 2 && (size !== 3 || version === 4)) return false
  const packetId = ((bytes[body] as number) << 8) | (bytes[body + 1] as number)
  const reasonCode = size === 2 ? 0 : (bytes[body + 2] as number)
  if (packetId === 0 || (reasonCode !== 0 && !isReasonCode(packetType, reasonCode, 'server')))
    return false
  const { session } = host
  if (session.state === 'connected' || session.expectConnected())
    handleAck(host, packetType, packetId, reasonCode, undefined)
  return true
}

/** An acknowledgement that was read. */
export function handleAck(
  host: ConnectionHost,
  packetType: number,
  packetId: number,
  reasonCode: number,
  properties: Properties | undefined,
): void {
  const { publishQueue, session } = host
  if (packetType === PUBREL) return session.receiveWindow.handlePubrel(packetId)
  const verdict = session.sendWindow.handleAck(packetType, packetId, reasonCode)
  if (verdict === DONE)
    publishQueue.unacknowledged.handleAcknowledged(packetType, packetId, reasonCode, properties)
  else if (verdict === RELEASED) publishQueue.unacknowledged.handleReleased(packetId, reasonCode)
  else if (verdict === CLEARED) publishQueue.flush()
}
