/**
 * A session as tests see it: a snapshot. Types only, so that no internals are published with them.
 */
import type { ProtocolVersion, SubscriptionRequest } from '../../../wire/packets.js'

/** One filter of one session. Changes when it is subscribed again [MQTT-3.8.4-3]. */
export interface SessionSubscription extends SubscriptionRequest {
  identifier: number | undefined
}

/** A session as tests see it. */
export interface BrokerSession {
  /** Client Identifier. */
  readonly clientId: string
  /** 5, or 4 for 3.1.1: the version of its last connection. */
  readonly protocolVersion: ProtocolVersion
  /** Whether its client is connected. */
  readonly connected: boolean
  /** Seconds that it outlives its connection; 4,294,967,295 means that it never expires. */
  readonly expiryInterval: number
  /** Its subscriptions. */
  readonly subscriptions: readonly Pick<
    SessionSubscription,
    'filter' | 'qos' | 'noLocal' | 'retainAsPublished' | 'identifier'
  >[]
  /** Messages not sent yet. */
  readonly queued: number
  /** QoS 1/2 messages sent and not settled. */
  readonly inflight: number
  /** Packet identifiers of QoS 2 messages received from the client and not released. */
  readonly unreleased: readonly number[]
  /** Messages dropped because the queue was full. */
  readonly dropped: number
  /** Messages that expired in the queue. */
  readonly expired: number
  /** Messages larger than the client's Maximum Packet Size. */
  readonly oversized: number
  /** Messages that `authorizeDelivery` withheld. */
  readonly discarded: number
}
