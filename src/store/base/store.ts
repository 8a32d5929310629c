/**
 * The interface of stores: ordered keys, atomic batches, ranges. Types only.
 *
 * Sessions and queues begin their keys with different prefixes, so one store, and one batch, may
 * contain both.
 */

/** One change of a batch. Keys are ASCII text of 1 to 1,024 characters, ordered by code unit. */
export type StoreOperation =
  | {
      /** Sets a key. */
      readonly type: 'put'
      /** The key. */
      readonly key: string
      /** The caller may reuse the bytes once the batch has settled. */
      readonly value: Uint8Array
    }
  | {
      /** Deletes a key, if present. */
      readonly type: 'delete'
      /** The key. */
      readonly key: string
    }

/** A range of keys, and a limit. Absent bounds mean no limit. */
export interface StoreRange {
  /** Greater than this key. */
  readonly gt?: string | undefined
  /** This key or a greater one. */
  readonly gte?: string | undefined
  /** Less than this key. */
  readonly lt?: string | undefined
  /** This key or a smaller one. */
  readonly lte?: string | undefined
  /** In descending order. Default false. */
  readonly reverse?: boolean | undefined
  /**
   * Most entries, an integer of 1 or more, or `Infinity`; others are refused with ERR_STORE.
   * Default: all.
   */
  readonly limit?: number | undefined
}

/** A key and its value. The reader owns the value. */
export type StoreEntry = readonly [key: string, value: Uint8Array]

/**
 * Storage that survives the process. All methods may be called at any time and concurrently;
 * batches take effect in the order of the calls.
 *
 * Failures reject with `ERR_STORE` and the underlying error as `cause`; after `close`, its message
 * contains "store closed".
 */
export interface Store {
  /** The value of a key, or undefined. */
  get(key: string): Promise<Uint8Array | undefined>
  /**
   * Makes all of these changes, or none. Resolves when they are as durable as the store was
   * configured.
   */
  batch(operations: readonly StoreOperation[]): Promise<void>
  /**
   * Entries in order, read on demand: memory does not grow with their number. Concurrent changes
   * may or may not be seen.
   */
  entries(range?: StoreRange): AsyncIterable<StoreEntry>
  /** Waits for pending calls, then releases files and locks. Later calls do nothing. */
  close(): Promise<void>
  /** False when single keys cannot be deleted before older ones. Default true. */
  readonly evicts?: boolean | undefined
}
