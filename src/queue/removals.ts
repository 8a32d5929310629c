/**
 * Takes entries that are done with out of the store, and insists where it fails: until it works, or the queue is closed.
 *
 * It must never delete an entry while what was to be written with its deletion is not safe.
 * Publishing looks at `size`: records that could not be deleted would be published again after a restart, so that they have a bound.
 */
import { within } from '../common/abort.js'
import { MqttError } from '../errors.js'
import { isClosed } from '../store/base/backed-store.js'
import type { StoreOperation } from '../store/base/store.js'
import type { Changes } from './changes.js'
import type { EntryLog, StoredEntry } from './entry-log.js'

/** Milliseconds after which a store that failed is asked again. */
const storePatience = 1000

/** What depends on removals. */
export interface RemovalOwner {
  /** The store failed: it is asked again. */
  handleError(error: unknown): void
  /** An entry is deleted. */
  handleGone(stored: StoredEntry): void
}

/** Deletions under way. */
export class Removals {
  /** Numbers of the entries. */
  readonly #open = new Set<number>()
  readonly #log: EntryLog
  readonly #changes: Changes
  readonly #stop: AbortSignal
  readonly #owner: RemovalOwner
  #cleaning: Promise<void> | undefined

  constructor(log: EntryLog, changes: Changes, stop: AbortSignal, owner: RemovalOwner) {
    this.#log = log
    this.#changes = changes
    this.#stop = stop
    this.#owner = owner
  }

  /** How many there are. */
  get size(): number {
    return this.#open.size
  }

  /** True while this entry is being deleted. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /** Deletes an entry, in one batch with `also` and what `more` gives. False when it stays: the queue was closed before that could be had. */
  async remove(
    stored: StoredEntry,
    also: readonly StoreOperation[],
    more?: () => Promise<readonly StoreOperation[]>,
  ): Promise<boolean> {
    const { id } = stored.entry
    this.#open.add(id)
    this.#changes.notify()
    // Without `more` it is asked for in the same turn: who closes the queue waits for what was asked for.
    const operations = more === undefined ? [] : await this.#insist(more)
    if (operations !== undefined)
      await this.#insist(() => this.#delete(stored, [...also, ...operations]))
    this.#open.delete(id)
    this.#changes.notify()
    return operations !== undefined
  }

  /** Deletes what additions that failed may have left. */
  clean(): Promise<void> {
    this.#cleaning ??= this.#clean()
    return this.#cleaning
  }

  /** Fulfils when nothing is being cleaned up. */
  get cleaned(): Promise<void> {
    return this.#cleaning ?? Promise.resolve()
  }

  /** Waits after a failure. */
  async pause(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, storePatience)
    })
    await within(over, this.#stop).catch(() => undefined)
    // A queue that is closed must not keep the process.
    clearTimeout(timer)
  }

  async #clean(): Promise<void> {
    await this.#insist(() => this.#log.clean())
    this.#cleaning = undefined
  }

  async #delete(stored: StoredEntry, also: readonly StoreOperation[]): Promise<void> {
    await this.#log.remove([stored], also)
    this.#owner.handleGone(stored)
  }

  async #insist<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await write()
      } catch (error) {
        this.#owner.handleError(error)
        // The next owner of the store goes on.
        if (this.#stop.aborted || (MqttError.is(error) && isClosed(error))) return undefined
        await this.pause()
      }
    }
  }
}
