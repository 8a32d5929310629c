/**
 * Acknowledgements in numbers: packet type, reason code and packet identifier packed into one integer, so that many wait and leave at little cost.
 *
 * A queue belongs to whoever fills it. What is written is taken out; nothing else is changed.
 */
import { PUBREL } from './constants.js'
import type { ProtocolVersion } from './packets.js'
import type { Writer } from './writer.js'

/** Entries for which an empty queue keeps its array. */
const mostIdleEntries = 4096

/** A queue of acknowledgements: `entries[head..tail)` wait, the oldest first. */
export interface PackedAcks {
  /** Each is `(type << 24) | (reasonCode << 16) | id`. */
  readonly entries: number[]
  head: number
  tail: number
}

export const ackType = (entry: number): number => entry >>> 24
export const ackReason = (entry: number): number => (entry >>> 16) & 0xff
export const ackId = (entry: number): number => entry & 0xffff

/**
 * Writes acknowledgements in their shortest form until none is left, or so many that answer the server, or the writer is beyond `end`, or the next is larger than `largest`.
 * Gives how many answer the server: all but PUBREL.
 */
export function writeAcks(writer: Writer, acks: PackedAcks, most: number, end: number, largest: number, version: ProtocolVersion): number {
  const { entries, tail } = acks
  let { head } = acks
  let count = 0
  for (; head < tail && count < most && writer.length <= end; head++) {
    const entry = entries[head] as number
    const type = ackType(entry)
    const reasonCode = version === 5 ? ackReason(entry) : 0
    const size = reasonCode > 0 ? 3 : 2
    if (size + 2 > largest) break
    writer.u16((type << 12) | (type === PUBREL ? 0x200 : 0) | size)
    writer.u16(ackId(entry))
    if (reasonCode > 0) writer.u8(reasonCode)
    if (type !== PUBREL) count += 1
  }
  acks.head = head
  if (head === tail) {
    acks.head = acks.tail = 0
    if (entries.length > mostIdleEntries) entries.length = 0
  }
  return count
}
