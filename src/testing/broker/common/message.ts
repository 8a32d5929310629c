/**
 * An application message in the broker, and its form for a receiver.
 *
 * Messages are never changed, because the queues of all sessions share them.
 */
import type { Bytes, Properties, PublishPacket, QoS } from '../../../wire/packets.js'

/** A published message, with its publisher and time. */
export interface BrokerMessage {
  /** Topic Name. */
  readonly topic: string
  /** The payload. */
  readonly payload: Bytes
  /** QoS at which it was published. */
  readonly qos: QoS
  /** RETAIN flag of the PUBLISH. */
  readonly retain: boolean
  /**
   * Without Topic Alias, Subscription Identifiers and Will Delay Interval; the expiry interval is
   * the publisher's.
   */
  readonly properties: Readonly<Properties>
  /** Identifier of the client that published it; undefined for `broker.publish`. */
  readonly from: string | undefined
  /** When the broker accepted it, in milliseconds of its clock. */
  readonly time: number
  /**
   * Size in bytes counted against limits: at least its size on the wire without Subscription
   * Identifiers.
   */
  readonly size: number
}

/** The message in a PUBLISH whose alias was resolved. */
export function messageOf(
  packet: PublishPacket,
  from: string | undefined,
  time: number,
): BrokerMessage {
  const { topic, payload, qos, retain, properties } = packet
  return {
    topic,
    payload,
    qos,
    retain,
    properties: withoutHop(properties),
    from,
    time,
    size: measure(packet),
  }
}

/** Properties of a message without those that apply to one hop only, in their order. */
export function withoutHop(properties: Properties): Properties {
  if (
    properties.topicAlias === undefined &&
    properties.willDelayInterval === undefined &&
    properties.subscriptionIdentifiers === undefined
  )
    return properties
  const {
    topicAlias: _alias,
    willDelayInterval: _delay,
    subscriptionIdentifiers: _identifiers,
    ...rest
  } = properties
  return rest
}

/** Whether Message Expiry has passed [MQTT-3.3.2-5]. */
export function isExpired(message: BrokerMessage, now: number): boolean {
  const { messageExpiryInterval } = message.properties
  return messageExpiryInterval !== undefined && now - message.time >= messageExpiryInterval * 1000
}

/** Seconds of the Message Expiry Interval that are left [MQTT-3.3.2-6]. */
export function remaining(message: BrokerMessage, now: number): number {
  return Math.max(
    0,
    (message.properties.messageExpiryInterval ?? 0) - Math.floor((now - message.time) / 1000),
  )
}

/**
 * The properties that a subscriber gets: the expiry interval counted down [MQTT-3.3.2-6], and
 * identifiers [MQTT-3.3.4-4].
 */
export function deliveredProperties(
  message: BrokerMessage,
  now: number,
  identifiers: readonly number[],
): Properties {
  const { messageExpiryInterval: interval } = message.properties
  if (interval === undefined && identifiers.length === 0) return message.properties
  const properties: Properties = { ...message.properties }
  if (interval !== undefined) properties.messageExpiryInterval = remaining(message, now)
  if (identifiers.length > 0) properties.subscriptionIdentifiers = [...identifiers]
  return properties
}

function measure({ topic, payload, properties }: PublishPacket): number {
  let size = payload.length + topic.length * 3 + 64
  size +=
    (properties.contentType?.length ?? 0) * 3 +
    (properties.responseTopic?.length ?? 0) * 3 +
    (properties.correlationData?.length ?? 0)
  for (const [name, value] of properties.userProperties ?? [])
    size += (name.length + value.length) * 3 + 5
  return size
}

const sampled = 1024

/** A hash (FNV-1a) of the topic, the length and the beginning of the payload. */
export function fingerprintOf(topic: string, payload: Uint8Array): number {
  let hash = 0x811c9dc5 ^ payload.length
  for (let i = 0; i < topic.length; i++) hash = Math.imul(hash ^ topic.charCodeAt(i), 0x01000193)
  for (let i = 0; i < payload.length && i < sampled; i++)
    hash = Math.imul(hash ^ (payload[i] as number), 0x01000193)
  return hash >>> 0
}
