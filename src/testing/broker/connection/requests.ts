/**
 * Handles the packets of a connected client: PUBLISH and its acknowledgements, SUBSCRIBE,
 * UNSUBSCRIBE, PINGREQ, DISCONNECT, AUTH.
 *
 * Assumes packets that the decoder accepted; finds violations that only a sequence of packets
 * shows. Answers are never delayed.
 */
import type {
  ClientPacket,
  DisconnectPacket,
  PubackPacket,
  PubcompPacket,
  PublishPacket,
  PubrecPacket,
  PubrelPacket,
  SubscribePacket,
  SubscriptionRequest,
  UnsubscribePacket,
} from '../../../wire/packets.js'
import { hasWildcard, isShared } from '../../../wire/topics.js'
import { type Eventually, isPromise } from '../common/hooks.js'
import { fingerprintOf, messageOf } from '../common/message.js'
import { publishVerdict, subscribeVerdict } from '../common/verdicts.js'
import { RetainedCursor } from '../state/retained-cursor.js'
import type { SessionState } from '../state/session-state.js'
import { handleAuth } from './handshake.js'
import type { RequestKind } from './open-requests.js'
import type { HandledConnection } from './ports.js'

/** Handles a packet after CONNACK. */
export function handleRequest(connection: HandledConnection, packet: ClientPacket): void {
  const { session } = connection.peer
  if (session === undefined) return
  switch (packet.type) {
    case 'publish':
      onPublish(connection, session, packet)
      break
    case 'puback':
    case 'pubrec':
    case 'pubcomp':
      onAck(connection, session, packet)
      break
    case 'pubrel':
      onPubrel(connection, session, packet)
      break
    case 'subscribe':
      onSubscribe(connection, session, packet)
      break
    case 'unsubscribe':
      onUnsubscribe(connection, session, packet)
      break
    case 'pingreq':
      connection.sender.send({ type: 'pingresp' }) // [MQTT-3.12.4-1]
      break
    case 'disconnect':
      onDisconnect(connection, session, packet)
      break
    case 'auth':
      handleAuth(connection, packet)
      break
    default:
      connection.violate('a second CONNECT [MQTT-3.1.0-2]', packet.type, 0x82)
  }
}

/** Answers a packet with the reason code of a fault, without any other effect. */
export function refuseRequest(
  connection: HandledConnection,
  packet: ClientPacket,
  reasonCode: number,
): void {
  const { session } = connection.peer
  if (session === undefined) return
  if (packet.type === 'publish') onPublish(connection, session, packet, reasonCode)
  else if (packet.type === 'subscribe')
    answer(connection, packet, fill(packet.subscriptions, reasonCode))
  else if (packet.type === 'unsubscribe')
    answer(connection, packet, fill(packet.filters, reasonCode))
  else if (packet.type === 'pubrel')
    connection.sender.send({
      type: 'pubcomp',
      packetId: packet.packetId,
      reasonCode: code311(connection, reasonCode),
      properties: {},
    })
}

function fill(list: readonly unknown[], reasonCode: number): number[] {
  return list.map(() => reasonCode)
}

function code311({ peer }: HandledConnection, reasonCode: number): number {
  return peer.protocolVersion === 4 ? 0 : reasonCode
}

function onPublish(
  connection: HandledConnection,
  session: SessionState,
  given: PublishPacket,
  refusal?: number,
): void {
  // Only on 3.1.1: the decoder refuses it on 5.0.
  if (given.dup && given.qos === 0) {
    connection.violate('DUP at QoS 0 [MQTT-3.3.1-2]', 'publish', 0x82)
    return
  }
  const packet = resolveAlias(connection, given)
  if (packet === undefined || breaksLimits(connection, packet)) return
  const { qos, packetId } = packet
  if (packetId !== undefined && !openRequest(connection, packetId, 'publish', packet.dup, qos))
    return
  const known =
    (packetId === undefined ? undefined : repeatedCode(connection, session, packet)) ?? refusal
  if (known !== undefined) acknowledge(connection, packet, known)
  else
    connection.decide(verdictOn(connection, packet), (code) =>
      finishPublish(connection, session, packet, code),
    )
}

/** Accepts or refuses a message, by the hook's verdict. */
function finishPublish(
  connection: HandledConnection,
  session: SessionState,
  packet: PublishPacket,
  verdict: number,
): void {
  // A hook may have ended the connection.
  if (connection.end.over) return
  const reasonCode = verdict >= 0x80 ? verdict : noRoom(connection, packet)
  if (reasonCode >= 0x80) acknowledge(connection, packet, reasonCode)
  else if (packet.packetId === undefined) accept(connection, packet)
  else acknowledge(connection, packet, takeOver(connection, session, packet, packet.packetId))
}

function acknowledge(
  connection: HandledConnection,
  { qos, packetId }: PublishPacket,
  reasonCode: number,
): void {
  if (packetId === undefined) return
  const type = qos === 1 ? 'puback' : 'pubrec'
  // A fault or a listener may have ended the connection meanwhile.
  connection.sender.send({
    type,
    packetId,
    reasonCode: code311(connection, reasonCode),
    properties: {},
  })
}

/**
 * The code that answers a PUBLISH with an unreleased identifier; undefined for a new one
 * [MQTT-4.3.3-10].
 */
function repeatedCode(
  connection: HandledConnection,
  session: SessionState,
  { qos, packetId = 0, dup, topic, payload }: PublishPacket,
): number | undefined {
  const known = session.unreleased.get(packetId)
  if (known === undefined) return undefined
  if (qos === 2 && known.fingerprint === fingerprintOf(topic, payload)) {
    // It counts as the same message, because some clients omit the flag.
    if (!dup) connection.violate('a repeat without DUP [MQTT-3.3.1-1]', 'publish')
    return known.reasonCode
  }
  connection.violate('a new PUBLISH with a packet identifier in use [MQTT-2.2.1-3]', 'publish')
  // 3.1.1 has no refusal: an acknowledged message is accepted.
  return qos === 1 && connection.peer.protocolVersion === 4 ? undefined : 0x91
}

/** Accepts the client's message; returns the code of its acknowledgement. */
function takeOver(
  connection: HandledConnection,
  session: SessionState,
  packet: PublishPacket,
  packetId: number,
): number {
  const { qos, topic, payload } = packet
  const fingerprint = qos === 2 ? fingerprintOf(topic, payload) : 0
  // Before the message is routed, because routing may call code that reads it.
  if (qos === 2) session.unreleased.set(packetId, { reasonCode: 0, fingerprint })
  const reasonCode = accept(connection, packet) ? 0 : 0x10
  if (session.unreleased.has(packetId))
    session.unreleased.set(packetId, { reasonCode, fingerprint })
  return reasonCode
}

function accept(connection: HandledConnection, packet: PublishPacket): boolean {
  const message = messageOf(packet, connection.peer.clientId, connection.broker.clock.now())
  return connection.broker.publish(message, {
    packetId: packet.packetId,
    dup: packet.dup,
    will: false,
  })
}

/** [MQTT-3.3.2-7] [MQTT-3.3.2-12]; undefined when the connection had to end. */
function resolveAlias(
  connection: HandledConnection,
  packet: PublishPacket,
): PublishPacket | undefined {
  const { topicAlias } = packet.properties
  if (topicAlias === undefined) return packet
  if (topicAlias > connection.broker.settings.topicAliasMaximum) {
    connection.violate('topic alias above the maximum [MQTT-3.3.2-9]', 'publish', 0x94)
    return undefined
  }
  const topic = packet.topic === '' ? connection.peer.aliases.get(topicAlias) : packet.topic
  if (topic === undefined) {
    connection.violate('topic alias without a topic (section 3.3.2.3.4)', 'publish', 0x82)
    return undefined
  }
  connection.peer.aliases.set(topicAlias, topic)
  return { ...packet, topic }
}

/** Limits that only 5.0 can state. */
function breaksLimits(connection: HandledConnection, { qos, retain }: PublishPacket): boolean {
  const { maximumQoS, retainAvailable } = connection.broker.settings
  if (connection.peer.protocolVersion === 4) return false
  if (qos > maximumQoS) connection.violate('QoS above the maximum [MQTT-3.2.2-11]', 'publish', 0x9b)
  else if (retain && !retainAvailable)
    connection.violate('RETAIN without retained messages [MQTT-3.2.2-14]', 'publish', 0x9a)
  else return false
  return true
}

/** Records an unanswered request; false when it ended the connection or must be ignored. */
function openRequest(
  connection: HandledConnection,
  packetId: number,
  kind: RequestKind,
  dup = false,
  qos = 0,
): boolean {
  const { requests, broker, peer } = connection
  const unreleased = peer.session?.unreleased.has(packetId) === true
  if (requests.has(packetId) || (unreleased && kind !== 'publish')) {
    if (dup) connection.violate('a repeat on the same connection [MQTT-4.4.0-1]', kind)
    // A PUBLISH under an unreleased identifier is answered, and noted, further on.
    else if (!unreleased || kind !== 'publish')
      connection.violate('a packet identifier in use [MQTT-2.2.1-3]', kind)
    return true
  }
  requests.add(packetId, kind, qos)
  if (
    kind !== 'publish' ||
    peer.protocolVersion === 4 ||
    requests.publishes <= broker.settings.receiveMaximum
  )
    return true
  connection.violate('more PUBLISH than Receive Maximum [MQTT-3.3.4-7]', kind, 0x93)
  return false
}

/** The code of a refused message, or one below 0x80. */
function verdictOn({ broker, peer }: HandledConnection, packet: PublishPacket): Eventually<number> {
  if (levels(packet.topic) > broker.settings.maxTopicLevels) return 0x90
  return broker.settings.authorizePublish === undefined
    ? 0
    : publishVerdict(broker, peer.view, () => packet)
}

function noRoom({ broker }: HandledConnection, packet: PublishPacket): number {
  return packet.retain && !broker.retained.hasRoom(messageOf(packet, undefined, 0)) ? 0x97 : 0
}

function levels(topic: string): number {
  let count = 1
  for (let at = topic.indexOf('/'); at >= 0; at = topic.indexOf('/', at + 1)) count++
  return count
}

function onAck(
  connection: HandledConnection,
  session: SessionState,
  packet: PubackPacket | PubrecPacket | PubcompPacket,
): void {
  const { type, packetId, reasonCode } = packet
  // A repeated PUBREC is answered again and changes nothing (section 4.3.3).
  const repeated = type === 'pubrec' && session.deliveries.inflight.isReleased(packetId)
  // 5.0 has no reason code for it (section 4.13.1), so the connection continues.
  if (
    connection.peer.protocolVersion === 4 &&
    !connection.peer.disturbed &&
    session.deliveries.inflight.contradicts(type, packetId)
  ) {
    connection.violate(
      `${type} for a message that awaits another answer [MQTT-4.8.0-1]`,
      type,
      0x82,
    )
    return
  }
  const fault = repeated
    ? 'pubrec again [MQTT-4.4.0-1]'
    : session.deliveries.inflight.acknowledge(type, packetId, reasonCode)
  // After a fault the broker does not know which packets reached the client.
  if (fault !== undefined && !connection.peer.disturbed) connection.violate(fault, type)
  if (type === 'pubrec' && reasonCode < 0x80)
    connection.sender.release(packetId, session.deliveries.inflight.isReleased(packetId) ? 0 : 0x92)
  session.deliveries.flush()
}

/** [MQTT-4.3.3-11] */
function onPubrel(
  connection: HandledConnection,
  session: SessionState,
  { packetId }: PubrelPacket,
): void {
  if (!connection.requests.takeReceipt(packetId) && !connection.peer.disturbed)
    connection.violate('pubrel out of order [MQTT-4.6.0-4]', 'pubrel')
  const known = session.unreleased.delete(packetId)
  connection.sender.send({
    type: 'pubcomp',
    packetId,
    reasonCode: code311(connection, known ? 0 : 0x92),
    properties: {},
  })
}

function onSubscribe(
  connection: HandledConnection,
  session: SessionState,
  packet: SubscribePacket,
): void {
  const identifier = packet.properties.subscriptionIdentifiers?.[0]
  if (
    breaksAvailability(connection, packet, identifier) ||
    !openRequest(connection, packet.packetId, 'subscribe')
  )
    return
  const inUse = session.unreleased.has(packet.packetId)
  const verdicts = packet.subscriptions.map((request) =>
    inUse ? 0x91 : verdictOnFilter(connection, request),
  )
  connection.decide(all(verdicts), (codes) => finishSubscribe(connection, session, packet, codes))
}

/** All values: synchronously, unless one is a promise. */
function all(values: readonly Eventually<number>[]): Eventually<readonly number[]> {
  return values.some(isPromise) ? Promise.all(values) : (values as readonly number[])
}

function finishSubscribe(
  connection: HandledConnection,
  session: SessionState,
  packet: SubscribePacket,
  verdicts: readonly number[],
): void {
  // A hook may have ended the connection.
  if (connection.end.over) return
  const { broker, peer } = connection
  const { subscriptions, properties } = packet
  const identifier = properties.subscriptionIdentifiers?.[0]
  const wanted: SubscriptionRequest[] = []
  const reasonCodes = subscriptions.map((request, index) => {
    const verdict = verdicts[index] as number
    const code = verdict >= 0x80 ? verdict : noSubscription(connection, session, request)
    if (code >= 0x80) return code
    const granted: SubscriptionRequest = {
      ...request,
      qos: Math.min(request.qos, broker.settings.maximumQoS) as SubscriptionRequest['qos'],
    }
    const isNew = broker.subscriptions.add(session, granted, identifier)
    if (
      !isShared(request.filter) &&
      (request.retainHandling === 0 || (request.retainHandling === 1 && isNew))
    )
      wanted.push(granted)
    return granted.qos
  })
  answer(connection, packet, reasonCodes)
  broker.log.events.emit('subscribe', { client: peer.view, subscriptions, reasonCodes, properties })
  for (const request of wanted) sendRetained(connection, session, request, identifier)
}

/**
 * Whether a request uses a feature that CONNACK declared unavailable (sections 3.2.2.3.11 to
 * 3.2.2.3.13).
 */
function breaksAvailability(
  connection: HandledConnection,
  { subscriptions }: SubscribePacket,
  identifier: number | undefined,
): boolean {
  if (connection.peer.protocolVersion === 4) return false
  const {
    wildcardSubscriptionAvailable,
    subscriptionIdentifierAvailable,
    sharedSubscriptionAvailable,
  } = connection.broker.settings
  const rules: [boolean, string, number][] = [
    [
      !subscriptionIdentifierAvailable && identifier !== undefined,
      'subscription identifiers are not available (section 3.2.2.3.12)',
      0xa1,
    ],
    [
      !sharedSubscriptionAvailable && subscriptions.some(({ filter }) => isShared(filter)),
      'shared subscriptions are not available (section 3.2.2.3.13)',
      0x9e,
    ],
    [
      !wildcardSubscriptionAvailable && subscriptions.some(({ filter }) => hasWildcard(filter)),
      'wildcards are not available (section 3.2.2.3.11)',
      0xa2,
    ],
  ]
  const broken = rules.find(([isBroken]) => isBroken)
  if (broken !== undefined) connection.violate(broken[1], 'subscribe', broken[2])
  return broken !== undefined
}

/** The code of a refused filter, or one below 0x80. Does not depend on the session. */
function verdictOnFilter(
  { broker, peer }: HandledConnection,
  request: SubscriptionRequest,
): Eventually<number> {
  const { settings } = broker
  if (!settings.wildcardSubscriptionAvailable && hasWildcard(request.filter)) return 0xa2
  if (!settings.sharedSubscriptionAvailable && isShared(request.filter)) return 0x9e
  if (levels(request.filter) > settings.maxTopicLevels) return 0x8f
  return subscribeVerdict(broker, peer.view, request)
}

function noSubscription(
  { broker }: HandledConnection,
  { subscriptions }: SessionState,
  { filter }: SubscriptionRequest,
): number {
  return !subscriptions.has(filter) && subscriptions.size >= broker.settings.maxSubscriptions
    ? 0x97
    : 0
}

/** [MQTT-3.3.1-9] to [MQTT-3.3.1-11] */
function sendRetained(
  { broker }: HandledConnection,
  { clientId, deliveries }: SessionState,
  request: SubscriptionRequest,
  identifier: number | undefined,
): void {
  deliveries.fetch(new RetainedCursor(broker.retained, { ...request, identifier, clientId }))
}

function onUnsubscribe(
  connection: HandledConnection,
  session: SessionState,
  packet: UnsubscribePacket,
): void {
  if (!openRequest(connection, packet.packetId, 'unsubscribe')) return
  const reasonCodes = session.unreleased.has(packet.packetId)
    ? fill(packet.filters, 0x91)
    : packet.filters.map((filter) => unsubscribe(connection, session, filter))
  answer(connection, packet, reasonCodes)
  connection.broker.log.events.emit('unsubscribe', {
    client: connection.peer.view,
    filters: packet.filters,
    reasonCodes,
  })
}

function unsubscribe({ broker }: HandledConnection, session: SessionState, filter: string): number {
  session.deliveries.fetches.stop(filter)
  return broker.subscriptions.remove(session, filter) ? 0 : 0x11
}

/**
 * Sends SUBACK or UNSUBACK [MQTT-3.8.4-2] [MQTT-3.10.4-5]. On 3.1.1, SUBACK has one code for all
 * refusals and UNSUBACK has no codes.
 */
function answer(
  connection: HandledConnection,
  { type, packetId }: SubscribePacket | UnsubscribePacket,
  reasonCodes: number[],
): void {
  const is311 = connection.peer.protocolVersion === 4
  if (type === 'subscribe') {
    const codes = is311 ? reasonCodes.map((code) => Math.min(code, 0x80)) : reasonCodes
    connection.sender.send({ type: 'suback', packetId, properties: {}, reasonCodes: codes })
  } else
    connection.sender.send({
      type: 'unsuback',
      packetId,
      properties: {},
      reasonCodes: is311 ? [] : reasonCodes,
    })
}

function onDisconnect(
  connection: HandledConnection,
  session: SessionState,
  { reasonCode, properties }: DisconnectPacket,
): void {
  const { sessionExpiryInterval } = properties
  if (sessionExpiryInterval !== undefined) {
    // Section 3.14.2.2.2.
    if (
      sessionExpiryInterval > 0 &&
      (connection.peer.connect?.properties.sessionExpiryInterval ?? 0) === 0
    ) {
      connection.violate(
        'a session expiry in DISCONNECT after none in CONNECT (section 3.14.2.2.2)',
        'disconnect',
        0x82,
      )
      return
    }
    session.expiryInterval = Math.min(
      sessionExpiryInterval,
      connection.broker.settings.maximumSessionExpiry,
    )
  }
  // [MQTT-3.14.4-3]
  if (reasonCode === 0) connection.peer.will = undefined
  connection.end.leave(reasonCode)
}
