/**
 * Acknowledgement packets that wait to be written: a queue of integers, drained once per read of the transport.
 *
 * Its length is bounded by what the peer sent in one read, because the driver drains it after each.
 */

/** Queue of acknowledgements, packed as `writePackedAck` takes them. Its array is kept: a turn of acknowledgements allocates nothing. */
export class AckQueue {
  /** Those from `head` to `tail` wait: taking the oldest raises `head`. */
  readonly entries: number[] = []
  head = 0
  tail = 0

  get length(): number {
    return this.tail - this.head
  }

  push(packetType: number, id: number, reasonCode: number): void {
    if (this.head === this.tail) this.head = this.tail = 0
    this.entries[this.tail++] = (packetType << 24) | (reasonCode << 16) | id
  }

  /** Forgets all of them, and the array. */
  clear(): void {
    this.entries.length = this.head = this.tail = 0
  }
}
