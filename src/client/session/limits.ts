/**
 * What the server allows: CONNACK's properties with the standard's defaults filled in, and the checks before anything is sent (section 3.2.2.3).
 *
 * Pure functions over one frozen object. A check gives the error code that fits, or undefined when the operation may go ahead.
 */
import type { MqttErrorCode } from '../../errors.js'
import { MAXIMUM_PACKET_SIZE } from '../../wire/constants.js'
import type { ConnackPacket, ConnectPacket, QoS, UserProperties } from '../../wire/packets.js'
import { hasWildcard, isShared } from '../../wire/topics.js'

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
  /** Topic aliases that it takes; 0 is none (section 3.2.2.3.8). */
  readonly topicAliasMaximum: number
  /** Whether filters may have wildcards (section 3.2.2.3.11). */
  readonly wildcardSubscriptionAvailable: boolean
  /** Whether it has Subscription Identifiers; false on 3.1.1 (section 3.2.2.3.12). */
  readonly subscriptionIdentifierAvailable: boolean
  /** Whether it has shared subscriptions; false on 3.1.1, which cannot tell: SUBACK does there (section 3.2.2.3.13). */
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

/** Joins what was asked and what was answered. */
export function negotiate(connect: ConnectPacket, connack: ConnackPacket, pingTimeout: number): Negotiated {
  const { properties } = connack
  const keepAlive = properties.serverKeepAlive ?? connect.keepAlive
  const v5 = connect.protocolVersion === 5
  return Object.freeze<Negotiated>({
    protocolVersion: connect.protocolVersion,
    sessionPresent: connack.sessionPresent,
    clientId: properties.assignedClientIdentifier ?? connect.clientId,
    keepAlive,
    pingTimeout: keepAlive === 0 ? pingTimeout : Math.min(pingTimeout, Math.max(1000, keepAlive * 500)),
    serverKeepAlive: properties.serverKeepAlive,
    sessionExpiryInterval: properties.sessionExpiryInterval ?? connect.properties.sessionExpiryInterval ?? 0,
    receiveMaximum: properties.receiveMaximum ?? 65_535,
    maximumQoS: (properties.maximumQoS ?? 2) as QoS,
    retainAvailable: properties.retainAvailable !== 0,
    maximumPacketSize: properties.maximumPacketSize ?? MAXIMUM_PACKET_SIZE,
    topicAliasMaximum: properties.topicAliasMaximum ?? 0,
    wildcardSubscriptionAvailable: properties.wildcardSubscriptionAvailable !== 0,
    subscriptionIdentifierAvailable: v5 && properties.subscriptionIdentifierAvailable !== 0,
    sharedSubscriptionAvailable: v5 && properties.sharedSubscriptionAvailable !== 0,
    assignedClientIdentifier: properties.assignedClientIdentifier,
    responseInformation: properties.responseInformation,
    serverReference: properties.serverReference,
    reasonString: properties.reasonString,
    userProperties: Object.freeze(properties.userProperties ?? []),
  })
}

/** May this PUBLISH go to this server? [MQTT-3.2.2-11] [MQTT-3.2.2-14] */
export function checkPublish(limits: Negotiated, qos: QoS, retain: boolean): MqttErrorCode | undefined {
  if (qos > limits.maximumQoS) return 'ERR_QOS_UNSUPPORTED'
  if (retain && !limits.retainAvailable) return 'ERR_RETAIN_UNSUPPORTED'
  return undefined
}

/** May this filter be subscribed to on this server? (sections 3.2.2.3.11 to 3.2.2.3.13) */
export function checkFilter(limits: Negotiated, filter: string, withIdentifier: boolean): MqttErrorCode | undefined {
  // On 3.1.1 it is a filter like any other: servers that know shared subscriptions take it for one.
  if (!limits.sharedSubscriptionAvailable && limits.protocolVersion === 5 && isShared(filter)) return 'ERR_SHARED_SUBS_UNSUPPORTED'
  if (!limits.wildcardSubscriptionAvailable && hasWildcard(filter)) return 'ERR_WILDCARD_SUBS_UNSUPPORTED'
  if (withIdentifier && !limits.subscriptionIdentifierAvailable) return 'ERR_SUBSCRIPTION_IDS_UNSUPPORTED'
  return undefined
}
