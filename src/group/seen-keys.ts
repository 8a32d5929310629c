/**
 * Keys of messages that were here a while ago. Bounded in time and number.
 */

/** Keys, each for a while. */
export class SeenKeys {
  /** Key to the millisecond in which it came, the oldest first. */
  readonly #keys = new Map<unknown, number>()
  readonly #window: number
  readonly #limit: number
  readonly #now: () => number

  constructor(window: number, limit: number, now: () => number) {
    this.#window = window
    this.#limit = limit
    this.#now = now
  }

  get size(): number {
    return this.#keys.size
  }

  /** True when the key was here within the window; else it is from now on. */
  has(key: unknown): boolean {
    const now = this.#now()
    for (const [oldest, at] of this.#keys) {
      if (now - at < this.#window) break
      this.#keys.delete(oldest)
    }
    if (this.#keys.has(key)) return true
    this.#keys.set(key, now)
    if (this.#keys.size > this.#limit) this.#keys.delete(this.#keys.keys().next().value)
    return false
  }

  /** It was not handled: it may come again. */
  forget(key: unknown): void {
    this.#keys.delete(key)
  }
}
