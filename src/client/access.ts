/**
 * What stands on top of clients asks of them besides their public side, under symbols: typed topics, queues, and the interface of another library.
 */

import type { MqttError } from '../errors.js'
import type { Store } from '../store/base/store.js'
import type { EntryLink } from './options/hidden.js'
import type { ClientEvents, Message, PublishOptions, Receipt } from './options/index.js'

/** The name of the method; the same in every copy of the package. */
export const access: unique symbol = Symbol.for('mqwire.inside') as never

/** What keeps a session in a store: a member of stores that bring it. The same in every copy of the package. */
export const keeperOf: unique symbol = Symbol.for('mqwire.keeper') as never

/** A member of a store that only wraps another: that one. The same in every copy of the package. */
export const innerStore: unique symbol = /* @__PURE__ */ Symbol.for('mqwire.innerStore') as never

/** The store that a wrapper stands for, or the store itself: what two users of one store have in common. */
export function innermost(store: Store): Store {
  const inner = (store as { readonly [innerStore]?: Store })[innerStore]
  return inner === undefined ? store : innermost(inner)
}

/** Publishes entries of queues that lie in the store of the session. */
export interface EntryPublisher {
  /** True while the publish of this entry is in flight, or its end was not heard. */
  isKept(key: string): boolean
  /** The queue has made the changes that it was given: the entry is gone. Until then each publish of it hears of its end again. */
  forgetEntry(key: string): void
  /** Publishes an entry once: where it is in flight already, since an earlier process perhaps, that is what this gives. */
  publishEntry(
    link: EntryLink,
    topic: string,
    payload: Uint8Array,
    options: PublishOptions,
  ): Promise<Receipt>
}

/** A session that can be asked whether the server has read what was sent. */
export interface PingedSession {
  readonly state: 'idle' | 'connecting' | 'connected' | 'closed'
  /** Has a PINGREQ sent, at the next `pump()`. */
  ask(now: number): void
  /** True while a PINGREQ has no answer. */
  readonly keepAlive: { readonly asked: boolean }
}

/** Subscriptions of a client, for who leaves a share. */
export interface ShareBook {
  /** By Topic Filter, `$share/` and group included. */
  readonly byFilter: { get(filter: string): LeavingShare | undefined }
  /** The broker does not have it any more, and what it sent of it is done: its readers end. */
  forget(share: LeavingShare): void
}

/** One subscription, for who leaves it. */
export interface LeavingShare {
  /** Set before UNSUBSCRIBE: what comes behind UNSUBACK is for its readers too, and nothing of it is acknowledged unread, until it is forgotten. */
  lingers: boolean
  /** Set back where UNSUBSCRIBE was refused. */
  state: 'new' | 'sent' | 'active' | 'leaving'
  readonly takers: ReadonlyMap<ShareReader, unknown>
  /** Unacknowledged messages without a reader. */
  readonly requeued: readonly unknown[]
}

/** One reader of it. */
export interface ShareReader {
  /** Messages that wait. */
  readonly size: number
  /** It has a message in hand. */
  readonly busy: boolean
  /** What it was given; acknowledged ones among them. */
  readonly unacknowledged: { readonly messages: readonly { readonly settled: boolean }[] }
  readonly config: { readonly ack: string }
}

/** What is behind a subscription of the same copy of the package, for who reads several as one. */
export interface SubscriptionAccess {
  /** Whether a loop runs: then what it has in hand is waited for. */
  readonly readers: { iterating: boolean }
  readonly unacknowledged: {
    /** The next message that waits, in the turn that runs. */
    next(): Message | undefined
    /** The turn is over: `handleTurnEnd()` is to be called. */
    endTurn(): void
  }
}

/** What a client gives under `access`. A client of another copy of the package may lack what is optional. */
export interface ClientAccess {
  /** True where MQTT 5.0 is spoken, or may be. */
  readonly modern: boolean
  /** Reports a payload that cannot be decoded; the first of a channel is logged too. */
  reportInvalid(event: ClientEvents['invalid'], first: boolean, message?: Message): void
  /** Sends what waits, as far as it may: subscriptions before publishes. Without it, those of a turn leave at its end, and publishes at once. Not in copies of the package from before. */
  flush?(): void
  /** A publish was refused before the client heard of it: raises `drop`, and gives the rejection. Not in copies of the package from before. */
  refuse?(topic: string, error: unknown): Promise<never>
  /** Writes a line of the log; not in copies of the package from before. */
  log?(level: 'error', ...parts: readonly unknown[]): void
  /** Prints what the program does not hear of (`heard`), unless there is a logger, which gets it as a line. Absent in older copies of the package. */
  report?(
    code: 'MQWIRE_NOT_CONNECTED' | 'MQWIRE_OPTION_IGNORED',
    text: string,
    cause: unknown,
    heard?: true,
  ): void
  /** Where the session is kept. */
  readonly options?: { readonly store?: Store | { readonly store: Store } | undefined }
  readonly publishQueue?: {
    /** Undefined until the store was read. */
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
    /** The connection that is up, which can be cut as the network cuts it. */
    readonly connection?: { destroy(error: MqttError): void } | undefined
  }
  /** A turn of a reader ended: `disconnect()` may be waiting for it. */
  handleTurnEnd?(): void
}
