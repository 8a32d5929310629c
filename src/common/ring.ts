/**
 * A first-in first-out queue in an array that is used round and round: nothing is moved or allocated while its length stays.
 *
 * It has no bound of its own; its owner keeps one. Empty, it holds no more than a few slots.
 */

/** Slots of a queue that is used for the first time, and those that an empty one may keep. */
const leastSlots = 16
const mostIdleSlots = 1024

/** Shared by all that are empty: nothing is ever written to it. */
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

  /** The element that stands at a place, counted from the oldest; undefined behind the youngest. */
  at(index: number): T | undefined {
    return index < this.#length
      ? this.#slots[(this.#head + index) & (this.#slots.length - 1)]
      : undefined
  }

  /** Takes out the oldest element that fits, keeping the order of the rest; linear in those before it. */
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

  /** Shows so many of the youngest elements. */
  youngest(count: number, visit: (value: T) => void): void {
    for (let index = Math.max(0, this.#length - count); index < this.#length; index++)
      visit(this.at(index) as T)
  }

  /** The oldest element that fits; linear. */
  find(fits: (value: T) => boolean): T | undefined {
    for (let index = 0; index < this.#length; index++) {
      const value = this.at(index) as T
      if (fits(value)) return value
    }
    return undefined
  }

  /** Everything in order; the queue is empty afterwards. */
  drain(): T[] {
    const all = Array.from({ length: this.#length }, (_, index) => this.at(index) as T)
    this.#reset()
    return all
  }

  // Twice as many: their number is a power of 2.
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
