/**
 * Acknowledgement packets that wait to be written: a queue of integers, drained once per read of the transport.
 *
 * Its length is bounded by what the peer sent in one read, because the driver drains it after each: by `writeAcks`, which knows the form of entries.
 */
import type { PackedAcks } from '../../wire/acks.js'

/** Queue of packed acknowledgements. Its array is kept: a turn of acknowledgements allocates nothing. */
export class AckQueue implements PackedAcks {
  readonly entries: number[] = []
  head = 0
  tail = 0

  get length(): number {
    return this.tail - this.head
  }

  push(packetType: number, id: number, reasonCode: number): void {
    this.entries[this.tail++] = (packetType << 24) | (reasonCode << 16) | id
  }

  clear(): void {
    this.entries.length = 0
    this.head = 0
    this.tail = 0
  }
}
