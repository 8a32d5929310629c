/** Repeatable randomness: one seed (up to 53 bits) decides every number that comes out. */

/** A stream of numbers that its seed decides. */
export class Random {
  #a: number
  #b: number
  #c: number
  #count = 1

  constructor(seed: number) {
    this.#a = seed >>> 0
    this.#b = Math.floor(seed / 4_294_967_296) >>> 0
    this.#c = 0x9e3779b9
    for (let round = 0; round < 12; round++) this.next()
  }

  /** A whole number in [0, 2^32). */
  next(): number {
    const sum = (this.#a + this.#b + this.#count++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  float(): number {
    return this.next() / 4_294_967_296
  }

  /** A whole number in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.float() * limit)
  }

  /** A whole number in [low, high]. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1)
  }

  chance(probability: number): boolean {
    return this.float() < probability
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}
