/**
 * What delivering needs of its client, and what its own files need of each other. Types only; `lifecycle/core.ts` implements the host, `subscribe/` the
 * filters.
 */
import type { SparseSet } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { QoS } from '../../wire/packets.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { ClientContext } from '../context.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { DeliveredMessage } from './message.js'
import type { Settler } from './settler.js'

/** The client that messages come in for; `Reader` is what reads a filter. */
export interface DeliverHost<Reader = unknown> extends ClientContext, Settler {
  /** How far the client's end has come. */
  readonly states: {
    /** True once `disconnect()` began. */
    readonly stopping: boolean
    /** True when the client is closed. */
    readonly ended: boolean
    /** True when the session ends with the connection that is being ended. */
    readonly sessionEnds: boolean
  }
  readonly connections: {
    /** Bytes that the connection itself holds. */
    readonly held: number
    /** Does what the session asks for, after a command given to it. */
    pump(): void
    readonly current: { readonly reader: PacketReader } | undefined
  }
  /** The subscriptions of the client. */
  readonly subscriptions: {
    readonly consumers: Iterable<Reader>
    /** They hear of the end of the client: their handlers still run although the subscription is over. */
    readonly unfinished: Pick<SparseSet<() => void>, 'add' | 'delete'>
    /** Takes a consumer off its filters; settles when the broker has answered. */
    leave(consumer: Reader): Promise<void>
    /** A consumer is gone: its filters stay, or go where it was the last. */
    drop(consumer: Reader, how: 'unsubscribe' | 'detach'): void
  }
  /** Distinguishes turns of the event loop: consumers had one when `readerTurns` has risen since `readerTurn()` gave it. */
  readonly turns: { readonly readerTurns: number; readerTurn(): number }
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
}

/** A filter that a message came for. */
export interface Origin {
  readonly filter: string
  /** Subscription Identifier of its copies; 0: no identifier. */
  readonly identifier: number
  /** True for `$share` filters. */
  readonly grouped: boolean
  /** `new`: the server was not asked yet; `leaving`: it is being given up. */
  readonly state: 'new' | 'sent' | 'active' | 'leaving'
  /** It has no reader here, but the broker goes on sending. */
  readonly detached: boolean
  /** It is being given up, and its remaining messages have no reader. */
  readonly over: boolean
  /** Unacknowledged messages that a consumer left behind, in the order of arrival. */
  readonly requeued: DeliveredMessage[]
  /** What a consumer asked for; undefined when it does not read this. */
  qosOf(reader: object): QoS | undefined
}

/** Where retained messages come in, beside the SUBACK of who asked for them: 0 unknown, else bits. */
export type RetainHabit = number

/** Who reads a filter. */
export interface Readership<Reader> {
  /** Consumers with the QoS that each asked for. */
  readonly takers: ReadonlyMap<Reader, QoS>
  /** The only one, with what it asked for. */
  readonly sole: Reader | undefined
  readonly soleQos: QoS
  /** What the state of its requests says of the server's habit. */
  readonly retainHabit: RetainHabit
  /** For whom a copy with RETAIN 1 may be, under this habit; undefined in place of a set: for all. */
  audiencesOf(habit: RetainHabit): readonly (ReadonlySet<Reader> | undefined)[]
}

/** A filter with its readers. */
export type Route<Reader> = Origin & Readership<Reader>

/** The handler of a `listen`, as its consumer sees it. */
export interface MessageHandler {
  /** True when it may be shown messages while they are read. */
  readonly takesShown: boolean
  /** There is something to read: called once per delivery burst, or more often. */
  handleReadable(): void
  /** Shown a message while it is read. True when it is done with it already. */
  handleShown(message: DeliveredMessage): boolean
  /** Nothing more is handed out. */
  handleClosing(): void
  /** No message will ever come again. */
  handleEnd(error: MqttError | undefined): void
}

/** An overflow policy that may have to act. */
export interface Sweepable {
  /** The reader had a turn: what is too much goes. False when there is nothing to look after. */
  relieve(): boolean
}

/** What lies in memory of reads, and can move out of it. */
export interface Movable {
  /** Out of memory that it may keep alive by itself; out of read windows only when it must. */
  moveOut(must: boolean): void
}

/** What consumers share: the memory that is accounted for, and where messages go that they give up. */
export interface Holdings {
  /** Bytes of messages that are buffered or held. */
  readonly budget: { add(change: number): void }
  readonly drops: { handleDrop(config: ConsumerConfig, message: DeliveredMessage): void }
  /** Policies that may drop, while there is more to read. */
  readonly sweep: { add(policy: Sweepable): void }
  /** Buffers with messages in memory that others may share. */
  readonly unmoved: { add(buffer: Movable): void }
  /** Consumers that borrow messages. */
  readonly borrowers: { delete(reader: object): boolean }
  /** Messages were left unacknowledged: kept for the next consumer of their filter, if there can be one. */
  requeue(messages: readonly DeliveredMessage[]): void
}

/** What consumers are made in: the client, and what they share. */
export type ConsumerHost<Reader = unknown> = DeliverHost<Reader> & { readonly router: Holdings }
