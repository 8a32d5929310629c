/**
 * Writes of one session to its store, in the order in which they were asked for: one batch at a time, what is asked for meanwhile goes into the next.
 *
 * Each change is whole or not there. One that fails alone is given up, with its error, or insists: it is tried again until it works, and whatever
 * insists behind it waits. What one that was given up has left all the same is deleted with the next batch. It must never let a change overtake an earlier
 * one of the same key.
 */

import { withOutcome } from '../../common/outcome.js'
import type { MqttError } from '../../errors.js'
import { isClosed, storeError } from '../../store/base/backed-store.js'
import type { Store, StoreOperation } from '../../store/base/store.js'
import type { CancelTimer, Platform } from '../platform.js'

/** Milliseconds after which a store that failed is asked again. */
const storePatience = 1000

/** `takesDeletions`: the store does, so that it is full rather than out of order. */
type Failed = (error: MqttError, takesDeletions: boolean) => void

interface Change {
  readonly operations: readonly StoreOperation[]
  /** The key that goes where it was given up; undefined: all. */
  readonly undo: string | undefined
  /** Undefined: it insists. */
  readonly failed: Failed | undefined
  readonly written: () => void
  /** False once the change is not needed any more; undefined: it stays needed. */
  readonly wanted: (() => boolean) | undefined
}

/** What depends on the journal. */
export interface JournalOwner {
  /** Changes are safe, or were given up, and their callbacks were called. */
  handleBatch(): void
  /** The store failed. */
  handleError(error: MqttError): void
  /** The program has closed the store: nothing more will be written. */
  handleClosed(error: MqttError): void
}

/** What is on its way to the store. */
export class Journal {
  readonly #store: Store
  readonly #platform: Platform
  readonly #owner: JournalOwner
  #changes: Change[] = []
  /** Keys that changes which were given up may have put. */
  readonly #undoing = new Set<string>()
  #writing: Promise<void> | undefined
  /** Nothing is asked for any more. */
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
   * Asks for a change. `written` is called when it is safe, `failed` when it was given up; without that it insists. With outcome `not-sent` nothing of it
   * is there, with `unknown` something may be until the store works again. `undo`: of keys that were there before none but this one is deleted then.
   * `wanted` is asked when the change is about to be written: a put must not bring back a record that was deleted past this journal meanwhile.
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

  /** Asks for a change whose end is not awaited. */
  insist(operations: readonly StoreOperation[]): void {
    if (operations.length > 0) this.write(operations, () => undefined)
  }

  /** Fulfils when everything asked for is safe, or was given up. */
  async idle(): Promise<void> {
    await this.#writing
  }

  /** Nothing more is asked for, and nothing tried again. */
  stop(): void {
    this.stopped = true
    this.#wake?.()
  }

  async #run(): Promise<void> {
    // What is asked for in this turn comes along.
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

  // There is nothing to try again, and what insists will not be had. Nothing of it is there but what an earlier failure may have left.
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

  // One that is too large for the disk must not fail the others. Gives those that insist, from the first that failed on.
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

  // A store that fails to write may say what is there.
  async #look(key: string): Promise<void> {
    try {
      if ((await this.#store.get(key)) === undefined) this.#undoing.delete(key)
    } catch {
      // It may be there.
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
