/**
 * Deletes finished entries from the store, retrying until it succeeds or the queue is closed.
 *
 * An entry is never deleted before the changes that belong to its deletion are stored. Publishing
 * is limited by `size`, because entries that are not deleted would be published again after a
 * restart.
 */
import { within } from '../common/abort.js'
import { MqttError } from '../errors.js'
import { isClosed } from '../store/base/backed-store.js'
import type { StoreOperation } from '../store/base/store.js'
import type { Changes } from './changes.js'
import type { EntryLog, StoredEntry } from './entry-log.js'

/** Milliseconds until a failed store is tried again. */
const storePatience = 1000

/** Receives the results of deletions. */
export interface RemovalOwner {
  /** The store failed and is tried again. */
  handleError(error: unknown): void
  /** An entry was deleted. */
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

  /** Number of deletions under way. */
  get size(): number {
    return this.#open.size
  }

  /** True while this entry is being deleted. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /**
   * Deletes an entry in one batch with `also` and the result of `more`. False when it stays because
   * the queue was closed before.
   */
  async remove(
    stored: StoredEntry,
    also: readonly StoreOperation[],
    more?: () => Promise<readonly StoreOperation[]>,
  ): Promise<boolean> {
    const { id } = stored.entry
    this.#open.add(id)
    this.#changes.notify()
    // Without `more`, the deletion is requested in the same turn, so that closing the queue waits
    // for it.
    const operations = more === undefined ? [] : await this.#insist(more)
    if (operations !== undefined)
      await this.#insist(() => this.#delete(stored, [...also, ...operations]))
    this.#open.delete(id)
    this.#changes.notify()
    return operations !== undefined
  }

  /** Deletes what failed additions may have left. */
  clean(): Promise<void> {
    this.#cleaning ??= this.#clean()
    return this.#cleaning
  }

  /** Resolves when no cleaning is in progress. */
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
    // A closed queue must not keep the process alive.
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
        // The next process continues.
        if (this.#stop.aborted || (MqttError.is(error) && isClosed(error))) return undefined
        await this.pause()
      }
    }
  }
}
