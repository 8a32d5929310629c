/**
 * The result of the handshake. Types only, without platform types, because the session uses it.
 */
import type { QoS, UserProperties } from '../../wire/packets.js'

/**
 * The result of the handshake, with the names of CONNACK's properties; absent ones have the
 * standard's default.
 */
export interface Negotiated {
  /** 5 is MQTT 5.0, 4 is 3.1.1. */
  readonly protocolVersion: 4 | 5
  /** The server resumed an existing session (section 3.2.2.1.1). */
  readonly sessionPresent: boolean
  /** The client identifier in use: ours, or the one that the server assigned. */
  readonly clientId: string
  /** Keep-alive in use, in seconds: Server Keep Alive, otherwise ours. 0: off. */
  readonly keepAlive: number
  /**
   * Milliseconds without any byte after PINGREQ until the connection counts as lost: the option,
   * but at most half the keep-alive or one second, whichever is more.
   */
  readonly pingTimeout: number
  /** Server Keep Alive in seconds; undefined if the server did not set one (section 3.2.2.3.14). */
  readonly serverKeepAlive: number | undefined
  /** Seconds that the session outlives the connection (section 3.2.2.3.2). */
  readonly sessionExpiryInterval: number
  /** QoS 1 and 2 publishes that the server accepts in flight. */
  readonly receiveMaximum: number
  /** Highest QoS that the server supports (section 3.2.2.3.4). */
  readonly maximumQoS: QoS
  /** Whether it supports retained messages (section 3.2.2.3.5). */
  readonly retainAvailable: boolean
  /** Bytes; the protocol's limit if the server announced none. */
  readonly maximumPacketSize: number
  /** Highest topic alias that it accepts; 0: none (section 3.2.2.3.8). */
  readonly topicAliasMaximum: number
  /** Whether filters may have wildcards (section 3.2.2.3.11). */
  readonly wildcardSubscriptionAvailable: boolean
  /** Whether it supports Subscription Identifiers; false on 3.1.1 (section 3.2.2.3.12). */
  readonly subscriptionIdentifierAvailable: boolean
  /**
   * Whether it supports shared subscriptions; false on 3.1.1, where only SUBACK can show it
   * (section 3.2.2.3.13).
   */
  readonly sharedSubscriptionAvailable: boolean
  /** The client identifier that the server assigned, if we sent none (section 3.2.2.3.7). */
  readonly assignedClientIdentifier: string | undefined
  /** Basis for response topics, if it was requested (section 3.2.2.3.15). */
  readonly responseInformation: string | undefined
  /** Another server to use (section 3.2.2.3.16). */
  readonly serverReference: string | undefined
  /** The server's Reason String, as received: escape it before printing (section 3.2.2.3.9). */
  readonly reasonString: string | undefined
  /** Pairs of name and value; empty if there were none (section 3.2.2.3.10). */
  readonly userProperties: Readonly<UserProperties>
}
