/**
 * A first-in first-out queue in an array that doubles: no shifting, no garbage per element.
 *
 * It has no bound of its own; whoever pushes keeps one.
 */

const initialCapacity = 8

/** FIFO of `T`. */
export class Ring<T> {
  #slots: (T | undefined)[] = []
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(value: T): void {
    if (this.#length === this.#slots.length) this.#grow()
    this.#slots[(this.#head + this.#length) & (this.#slots.length - 1)] = value
    this.#length += 1
  }

  peek(): T | undefined {
    return this.#length === 0 ? undefined : this.#slots[this.#head]
  }

  /** The newest element. */
  get last(): T | undefined {
    return this.#length === 0 ? undefined : this.#at(this.#length - 1)
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const value = this.#slots[this.#head]
    this.#slots[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#slots.length - 1)
    this.#length -= 1
    if (this.#length === 0 && this.#slots.length > 1024) this.#slots = []
    return value
  }

  /** Takes out the oldest element that fits, keeping the order of the rest; linear. */
  take(fits: (value: T) => boolean): T | undefined {
    for (let index = 0; index < this.#length; index++) {
      const value = this.#at(index)
      if (!fits(value)) continue
      for (let next = index + 1; next < this.#length; next++) this.#slots[this.#index(next - 1)] = this.#at(next)
      this.#slots[this.#index(this.#length - 1)] = undefined
      this.#length -= 1
      return value
    }
    return undefined
  }

  /** The oldest element that fits; linear. */
  find(fits: (value: T) => boolean): T | undefined {
    for (let index = 0; index < this.#length; index++) if (fits(this.#at(index))) return this.#at(index)
    return undefined
  }

  /** Everything in order; the queue is empty afterwards. */
  drain(): T[] {
    const all: T[] = []
    while (this.#length > 0) all.push(this.shift() as T)
    return all
  }

  #index(position: number): number {
    return (this.#head + position) & (this.#slots.length - 1)
  }

  #at(position: number): T {
    return this.#slots[this.#index(position)] as T
  }

  #grow(): void {
    const slots: (T | undefined)[] = []
    for (let index = 0; index < this.#length; index++) slots.push(this.#at(index))
    const capacity = Math.max(initialCapacity, this.#length * 2)
    while (slots.length < capacity) slots.push(undefined)
    this.#slots = slots
    this.#head = 0
  }
}
