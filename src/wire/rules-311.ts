/**
 * What MQTT 3.1.1 forbids in packets that 5.0 allows.
 *
 * The writers leave these checks out, so that programs that speak 5.0 alone do not carry them; what writes 3.1.1 calls `check311` first. It looks at
 * nothing that the writers check themselves, and so must stand any shape.
 */

import { refused } from './error.js'
import type { PacketInput } from './packet-input.js'
import { isObject } from './writer.js'

/** @throws WireError that names the field which 3.1.1 does not know, or forbids */
export function check311(packet: PacketInput): void {
  if (packet.type === 'auth') throw refused('type', 'does not exist on 3.1.1')
  checkEmpty((packet as { properties?: unknown }).properties, 'properties')
  if (packet.type === 'connect') checkConnect(packet)
  else if (packet.type === 'subscribe') checkSubscriptions(packet.subscriptions)
  // A CONNACK has return codes of its own.
  else if (packet.type !== 'connack' && 'reasonCode' in packet && (packet.reasonCode ?? 0) !== 0) {
    throw refused('reasonCode', 'must be 0 on 3.1.1')
  }
}

function checkEmpty(properties: unknown, path: string): void {
  const empty =
    properties === undefined ||
    (isObject(properties) && Object.values(properties).every((value) => value === undefined))
  if (!empty) throw refused(path, 'must be empty on 3.1.1')
}

function checkConnect(packet: PacketInput & { type: 'connect' }): void {
  if (isObject(packet.will)) checkEmpty(packet.will.properties, 'will.properties')
  // [MQTT-3.1.2-22] and [MQTT-3.1.3-7] of 3.1.1.
  if (packet.password !== undefined && packet.username === undefined)
    throw refused('password', 'needs a user name on 3.1.1')
  if ((packet.clientId ?? '') === '' && packet.cleanStart === false) {
    throw refused('clientId', 'must not be empty without a clean session on 3.1.1')
  }
}

function checkSubscriptions(subscriptions: unknown): void {
  if (!Array.isArray(subscriptions)) return
  subscriptions.forEach((subscription: unknown, index) => {
    const { noLocal, retainAsPublished, retainHandling } = (subscription ?? {}) as Record<
      string,
      unknown
    >
    if (noLocal || retainAsPublished || retainHandling)
      throw refused(`subscriptions[${index}]`, 'must not have options beyond QoS on 3.1.1')
  })
}
