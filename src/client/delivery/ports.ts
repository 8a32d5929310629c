/**
 * What delivery needs of the other rooms, and what its own files need of each other. Types only; `lifecycle/` implements the owner, `subscribing/` the
 * filters.
 */
import type { QoS } from '../../wire/packets.js'
import type { SparseSet } from '../common/sparse.js'
import type { ClientContext } from '../context/context.js'
import type { DeliveredMessage, Settler } from './message.js'

/** The client that messages come in for. */
export interface DeliveryOwner extends Settler {
  readonly states: ClientStanding
  readonly links: {
    /** Bytes that the connection itself holds. */
    readonly held: number
    /** Does what the session asks for, after a command given to it. */
    pump(): void
  }
  /** Tells turns of the event loop apart: consumers had one when `marks` has risen since `mark()` gave it. */
  readonly turns: { readonly readerTurns: number; readerTurn(): number }
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
}

/** How far the client's end has come. */
export interface ClientStanding {
  /** True once `disconnect()` began. */
  readonly stopping: boolean
  /** True when the client is closed. */
  readonly ended: boolean
  /** True when the session ends with the connection that is being ended. */
  readonly sessionEnds: boolean
}

/** A filter that a message came for. */
export interface Origin {
  readonly filter: string
  /** Subscription Identifier of its copies; 0 when there is none. */
  readonly identifier: number
  /** True for `$share` filters. */
  readonly shared: boolean
  /** `new`: nobody has asked the server yet; `leaving`: it is being given up. */
  readonly state: 'new' | 'sent' | 'active' | 'leaving'
  /** Nobody here reads it, but the broker goes on sending. */
  readonly detached: boolean
  /** Unacknowledged messages that a consumer left behind, in the order of arrival. */
  readonly held: DeliveredMessage[]
  /** What a consumer asked for; undefined when it does not read this. */
  qosOf(reader: object): QoS | undefined
}

/** Where retained messages come in, beside the SUBACK of who asked for them: 0 unknown, else bits. */
export type RetainHabit = number

/** Who reads a filter. */
export interface Readership<Reader> {
  /** Consumers with the QoS that each asked for. */
  readonly members: ReadonlyMap<Reader, QoS>
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

/** The subscriptions of the client. */
export interface Subscriptions<Reader> {
  readonly consumers: Iterable<Reader>
  /** To be told of the end of the client: handlers run on whose subscription is over. */
  readonly unfinished: Pick<SparseSet<() => void>, 'add' | 'delete'>
  /** Takes a consumer off its filters; settles when the broker has answered. */
  leave(consumer: Reader): Promise<void>
  /** A consumer is gone: its filters stay, or go where it was the last. */
  drop(consumer: Reader, how: 'unsubscribe' | 'detach'): void
}

/** What consumers share: the memory that is accounted for, and where messages go that they give up. */
export interface Holdings<Reader> {
  /** Bytes of messages that are buffered or held. */
  readonly budget: { add(change: number): void }
  readonly drops: { handleDrop(consumer: Reader, message: DeliveredMessage): void }
  /** Consumers that may drop, and have more to read. */
  readonly relief: { add(consumer: Reader): void }
  /** Consumers with messages in memory that others may share. */
  readonly loosened: Pick<SparseSet<Reader>, 'add'>
  /** Consumers that borrow messages. */
  readonly borrowers: Pick<SparseSet<Reader>, 'delete'>
  /** Messages were left unacknowledged: kept for the next consumer of their filter, if there can be one. */
  handleKept(messages: readonly DeliveredMessage[]): void
}

/** What routing needs. */
export type DeliveryHost<Reader> = ClientContext & DeliveryOwner & { readonly registry: Subscriptions<Reader> }
/** What a consumer needs. */
export type ConsumerHost<Reader> = DeliveryHost<Reader> & { readonly router: Holdings<Reader> }
