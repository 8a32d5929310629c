/**
 * A first-in first-out queue in an array: what was taken from its front is cut off now and then, many at a time.
 *
 * It has no bound of its own; whoever pushes keeps one.
 */

/** Fewer empty slots than this are not worth cutting off. */
const leastCut = 64

/** FIFO of `T`. */
export class Ring<T> {
  readonly #slots: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#slots.length - this.#head
  }

  push(value: T): void {
    this.#slots.push(value)
  }

  peek(): T | undefined {
    return this.#slots[this.#head]
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined
    const value = this.#slots[this.#head]
    this.#slots[this.#head++] = undefined
    if (this.#head >= leastCut && this.#head >= this.length) this.#cut()
    return value
  }

  /** Takes out the oldest element that fits, keeping the order of the rest; linear. */
  take(fits: (value: T) => boolean): T | undefined {
    const first = this.peek()
    if (first !== undefined && fits(first)) return this.shift()
    this.#cut()
    const index = this.#slots.findIndex((value) => fits(value as T))
    return index < 0 ? undefined : this.#slots.splice(index, 1)[0]
  }

  /** The oldest element that fits; linear. */
  find(fits: (value: T) => boolean): T | undefined {
    this.#cut()
    return this.#slots.find((value) => fits(value as T))
  }

  /** Everything in order; the queue is empty afterwards. */
  drain(): T[] {
    this.#cut()
    return this.#slots.splice(0) as T[]
  }

  #cut(): void {
    this.#slots.splice(0, this.#head)
    this.#head = 0
  }
}
