/**
 * Acknowledgements in numbers: packet type, reason code and packet identifier packed into one integer, `(type << 24) | (reasonCode << 16) | id`, so
 * that many wait and leave at little cost.
 */
import { PUBREL } from './constants.js'
import type { ProtocolVersion } from './packets.js'
import type { Writer } from './writer.js'

export const ackType = (ack: number): number => ack >>> 24
export const ackReason = (ack: number): number => (ack >>> 16) & 0xff
export const ackId = (ack: number): number => ack & 0xffff

/** Writes an acknowledgement in its shortest form; on 3.1.1 without a reason code. Nothing is checked. */
export function writePackedAck(writer: Writer, ack: number, version: ProtocolVersion): void {
  const type = ackType(ack)
  const reasonCode = version === 5 ? ackReason(ack) : 0
  writer.u16((type << 12) | (type === PUBREL ? 0x200 : 0) | (reasonCode > 0 ? 3 : 2))
  writer.u16(ackId(ack))
  if (reasonCode > 0) writer.u8(reasonCode)
}
