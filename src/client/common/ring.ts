/**
 * A first-in first-out queue in an array that is used round and round: nothing is moved or allocated while its length stays.
 *
 * It has no bound of its own; whoever pushes keeps one. Empty, it holds no more than a few slots.
 */

/** Slots of a queue that is used for the first time, and those that an empty one may keep. */
const leastSlots = 16
const mostIdleSlots = 1024

/** FIFO of `T`. */
export class Ring<T> {
  #slots: (T | undefined)[] = []
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(value: T): void {
    const slots = this.#slots
    if (this.#length === slots.length) return this.#grow(value)
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
    return index < this.#length ? this.#slots[(this.#head + index) & (this.#slots.length - 1)] : undefined
  }

  /** Takes out the oldest element that fits, keeping the order of the rest; linear. */
  take(fits: (value: T) => boolean): T | undefined {
    const first = this.peek()
    if (first !== undefined && fits(first)) return this.shift()
    const all = this.drain()
    const index = all.findIndex(fits)
    for (const [place, value] of all.entries()) if (place !== index) this.push(value)
    return index < 0 ? undefined : all[index]
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

  #grow(value: T): void {
    const all = this.drain()
    const slots = new Array<T | undefined>(Math.max(leastSlots, all.length * 2)).fill(undefined)
    for (const [index, old] of all.entries()) slots[index] = old
    slots[all.length] = value
    this.#slots = slots
    this.#length = all.length + 1
  }

  #reset(): void {
    this.#slots = []
    this.#head = 0
    this.#length = 0
  }
}
