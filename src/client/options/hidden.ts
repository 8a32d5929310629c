/**
 * What floors above clients say in calls besides the public options, under symbols.
 */
import type { StoreOperation } from '../../store/base/store.js'

/**
 * A member of handlers that are given to `listen` for many filters: those that have the same value get one copy of a message for all. The same in every
 * copy of the package.
 */
export const oneCopy: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.oneCopy') as never

/**
 * An option of a publish whose message its caller keeps in a store: where the client gives it up, it is not lost. `true`, or `StoredPublish`. The same in
 * every copy of the package.
 */
export const isStored: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.isStored') as never

/** A publish whose message its caller keeps in a store of its own. */
export interface StoredPublish {
  /** Connections that ended over it in earlier processes. */
  readonly strikes: number
  /** Keeps how many they are now, for the next process. Fulfils when that is safe, or was given up. */
  suspect(strikes: number): Promise<void> | undefined
}

/** The entry of a queue whose message is published. Both lie in one store, so that the end of the publish and that of the entry are one batch. */
export interface EntryLink {
  /** Its key. */
  readonly key: string
  /**
   * The exchange is over: with a receipt, or with `error`. True: the queue makes `changes`, which end the publish in the store, in one batch with whatever
   * it does to the entry. False: the entry stays as it is. Undefined: the queue is not there; the next to publish the
   * entry next hears of it.
   */
  ended(error: unknown, changes: readonly StoreOperation[]): boolean | undefined
}
