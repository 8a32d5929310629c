/**
 * What subscribing needs of the other rooms. Types only; `lifecycle/` implements the owner, `connection/` the writer, `delivery/` what messages go to.
 */
import type { ClientPacket } from '../../wire/packets.js'
import type { SparseSet } from '../common/sparse.js'
import type { ClientContext } from '../context/context.js'
import type { Consumer } from '../delivery/consumer.js'
import type { DeliveredMessage } from '../delivery/message.js'
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
  /** The connection, while it takes packets of the application. */
  readonly links: { readonly connection: { readonly writer: RequestWriter } | undefined }
  /** True once `disconnect()` began. */
  readonly states: { readonly stopping: boolean }
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
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
export type SubscribingHost = ClientContext & SubscribingOwner & { readonly router: Deliveries }
