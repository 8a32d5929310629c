/**
 * A message as the application gets it. Types only.
 */
import type { Bytes, QoS, UserProperties } from '../../wire/packets.js'

/** The properties of an incoming PUBLISH (section 3.3.2.3); absent ones are undefined. */
export interface MessageProperties {
  /** 0: bytes. 1: UTF-8 text, which is not checked (section 3.3.2.3.2). */
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds that are left, as the server said when it sent the message (section 3.3.2.3.3). */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.3.2.3.9). */
  readonly contentType?: string | undefined
  /** Where an answer is wanted (section 3.3.2.3.5). */
  readonly responseTopic?: string | undefined
  /** What the answer is to carry back (section 3.3.2.3.6). */
  readonly correlationData?: Bytes | undefined
  /** Identifiers of the subscriptions that it came for (section 3.3.2.3.8). */
  readonly subscriptionIdentifiers?: readonly number[] | undefined
  /** Pairs of name and value, in order (section 3.3.2.3.7). */
  readonly userProperties?: Readonly<UserProperties> | undefined
}

/** An application message (section 3.3). A borrowed one that was released throws `ERR_MESSAGE_RELEASED` wherever it is read. */
export interface Message {
  /** Topic Name, also where a topic alias stood for it. */
  readonly topic: string
  /**
   * The bytes. Of an owned message: an array of its own in an ArrayBuffer of exactly their size, made when it is asked for first. Of a borrowed one: a
   * view of where they lie.
   */
  readonly payload: Bytes
  /** Bytes of the payload, which is not taken out for this. */
  readonly payloadLength: number
  /** The QoS at which it arrived: the lower one of publisher and grant. */
  readonly qos: QoS
  /** Set on retained messages that answer a subscription, and as published under Retain As Published (section 3.3.1.3). */
  readonly retain: boolean
  /** The DUP flag of the PUBLISH [MQTT-3.3.1-1]; `redelivered` says more. */
  readonly dup: boolean
  /** True when the server had tried to deliver this message before (QoS 1 and 2). */
  readonly redelivered: boolean
  /**
   * With a `store`, at QoS 1 and 2: the same for each delivery of this message, also after a restart of the process, and different from that of every
   * other message. Else undefined.
   */
  readonly id: string | undefined
  /** Decoded when they are asked for first. */
  readonly properties: MessageProperties
  /** The payload as UTF-8. @throws MqttError ERR_MESSAGE_RELEASED also when its buffer was transferred */
  text(): string
  /** The payload parsed as JSON; keys named `__proto__` are left out. @throws SyntaxError when it is no JSON; as `text()` */
  json<T = unknown>(): T
  /**
   * Acknowledges the message, in any mode and any order; acknowledgements leave in the order of arrival [MQTT-4.6.0-2].
   * `reasonCode` of 0x80 or above refuses it (section 3.4.2.1). True at QoS 0.
   * False when the message is stale: acknowledged before, or its session is gone.
   */
  ack(reasonCode?: number): boolean
  /** A message that stays valid: this one when it is owned, a copy when it was borrowed. */
  detach(): Message
}

/** Bytes that a caller may give; a string means its UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView

/** Bytes that belong to the one who got them. */
export type { Bytes }
