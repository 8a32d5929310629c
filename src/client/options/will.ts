/**
 * The will. Types only.
 */
import type { QoS, UserProperties } from '../../wire/packets.js'
import type { Payload } from './payload.js'

/** Properties of the Will Message (section 3.1.3.2). */
export interface WillProperties {
  /** Seconds from the loss of the connection until the will is published, 0 to 4,294,967,295 (section 3.1.3.2.2). Default 0. */
  readonly willDelayInterval?: number | undefined
  /** 0: bytes. 1: UTF-8 text (section 3.1.3.2.3). Default: not sent, which means 0. */
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds that the message is worth delivering, 0 to 4,294,967,295 (section 3.1.3.2.4). Default: not sent, it does not expire. */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.1.3.2.5). Default: not sent. */
  readonly contentType?: string | undefined
  /** Where an answer is wanted, a topic without wildcards (section 3.1.3.2.6). Default: not sent. */
  readonly responseTopic?: string | undefined
  /** What the answer carries back, at most 65,535 bytes (section 3.1.3.2.7). Default: not sent. */
  readonly correlationData?: Payload | undefined
  /** Pairs of name and value, in order, names may repeat (section 3.1.3.2.8). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** What the server publishes when this client vanishes (section 3.1.2.5). */
export interface WillOptions {
  /** Topic without wildcards (section 3.1.3.3). */
  readonly topic: string
  /** At most 65,535 bytes (section 3.1.3.4). Default: empty. */
  readonly payload?: Payload | undefined
  /** Quality of Service at which it is published (section 3.1.2.6). Default 0. */
  readonly qos?: QoS | undefined
  /** Publish it as a retained message (section 3.1.2.7). Default false. */
  readonly retain?: boolean | undefined
  /** What goes with it (section 3.1.3.2). MQTT 5.0 only. Default: none. */
  readonly properties?: WillProperties | undefined
}
