/**
 * A first-in first-out queue in a ring buffer: nothing is moved or allocated while its length is
 * stable.
 *
 * It has no bound; its owner must limit it. When empty, it keeps only a few slots.
 */

/** Initial number of slots, and the most that an empty queue keeps. */
const leastSlots = 16
const mostIdleSlots = 1024

/** Shared by all empty queues; never written to. */
const noSlots: undefined[] = []

/** FIFO of `T`. */
export class Ring<T> {
  #slots: (T | undefined)[] = noSlots
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(value: T): void {
    if (this.#length === this.#slots.length) this.#grow()
    const slots = this.#slots
    slots[(this.#head + this.#length) & (slots.length - 1)] = value
    this.#length += 1
  }

  peek(): T | undefined {
    return this.#slots[this.#head]
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const slots = this.#slots
    const head = this.#head
    const value = slots[head]
    slots[head] = undefined
    this.#head = (head + 1) & (slots.length - 1)
    this.#length -= 1
    if (this.#length === 0 && slots.length > mostIdleSlots) this.#reset()
    return value
  }

  /** The element at an index, counted from the oldest; undefined beyond the youngest. */
  at(index: number): T | undefined {
    return index < this.#length
      ? this.#slots[(this.#head + index) & (this.#slots.length - 1)]
      : undefined
  }

  /**
   * Removes the oldest matching element and keeps the order of the rest; linear in the number
   * before it.
   */
  take(fits: (value: T) => boolean): T | undefined {
    const slots = this.#slots
    const head = this.#head
    const mask = slots.length - 1
    for (let index = 0; index < this.#length; index++) {
      const value = this.at(index) as T
      if (!fits(value)) continue
      for (let place = index; place > 0; place--)
        slots[(head + place) & mask] = slots[(head + place - 1) & mask]
      this.shift()
      return value
    }
    return undefined
  }

  /** Visits the youngest `count` elements. */
  youngest(count: number, visit: (value: T) => void): void {
    for (let index = Math.max(0, this.#length - count); index < this.#length; index++)
      visit(this.at(index) as T)
  }

  /** The oldest matching element; linear. */
  find(fits: (value: T) => boolean): T | undefined {
    for (let index = 0; index < this.#length; index++) {
      const value = this.at(index) as T
      if (fits(value)) return value
    }
    return undefined
  }

  /** Removes and returns everything in order. */
  drain(): T[] {
    const all = Array.from({ length: this.#length }, (_, index) => this.at(index) as T)
    this.#reset()
    return all
  }

  // Doubles the slots; their number is always a power of 2.
  #grow(): void {
    const all = this.drain()
    this.#length = all.length
    this.#slots = [...all, ...new Array<undefined>(all.length || leastSlots)]
  }

  #reset(): void {
    this.#slots = noSlots
    this.#head = 0
    this.#length = 0
  }
}
