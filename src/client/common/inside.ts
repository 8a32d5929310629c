/**
 * What stands on top of clients asks of them besides their public side, under one symbol: typed topics, and queues.
 */
import type { Store, StoreOperation } from '../../store/store.js'
import type { ClientEvents, PublishOptions, Receipt } from '../api/index.js'

/** The name of the method; the same in every copy of the package. */
export const inside: unique symbol = Symbol.for('mqwire.inside') as never

/** The entry of a queue whose message is published. Both lie in one store, so that the end of the publish and that of the entry are one batch. */
export interface EntryLink {
  /** Its key. */
  readonly key: string
  /** The key of a record that counts entries: void once an entry is deleted without the queue. */
  readonly countsKey: string
  /**
   * The exchange is over: with a receipt, or with `error`. True: the queue makes `changes`, which end the publish in the store, in one batch with whatever
   * it does to the entry, and calls `made` when they are safe. False: the entry stays as it is. Undefined: nobody is there who would do anything.
   */
  ended(error: unknown, changes: readonly StoreOperation[], made: () => void): boolean | undefined
}

/** Publishes entries of queues that lie in the store of the session. */
export interface EntryPublisher {
  /** Publishes an entry once: where it is in flight already, since an earlier process perhaps, that is what this gives. */
  publishEntry(link: EntryLink, topic: string, payload: Uint8Array, options: PublishOptions): Promise<Receipt>
}

/** What it gives. */
export interface Inside {
  /** Where the session is kept. Not in copies of the package from before. */
  readonly options?: { readonly store?: { readonly store: Store } | undefined }
  readonly publishQueue?: {
    /** Undefined until the store was read. */
    readonly keeper?: EntryPublisher | undefined
  }
  /** True where MQTT 5.0 is spoken, or may be. */
  readonly modern: boolean
  /** Tells of a payload that is none; the first of a channel is a line of the log too. */
  tell(event: ClientEvents['invalid'], first: boolean): void
  /** Writes a line of the log; not in copies of the package from before. */
  log?(level: 'error', ...parts: readonly unknown[]): void
}
