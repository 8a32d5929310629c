/**
 * What the broker's state needs from connections and from the broker. Types only.
 */
import type { Properties } from '../../../wire/packets.js'
import type { Eventually } from '../common/hooks.js'
import type { BrokerMessage } from '../common/message.js'
import type { VerdictHost } from '../common/verdicts.js'
import type { MessageOrigin } from './broker-log.js'
import type { Delivery } from './message-queue.js'
import type { RetainedStore } from './retained.js'

/** The connection, as far as messages to the client go. */
export interface DeliveryLink {
  /** The client's, within the broker's own bound. */
  readonly receiveMaximum: number
  /** True while the client does not read. */
  readonly congested: boolean
  /** Sends a PUBLISH; false when it is larger than the client takes. */
  publish(delivery: Delivery, packetId: number | undefined, dup: boolean): boolean
  /** Sends a PUBREL. */
  release(packetId: number, reasonCode: number): void
  /** Asks the hook whether the client may have the message. */
  allows(delivery: Delivery): Eventually<boolean>
}

/** The connection that a session belongs to at the moment. */
export interface SessionConnection {
  /** True once the connection has ended. */
  readonly over: boolean
  /** Ends it, after a DISCONNECT where the client understands one. */
  disconnect(reasonCode: number, properties?: Properties): void
}

/** The broker, as far as Will Messages go. */
export interface WillHost extends VerdictHost {
  readonly retained: RetainedStore
  /** Publishes a message; false without a subscription. */
  publish(message: BrokerMessage, origin: MessageOrigin): boolean
}
