/**
 * Stores that sessions can be kept in: each brings what keeps a session, so that clients without a store carry none of it.
 */

import { innerStore, keeperOf } from '../client/access.js'
import { openKeeper } from '../client/durable/keeper.js'
import { BackedStore } from './base/backed-store.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'

/** A store over a backend. */
export class KeepingStore extends BackedStore {
  readonly [keeperOf]: unknown = openKeeper
}

/** Another store. */
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
 * A store of your own for the `store` option of a client in a browser. Those of this package need it nowhere, in Node none does.
 */
export function sessionStore(store: Store): Store {
  return new Keeping(store)
}
