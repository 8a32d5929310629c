/**
 * A message as the application gets it. Types only.
 */
import type { Bytes, QoS, UserProperties } from '../../wire/packets.js'

/** The properties of an incoming PUBLISH (section 3.3.2.3); absent ones are undefined. */
export interface MessageProperties {
  /** 0: bytes. 1: UTF-8 text, which is not checked (section 3.3.2.3.2). */
  readonly payloadFormatIndicator?: number | undefined
  /** Remaining seconds when the server sent the message (section 3.3.2.3.3). */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.3.2.3.9). */
  readonly contentType?: string | undefined
  /** Topic for an answer (section 3.3.2.3.5). */
  readonly responseTopic?: string | undefined
  /** Data that the answer must carry (section 3.3.2.3.6). */
  readonly correlationData?: Bytes | undefined
  /** Identifiers of the matching subscriptions (section 3.3.2.3.8). */
  readonly subscriptionIdentifiers?: readonly number[] | undefined
  /** Pairs of name and value, in order (section 3.3.2.3.7). */
  readonly userProperties?: Readonly<UserProperties> | undefined
}

/**
 * An application message (section 3.3). Reading a borrowed message after its release throws
 * `ERR_MESSAGE_RELEASED`.
 */
export interface Message {
  /** Topic Name, also if the packet had a topic alias. */
  readonly topic: string
  /**
   * The bytes. Of an owned message: an array with its own ArrayBuffer of exactly their size,
   * created on first access. Of a borrowed one: a view of the memory that holds it.
   */
  readonly payload: Bytes
  /** Length of the payload in bytes; does not copy it. */
  readonly payloadLength: number
  /** The QoS of delivery: the lower of the publisher's and the granted one. */
  readonly qos: QoS
  /**
   * Set on retained messages sent because of a subscription, and as published with Retain As
   * Published (section 3.3.1.3).
   */
  readonly retain: boolean
  /** The DUP flag of the PUBLISH [MQTT-3.3.1-1]; see also `redelivered`. */
  readonly dup: boolean
  /** True when the server had tried to deliver this message before (QoS 1 and 2). */
  readonly redelivered: boolean
  /**
   * With a `store`, at QoS 1 and 2: the same for every delivery of this message, also after a
   * restart of the process, and different from all other messages. Otherwise undefined.
   */
  readonly id: string | undefined
  /** Decoded on first access. */
  readonly properties: MessageProperties
  /**
   * The payload as UTF-8. @throws MqttError ERR_MESSAGE_RELEASED also when its buffer was
   * transferred
   */
  text(): string
  /**
   * The payload parsed as JSON; keys named `__proto__` are left out. @throws SyntaxError when it is
   * not JSON; as `text()`
   */
  json<T = unknown>(): T
  /**
   * Acknowledges the message, in any mode and any order; acknowledgements are sent in the order of
   * arrival [MQTT-4.6.0-2].
   * A `reasonCode` of 0x80 or above refuses it (section 3.4.2.1). Returns true at QoS 0.
   * Returns false when the message is stale: acknowledged before, or its session is lost.
   */
  ack(reasonCode?: number): boolean
  /** A message that stays valid: this one if it is owned, a copy if it is borrowed. */
  detach(): Message
}

/** A payload; a string is sent as UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView

/** Bytes that belong to their receiver. */
export type { Bytes }
