/**
 * The public option and result types of subscriptions. Types only.
 *
 * Durations are milliseconds.
 */
import type { MqttError } from '../../errors.js'
import type { QoS, UserProperties } from '../../wire/packets.js'
import type { Message } from './message.js'

/**
 * What happens when the buffer of a subscription is full: let Receive Maximum stop the broker (QoS
 * 0 then drops the oldest), or drop the newest or the oldest message.
 */
export type Overflow = 'backpressure' | 'drop-newest' | 'drop-oldest'

/**
 * How messages are acknowledged: when the next one is requested, by `message.ack()`, or when they
 * enter the buffer.
 */
export type AckMode = 'auto' | 'manual' | 'on-receive'

/** Defaults for every subscription of a client. */
export interface SubscriptionDefaults {
  /**
   * Messages that may wait to be read, 1 to 1,000,000,000. Default 1,024; half of `receiveMaximum`
   * if that is less, at QoS 1 and 2 with an `overflow` that drops (not with `ack` `'on-receive'`).
   */
  readonly buffer?: number | undefined
  /** Bytes of messages that may wait to be read, 1 or more. Default 4 MiB. */
  readonly bufferBytes?: number | undefined
  /**
   * What a full buffer does after its reader had a turn. Default `'backpressure'` (`'drop-oldest'`
   * with `ack: 'on-receive'`).
   */
  readonly overflow?: Overflow | undefined
  /**
   * For all subscriptions: consecutive connections that the server may end on a filter that is sent
   * alone, instead of answering (section 3.9.3), 1 or more. Then the filter is treated as refused
   * by SUBACK (`ERR_SUBSCRIBE_REFUSED`, outcome `'refused'`) or UNSUBACK, and not restored after a
   * lost session; a new call tries again. A filter that was granted before needs twice as many.
   * DISCONNECT 0x87, 0x8F, 0x9E or 0xA2 refuses it at once. `Infinity`: never. Default 3.
   */
  readonly poisonAfter?: number | undefined
}

/** One filter with its own Subscription Options (section 3.8.3.1). */
export interface FilterRequest {
  /**
   * Topic filter (section 4.7), with `$share/name/` before it for a shared subscription (section
   * 4.8.2).
   */
  readonly filter: string
  /** Highest QoS at which the broker sends messages. Default: that of the call. */
  readonly qos?: QoS | undefined
  /**
   * Exclude messages that this client publishes; not on a shared filter [MQTT-3.8.3-4]. MQTT 5.0
   * only. Default: that of the call.
   */
  readonly noLocal?: boolean | undefined
  /** Keep the RETAIN flag of live messages. MQTT 5.0 only. Default: that of the call. */
  readonly retainAsPublished?: boolean | undefined
  /**
   * Retained messages: 0 always, 1 only for a new subscription, 2 never. MQTT 5.0 only. Default:
   * that of the call.
   */
  readonly retainHandling?: 0 | 1 | 2 | undefined
}

/** A filter, a filter with options, or several. */
export type Filters = string | FilterRequest | readonly (string | FilterRequest)[]

/** Properties of SUBSCRIBE (section 3.8.2.1). */
export interface SubscribeProperties {
  /** Pairs of name and value (section 3.8.2.1.3). Default: none. */
  readonly userProperties?: UserProperties | undefined
  /**
   * Identifier that the broker sends with each message of these filters, 1 to 268,435,455 (section
   * 3.8.2.1.2). Default: assigned by the client, if the server supports it.
   */
  readonly subscriptionIdentifier?: number | undefined
}

/** Properties of UNSUBSCRIBE (section 3.10.2.1). */
export interface UnsubscribeProperties {
  /** Pairs of name and value (section 3.10.2.1.2). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** Options of a subscription. */
export interface SubscribeOptions extends Omit<SubscriptionDefaults, 'poisonAfter'> {
  /**
   * Highest QoS at which the broker sends messages, for filters without their own (section
   * 3.8.3.1). Default 0.
   */
  readonly qos?: QoS | undefined
  /** Exclude messages that this client publishes. MQTT 5.0 only. Default false. */
  readonly noLocal?: boolean | undefined
  /** Keep the RETAIN flag of live messages. MQTT 5.0 only. Default false. */
  readonly retainAsPublished?: boolean | undefined
  /**
   * Retained messages: 0 always, 1 only for a new subscription, 2 never. MQTT 5.0 only. Default 0.
   */
  readonly retainHandling?: 0 | 1 | 2 | undefined
  /** Reject a grant of a lower QoS than requested (`ERR_SUBSCRIBE_REFUSED`). Default false. */
  readonly requireQos?: boolean | undefined
  /**
   * How messages are acknowledged. Default `'auto'`: requesting the next message acknowledges this
   * one.
   */
  readonly ack?: AckMode | undefined
  /**
   * What leaving the loop does. Default: `'detach'` for a durable session and for shared filters,
   * otherwise `'unsubscribe'`.
   */
  readonly onExit?: 'unsubscribe' | 'detach' | undefined
  /**
   * `'owned'` messages stay valid; `'borrowed'` ones are valid until `ack()` or the next turn.
   * Default `'owned'`.
   */
  readonly lifetime?: 'owned' | 'borrowed' | undefined
  /** Called with each message that is dropped unread. Default: none. */
  readonly onDrop?: ((message: Message) => void) | undefined
  /**
   * Properties of SUBSCRIBE (section 3.8.2.1). MQTT 5.0 only. Default: none except an identifier
   * assigned by the client.
   */
  readonly properties?: SubscribeProperties | undefined
  /** Aborts the wait for the grant. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Ends the subscription as `onExit` says. Default: none. */
  readonly until?: AbortSignal | undefined
}

/** The broker's answer for one filter. */
export interface Grant {
  /** The topic filter as requested. */
  readonly filter: string
  /** The QoS that was granted; undefined when refused. */
  readonly qos: QoS | undefined
  /** Reason code of SUBACK (section 3.9.3). */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** Set when refused. */
  readonly error: MqttError | undefined
}

/** Options of `next()`. */
export interface NextOptions {
  /** Ends the wait with `ERR_ABORTED`; no message is lost. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds to wait, 0 to 2,147,483,647, then `ERR_TIMEOUT`. Default: no limit. */
  readonly timeout?: number | undefined
}

/**
 * Messages of one or more filters, for one consumer: `for await` reads them, `await using` ends the
 * subscription with the block.
 */
export interface Subscription extends AsyncIterable<Message>, AsyncDisposable {
  /**
   * Resolves with this subscription when it is granted, rejects when that fails. Never an unhandled
   * rejection.
   */
  readonly ready: Promise<Subscription>
  /** For each filter, in the order of the call; empty before the grant. */
  readonly granted: readonly Grant[]
  /** Messages that wait to be read. */
  readonly size: number
  /** Messages dropped unread. */
  readonly dropped: number
  /**
   * The next message; undefined at the end. With `ack: 'auto'`, it acknowledges the previous one.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED, ERR_CONCURRENT_NEXT, or the error that ended the
   * client
   */
  next(options?: NextOptions): Promise<Message | undefined>
  /** A buffered message, or undefined; never waits. Acknowledges like `next()`. */
  read(): Message | undefined
  /**
   * Up to `max` messages at a time (default: all that are buffered); requesting the next batch
   * acknowledges this one.
   */
  batches(max?: number): AsyncIterableIterator<Message[]>
  [Symbol.asyncIterator](): AsyncIterableIterator<Message>
  /**
   * The messages as a web stream, which reads ahead: for `ack: 'manual'` and `'on-receive'` only.
   * Cancelling it leaves the subscription.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CONCURRENT_NEXT
   */
  readable(): ReadableStream<Message>
  /**
   * Ends the subscription, also on the broker if no other one uses its filters; resolves at
   * UNSUBACK.
   */
  unsubscribe(): Promise<void>
  /**
   * Ends the subscription only here: the broker's subscription and unacknowledged messages stay for
   * the next one on these filters.
   */
  detach(): void
}

/**
 * What a failed handler means for its message: call it again, refuse the message with 0x80, or end
 * the `listen` and leave the message to the session.
 */
export type HandlerFailure = 'retry' | 'reject' | 'stop'

/** Options of `listen`. */
export interface ListenOptions extends Omit<SubscribeOptions, 'ack'> {
  /** Messages handled at a time, 1 to 65,535. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * What stays in order when several messages are handled at a time: messages of one topic, none,
   * or those with the same key. Messages of one key are handled one after the other, and a retry
   * holds up only its key. Default: `'topic'` with wildcards, `'none'` without and on shared
   * filters. With `concurrency` 1 everything is in order, unless `order` is given.
   */
  readonly order?: 'topic' | 'none' | ((message: Message) => unknown) | undefined
  /**
   * What a failed handler means. Default: `'retry'` at QoS 1 and 2 (5 more times with backoff, then
   * `'reject'`), `'reject'` at QoS 0.
   */
  readonly onError?:
    | HandlerFailure
    | ((
        error: unknown,
        message: Message,
        attempt: number,
      ) => HandlerFailure | Promise<HandlerFailure>)
    | undefined
  /** `'on-receive'` acknowledges before the handler runs. Default `'auto'`: when it is done. */
  readonly ack?: 'auto' | 'on-receive' | undefined
}

/** Handles one message; it is acknowledged when the promise resolves. */
export type Handler = (message: Message) => void | Promise<void> | unknown

/** A running `listen`; `await using` ends it with the block. */
export interface Handling extends AsyncDisposable {
  /** For each filter, in the order of the call. */
  readonly granted: readonly Grant[]
  /**
   * Resolves after a clean end, rejects with the error that ended it. Never an unhandled rejection.
   */
  readonly done: Promise<void>
  /**
   * Ends the subscription, also on the broker if no other one uses its filters; resolves at
   * UNSUBACK.
   */
  unsubscribe(): Promise<void>
  /**
   * Ends the subscription only here: the broker's subscription and unacknowledged messages stay for
   * the next one on these filters.
   */
  detach(): void
}

/** The result for one filter of an UNSUBSCRIBE. */
export interface UnsubscribeResult {
  /** The topic filter, as it was given. */
  readonly filter: string
  /**
   * 0x00, or 0x11 if there was no such subscription (section 3.11.3); also 0x80 if there was no
   * answer: see `error`.
   */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** Set when refused; `ERR_PACKET_TOO_LARGE` if it exceeds the server's limit. */
  readonly error: MqttError | undefined
}

/** Options of `unsubscribe`. */
export interface UnsubscribeOptions {
  /** Properties of UNSUBSCRIBE. MQTT 5.0 only. Default: none. */
  readonly properties?: UnsubscribeProperties | undefined
  /** Aborts the wait for UNSUBACK. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** Where a broker publishes the size of its backlog. */
export interface LagSource {
  /**
   * Topic filter of those messages, for example `$SYS/broker/store/messages/count`; subscribed at
   * QoS 0 until the share is left.
   */
  readonly topic: string
  /**
   * Extracts the number of waiting messages; undefined if the message has none. Default: the
   * payload as a decimal number.
   */
  readonly read?: ((message: Message) => number | undefined) | undefined
}

/** Options of a share besides those of a subscription. */
export interface ShareOptions {
  /**
   * Milliseconds without a message after UNSUBACK until the broker counts as having nothing left
   * for this client, 0 to 2,147,483,647. A round trip to the broker is added. Default 250.
   */
  readonly quiet?: number | undefined
  /**
   * Where the broker publishes how many messages wait. Default: nowhere; `lag().broker` is then
   * undefined.
   */
  readonly lag?: LagSource | undefined
}

/** Options of `subscribeShared`. */
export interface SharedSubscribeOptions extends SubscribeOptions, ShareOptions {}

/** Options of `listenShared`. */
export interface SharedListenOptions extends ListenOptions, ShareOptions {}

/** Options of `drain()`. */
export interface DrainOptions {
  /** Milliseconds, 0 to 2,147,483,647, then `ERR_TIMEOUT`. Default 30,000. */
  readonly timeout?: number | undefined
  /** Ends the wait with `ERR_ABORTED`. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** The messages that wait for the group, as far as this consumer knows. */
export interface Lag {
  /** Messages in the buffer of this consumer. */
  readonly buffered: number
  /** Messages handed to this consumer that are not done. */
  readonly inHand: number
  /** The latest number from the broker; undefined if it publishes none, or has not yet. */
  readonly broker: number | undefined
}

/** A consumer that is a member of a group (section 4.8.2). */
export interface SharedConsumer {
  /** The messages that wait. */
  lag(): Lag
  /**
   * Leaves the group without loss; resolves at UNSUBACK, from when the broker gives new messages to
   * the other members. Buffered messages, and those that the broker still sends to this client, are
   * handed out; then the loop or the `listen` ends. The application must keep reading meanwhile.
   * Unread messages stay unacknowledged, and return to the broker when the session ends. If others
   * on this client read the same share, it ends only here.
   * @throws MqttError ERR_UNSUBSCRIBE_REFUSED: it is still a member; ERR_CONNECTION_LOST,
   * ERR_CLOSED
   */
  unsubscribe(): Promise<void>
  /**
   * As `unsubscribe()`, and waits until everything is handled. After a timeout, leaving continues.
   * Do not await it while handling one of its messages.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED, and as `unsubscribe()`
   */
  drain(options?: DrainOptions): Promise<void>
}

/** A subscription to a share. */
export interface SharedSubscription extends Subscription, SharedConsumer {}

/** A running `listenShared`. */
export interface SharedHandling extends Handling, SharedConsumer {}
