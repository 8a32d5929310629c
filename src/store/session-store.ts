/**
 * Stores that include the session keeper, so that clients without a store do not contain it.
 */

import { innerStore, keeperOf } from '../client/access.js'
import { openKeeper } from '../client/durable/keeper.js'
import { BackedStore } from './base/backed-store.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'

/** A store over a backend, with the session keeper. */
export class KeepingStore extends BackedStore {
  readonly [keeperOf]: unknown = openKeeper
}

/** Wraps another store and adds the session keeper. */
class Keeping implements Store {
  readonly [keeperOf]: unknown = openKeeper
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  get [innerStore](): Store {
    return this.#store
  }

  get evicts(): boolean | undefined {
    return this.#store.evicts
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#store.get(key)
  }

  batch(operations: readonly StoreOperation[]): Promise<void> {
    return this.#store.batch(operations)
  }

  entries(range?: StoreRange): AsyncIterable<StoreEntry> {
    return this.#store.entries(range)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/**
 * Prepares your own store for the `store` option of a client in a browser. Not needed for stores of
 * this package, nor in Node.
 */
export function sessionStore(store: Store): Store {
  return new Keeping(store)
}
