/**
 * The Session State of one client, connected or not (section 4.1).
 *
 * It holds state only: `session-store.ts` begins and ends sessions, and the subscription tree also
 * has their subscriptions.
 */
import type { ProtocolVersion } from '../../../wire/packets.js'
import type { BrokerSession, SessionSubscription } from '../common/broker-session.js'
import type { BrokerClient } from '../common/events.js'
import type { BrokerMessage } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'
import type { SessionConnection } from './ports.js'
import { SessionDeliveries } from './session-deliveries.js'

/** Session Expiry Interval that means never (section 3.1.2.11.2). */
export const NEVER = 0xffff_ffff

/** One filter of one session, with that session. */
export interface StoredSubscription extends SessionSubscription {
  readonly session: SessionState
}

/** A QoS 2 message between its PUBREC and its PUBREL. */
export interface Unreleased {
  /** Reason code of the PUBREC. */
  readonly reasonCode: number
  /** Distinguishes a repeat from another message under the same packet identifier. */
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
  /** Subscriptions by filter, as written in SUBSCRIBE. */
  readonly subscriptions = new Map<string, StoredSubscription>()
  /** QoS 2 publishes received and not released [MQTT-4.3.3-10]. */
  readonly unreleased = new Map<number, Unreleased>()
  protocolVersion: ProtocolVersion = 5
  /** Session Expiry Interval in seconds. */
  expiryInterval = 0
  connection: SessionConnection | undefined
  /** True once the session has ended. */
  ended = false
  will: PendingWill | undefined
  /** Cancels the expiry timer. */
  keep: (() => void) | undefined

  constructor(clientId: string, settings: BrokerSettings) {
    this.clientId = clientId
    this.deliveries = new SessionDeliveries(settings)
  }

  /** A snapshot. */
  view(): BrokerSession {
    const { clientId, protocolVersion, expiryInterval, deliveries } = this
    const { dropped, expired, oversized, discarded } = deliveries.ledger
    return {
      clientId,
      protocolVersion,
      connected: this.connection !== undefined,
      expiryInterval,
      subscriptions: [...this.subscriptions.values()].map(
        ({ filter, qos, noLocal, retainAsPublished, identifier }) => ({
          filter,
          qos,
          noLocal,
          retainAsPublished,
          identifier,
        }),
      ),
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
