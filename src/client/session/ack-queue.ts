/**
 * Acknowledgement packets that wait to be written: a queue of integers, drained once per read of the transport.
 *
 * Each entry packs packet type, reason code and packet identifier. Its length is bounded by what the peer sent in one read, because the driver
 * drains it after each.
 */

/** Entries for which an empty queue keeps its array. */
const mostIdleEntries = 4096

/** Queue of packed acknowledgements. Its array is kept: a turn of acknowledgements allocates nothing. */
export class AckQueue {
  readonly #entries: number[] = []
  #head = 0
  #tail = 0

  get length(): number {
    return this.#tail - this.#head
  }

  push(packetType: number, id: number, reasonCode: number): void {
    this.#entries[this.#tail++] = (packetType << 24) | (reasonCode << 16) | id
  }

  /** The oldest entry, packed: see {@link ackType}, {@link ackReason}, {@link ackId}. Only while `length` is above 0. */
  shift(): number {
    const entry = this.#entries[this.#head++] as number
    if (this.#head === this.#tail) this.clear()
    return entry
  }

  clear(): void {
    if (this.#entries.length > mostIdleEntries) this.#entries.length = 0
    this.#head = 0
    this.#tail = 0
  }
}

export const ackType = (entry: number): number => entry >>> 24
export const ackReason = (entry: number): number => (entry >>> 16) & 0xff
export const ackId = (entry: number): number => entry & 0xffff
