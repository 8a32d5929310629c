/**
 * Options that other modules of this package pass to a client, under symbols.
 */
import type { StoreOperation } from '../../store/base/store.js'

/**
 * A member of handlers given to `listen` for several filters: handlers with the same value together
 * get one copy of a message. The same symbol in every copy of the package.
 */
export const oneCopy: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.oneCopy') as never

/**
 * An option of a publish whose message the caller stores itself, so it is not lost if the client
 * gives it up. `true`, or `StoredPublish`. The same symbol in every copy of the package.
 */
export const isStored: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.isStored') as never

/** A publish whose message the caller stores. */
export interface StoredPublish {
  /** Connections that ended on it in earlier processes. */
  readonly strikes: number
  /** Stores the current number for the next process. Resolves when it is stored or given up. */
  suspect(strikes: number): Promise<void> | undefined
}

/**
 * The queue entry whose message is published. Entry and publish are in one store, so that both end
 * in one batch.
 */
export interface EntryLink {
  /** Its key. */
  readonly key: string
  /**
   * The exchange is over, with a receipt or with `error`. Returns true when the queue will write
   * `changes`, which end the publish in the store, in one batch with its own changes to the entry;
   * false when the entry stays; undefined when no queue is open. In that case, the next queue to
   * publish the entry is informed.
   */
  ended(error: unknown, changes: readonly StoreOperation[]): boolean | undefined
}
