/**
 * What subscribing needs of the other rooms. Types only; `lifecycle/` implements the owner, `connection/` the writer, `delivery/` what messages go to.
 */

import type { SparseSet } from '../../common/sparse.js'
import type { ClientPacket } from '../../wire/packets.js'
import type { Consumer } from '../deliver/consumer.js'
import type { DeliveredMessage } from '../deliver/message.js'
import type { ClientContext } from '../lifecycle/context.js'
import type { BrokerSubscription } from './broker-subscription.js'

/** What writes packets on the connection that is up. */
export interface RequestWriter {
  /** Writes a packet. @throws WireError, MqttError ERR_PACKET_TOO_LARGE */
  send(packet: ClientPacket): void
  /** Writes what is queued before this turn's synchronous code has ended, once. */
  queueFlush(): void
  /** Puts the acknowledgements that are due behind what is written. */
  writeAcks(): unknown
}

/** The client that subscribes. */
export interface SubscribingOwner {
  readonly links: {
    /** The connection, while it takes packets of the application. */
    readonly connection: { readonly writer: RequestWriter } | undefined
    /** The endpoint that was dialled last. */
    readonly dialled: { readonly endpoint: string }
    /** Does what the session asks for, after a command given to it. */
    pump(): void
  }
  /** True once `disconnect()` began. */
  readonly states: { readonly stopping: boolean }
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
  /** Sends what waits, as far as it may. */
  flush(): void
}

/** Our messages on their way. */
export interface Publishing {
  /** Publishes that were sent and lack their last acknowledgement. */
  readonly inFlight: number
  /** One of them is being tried alone: nothing else may end the connection meanwhile. */
  readonly isolating: boolean
}

/** Where the messages of filters go. */
export interface Deliveries {
  /** A consumer borrows messages. */
  readonly borrowers: Pick<SparseSet<Consumer>, 'add'>
  /** A consumer joined filters: what waited for one goes to it. */
  handleJoined(consumer: Consumer, subscriptions: ReadonlySet<BrokerSubscription>): void
  /** Messages were left unacknowledged: kept for the next consumer of their filter, if there can be one. */
  requeue(messages: readonly DeliveredMessage[]): void
  /** A subscription was left, or another one takes its place: copies for it may still come. */
  handleLeft(subscription: BrokerSubscription): void
  /** A filter has no subscription any more. */
  handleForgotten(subscription: BrokerSubscription): void
}

/** All of it. */
export type SubscribingHost = ClientContext &
  SubscribingOwner & { readonly router: Deliveries; readonly publishQueue: Publishing }
