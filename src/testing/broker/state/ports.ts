/**
 * Interfaces that the broker's state needs from connections and from the broker. Types only.
 */
import type { Properties } from '../../../wire/packets.js'
import type { Eventually } from '../common/hooks.js'
import type { BrokerMessage } from '../common/message.js'
import type { VerdictHost } from '../common/verdicts.js'
import type { MessageOrigin } from './broker-log.js'
import type { Delivery } from './message-queue.js'
import type { RetainedStore } from './retained.js'

/** The connection, for sending messages to the client. */
export interface DeliveryLink {
  /** The client's Receive Maximum, limited by `maxInflight`. */
  readonly receiveMaximum: number
  /** True while the client does not read. */
  readonly congested: boolean
  /** Sends a PUBLISH; false when it exceeds the client's Maximum Packet Size. */
  publish(delivery: Delivery, packetId: number | undefined, dup: boolean): boolean
  /** Sends a PUBREL. */
  release(packetId: number, reasonCode: number): void
  /** Calls the hook that decides whether the client may get the message. */
  allows(delivery: Delivery): Eventually<boolean>
}

/** The current connection of a session. */
export interface SessionConnection {
  /** True once the connection has ended. */
  readonly over: boolean
  /** Ends the connection, after a DISCONNECT if the protocol version has one from the server. */
  disconnect(reasonCode: number, properties?: Properties): void
}

/** The broker, for Will Messages. */
export interface WillHost extends VerdictHost {
  readonly retained: RetainedStore
  /** Publishes a message; false when no subscription matches. */
  publish(message: BrokerMessage, origin: MessageOrigin): boolean
}
