/**
 * What CONNACK settles. Types only, without any of a platform: the session knows it.
 */
import type { QoS, UserProperties } from '../../wire/packets.js'

/** The outcome of the handshake, under the names of CONNACK's properties; absent ones hold the standard's default. */
export interface Negotiated {
  /** 5 is MQTT 5.0, 4 is 3.1.1. */
  readonly protocolVersion: 4 | 5
  /** The server goes on with a session that it had (section 3.2.2.1.1). */
  readonly sessionPresent: boolean
  /** The client identifier in force: ours, or the one that the server assigned. */
  readonly clientId: string
  /** Seconds in force for keep-alive: Server Keep Alive, else ours. 0 is off. */
  readonly keepAlive: number
  /** Milliseconds without any byte after PINGREQ: the option, but half the keep-alive at most, and no less than a second for that. */
  readonly pingTimeout: number
  /** Seconds that the server set in place of ours; undefined where it did not (section 3.2.2.3.14). */
  readonly serverKeepAlive: number | undefined
  /** Seconds that the session outlives the connection (section 3.2.2.3.2). */
  readonly sessionExpiryInterval: number
  /** QoS 1 and 2 publishes that the server takes at a time. */
  readonly receiveMaximum: number
  /** Highest QoS that the server takes (section 3.2.2.3.4). */
  readonly maximumQoS: QoS
  /** Whether it takes retained messages (section 3.2.2.3.5). */
  readonly retainAvailable: boolean
  /** Bytes; the protocol's own limit where the server gave none. */
  readonly maximumPacketSize: number
  /** Topic aliases that it accepts; 0: it accepts none (section 3.2.2.3.8). */
  readonly topicAliasMaximum: number
  /** Whether filters may have wildcards (section 3.2.2.3.11). */
  readonly wildcardSubscriptionAvailable: boolean
  /** Whether it has Subscription Identifiers; false on 3.1.1 (section 3.2.2.3.12). */
  readonly subscriptionIdentifierAvailable: boolean
  /** Whether it has shared subscriptions; false on 3.1.1, where only SUBACK can say so (section 3.2.2.3.13). */
  readonly sharedSubscriptionAvailable: boolean
  /** The client identifier that the server chose, where we gave none (section 3.2.2.3.7). */
  readonly assignedClientIdentifier: string | undefined
  /** What response topics may begin with, where it was asked for (section 3.2.2.3.15). */
  readonly responseInformation: string | undefined
  /** Another server to use (section 3.2.2.3.16). */
  readonly serverReference: string | undefined
  /** What the server says about it, as received: escape it before printing (section 3.2.2.3.9). */
  readonly reasonString: string | undefined
  /** Pairs of name and value; empty where there were none (section 3.2.2.3.10). */
  readonly userProperties: Readonly<UserProperties>
}
