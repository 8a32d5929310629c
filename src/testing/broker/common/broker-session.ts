/**
 * What tests see of a session: a picture of one moment. Types only, so that nothing of the inside is published with them.
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
  /** 5, or 4 for 3.1.1, as its last connection. */
  readonly protocolVersion: ProtocolVersion
  /** Whether its client is connected. */
  readonly connected: boolean
  /** Seconds that it outlives its connection; 4,294,967,295 is for ever. */
  readonly expiryInterval: number
  /** Its subscriptions. */
  readonly subscriptions: readonly Pick<
    SessionSubscription,
    'filter' | 'qos' | 'noLocal' | 'retainAsPublished' | 'identifier'
  >[]
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
