/**
 * Messages in flight, by packet identifier: one array, as long as the span of identifiers in use, so that finding one costs a read.
 *
 * Identifiers are given in turn, so that neighbours never meet in a slot; where two do, the array doubles, up to one slot per identifier.
 */
import type { QueuedPublish } from './queued-publish.js'

const least = 16
/** A table longer than this is not kept for nothing. */
const mostKept = 4096

/** What was sent and lacks its last acknowledgement. */
export class PublishTable {
  size = 0
  #slots: (QueuedPublish | undefined)[] = []

  get(packetId: number): QueuedPublish | undefined {
    const item = this.#slots[packetId & (this.#slots.length - 1)]
    return item?.packetId === packetId ? item : undefined
  }

  /** Puts an item under its packet identifier, which nothing else has. */
  add(item: QueuedPublish): void {
    while (
      this.#slots.length === 0 ||
      (this.get(item.packetId) === undefined && this.#isTaken(item.packetId))
    )
      this.#double()
    this.#slots[item.packetId & (this.#slots.length - 1)] = item
    this.size += 1
  }

  /** Takes out what was found under this identifier. */
  delete(packetId: number): void {
    this.#slots[packetId & (this.#slots.length - 1)] = undefined
    this.size -= 1
    if (this.size === 0 && this.#slots.length > mostKept) this.#slots = []
  }

  clear(): void {
    this.#slots = []
    this.size = 0
  }

  /** All, in the order in which they were sent. */
  all(): QueuedPublish[] {
    return this.#slots
      .filter((item) => item !== undefined)
      .sort((first, second) => first.order - second.order)
  }

  /** Those without PUBREC, in the order in which they were sent. */
  unreleased(): QueuedPublish[] {
    return this.all().filter((item) => item.released === 0)
  }

  /** Those with PUBREC, in the order of that. */
  released(): QueuedPublish[] {
    const items = this.all().filter((item) => item.released > 0)
    return items.sort((first, second) => first.released - second.released)
  }

  #isTaken(packetId: number): boolean {
    return this.#slots[packetId & (this.#slots.length - 1)] !== undefined
  }

  // No two of them meet in the longer one.
  #double(): void {
    const items = this.all()
    this.#slots = new Array<QueuedPublish | undefined>(
      Math.max(least, this.#slots.length * 2),
    ).fill(undefined)
    for (const item of items) this.#slots[item.packetId & (this.#slots.length - 1)] = item
  }
}
