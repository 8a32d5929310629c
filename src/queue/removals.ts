/**
 * Takes entries that are done with out of the store, and insists where it fails: until it works, or the queue is closed.
 *
 * Whoever publishes looks at `size`: records that could not be deleted would be published again after a restart, so that they have a bound.
 */
import { within } from '../client/common/abort.js'
import type { StoreOperation } from '../store/store.js'
import type { Changes } from './changes.js'
import type { EntryLog, StoredEntry } from './entry-log.js'

/** Milliseconds after which a store that failed is asked again. */
const storePatience = 1000

/** Deletions under way. */
export class Removals {
  /** How many there are. */
  size = 0
  readonly #log: EntryLog
  readonly #changes: Changes
  readonly #stop: AbortSignal
  readonly #handleError: (error: unknown) => void

  constructor(log: EntryLog, changes: Changes, stop: AbortSignal, handleError: (error: unknown) => void) {
    this.#log = log
    this.#changes = changes
    this.#stop = stop
    this.#handleError = handleError
  }

  /** Deletes an entry, in one batch with what `also` gives. */
  async remove(stored: StoredEntry, also: () => readonly StoreOperation[] | Promise<readonly StoreOperation[]> = () => []): Promise<void> {
    this.size += 1
    this.#changes.tell()
    const operations = await this.#insist(also)
    await this.#insist(() => this.#log.remove([stored], operations ?? []))
    this.size -= 1
    this.#changes.tell()
  }

  /** Waits after a failure. */
  async pause(): Promise<void> {
    await within(new Promise((resolve) => setTimeout(resolve, storePatience)), this.#stop).catch(() => undefined)
  }

  async #insist<T>(write: () => T | Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await write()
      } catch (error) {
        this.#handleError(error)
        if (this.#stop.aborted) return undefined
        await this.pause()
      }
    }
  }
}
