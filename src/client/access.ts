/**
 * What other modules of this package need from a client besides its public methods: typed topics,
 * queues, the MQTT.js interface. Under symbols.
 */

import type { MqttError } from '../errors.js'
import type { Store } from '../store/base/store.js'
import type { EntryLink } from './options/hidden.js'
import type { ClientEvents, Message, PublishOptions, Receipt } from './options/index.js'

/**
 * The name of the method that gives `ClientAccess`; the same symbol in every copy of the package.
 */
export const access: unique symbol = Symbol.for('mqwire.inside') as never

/**
 * A member of stores that include the code of the session keeper. The same symbol in every copy of
 * the package.
 */
export const keeperOf: unique symbol = Symbol.for('mqwire.keeper') as never

/**
 * A member of a store that only wraps another one: the wrapped store. The same symbol in every copy
 * of the package.
 */
export const innerStore: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.innerStore') as never

/** The innermost store, by which two users of one store recognise each other. */
export function innermost(store: Store): Store {
  const inner = (store as { readonly [innerStore]?: Store })[innerStore]
  return inner === undefined ? store : innermost(inner)
}

/** Publishes entries of queues that are in the session's store. */
export interface EntryPublisher {
  /** True while the entry's publish is in flight, or its queue was not informed of the end. */
  isKept(key: string): boolean
  /**
   * The queue has written its changes, so the entry is gone. Until then, every publish of it is
   * informed of the end again.
   */
  forgetEntry(key: string): void
  /**
   * Publishes an entry once. If it is already in flight, perhaps since an earlier process, returns
   * that publish.
   */
  publishEntry(
    link: EntryLink,
    topic: string,
    payload: Uint8Array,
    options: PublishOptions,
  ): Promise<Receipt>
}

/** A session that can send PINGREQ to find out what the server has read. */
export interface PingedSession {
  readonly state: 'idle' | 'connecting' | 'connected' | 'closed'
  /** Queues a PINGREQ, sent at the next `pump()`. */
  ask(now: number): void
  /** True while a PINGREQ is unanswered. */
  readonly keepAlive: { readonly asked: boolean }
}

/** Subscriptions of a client, for leaving a share. */
export interface ShareBook {
  /** By Topic Filter, `$share/` and group included. */
  readonly byFilter: { get(filter: string): LeavingShare | undefined }
  /** The broker no longer has it and its messages are done: its readers end. */
  forget(share: LeavingShare): void
}

/** A subscription that is being left. */
export interface LeavingShare {
  /**
   * Set before UNSUBSCRIBE: messages behind UNSUBACK still go to its readers, and none is
   * acknowledged unread, until it is forgotten.
   */
  lingers: boolean
  /** Restored when UNSUBSCRIBE was refused. */
  state: 'new' | 'sent' | 'active' | 'leaving'
  readonly takers: ReadonlyMap<ShareReader, unknown>
  /** Unacknowledged messages without a reader. */
  readonly requeued: readonly unknown[]
}

/** One of its readers. */
export interface ShareReader {
  /** Messages that wait. */
  readonly size: number
  /** True while a message is being handled. */
  readonly busy: boolean
  /** Messages handed to it, including acknowledged ones. */
  readonly unacknowledged: { readonly messages: readonly { readonly settled: boolean }[] }
  readonly config: { readonly ack: string }
}

/** The internals of a subscription of the same copy of the package, for reading several as one. */
export interface SubscriptionAccess {
  /** True while a loop runs: `disconnect()` then waits for its messages. */
  readonly readers: { iterating: boolean }
  readonly unacknowledged: {
    /** The next buffered message, in the current turn. */
    next(): Message | undefined
    /** Ends the turn; `handleTurnEnd()` must be called afterwards. */
    endTurn(): void
  }
}

/**
 * What a client gives under `access`. A client of an older copy of the package may lack the
 * optional members.
 */
export interface ClientAccess {
  /** True unless 3.1.1 is spoken. */
  readonly modern: boolean
  /** Reports a payload that cannot be decoded; the first one of a channel is also logged. */
  reportInvalid(event: ClientEvents['invalid'], first: boolean, message?: Message): void
  /**
   * Sends what waits, as far as allowed: subscriptions before publishes. Otherwise, subscriptions
   * are sent at the end of the turn and publishes at once. Absent in older copies of the package.
   */
  flush?(): void
  /**
   * A publish was refused before it reached the client: raises `drop`, and returns the rejection.
   * Absent in older copies of the package.
   */
  refuse?(topic: string, error: unknown): Promise<never>
  /** Writes a log line; absent in older copies of the package. */
  log?(level: 'error', ...parts: readonly unknown[]): void
  /**
   * Prints something that no listener receives, or logs it if there is a logger. With `heard`, only
   * logs. Absent in older copies of the package.
   */
  report?(
    code: 'MQWIRE_NOT_CONNECTED' | 'MQWIRE_OPTION_IGNORED',
    text: string,
    cause: unknown,
    heard?: true,
  ): void
  /** Where the session is stored. */
  readonly options?: { readonly store?: Store | { readonly store: Store } | undefined }
  readonly publishing?: {
    /** Undefined until the store has been read. */
    readonly keeper?: EntryPublisher | undefined
  }
  /** Monotonic milliseconds, timers, and numbers in [0, 1). */
  readonly platform?: {
    now(): number
    setTimer(callback: () => void, delay: number): () => void
    random?(): number
  }
  readonly subscriptions?: { readonly membership: ShareBook }
  readonly session?: PingedSession
  readonly connections?: {
    pump(): void
    /** The open connection; `destroy` closes it as a network failure would. */
    readonly connection?: { destroy(error: MqttError): void } | undefined
  }
  /** A reader's turn ended; `disconnect()` may be waiting for it. */
  handleTurnEnd?(): void
}
