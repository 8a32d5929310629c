/**
 * Writes of one session to its store, in the order of the calls: one batch at a time; calls made
 * meanwhile go into the next batch.
 *
 * Each change is atomic. A change that fails by itself is either given up with its error, or it
 * *insists*: it is retried until it succeeds, and later insisting changes wait. What a given-up
 * change may have written is deleted with the next batch. Changes of one key never overtake each
 * other.
 */

import { withOutcome } from '../../common/outcome.js'
import type { MqttError } from '../../errors.js'
import { isClosed, storeError } from '../../store/base/backed-store.js'
import type { Store, StoreOperation } from '../../store/base/store.js'
import type { CancelTimer, Platform } from '../platform.js'

/** Milliseconds until a failed store is tried again. */
const storePatience = 1000

/** @param takesDeletions the store accepts deletions, so it is full rather than broken */
type Failed = (error: MqttError, takesDeletions: boolean) => void

interface Change {
  readonly operations: readonly StoreOperation[]
  /** The key to delete after the change was given up; undefined: all its keys. */
  readonly undo: string | undefined
  /** Undefined: the change insists. */
  readonly failed: Failed | undefined
  readonly written: () => void
  /** False once the change is obsolete; undefined: never. */
  readonly wanted: (() => boolean) | undefined
}

/** The user of the journal. */
export interface JournalOwner {
  /** A batch was written or given up, and its callbacks were called. */
  handleBatch(): void
  /** The store failed. */
  handleError(error: MqttError): void
  /** The program has closed the store: nothing more will be written. */
  handleClosed(error: MqttError): void
}

/** The pending writes of one session. */
export class Journal {
  readonly #store: Store
  readonly #platform: Platform
  readonly #owner: JournalOwner
  #changes: Change[] = []
  /** Keys that given-up changes may have written. */
  readonly #undoing = new Set<string>()
  #writing: Promise<void> | undefined
  /** Accepts no more changes. */
  stopped = false
  /** The program has closed the store. */
  closed = false
  /** Ends the pause after a failure. */
  #wake: (() => void) | undefined

  constructor(store: Store, platform: Platform, owner: JournalOwner) {
    this.#store = store
    this.#platform = platform
    this.#owner = owner
  }

  /**
   * Queues a change. `written` is called when it is stored, `failed` when it is given up; without
   * `failed` the change insists. With outcome `not-sent` none of it is stored; with `unknown` some
   * may be until the store works again. `undo`: the only key to delete after a failure, when the
   * others existed before. `wanted` is checked right before writing, so that a put does not restore
   * a record deleted by other means.
   */
  write(
    operations: readonly StoreOperation[],
    written: () => void,
    failed?: Failed,
    undo?: string,
    wanted?: () => boolean,
  ): void {
    if (this.stopped) return
    this.#changes.push({ operations, written, failed, undo, wanted })
    this.#writing ??= this.#run()
  }

  /** Queues an insisting change without a callback. */
  insist(operations: readonly StoreOperation[]): void {
    if (operations.length > 0) this.write(operations, () => undefined)
  }

  /** Resolves when all pending changes are written or given up. */
  async idle(): Promise<void> {
    await this.#writing
  }

  /** Accepts no more changes and retries nothing. */
  stop(): void {
    this.stopped = true
    this.#wake?.()
  }

  async #run(): Promise<void> {
    // Collects all changes of this turn.
    await undefined
    while (this.#changes.length > 0 || (this.#undoing.size > 0 && !this.stopped)) {
      const changes = this.#changes.splice(0)
      const error = await this.#attempt(changes)
      const left =
        error === undefined
          ? []
          : isClosed(error)
            ? this.#abandon(changes, error)
            : await this.#oneByOne(changes, error)
      this.#owner.handleBatch()
      if (this.stopped) continue
      this.#changes.unshift(...left)
      if (left.length + this.#undoing.size > 0) await this.#pause()
    }
    this.#writing = undefined
  }

  // The store is closed: nothing is retried and insisting changes are dropped. Only what an earlier
  // failure left may be stored.
  #abandon(changes: readonly Change[], error: MqttError): Change[] {
    const isThere = ({ key }: StoreOperation): boolean => this.#undoing.has(key)
    for (const { operations, failed } of changes)
      failed?.(withOutcome(error, operations.some(isThere) ? 'unknown' : 'not-sent'), false)
    this.#undoing.clear()
    this.closed = true
    this.#owner.handleError(error)
    this.#owner.handleClosed(error)
    return []
  }

  // Retries changes one by one, so that one that is too large does not fail the others. Returns
  // those that insist, from the first failure on.
  async #oneByOne(changes: readonly Change[], first: MqttError): Promise<Change[]> {
    const left: Change[] = []
    const failures: Change[] = []
    for (const change of changes) {
      const waits = change.failed === undefined && left.length > 0
      const error = waits || (changes.length === 1 ? first : await this.#attempt([change]))
      if (error !== undefined) (change.failed === undefined ? left : failures).push(change)
    }
    await this.#undo(failures, first)
    this.#owner.handleError(first)
    return left
  }

  async #undo(failures: readonly Change[], error: MqttError): Promise<void> {
    for (const { operations, undo } of failures)
      for (const { key } of operations)
        if (undo === undefined || key === undo) this.#undoing.add(key)
    const takesDeletions = this.#undoing.size > 0 && (await this.#attempt([])) === undefined
    if (!takesDeletions) for (const key of [...this.#undoing]) await this.#look(key)
    for (const { operations, failed } of failures) {
      const isThere = operations.some(({ key }) => this.#undoing.has(key))
      failed?.(withOutcome(error, isThere ? 'unknown' : 'not-sent'), takesDeletions)
    }
  }

  // A store that cannot write may still be read.
  async #look(key: string): Promise<void> {
    try {
      if ((await this.#store.get(key)) === undefined) this.#undoing.delete(key)
    } catch {
      // Unreadable: it may be stored.
    }
  }

  async #attempt(changes: readonly Change[]): Promise<MqttError | undefined> {
    const undoing = [...this.#undoing]
    const undo = undoing.map((key): StoreOperation => ({ type: 'delete', key }))
    const operations = [
      ...undo,
      ...changes.flatMap((change) => (change.wanted?.() === false ? [] : change.operations)),
    ]
    try {
      if (operations.length > 0) await this.#store.batch(operations)
    } catch (error) {
      return storeError(error)
    }
    for (const key of undoing) this.#undoing.delete(key)
    for (const { written } of changes) written()
    return undefined
  }

  async #pause(): Promise<void> {
    let cancel: CancelTimer | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      cancel = this.#platform.setTimer(resolve, storePatience)
    })
    this.#wake = undefined
    cancel?.()
  }
}
