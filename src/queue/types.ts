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
  /**
   * The store of the entries. The queue does not close it. Several queues with different names may
   * share one.
   */
  readonly store: Store
  /** Name of the queue in the store: 1 to 64 letters, digits, `_` and `-`. Default `'default'`. */
  readonly name?: string | undefined
  /** Most entries, 1 or more, or Infinity. Default 100,000. */
  readonly maxEntries?: number | undefined
  /** Most bytes of entries in the store, 1 or more, or Infinity. Default 256 MiB. */
  readonly maxBytes?: number | undefined
  /** Milliseconds after which an entry expires. Default: no limit. */
  readonly ttl?: number | undefined
  /**
   * What a full queue does with a publish. `'drop-newest'` (default) refuses it with `ERR_DROPPED`.
   * `'drop-oldest'` gives up the oldest entries that are not being sent. `'reject'` refuses it with
   * `ERR_QUEUE_FULL`. `'wait'` waits for room; when as many publishes wait as the queue may hold
   * entries, further ones are refused with `ERR_QUEUE_FULL`.
   */
  readonly overflow?: QueueOverflow | undefined
  /**
   * QoS of a publish without `qos`. Default 1. 2 requires one store for queue and client, or
   * `duplicates: 'allowed'`.
   */
  readonly qos?: 1 | 2 | undefined
  /**
   * `'allowed'`: QoS 2 is accepted with any publisher and store, although an entry with unknown
   * outcome is then published again and may arrive twice. No difference if queue and client share
   * one store: QoS 2 arrives once, or becomes a dead letter. Default: QoS 2 is refused unless they
   * do.
   */
  readonly duplicates?: 'allowed' | undefined
  /** Entries that may be sent and unacknowledged, 1 to 65,535. Default 64. */
  readonly concurrency?: number | undefined
  /** Entries read from the store at once, 1 to 1,000. Default 16. */
  readonly batchSize?: number | undefined
  /**
   * Milliseconds with a connection after which an unanswered publish is retried, 1 to
   * 2,147,483,647. No effect if queue and client share one store: an entry is then published only
   * once, without a time limit. Default 30,000.
   */
  readonly publishTimeout?: number | undefined
  /**
   * Milliseconds before a refused entry is retried; 30 s if the function throws or returns no valid
   * number. Default `exponential()`: from 1 s to 30 s.
   */
  readonly backoff?: Backoff | undefined
  /**
   * Number of refusals of any kind after which an entry becomes a dead letter, 1 or more; counted
   * since the queue was opened, without timeouts. Default Infinity.
   */
  readonly maxRefusals?: number | undefined
  /** Called with each entry that no retry can deliver, and the reason. Default: none. */
  readonly onDeadLetter?: ((letter: DeadLetter) => void) | undefined
  /**
   * The store for dead letters, up to 10,000; the oldest are deleted first. May be the queue's own
   * store. Default: nowhere.
   */
  readonly deadLetterStore?: Store | undefined
}

/** What a full queue does with a publish. */
export type QueueOverflow = 'drop-newest' | 'drop-oldest' | 'reject' | 'wait'

/** Options of one publish. */
export interface QueuePublishOptions {
  /** Quality of Service 1 or 2 (section 4.3). Default: that of the queue. */
  readonly qos?: 0 | 1 | 2 | undefined
  /** The server keeps it for later subscribers (section 3.3.1.3). Default false. */
  readonly retain?: boolean | undefined
  /** Properties of the PUBLISH (section 3.3.2.3). MQTT 5.0 only. Default: none. */
  readonly properties?: PublishProperties | undefined
  /** Milliseconds after which it expires. Default: that of the queue. */
  readonly ttl?: number | undefined
  /** Ends the wait for room. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** A stored entry. */
export interface Queued {
  /** Its number in the queue. */
  readonly id: number
  /**
   * Resolves with the receipt of the publish, or rejects with the reason why it was given up. Never
   * an unhandled rejection.
   */
  readonly delivered: Promise<Receipt>
}

/** An entry that no retry can deliver. */
export interface DeadLetter {
  /** The entry. */
  readonly entry: QueueEntry
  /** The error that its publish rejected with. */
  readonly error: MqttError
}

/** A stored dead letter. */
export interface KeptLetter {
  /**
   * The entry. Its `id` is the letter's number: that of the entry in its queue, unless another
   * letter has it.
   */
  readonly entry: QueueEntry
  /** Code of the error that its publish rejected with. */
  readonly code: string
  /** The server's reason code, if there was one. */
  readonly reasonCode: number | undefined
  /** When it was given up: milliseconds since 1970. */
  readonly at: number
}

/** The stored dead letters. */
export interface DeadLetterBox {
  /** The letters, oldest first. */
  entries(): AsyncIterable<KeptLetter>
  /**
   * Queues all current letters, or those with these numbers, each as a new entry; returns how many.
   * If the letters are in the queue's own store, each moves in one batch; with another store, a
   * letter is queued twice if the process dies in between.
   * @throws MqttError ERR_INVALID_OPTION unless the numbers are integers of 1 or more; as `publish`
   * of the queue
   */
  replay(ids?: readonly number[]): Promise<number>
  /** Deletes all letters; returns how many. @throws MqttError ERR_STORE */
  clear(): Promise<number>
}

/** The progress of a queue. */
export interface QueueStatus {
  /** Entries that are not delivered, including those being sent. */
  readonly pending: number
  /** Entries being sent. */
  readonly inFlight: number
  /** Bytes of the entries in the store. */
  readonly bytes: number
  /** Entries delivered since the queue was opened. */
  readonly delivered: number
  /** Entries given up since the queue was opened: dropped, expired, dead letters. */
  readonly lost: number
  /** Entries delivered per second in the last ten seconds, or since the first delivery in them. */
  readonly rate: number
  /** Milliseconds until the queue is empty at this rate; undefined while nothing is delivered. */
  readonly timeLeft: number | undefined
}

/** An entry that was given up. */
export interface QueueDrop {
  /** Its number in the queue. */
  readonly id: number
  /** Topic Name (section 4.7). */
  readonly topic: string
  /** The reason. */
  readonly error: MqttError
}

/** A damaged record. */
export interface QueueStoreFault {
  /** Its key in the store before it was set aside. */
  readonly key: string
}

/** A failure that may be retried. */
export interface QueueFailure {
  /** What was thrown or rejected. */
  readonly error: unknown
}

/** Events by name. */
export interface QueueEvents {
  /** The status has changed; at most four times a second. */
  status: QueueStatus
  /** An entry was given up because no retry can deliver it. */
  deadletter: DeadLetter
  /**
   * An entry was given up: it expired, the queue was full, or `remove()` or `clear()` was called.
   */
  drop: QueueDrop
  /** A record in the store was damaged and was set aside. */
  storecorrupt: QueueStoreFault
  /**
   * The store failed (at most once a second), or a listener or callback threw; what can be retried
   * is.
   */
  error: QueueFailure
}

/** A queue of publishes that survives the process. `await using` closes it with the block. */
export interface Queue extends Publisher<Queued>, AsyncDisposable {
  /**
   * Stores a message, to be published as soon as there is a connection; resolves when it is stored.
   * @throws MqttError ERR_QOS0_NOT_QUEUEABLE, ERR_INVALID_TOPIC, ERR_INVALID_OPTION, ERR_DROPPED or
   * ERR_QUEUE_FULL when it is full, ERR_STORE, ERR_ABORTED, ERR_QUEUE_CLOSED
   */
  publish(topic: string, payload: Payload, options?: QueuePublishOptions): Promise<Queued>
  /**
   * Resolves when there is room for a publish; rejects once the queue is closed. Never an unhandled
   * rejection.
   */
  readonly writable: Promise<void>
  /** Messages to one topic are published in the order of the calls. */
  readonly ordered: true
  /** Number of stored entries, including those being sent. */
  readonly size: number
  /** Their bytes in the store. */
  readonly bytes: number
  /**
   * When the oldest of them was added: milliseconds since 1970; undefined when the queue is empty.
   */
  readonly oldest: number | undefined
  /** The stored dead letters; undefined without `deadLetterStore`. */
  readonly deadLetters: DeadLetterBox | undefined
  /** The entries, oldest first, read from the store on demand. */
  entries(): AsyncIterable<QueueEntry>
  /**
   * Deletes every entry that is not being sent; their `delivered` rejects with ERR_DROPPED. Returns
   * how many.
   * @throws MqttError ERR_STORE
   */
  clear(): Promise<number>
  /**
   * Deletes the entry with this number, unless it is being sent; returns true when it existed. Its
   * `delivered` rejects with ERR_DROPPED.
   * @throws MqttError ERR_INVALID_OPTION, ERR_STORE
   */
  remove(id: number): Promise<boolean>
  /**
   * The current status, and each later one, at most four times a second; ends when the queue is
   * closed.
   */
  status(): AsyncIterableIterator<QueueStatus>
  /**
   * Adds a listener of events.
   * @throws MqttError ERR_INVALID_OPTION for an unknown name, ERR_INVALID_HANDLER
   */
  on<K extends keyof QueueEvents>(
    type: K,
    listener: (event: QueueEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /**
   * Stops sending, waits up to `timeout` milliseconds (default 5,000) for entries being sent, and
   * closes the queue. Undelivered entries stay in the store; their `delivered` rejects with
   * ERR_QUEUE_CLOSED. If the store does not answer, the call waits 5,000 milliseconds more; then an
   * `error` event reports it, and the queue cannot be opened again until the store has answered.
   */
  close(options?: {
    readonly signal?: AbortSignal | undefined
    readonly timeout?: number | undefined
  }): Promise<void>
}
