/**
 * Publishing: options, limits and results. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in
 * seconds).
 */
import type { QoS, UserProperties } from '../../wire/packets.js'
import type { Payload } from './message.js'

/** Limits of outgoing publishes. */
export interface OutboundOptions {
  /** Publishes that have not been sent, 1 or more, or Infinity. Default 10,000. */
  readonly maxQueuedMessages?: number | undefined
  /**
   * Bytes of publishes, including sent and unacknowledged ones; 1 or more, or Infinity. Default 16
   * MiB.
   */
  readonly maxQueuedBytes?: number | undefined
  /**
   * QoS 1 and 2 publishes in flight, 1 to 65,535. Default: the broker's Receive Maximum, which
   * always applies (section 4.9). On 3.1.1, which has none, 20 at QoS 2, because mosquitto loses
   * more; and after a connection that ended with more than 20 in flight, half of those.
   */
  readonly maxInflight?: number | undefined
  /**
   * What a full queue does. Default `'wait'`: the same number again waits for room, then
   * `ERR_QUEUE_FULL`.
   */
  readonly overflow?: OutboundOverflow | undefined
  /**
   * What happens to a publish while there is no connection. Default: QoS 0 is rejected, QoS 1 and 2
   * are queued.
   */
  readonly offline?: OfflineOptions | undefined
  /**
   * Milliseconds to wait for PUBACK or PUBCOMP, then `ERR_TIMEOUT`; the exchange itself continues.
   * Default: no limit.
   */
  readonly ackTimeout?: number | undefined
  /**
   * Milliseconds for which a publish may wait to be sent; then it rejects with `ERR_EXPIRED`.
   * Default: no limit.
   */
  readonly ttl?: number | undefined
  /**
   * What happens to a publish that was sent and not acknowledged when the server has lost the
   * session. Default: QoS 1 is published again; QoS 2, which may have arrived, rejects with
   * `ERR_SESSION_LOST`, and so does QoS 1 in a clean session of MQTT 3.1.1.
   */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
  /**
   * Connections that the server may end on one publish, 1 or more; then it rejects with
   * `ERR_POISONED` and is not resent, so that it does not block those behind it. From the third
   * connection on it is sent alone, and only an end right after it counts. `Infinity` resends it
   * for ever, as [MQTT-4.4.0-1] requires. Default 5.
   */
  readonly poisonAfter?: number | undefined
  /**
   * Limits the rate of publishes, including resent ones; other packets are not delayed. Default:
   * none.
   */
  readonly rate?: RateOptions | undefined
}

/**
 * A number of messages, of bytes, or both, per period. They are sent evenly; after a pause, at most
 * 50 ms' worth at once. Publishes that wait for the rate are queued as usual, with QoS 0 and the
 * others taking turns; `post` returns false meanwhile.
 */
export interface RateOptions {
  /** Messages in `per`, 1 to 1,000,000,000. Default: no limit. */
  readonly messages?: number | undefined
  /** Bytes of PUBLISH packets in `per`, 1 to 1,000,000,000,000. Default: no limit. */
  readonly bytes?: number | undefined
  /** Milliseconds, 1 to 2,147,483,647. Default 1,000. */
  readonly per?: number | undefined
}

/** What happens to a publish while there is no connection, by its QoS. */
export interface OfflineOptions {
  /** At QoS 0. Default `'reject'`. */
  readonly qos0?: OfflinePolicy | undefined
  /** At QoS 1. Default `'queue'`. */
  readonly qos1?: OfflinePolicy | undefined
  /** At QoS 2. Default `'queue'`. */
  readonly qos2?: OfflinePolicy | undefined
}

/**
 * What happens when the queue of publishes is full: `'wait'` for room, `'reject'` with
 * `ERR_QUEUE_FULL`, or drop the newest or the oldest one that was not sent (`ERR_DROPPED`).
 */
export type OutboundOverflow = 'wait' | 'reject' | 'drop-newest' | 'drop-oldest'

/** Keep a publish for the next connection, or reject it with `ERR_NOT_CONNECTED`. */
export type OfflinePolicy = 'queue' | 'reject'

/** Properties of an outgoing PUBLISH (section 3.3.2.3). */
export interface PublishProperties {
  /** 0: bytes. 1: UTF-8 text (section 3.3.2.3.2). Default: not sent, which means 0. */
  readonly payloadFormatIndicator?: number | undefined
  /**
   * Seconds until the message expires, 0 to 4,294,967,295; counted down while it is queued (section
   * 3.3.2.3.3). Default: not sent.
   */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.3.2.3.9). Default: not sent. */
  readonly contentType?: string | undefined
  /** Topic for an answer, without wildcards (section 3.3.2.3.5). Default: not sent. */
  readonly responseTopic?: string | undefined
  /**
   * Data that the answer must carry, at most 65,535 bytes (section 3.3.2.3.6). Default: not sent.
   */
  readonly correlationData?: Payload | undefined
  /** Pairs of name and value, in order, names may repeat (section 3.3.2.3.7). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** Options of one publish. */
export interface PublishOptions {
  /** Quality of Service (section 4.3). Default 0. */
  readonly qos?: QoS | undefined
  /** The server keeps it for later subscribers (section 3.3.1.3). Default false. */
  readonly retain?: boolean | undefined
  /** Properties of the PUBLISH (section 3.3.2.3). MQTT 5.0 only. Default: none. */
  readonly properties?: PublishProperties | undefined
  /**
   * At QoS 0, resolve when the bytes were written, not when they were handed to the transport.
   * Default false.
   */
  readonly flush?: boolean | undefined
  /**
   * Milliseconds to wait for the acknowledgement, then `ERR_TIMEOUT`. 0, and the default: the
   * client's `outbound.ackTimeout`.
   */
  readonly ackTimeout?: number | undefined
  /** What happens when the queue is full. Default: the client's `outbound.overflow`. */
  readonly overflow?: OutboundOverflow | undefined
  /** What happens while there is no connection. Default: the client's `outbound.offline`. */
  readonly offline?: OfflinePolicy | undefined
  /**
   * Milliseconds for which it may wait to be sent, then `ERR_EXPIRED`. Default: the client's
   * `outbound.ttl`.
   */
  readonly ttl?: number | undefined
  /**
   * What happens if it was sent and the server has lost the session. Default: the client's
   * `outbound.onSessionLost`.
   */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
  /**
   * Before the first byte is sent, an abort removes the message; later, it rejects the call while
   * the exchange continues. Default: none.
   */
  readonly signal?: AbortSignal | undefined
}

/** The result of a publish. */
export interface Receipt {
  /** Reason code of PUBACK or PUBCOMP; 0 at QoS 0. */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** The server's Reason String, as received: escape it before printing (`printable`). */
  readonly reasonString: string | undefined
  /** User properties of the acknowledgement; empty if there were none. */
  readonly userProperties: Readonly<UserProperties>
  /** Packet Identifier (section 2.2.1); undefined at QoS 0. */
  readonly packetId: number | undefined
}

/** The publishes that wait to be sent. */
export interface OutboundView {
  /** Publishes that have not been sent. */
  readonly size: number
  /** Drops them: each rejects with `ERR_DROPPED`. */
  clear(): void
}
