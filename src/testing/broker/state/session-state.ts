/**
 * What the broker remembers of one client, connected or not: the Session State (section 4.1).
 *
 * Holds state only: `session-store.ts` decides when it begins and ends, and the subscription tree knows its subscriptions too.
 */
import type { ProtocolVersion, SubscriptionRequest } from '../../../wire/packets.js'
import type { BrokerClient } from '../common/events.js'
import type { BrokerMessage } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'
import type { SessionConnection } from './ports.js'
import { SessionDeliveries } from './session-deliveries.js'

/** Session Expiry Interval that means never (section 3.1.2.11.2). */
export const NEVER = 0xffff_ffff

/** One filter of one session. Changes when it is subscribed again [MQTT-3.8.4-3]. */
export interface SessionSubscription extends SubscriptionRequest {
  readonly session: SessionState
  identifier: number | undefined
}

/** What tests may see of a session. */
export interface BrokerSession {
  /** Client Identifier. */
  readonly clientId: string
  /** 5, or 4 for 3.1.1, as its last connection. */
  readonly protocolVersion: ProtocolVersion
  /** Whether its client is connected. */
  readonly connected: boolean
  /** Seconds that it outlives its connection; 4,294,967,295 is for ever. */
  readonly expiryInterval: number
  /** What it has subscribed to. */
  readonly subscriptions: readonly Pick<SessionSubscription, 'filter' | 'qos' | 'noLocal' | 'retainAsPublished' | 'identifier'>[]
  /** Messages that were not sent yet. */
  readonly queued: number
  /** QoS 1/2 messages that were sent and are not settled. */
  readonly inflight: number
  /** Packet identifiers of QoS 2 messages taken from the client and not released. */
  readonly unreleased: readonly number[]
  /** Messages that found no room. */
  readonly dropped: number
  /** Messages that expired while they waited. */
  readonly expired: number
  /** Messages that were larger than the client takes. */
  readonly oversized: number
  /** Messages that `authorizeDelivery` kept from it. */
  readonly discarded: number
}

/** A QoS 2 message between its PUBREC and its PUBREL. */
export interface Unreleased {
  /** Of the PUBREC. */
  readonly reasonCode: number
  /** Tells a repeat from another message under the same packet identifier. */
  readonly fingerprint: number
}

/** A Will Message that waits for its delay. */
export interface PendingWill {
  readonly from: BrokerClient
  readonly message: BrokerMessage
  cancel(): void
}

/** See the file's comment. */
export class SessionState {
  readonly clientId: string
  readonly deliveries: SessionDeliveries
  /** By filter, as given. */
  readonly subscriptions = new Map<string, SessionSubscription>()
  /** QoS 2 publishes that were taken over and not released [MQTT-4.3.3-10]. */
  readonly unreleased = new Map<number, Unreleased>()
  protocolVersion: ProtocolVersion = 5
  /** Seconds. */
  expiryInterval = 0
  connection: SessionConnection | undefined
  /** Set once it is no longer the client's session. */
  ended = false
  will: PendingWill | undefined
  /** Stops the expiry. */
  keep: (() => void) | undefined

  constructor(clientId: string, settings: BrokerSettings) {
    this.clientId = clientId
    this.deliveries = new SessionDeliveries(settings)
  }

  /** A picture of the moment. */
  view(): BrokerSession {
    const { clientId, protocolVersion, expiryInterval, deliveries } = this
    const { dropped, expired, oversized, discarded } = deliveries.ledger
    return {
      clientId,
      protocolVersion,
      connected: this.connection !== undefined,
      expiryInterval,
      subscriptions: [...this.subscriptions.values()].map(({ filter, qos, noLocal, retainAsPublished, identifier }) => ({
        filter,
        qos,
        noLocal,
        retainAsPublished,
        identifier,
      })),
      queued: deliveries.waiting.size,
      inflight: deliveries.inflight.size,
      unreleased: [...this.unreleased.keys()],
      dropped,
      expired,
      oversized,
      discarded,
    }
  }
}
