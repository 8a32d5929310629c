/**
 * The public types of the queue. Types only.
 */
import type {
  Backoff,
  ListenerOptions,
  Payload,
  Publisher,
  PublishProperties,
  Receipt,
  Unlisten,
} from '../client/options/index.js'
import type { MqttError } from '../errors.js'
import type { Store } from '../store/base/store.js'
import type { QueueEntry } from './entry.js'

export type { QueueEntry }

/** Options of `openQueue`. */
export interface QueueOptions {
  /** Where the entries are. It stays the caller's: the queue does not close it. Several queues may share one, by their `name`. */
  readonly store: Store
  /** Which queue of the store: 1 to 64 letters, digits, `_` and `-`. Default `'default'`. */
  readonly name?: string | undefined
  /** Most entries, 1 or more, or Infinity. Default 100,000. */
  readonly maxEntries?: number | undefined
  /** Most bytes of entries in the store, 1 or more, or Infinity. Default 256 MiB. */
  readonly maxBytes?: number | undefined
  /** Milliseconds after which an entry is not worth sending any more. Default: no limit. */
  readonly ttl?: number | undefined
  /**
   * What a full queue does with a publish: `'drop-newest'` refuses it with `ERR_DROPPED`; `'drop-oldest'` gives up the oldest entries that are not being
   * sent; `'reject'` refuses it with `ERR_QUEUE_FULL`; `'wait'` waits for room, as many as the queue holds, then `ERR_QUEUE_FULL`. Default `'drop-newest'`.
   */
  readonly overflow?: QueueOverflow | undefined
  /** QoS of a publish that says none. Default 1. 2 needs one store for queue and client, or `duplicates: 'allowed'`. */
  readonly qos?: 1 | 2 | undefined
  /**
   * `'allowed'`: QoS 2 is taken over any publisher and store, although an entry whose outcome is unknown is published again and may arrive twice. Where queue
   * and client share one store it makes no difference: QoS 2 arrives once there, or is a dead letter. Default: QoS 2 is refused where they do not.
   */
  readonly duplicates?: 'allowed' | undefined
  /** Entries that are sent and not acknowledged, 1 to 65,535. Default 64. */
  readonly concurrency?: number | undefined
  /** Entries that are read from the store at once, 1 to 1,000. Default 16. */
  readonly batchSize?: number | undefined
  /**
   * Milliseconds with a connection after which a publish without an answer is tried again, 1 to 2,147,483,647. Without effect where queue and client share
   * one store: an entry is published once there, however long that takes. Default 30,000.
   */
  readonly publishTimeout?: number | undefined
  /** Milliseconds before a refused entry is tried again; 30 s where it throws, or gives no such number. Default `exponential()`: from 1 s to 30 s. */
  readonly backoff?: Backoff | undefined
  /**
   * Refusals after which an entry is a dead letter, 1 or more, whatever the server says: counted since the queue was opened, and timeouts do not
   * count. Default Infinity.
   */
  readonly maxRefusals?: number | undefined
  /** Called with each entry that no retry can deliver, and why. Default: none. */
  readonly onDeadLetter?: ((letter: DeadLetter) => void) | undefined
  /** Where dead letters are kept, up to 10,000; the oldest make room. May be the queue's own store. Default: nowhere. */
  readonly deadLetterStore?: Store | undefined
}

/** What a full queue does. */
export type QueueOverflow = 'drop-newest' | 'drop-oldest' | 'reject' | 'wait'

/** Options of one publish. */
export interface QueuePublishOptions {
  /** Quality of Service 1 or 2 (section 4.3). Default: that of the queue. */
  readonly qos?: 0 | 1 | 2 | undefined
  /** The server keeps it for those who subscribe later (section 3.3.1.3). Default false. */
  readonly retain?: boolean | undefined
  /** What goes with it (section 3.3.2.3). MQTT 5.0 only. Default: none. */
  readonly properties?: PublishProperties | undefined
  /** Milliseconds after which it is not worth sending any more. Default: that of the queue. */
  readonly ttl?: number | undefined
  /** Ends the wait for room. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** An entry that is safe. */
export interface Queued {
  /** Its number in the queue. */
  readonly id: number
  /** Settles with the receipt of the publish, or with why it was given up. Never an unhandled rejection. */
  readonly delivered: Promise<Receipt>
}

/** An entry that no retry can deliver. */
export interface DeadLetter {
  /** The entry. */
  readonly entry: QueueEntry
  /** Why: what its publish rejected with. */
  readonly error: MqttError
}

/** A dead letter that was kept. */
export interface KeptLetter {
  /** The entry. Its `id` is the number of the letter: that of the entry in its queue, unless another letter has that. */
  readonly entry: QueueEntry
  /** The code of what its publish rejected with. */
  readonly code: string
  /** The server's reason code, where it gave one. */
  readonly reasonCode: number | undefined
  /** When it was given up: milliseconds since 1970. */
  readonly at: number
}

/** The dead letters that were kept. */
export interface DeadLetterBox {
  /** Those that are kept, the oldest first. */
  entries(): AsyncIterable<KeptLetter>
  /**
   * Queues those that are kept now, or those with these numbers, each as a new entry; gives how many. In the queue's own store each moves in one batch;
   * from another store one is queued twice where the process dies in between.
   * @throws MqttError ERR_INVALID_OPTION for numbers that are no whole ones of 1 or more; as `publish` of the queue
   */
  replay(ids?: readonly number[]): Promise<number>
  /** Deletes them; gives how many. @throws MqttError ERR_STORE */
  clear(): Promise<number>
}

/** How far a queue has come. */
export interface QueueStatus {
  /** Entries that are not delivered, those being sent included. */
  readonly pending: number
  /** Entries being sent. */
  readonly inFlight: number
  /** Bytes of the entries in the store. */
  readonly bytes: number
  /** Entries that were delivered since it was opened. */
  readonly delivered: number
  /** Entries that were given up since it was opened: dropped, expired, dead letters. */
  readonly lost: number
  /** Entries delivered a second, in the last ten seconds, or since the first that was delivered in them. */
  readonly rate: number
  /** Milliseconds until it is empty at this rate; undefined while nothing is delivered. */
  readonly timeLeft: number | undefined
}

/** An entry that was given up. */
export interface QueueDrop {
  /** Its number in the queue. */
  readonly id: number
  /** Topic Name (section 4.7). */
  readonly topic: string
  /** Why. */
  readonly error: MqttError
}

/** A record that was damaged. */
export interface QueueStoreFault {
  /** Its key in the store, before it was put aside. */
  readonly key: string
}

/** What failed and may be tried again. */
export interface QueueFailure {
  /** What was thrown or rejected. */
  readonly error: unknown
}

/** Event name to event object. */
export interface QueueEvents {
  /** It has changed: at most four times a second. */
  status: QueueStatus
  /** An entry is given up, as no retry can deliver it. */
  deadletter: DeadLetter
  /** An entry is given up: it has expired, the queue was full, or `remove()` or `clear()` was called. */
  drop: QueueDrop
  /** A record of the store was damaged, and was put aside. */
  storecorrupt: QueueStoreFault
  /** The store failed (once a second at most), or a listener or callback threw; what can be tried again is. */
  error: QueueFailure
}

/** A queue of publishes that survives the process. `await using` closes it with the block. */
export interface Queue extends Publisher<Queued>, AsyncDisposable {
  /**
   * Stores a message, to be published as soon as there is a connection; fulfils when it is safe.
   * @throws MqttError ERR_QOS0_NOT_QUEUEABLE, ERR_INVALID_TOPIC, ERR_INVALID_OPTION, ERR_DROPPED or ERR_QUEUE_FULL where it is full, ERR_STORE,
   * ERR_ABORTED, ERR_QUEUE_CLOSED
   */
  publish(topic: string, payload: Payload, options?: QueuePublishOptions): Promise<Queued>
  /** Fulfils when a publish would find room; rejects once the queue is closed. Never an unhandled rejection. */
  readonly writable: Promise<void>
  /** Messages to one topic are published in the order of the calls. */
  readonly ordered: true
  /** Entries that are stored, those being sent included. */
  readonly size: number
  /** Bytes of them in the store. */
  readonly bytes: number
  /** When the oldest of them was taken: milliseconds since 1970; undefined when the queue is empty. */
  readonly oldest: number | undefined
  /** The dead letters that were kept; undefined without `deadLetterStore`. */
  readonly deadLetters: DeadLetterBox | undefined
  /** The entries, the oldest first, read from the store as they are asked for. */
  entries(): AsyncIterable<QueueEntry>
  /** Deletes every entry that is not being sent; their `delivered` reject with ERR_DROPPED. Gives how many. @throws MqttError ERR_STORE */
  clear(): Promise<number>
  /**
   * Deletes the entry with this number, unless it is being sent: true when it was there; its `delivered` rejects with ERR_DROPPED.
   * @throws MqttError ERR_INVALID_OPTION, ERR_STORE
   */
  remove(id: number): Promise<boolean>
  /** How far it has come: now, and whenever that changes, at most four times a second; ends when the queue is closed. */
  status(): AsyncIterableIterator<QueueStatus>
  /** Adds a listener of events. @throws MqttError ERR_INVALID_OPTION for an unknown name, ERR_INVALID_HANDLER */
  on<K extends keyof QueueEvents>(
    type: K,
    listener: (event: QueueEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /**
   * Sends nothing more, waits up to `timeout` milliseconds (default 5,000) for what is being sent, and ends. What is not delivered stays in the store;
   * its `delivered` reject with ERR_QUEUE_CLOSED. A store that does not answer is waited for 5,000 milliseconds more: then an `error` event says so, and the
   * queue cannot be opened again before the store has answered.
   */
  close(options?: {
    readonly signal?: AbortSignal | undefined
    readonly timeout?: number | undefined
  }): Promise<void>
}
