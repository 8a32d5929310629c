/**
 * What delivery needs from its client, and what its files need from each other. Types only;
 * `lifecycle/core.ts` implements the host, `subscribe/` the filters.
 */
import type { SparseSet } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { QoS } from '../../wire/packets.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { ClientContext } from '../context.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { DeliveredMessage } from './message.js'
import type { Settler } from './shared-outcome.js'

/** The client that receives messages; `Reader` is the type of a consumer. */
export interface DeliverHost<Reader = unknown> extends ClientContext, Settler {
  /** How far the client's end has come. */
  readonly states: {
    /** True once `disconnect()` began. */
    readonly stopping: boolean
    /** True when the client is closed. */
    readonly ended: boolean
    /** True when the session ends together with the connection. */
    readonly sessionEnds: boolean
  }
  readonly connections: {
    /** Bytes that the connection itself holds. */
    readonly held: number
    /** Runs the actions that the session has queued. */
    pump(): void
    readonly current: { readonly reader: PacketReader } | undefined
  }
  /** The subscriptions of the client. */
  readonly subscriptions: {
    readonly consumers: Iterable<Reader>
    /**
     * Called at the end of the client: handlers that still run although their subscription is over.
     */
    readonly unfinished: Pick<SparseSet<() => void>, 'add' | 'delete'>
    /** Unsubscribes a consumer's filters; resolves when the broker has answered. */
    leave(consumer: Reader): Promise<void>
    /** A consumer is gone: filters that it alone read are unsubscribed or kept. */
    drop(consumer: Reader, how: 'unsubscribe' | 'detach'): void
  }
  /**
   * Distinguishes turns of the event loop: consumers had a turn once `readerTurns` exceeds what
   * `readerTurn()` returned.
   */
  readonly turns: { readonly readerTurns: number; readerTurn(): number }
  /** A consumer's turn ended; `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
}

/** A subscribed filter, as the origin of a message. */
export interface Origin {
  readonly filter: string
  /** Its Subscription Identifier; 0: none. */
  readonly identifier: number
  /** True for `$share` filters. */
  readonly grouped: boolean
  /** `new`: not sent to the server yet; `leaving`: being unsubscribed. */
  readonly state: 'new' | 'sent' | 'active' | 'leaving'
  /** It has no reader, but the broker still sends its messages. */
  readonly detached: boolean
  /** It is being unsubscribed, and its remaining messages have no reader. */
  readonly over: boolean
  /** Unacknowledged messages that consumers left behind, in the order of arrival. */
  readonly requeued: DeliveredMessage[]
  /** The QoS that a consumer asked for; undefined when it does not read this filter. */
  qosOf(reader: object): QoS | undefined
}

/** Bits: whether a server sends retained messages before or behind the SUBACK; 0: unknown. */
export type RetainHabit = number

/** The consumers of a filter. */
export interface Readership<Reader> {
  /** Consumers with the QoS that each asked for. */
  readonly takers: ReadonlyMap<Reader, QoS>
  /** The only consumer and its QoS; undefined when there are several. */
  readonly sole: Reader | undefined
  readonly soleQos: QoS
  /** What the state of its requests shows about the server's habit. */
  readonly retainHabit: RetainHabit
  /**
   * The consumers that a copy with RETAIN 1 may be for, given a habit; undefined instead of a set:
   * all.
   */
  audiencesOf(habit: RetainHabit): readonly (ReadonlySet<Reader> | undefined)[]
}

/** A filter with its consumers. */
export type Route<Reader> = Origin & Readership<Reader>

/** The handler of a `listen`, as its consumer sees it. */
export interface MessageHandler {
  /** True when it may be shown messages while they are being read. */
  readonly takesShown: boolean
  /** Messages can be read: called at least once per burst. */
  handleReadable(): void
  /** Handles a message while it is being read. True when that is done. */
  handleShown(message: DeliveredMessage): boolean
  /** The client ends: no more retries. */
  handleClosing(): void
  /** No message will come any more. */
  handleEnd(error: MqttError | undefined): void
}

/** An overflow policy that may have to drop messages. */
export interface Sweepable {
  /**
   * Called after the reader had a turn: drops the excess. False when there is nothing left to
   * watch.
   */
  relieve(): boolean
}

/** Messages in read buffers that can be copied out. */
export interface Movable {
  /**
   * Copies them out of memory that they alone would keep alive; out of read windows only with
   * `must`.
   */
  moveOut(must: boolean): void
}

/** What consumers share: memory accounting, and where unread messages go. */
export interface Holdings {
  /** Bytes of messages that are buffered or held. */
  readonly budget: { add(change: number): void }
  readonly drops: { handleDrop(config: ConsumerConfig, message: DeliveredMessage): void }
  /** Overflow policies to run while messages wait. */
  readonly sweep: { add(policy: Sweepable): void }
  /** Buffers with messages in shared memory. */
  readonly unmoved: { add(buffer: Movable): void }
  /** Consumers that borrow messages. */
  readonly borrowers: { delete(reader: object): boolean }
  /**
   * Messages were left unacknowledged: kept for the next consumer of their filter, if there can be
   * one.
   */
  requeue(messages: readonly DeliveredMessage[]): void
}

/** The client, with what its consumers share. */
export type ConsumerHost<Reader = unknown> = DeliverHost<Reader> & { readonly router: Holdings }
