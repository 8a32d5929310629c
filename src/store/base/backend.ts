/**
 * The storage behind a store: a database, or a map in memory. Types only.
 *
 * `BackedStore` turns it into a store; it checks arguments and requests one write at a time.
 */
import type { StoreEntry, StoreOperation, StoreRange } from './store.js'

/** Four methods, which may reject with any error. */
export interface Backend {
  /** The value of a key in its own memory, or undefined. */
  get(key: string): Promise<Uint8Array | undefined>
  /** Makes all of these changes in order, or none. Not called again before it has settled. */
  write(operations: readonly StoreOperation[]): Promise<void>
  /**
   * The first entries of a range: as few as is efficient, but at least one while there are any. The
   * range has at most one lower and one upper bound.
   */
  page(range: StoreRange): Promise<readonly StoreEntry[]>
  /** Releases everything. Called once, when no write is in progress. */
  close(): Promise<void>
}
