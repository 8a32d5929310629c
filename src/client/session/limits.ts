/**
 * The server's limits: CONNACK properties with the standard's defaults, and the checks before
 * anything is sent (section 3.2.2.3).
 *
 * Pure functions over one frozen object. A check returns an error code, or undefined when the
 * operation is allowed.
 */

import type { MqttErrorCode } from '../../errors.js'
import { MAXIMUM_PACKET_SIZE } from '../../wire/constants.js'
import type { ConnackPacket, ConnectPacket, QoS } from '../../wire/packets.js'
import { hasWildcard, isShared } from '../../wire/topics.js'
import type { Negotiated } from '../options/negotiated.js'

/** Combines CONNECT and CONNACK. */
export function negotiate(
  connect: ConnectPacket,
  connack: ConnackPacket,
  pingTimeout: number,
): Negotiated {
  const { properties } = connack
  const keepAlive = properties.serverKeepAlive ?? connect.keepAlive
  const v5 = connect.protocolVersion === 5
  return Object.freeze<Negotiated>({
    protocolVersion: connect.protocolVersion,
    sessionPresent: connack.sessionPresent,
    clientId: properties.assignedClientIdentifier ?? connect.clientId,
    keepAlive,
    pingTimeout:
      keepAlive === 0 ? pingTimeout : Math.min(pingTimeout, Math.max(1000, keepAlive * 500)),
    serverKeepAlive: properties.serverKeepAlive,
    sessionExpiryInterval:
      properties.sessionExpiryInterval ?? connect.properties.sessionExpiryInterval ?? 0,
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

/**
 * The reason to reject a CONNACK with reason code 0, or undefined. `owned`: the server may have a
 * session.
 */
export function objectionTo(
  connect: ConnectPacket,
  { sessionPresent, properties }: ConnackPacket,
  owned: boolean,
): string | undefined {
  // [MQTT-3.2.2-4]
  if (sessionPresent && (connect.cleanStart || !owned)) return 'unknown session present'
  if (properties.assignedClientIdentifier !== undefined && connect.clientId !== '')
    return 'unasked client identifier'
  if (properties.authenticationMethod !== connect.properties.authenticationMethod)
    return 'other authentication method'
  return undefined
}

/** Checks a PUBLISH [MQTT-3.2.2-11] [MQTT-3.2.2-14]. */
export function checkPublish(
  limits: Negotiated,
  qos: QoS,
  retain: boolean,
): MqttErrorCode | undefined {
  if (qos > limits.maximumQoS) return 'ERR_QOS_UNSUPPORTED'
  if (retain && !limits.retainAvailable) return 'ERR_RETAIN_UNSUPPORTED'
  return undefined
}

/** Checks a Topic Filter (sections 3.2.2.3.11 to 3.2.2.3.13). */
export function checkFilter(
  limits: Negotiated,
  filter: string,
  withIdentifier: boolean,
): MqttErrorCode | undefined {
  // On 3.1.1, `$share` filters are ordinary ones, and some servers support them as shared
  // subscriptions.
  if (!limits.sharedSubscriptionAvailable && limits.protocolVersion === 5 && isShared(filter))
    return 'ERR_SHARED_SUBS_UNSUPPORTED'
  if (!limits.wildcardSubscriptionAvailable && hasWildcard(filter))
    return 'ERR_WILDCARD_SUBS_UNSUPPORTED'
  if (withIdentifier && !limits.subscriptionIdentifierAvailable)
    return 'ERR_SUBSCRIPTION_IDS_UNSUPPORTED'
  return undefined
}
