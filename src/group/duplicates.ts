/**
 * Tells messages that came by another member before.
 */
import type { Time } from '../members/time.js'
import type { CheckedDeduplication } from './options.js'
import { SeenKeys } from './seen-keys.js'
import type { GroupMessage } from './types.js'

/** What all that reads in a group has in common. */
export interface GroupCommon {
  /** Duplicates that all of it left out. */
  readonly total: { duplicates: number }
  readonly time: () => Time
  /** Tells when a member was lost or has ended. */
  readonly standing: { readonly change: Promise<void> }
}

/** Tells messages that were here before; they are acknowledged. */
export class Duplicates {
  count = 0
  readonly #seen: SeenKeys | undefined
  readonly #key: CheckedDeduplication['key'] | undefined
  readonly #total: { duplicates: number }

  constructor(given: CheckedDeduplication | undefined, group: GroupCommon) {
    this.#seen = given && new SeenKeys(given.window, given.limit, () => group.time().now())
    this.#key = given?.key
    this.#total = group.total
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
