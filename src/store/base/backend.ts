/**
 * What keeps the bytes of a store: a database, or a map in memory. Types only.
 *
 * `BackedStore` makes a store of one. It checks what callers give, and asks for one write at a time.
 */
import type { StoreEntry, StoreOperation, StoreRange } from './store.js'

/** Four methods; what goes wrong below rejects with whatever error there is. */
export interface Backend {
  /** The value of a key, in memory of its own, or undefined. */
  get(key: string): Promise<Uint8Array | undefined>
  /** Makes all of these changes in their order, or none. Is not called again before it has settled. */
  write(operations: readonly StoreOperation[]): Promise<void>
  /** The first entries of a range, as few as is cheap, but at least one while there are any. The range has one lower and one upper bound at most. */
  page(range: StoreRange): Promise<readonly StoreEntry[]>
  /** Lets go of everything. Is called once, when no write is under way. */
  close(): Promise<void>
}
