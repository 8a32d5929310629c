/**
 * The public option and result types of subscriptions. Types only.
 *
 * Durations are milliseconds.
 */
import type { MqttError } from '../../errors.js'
import type { QoS, UserProperties } from '../../wire/packets.js'
import type { Message } from './message.js'

/**
 * When the buffer of a subscription is full: let Receive Maximum stop the broker (QoS 0 then drops the oldest), or drop the newest or the oldest message.
 */
export type Overflow = 'backpressure' | 'drop-newest' | 'drop-oldest'

/** How messages are acknowledged: by asking for the next one, by `message.ack()`, or when they enter the buffer. */
export type AckMode = 'auto' | 'manual' | 'on-receive'

/** Defaults for every subscription of a client. */
export interface SubscriptionDefaults {
  /**
   * Messages that may wait to be read, 1 to 1,000,000,000. Default 1,024; half of `receiveMaximum` where that is less, at QoS 1 and 2 under an
   * `overflow` that drops (but for `ack: 'on-receive'`).
   */
  readonly buffer?: number | undefined
  /** Bytes of messages that may wait to be read, 1 or more. Default 4 MiB. */
  readonly bufferBytes?: number | undefined
  /** What a full buffer does, once its reader had a turn. Default `'backpressure'` (`'drop-oldest'` under `ack: 'on-receive'`). */
  readonly overflow?: Overflow | undefined
  /**
   * Of all subscriptions alike: connections in a row that the server may end at a filter that is sent alone, where it has to answer (section 3.9.3), 1 or
   * more. Then the filter is refused as by SUBACK (`ERR_SUBSCRIBE_REFUSED`, outcome `'refused'`) or UNSUBACK, and not subscribed to again after a lost
   * session; a new call tries again. One that was granted before takes twice as many. DISCONNECT 0x87, 0x8F, 0x9E or 0xA2 refuses it at once.
   * `Infinity`: never. Default 3.
   */
  readonly poisonAfter?: number | undefined
}

/** One filter with Subscription Options of its own (section 3.8.3.1). */
export interface FilterRequest {
  /** Topic filter (section 4.7), with `$share/name/` before it for a shared subscription (section 4.8.2). */
  readonly filter: string
  /** Highest QoS of what is sent to us. Default: that of the call. */
  readonly qos?: QoS | undefined
  /** Leave out what this client publishes; not on a shared filter [MQTT-3.8.3-4]. MQTT 5.0 only. Default: that of the call. */
  readonly noLocal?: boolean | undefined
  /** Keep the RETAIN flag of live messages. MQTT 5.0 only. Default: that of the call. */
  readonly retainAsPublished?: boolean | undefined
  /** Retained messages: 0 always, 1 only for a new subscription, 2 never. MQTT 5.0 only. Default: that of the call. */
  readonly retainHandling?: 0 | 1 | 2 | undefined
}

/** A filter, a filter with options, or several. */
export type Filters = string | FilterRequest | readonly (string | FilterRequest)[]

/** Properties of SUBSCRIBE (section 3.8.2.1). */
export interface SubscribeProperties {
  /** Pairs of name and value (section 3.8.2.1.3). Default: none. */
  readonly userProperties?: UserProperties | undefined
  /** Comes back with each message of these filters, 1 to 268,435,455 (section 3.8.2.1.2). Default: one of our own, where the server has them. */
  readonly subscriptionIdentifier?: number | undefined
}

/** Properties of UNSUBSCRIBE (section 3.10.2.1). */
export interface UnsubscribeProperties {
  /** Pairs of name and value (section 3.10.2.1.2). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** Options of a subscription. */
export interface SubscribeOptions extends Omit<SubscriptionDefaults, 'poisonAfter'> {
  /** Highest QoS of what is sent to us, for filters that name none (section 3.8.3.1). Default 0. */
  readonly qos?: QoS | undefined
  /** Leave out what this client publishes. MQTT 5.0 only. Default false. */
  readonly noLocal?: boolean | undefined
  /** Keep the RETAIN flag of live messages. MQTT 5.0 only. Default false. */
  readonly retainAsPublished?: boolean | undefined
  /** Retained messages: 0 always, 1 only for a new subscription, 2 never. MQTT 5.0 only. Default 0. */
  readonly retainHandling?: 0 | 1 | 2 | undefined
  /** Refuse a lower QoS than asked (`ERR_SUBSCRIBE_REFUSED`). Default false. */
  readonly requireQos?: boolean | undefined
  /** How messages are acknowledged. Default `'auto'`: asking for the next message acknowledges this one. */
  readonly ack?: AckMode | undefined
  /** What leaving the loop does. Default: `'detach'` for a durable session and for shared filters, else `'unsubscribe'`. */
  readonly onExit?: 'unsubscribe' | 'detach' | undefined
  /** Messages that are `'owned'` stay valid, `'borrowed'` ones do until `ack()` or the next turn. Default `'owned'`. */
  readonly lifetime?: 'owned' | 'borrowed' | undefined
  /** Called with each message that is dropped unread. Default: none. */
  readonly onDrop?: ((message: Message) => void) | undefined
  /** What goes with SUBSCRIBE (section 3.8.2.1). MQTT 5.0 only. Default: none but an identifier of our own. */
  readonly properties?: SubscribeProperties | undefined
  /** Aborts the wait for the grant. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Ends the subscription as `onExit` says. Default: none. */
  readonly until?: AbortSignal | undefined
}

/** What the broker said of one filter. */
export interface Grant {
  /** The topic filter, as it was asked for. */
  readonly filter: string
  /** The QoS that was granted; undefined when refused. */
  readonly qos: QoS | undefined
  /** Of SUBACK (section 3.9.3). */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** Set when refused. */
  readonly error: MqttError | undefined
}

/** How one `next()` waits. */
export interface NextOptions {
  /** Gives the wait up with `ERR_ABORTED`; no message is lost by it. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds to wait, 0 to 2,147,483,647, then `ERR_TIMEOUT`. Default: no limit. */
  readonly timeout?: number | undefined
}

/** Messages of one or more filters, for one consumer: `for await` reads them, `await using` ends the subscription with the block. */
export interface Subscription extends AsyncIterable<Message>, AsyncDisposable {
  /** Settles with the grant. Never an unhandled rejection. */
  readonly ready: Promise<Subscription>
  /** Per filter, in the order asked; empty before the grant. */
  readonly granted: readonly Grant[]
  /** Messages that wait to be read. */
  readonly size: number
  /** Messages dropped unread. */
  readonly dropped: number
  /**
   * The next message; undefined at the end. Under automatic acks it acknowledges the one before.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED, ERR_CONCURRENT_NEXT, or what ended the client
   */
  next(options?: NextOptions): Promise<Message | undefined>
  /** A message that is there, or undefined; never waits. Acknowledges like `next()`. */
  read(): Message | undefined
  /** Up to `max` messages at a time (default: all that are there); asking for the next batch acknowledges this one. */
  batches(max?: number): AsyncIterableIterator<Message[]>
  [Symbol.asyncIterator](): AsyncIterableIterator<Message>
  /**
   * The messages as a web stream, which reads ahead: for `ack: 'manual'` and `'on-receive'` only. Cancelling it leaves the subscription.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CONCURRENT_NEXT
   */
  readable(): ReadableStream<Message>
  /** Ends it on the broker too when it is the last on its filters; settles at UNSUBACK. */
  unsubscribe(): Promise<void>
  /** Ends it here only: the broker's subscription and unacknowledged messages stay for the next one on these filters. */
  detach(): void
}

/** What a failed handler means for its message: call it again, refuse it with 0x80, or end the `listen` and leave it to the session. */
export type HandlerFailure = 'retry' | 'reject' | 'stop'

/** Options of `listen`. */
export interface ListenOptions extends Omit<SubscribeOptions, 'ack'> {
  /** Messages handled at a time, 1 to 65,535. Default 1. */
  readonly concurrency?: number | undefined
  /**
   * What keeps its order where several are handled at a time: messages of one topic, none, or those for which the function gives the same key. Messages
   * of one key are handled one after the other, and one that is retried holds up its key alone. Default: `'topic'` with wildcards, `'none'` without and
   * on shared filters. With `concurrency` 1 everything is in order, unless `order` is given.
   */
  readonly order?: 'topic' | 'none' | ((message: Message) => unknown) | undefined
  /** What a failed handler means. Default: `'retry'` at QoS 1 and 2 (5 more times with backoff, then `'reject'`), `'reject'` at QoS 0. */
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

/** Handles one message; it is acknowledged when the promise fulfils. */
export type Handler = (message: Message) => void | Promise<void> | unknown

/** A running `listen`; `await using` ends it with the block. */
export interface Handling extends AsyncDisposable {
  /** Per filter, in the order asked. */
  readonly granted: readonly Grant[]
  /** Settles when it ended: fulfils after a clean end, rejects with what ended it. Never an unhandled rejection. */
  readonly done: Promise<void>
  /** Ends it on the broker too when it is the last on its filters; settles at UNSUBACK. */
  unsubscribe(): Promise<void>
  /** Ends it here only: the broker's subscription and unacknowledged messages stay for the next one on these filters. */
  detach(): void
}

/** What became of one filter of an UNSUBSCRIBE. */
export interface UnsubscribeResult {
  /** The topic filter, as it was given. */
  readonly filter: string
  /** 0x00, or 0x11 when there was no such subscription (section 3.11.3); 0x80 too where there was no answer: see `error`. */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** Set when refused, and `ERR_PACKET_TOO_LARGE` where it does not fit what the server takes. */
  readonly error: MqttError | undefined
}

/** Options of `unsubscribe`. */
export interface UnsubscribeOptions {
  /** What goes with UNSUBSCRIBE. MQTT 5.0 only. Default: none. */
  readonly properties?: UnsubscribeProperties | undefined
  /** Aborts the wait for UNSUBACK. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** Where a broker publishes how much it has waiting. */
export interface LagSource {
  /** Topic filter of what it publishes about that, for example `$SYS/broker/store/messages/count`; subscribed to at QoS 0 until the share is left. */
  readonly topic: string
  /** Makes the number of messages that wait of such a message; undefined where it says nothing about that. Default: the payload as a decimal number. */
  readonly read?: ((message: Message) => number | undefined) | undefined
}

/** What a share has besides the options of its subscription. */
export interface ShareOptions {
  /**
   * How long nothing may come after UNSUBACK until it is taken that the broker has nothing left for this client, 0 to 2,147,483,647 milliseconds.
   * A round trip to the broker comes on top. Default 250.
   */
  readonly quiet?: number | undefined
  /** Where the broker publishes how many messages wait. Default: nowhere; `lag().broker` is undefined then. */
  readonly lag?: LagSource | undefined
}

/** Options of `subscribeShared`. */
export interface SharedSubscribeOptions extends SubscribeOptions, ShareOptions {}

/** Options of `listenShared`. */
export interface SharedListenOptions extends ListenOptions, ShareOptions {}

/** How long `drain()` waits. */
export interface DrainOptions {
  /** Milliseconds, 0 to 2,147,483,647, then `ERR_TIMEOUT`. Default 30,000. */
  readonly timeout?: number | undefined
  /** Gives the wait up with `ERR_ABORTED`. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** What waits for the consumers of a group, as far as this one knows. */
export interface Lag {
  /** Messages in the buffer of this consumer. */
  readonly buffered: number
  /** Messages that this consumer was given and is not done with. */
  readonly inHand: number
  /** The last number from the broker; undefined where it publishes none, or has not yet. */
  readonly broker: number | undefined
}

/** A consumer that is a member of a group (section 4.8.2). */
export interface SharedConsumer {
  /** What waits. */
  lag(): Lag
  /**
   * Leaves the group without loss, and settles at UNSUBACK: from then on the broker gives new messages to the others. What is buffered here, and what the
   * broker still sends to this client, is handed out; then the loop, or the `listen`, ends. The application has to read on meanwhile. What is not read stays
   * unacknowledged, and is the broker's again when the session ends. Where others on this client read the same share, it ends here only.
   * @throws MqttError ERR_UNSUBSCRIBE_REFUSED: it is a member still; ERR_CONNECTION_LOST, ERR_CLOSED
   */
  unsubscribe(): Promise<void>
  /**
   * As `unsubscribe()`, and waits until everything was handled. Where it gives up, the leaving goes on. Not to be awaited by who handles a message of it.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED, and as `unsubscribe()`
   */
  drain(options?: DrainOptions): Promise<void>
}

/** A subscription to a share. */
export interface SharedSubscription extends Subscription, SharedConsumer {}

/** A running `listenShared`. */
export interface SharedHandling extends Handling, SharedConsumer {}
