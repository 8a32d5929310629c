/**
 * What a store is: ordered keys, atomic batches, ranges. Types only.
 *
 * Sessions and queues keep their records in one; each begins its keys with a prefix of its own, so that one store, and one batch, may hold both.
 */

/** One change of a batch. Keys are ASCII text of 1 to 1,024 characters; they sort by code unit. */
export type StoreOperation =
  | {
      /** Sets a key. */
      readonly type: 'put'
      /** Which one. */
      readonly key: string
      /** The bytes belong to the caller again once the batch has settled. */
      readonly value: Uint8Array
    }
  | {
      /** Deletes a key, if it is there. */
      readonly type: 'delete'
      /** Which one. */
      readonly key: string
    }

/** Which keys, and how many. Bounds that are left out have no limit. */
export interface StoreRange {
  /** Greater than this key. */
  readonly gt?: string | undefined
  /** This key or a greater one. */
  readonly gte?: string | undefined
  /** Less than this key. */
  readonly lt?: string | undefined
  /** This key or a lesser one. */
  readonly lte?: string | undefined
  /** From the greatest key down. Default false. */
  readonly reverse?: boolean | undefined
  /** Entries at most, a whole number of 1 or more, or `Infinity`; others are refused with ERR_STORE. Default: all. */
  readonly limit?: number | undefined
}

/** A key and its value. The value is the reader's own. */
export type StoreEntry = readonly [key: string, value: Uint8Array]

/**
 * A place that survives the process. All members may be called at any time and in any number; batches take effect in the order of the calls.
 *
 * Everything that fails rejects with `ERR_STORE`, what went wrong below as its `cause`; after `close` its message holds "store closed".
 */
export interface Store {
  /** The value of a key, or undefined. */
  get(key: string): Promise<Uint8Array | undefined>
  /** All of these changes, or none. Fulfils when they are as safe as the store was asked to make them. */
  batch(operations: readonly StoreOperation[]): Promise<void>
  /** Entries in order, read as they are asked for: memory does not grow with their number. What changes meanwhile may be seen or not. */
  entries(range?: StoreRange): AsyncIterable<StoreEntry>
  /** Waits for what was asked for, and lets go of files and locks. Calls after the first do nothing. */
  close(): Promise<void>
  /** False where single keys cannot be deleted before others that are older. Default true. */
  readonly evicts?: boolean | undefined
}
