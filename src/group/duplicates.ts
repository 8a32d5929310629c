/**
 * Tells messages that came by another member before.
 */
import type { CheckedDeduplication } from './options.js'
import { SeenKeys } from './seen-keys.js'
import type { GroupMessage } from './types.js'

/** Tells messages that were here before; they are acknowledged. */
export class Duplicates {
  count = 0
  readonly #seen: SeenKeys | undefined
  readonly #key: CheckedDeduplication['key'] | undefined
  readonly #total: { duplicates: number }

  /** @param total where duplicates of all are counted */
  constructor(given: CheckedDeduplication | undefined, total: { duplicates: number }) {
    this.#seen = given && new SeenKeys(given.window, given.limit)
    this.#key = given?.key
    this.#total = total
  }

  /** The key of a message that is new, in an array; undefined where it was here before. */
  admit(message: GroupMessage): readonly [unknown] | undefined {
    const key = this.#key?.(message)
    if (key === undefined || this.#seen?.has(key) !== true) return [key]
    this.count += 1
    this.#total.duplicates += 1
    return undefined
  }

  /** It was not handled: it may come again. */
  forget(key: unknown): void {
    this.#seen?.forget(key)
  }
}
