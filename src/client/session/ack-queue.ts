/**
 * Acknowledgement packets that wait to be written: a ring of integers, drained once per read of the transport.
 *
 * Each entry packs packet type, reason code and packet identifier. The ring grows by doubling; its length is bounded by what the peer sent in
 * one read, because the driver drains it after each.
 */

const initialCapacity = 16

/** Ring of packed acknowledgements. */
export class AckQueue {
  #entries = new Uint32Array(0)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(packetType: number, id: number, reasonCode: number): void {
    if (this.#length === this.#entries.length) this.#grow()
    this.#entries[(this.#head + this.#length) & (this.#entries.length - 1)] = (packetType << 24) | (reasonCode << 16) | id
    this.#length += 1
  }

  /** The oldest entry, packed: see {@link ackType}, {@link ackReason}, {@link ackId}. Only while `length` is above 0. */
  shift(): number {
    const entry = this.#entries[this.#head] as number
    this.#head = (this.#head + 1) & (this.#entries.length - 1)
    this.#length -= 1
    return entry
  }

  clear(): void {
    this.#head = 0
    this.#length = 0
  }

  #grow(): void {
    const old = this.#entries
    const entries = new Uint32Array(old.length === 0 ? initialCapacity : old.length * 2)
    for (let index = 0; index < this.#length; index++) entries[index] = old[(this.#head + index) & (old.length - 1)] as number
    this.#entries = entries
    this.#head = 0
  }
}

export const ackType = (entry: number): number => entry >>> 24
export const ackReason = (entry: number): number => (entry >>> 16) & 0xff
export const ackId = (entry: number): number => entry & 0xffff
