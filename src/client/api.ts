/**
 * The public option and result types of the client. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in seconds).
 */
import type { MqttError } from '../errors.js'
import type { SocketOptions, TlsOptions, Transport } from '../transport/transport.js'
import type { FrameScanner } from '../wire/frames.js'
import type { Bytes, QoS, UserProperties } from '../wire/packets.js'
import type { Backoff } from './backoff.js'
import type { Message } from './message.js'
import type { DecisionContext } from './supervisor.js'
import type { Verdict } from './verdicts.js'

/** Bytes that a caller may give; a string means its UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView

/** Replaces the built-in dialling of an endpoint. */
export type CustomTransport = (endpoint: Endpoint, options: { signal: AbortSignal }) => Promise<Transport> | Transport

/** An endpoint with settings of its own. A setting that the platform cannot honour is refused (`ERR_UNSUPPORTED_OPTION`), never ignored. */
export interface EndpointOptions {
  readonly url: string | URL
  readonly tls?: TlsOptions | undefined
  /** HTTP headers of the WebSocket handshake. Node only. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** WebSocket sub-protocols. Default `['mqtt']`. */
  readonly protocols?: readonly string[] | undefined
  readonly socket?: SocketOptions | undefined
  /** Opens the stream in place of the built-in transports; the URL may then have any scheme. */
  readonly transport?: CustomTransport | undefined
}

/** Where a broker listens. Schemes: `mqtt`, `tcp`, `mqtts`, `ssl`, `tls`, `ws`, `wss`, `unix`. */
export type Endpoint = string | URL | EndpointOptions

/** Properties of the Will Message (section 3.1.3.2). */
export interface WillProperties {
  /** Seconds. Default 0. */
  readonly willDelayInterval?: number | undefined
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds. */
  readonly messageExpiryInterval?: number | undefined
  readonly contentType?: string | undefined
  readonly responseTopic?: string | undefined
  readonly correlationData?: Payload | undefined
  readonly userProperties?: UserProperties | undefined
}

/** What the server publishes when this client vanishes (section 3.1.2.5). */
export interface WillOptions {
  readonly topic: string
  /** Default empty; at most 65,535 bytes. */
  readonly payload?: Payload | undefined
  /** Default 0. */
  readonly qos?: QoS | undefined
  /** Default false. */
  readonly retain?: boolean | undefined
  readonly properties?: WillProperties | undefined
}

/** What `credentials` is told about the attempt. */
export interface CredentialsContext {
  /** Counts the attempts since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info. */
  readonly endpoint: string
  readonly lastError: MqttError | undefined
  readonly signal: AbortSignal
}

/** What `credentials` may give. */
export interface Credentials {
  readonly username?: string | undefined
  readonly password?: Payload | undefined
  /** More HTTP headers for the WebSocket handshake. Node only. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Dial this instead, for example a signed URL. */
  readonly url?: string | URL | undefined
  /** When they run out, in epoch milliseconds: they are renewed `refreshBefore` ahead. */
  readonly expiresAt?: number | Date | undefined
  /** CONNECT options for this attempt, over those of the client. */
  readonly connect?: CredentialsConnect | undefined
}

/** CONNECT options that `credentials` may give. */
export type CredentialsConnect = Pick<
  ClientOptions,
  | 'keepAlive'
  | 'sessionExpiryInterval'
  | 'receiveMaximum'
  | 'maximumPacketSize'
  | 'topicAliasMaximum'
  | 'requestResponseInformation'
  | 'requestProblemInformation'
  | 'userProperties'
  | 'will'
>

/** What a mechanism of enhanced authentication is told about the exchange. */
export interface AuthContext {
  /** Counts the attempts since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info and query. */
  readonly endpoint: string
  /** Aborts when the exchange is given up. */
  readonly signal: AbortSignal
  /** True when the connection is up already. */
  readonly reauthentication: boolean
}

/** Data of one step: bytes, text for its UTF-8, or none. */
export type AuthData = Payload | undefined

/**
 * A mechanism of enhanced authentication (section 4.12). What it throws ends the attempt, or the connection, without a further byte
 * (`ERR_AUTH_FAILED`).
 */
export interface AuthMechanism {
  /** Authentication Method. */
  readonly method: string
  /** Begins an exchange: the data of CONNECT, or of the AUTH that asks for re-authentication. */
  start(context: AuthContext): AuthData | Promise<AuthData>
  /** The server goes on: the data of the answer. */
  continue(data: Bytes | undefined, context: AuthContext): AuthData | Promise<AuthData>
  /** The server is satisfied, and gave this as its last word: nothing else that it sends is read before this is done. */
  success?: ((data: Bytes | undefined, context: AuthContext) => void | Promise<void>) | undefined
}

/** How lost connections and failed attempts are made good. */
export interface ReconnectOptions {
  /** Default `exponential()`: full jitter, from 1 s to 30 s. */
  readonly backoff?: Backoff | undefined
  /** Milliseconds after which a connection counts as stable, so that delays start anew. Default 30,000. */
  readonly stableAfter?: number | undefined
  /** Attempts since a connection was stable. Default: no limit. */
  readonly maxAttempts?: number | undefined
  /** Decides otherwise than the table in the README; undefined leaves it at that. */
  readonly decide?: ((error: MqttError, context: DecisionContext) => Verdict | undefined) | undefined
}

/** When the buffer of a subscription is full. */
export type Overflow = 'backpressure' | 'drop-newest' | 'drop-oldest'

/** How messages are acknowledged. */
export type AckMode = 'auto' | 'manual' | 'on-receive'

/** Defaults for every subscription of a client. */
export interface SubscriptionDefaults {
  /** Messages. Default 1,024. */
  readonly buffer?: number | undefined
  /** Bytes. Default 4 MiB. */
  readonly bufferBytes?: number | undefined
  /** Default `'backpressure'` (`'drop-oldest'` under `ack: 'on-receive'`). */
  readonly overflow?: Overflow | undefined
}

/** Limits of what waits to be sent. */
export interface OutboundOptions {
  /** Publishes that have not been sent. Default 10,000. */
  readonly maxQueuedMessages?: number | undefined
  /** Bytes, sent and unacknowledged ones included. Default 16 MiB. */
  readonly maxQueuedBytes?: number | undefined
  /** QoS 1 and 2 publishes in flight. Default: the broker's Receive Maximum, which always holds. */
  readonly maxInflight?: number | undefined
  /** `'wait'` (default) lets as many more wait, then refuses. */
  readonly overflow?: OutboundOverflow | undefined
  /** What happens to a publish while there is no connection. Default: QoS 0 is rejected, QoS 1 and 2 are queued. */
  readonly offline?:
    | { readonly qos0?: OfflinePolicy | undefined; readonly qos1?: OfflinePolicy | undefined; readonly qos2?: OfflinePolicy | undefined }
    | undefined
  /** Milliseconds to wait for PUBACK or PUBCOMP. Default: no limit. */
  readonly ackTimeout?: number | undefined
  /** Milliseconds for which a publish may wait to be sent; then it rejects with `ERR_EXPIRED`. Default: no limit. */
  readonly ttl?: number | undefined
  /**
   * What happens to a publish that was sent and not acknowledged when the server has lost the session. Default: QoS 1 is published anew; QoS 2, which
   * may have arrived, rejects with `ERR_SESSION_LOST`, as does QoS 1 in a clean session of MQTT 3.1.1.
   */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
}

/** When the queue of publishes is full. */
export type OutboundOverflow = 'wait' | 'reject' | 'drop-newest' | 'drop-oldest'

/** Keep a publish for the next connection, or refuse it. */
export type OfflinePolicy = 'queue' | 'reject'

/** A console or anything like it. */
export interface Logger {
  debug?(message: string): void
  info?(message: string): void
  warn?(message: string): void
  error?(message: string): void
}

/** Options of a client. They are parsed into a frozen copy; the object given is never written to. */
export interface ClientOptions {
  /** Default `''`: the broker assigns one. */
  readonly clientId?: string | undefined
  /** 5 is MQTT 5.0, 4 is 3.1.1; `'auto'` is 5, and 4 once the server says that it does not speak 5. Default 5. */
  readonly protocolVersion?: 5 | 4 | 'auto' | undefined
  readonly username?: string | undefined
  readonly password?: Payload | undefined
  /** Awaited before every CONNECT; a throw fails that attempt. Goes over `username` and `password`. */
  readonly credentials?: ((context: CredentialsContext) => Credentials | Promise<Credentials>) | undefined
  /**
   * Seconds, 0 to 65,535; `false` or 0 is off. Default 30. A page that connects while nobody sees it asks for 180 at least: its timers run once a
   * minute, and what comes in sends a PINGREQ that is due.
   */
  readonly keepAlive?: number | false | undefined
  /** Milliseconds to wait for a sign of life after PINGREQ. Default 10,000. */
  readonly pingTimeout?: number | undefined
  /** Milliseconds from dial to CONNACK, for each endpoint. Default 10,000. */
  readonly connectTimeout?: number | undefined
  /** False declares that this client id owns a session that is to be resumed. Default true (section 3.1.2.4). */
  readonly cleanStart?: boolean | undefined
  /** Seconds that the session outlives the connection; 4,294,967,295 is for ever. Default 300. */
  readonly sessionExpiryInterval?: number | undefined
  /** QoS 1 and 2 messages that the broker may have open towards us, 1 to 65,535. Default 256. */
  readonly receiveMaximum?: number | undefined
  /** Bytes; brokers silently drop what exceeds it. Default 1 MiB. */
  readonly maximumPacketSize?: number | undefined
  /** Topic aliases that the broker may use, 0 to 65,535. Default 10. */
  readonly topicAliasMaximum?: number | undefined
  /** Default false. */
  readonly requestResponseInformation?: boolean | undefined
  /** Default true. */
  readonly requestProblemInformation?: boolean | undefined
  /** User properties of CONNECT. */
  readonly userProperties?: UserProperties | undefined
  readonly will?: WillOptions | undefined
  /** `'reject'` (default): one round over the endpoints, then an error with a cause for each. `'wait'`: goes on as after a lost connection. */
  readonly firstConnect?: 'reject' | 'wait' | undefined
  /** `false`: a lost connection ends the client. Default: it is made good. */
  readonly reconnect?: boolean | ReconnectOptions | undefined
  /** `'when-lost'` (default): subscriptions are made anew when the session is gone. `'always'`: on every connection, for servers that forget. */
  readonly resubscribe?: 'when-lost' | 'always' | undefined
  /** Hosts, or `host:port`, to which a server may send us with a Server Reference (section 4.11). Default: none. */
  readonly serverReferences?: readonly string[] | undefined
  /** Milliseconds before `expiresAt` at which credentials are renewed. Default 60,000. */
  readonly refreshBefore?: number | undefined
  /** Enhanced authentication (section 4.12). MQTT 5.0 only. */
  readonly auth?: AuthMechanism | undefined
  /** Count what happens, for `client.stats()`. Default false. */
  readonly stats?: boolean | undefined
  /**
   * Reads incoming packets with WebAssembly: what `loadScanner()` of `mqwire/wasm` gives, or the promise of it, which nothing waits for. Default: none
   * in browsers, loaded in the background in Node; `false`: none there either.
   */
  readonly scanner?: FrameScanner | PromiseLike<FrameScanner | undefined> | false | undefined
  /** Milliseconds for which QoS 1 and 2 messages of a resumed session wait for somebody to subscribe. Default 30,000. */
  readonly unclaimedHold?: number | undefined
  readonly subscriptions?: SubscriptionDefaults | undefined
  readonly outbound?: OutboundOptions | undefined
  /** Filters in one SUBSCRIBE or UNSUBSCRIBE packet; more are split. Default: no limit. */
  readonly maxFiltersPerSubscribe?: number | undefined
  /** Bytes that undelivered messages and what waits to be read may take. Default 32 MiB. */
  readonly memoryBudget?: number | undefined
  /** Default: none. */
  readonly logger?: Logger | undefined
}

/** Properties of an outgoing PUBLISH (section 3.3.2.3). */
export interface PublishProperties {
  /** 0: bytes. 1: UTF-8 text. */
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds. */
  readonly messageExpiryInterval?: number | undefined
  readonly contentType?: string | undefined
  readonly responseTopic?: string | undefined
  readonly correlationData?: Payload | undefined
  readonly userProperties?: UserProperties | undefined
}

/** Options of one publish. */
export interface PublishOptions {
  /** Default 0. */
  readonly qos?: QoS | undefined
  /** Default false. */
  readonly retain?: boolean | undefined
  readonly properties?: PublishProperties | undefined
  /** QoS 0: settle when the bytes were written, not when they were handed to the transport. Default false. */
  readonly flush?: boolean | undefined
  /** Milliseconds to wait for the acknowledgement. 0, and the default: the client's `outbound.ackTimeout`. */
  readonly ackTimeout?: number | undefined
  /** When the queue is full. Default: the client's `outbound.overflow`. */
  readonly overflow?: OutboundOverflow | undefined
  /** While there is no connection. Default: the client's `outbound.offline`. */
  readonly offline?: OfflinePolicy | undefined
  /** Milliseconds for which it may wait to be sent. Default: the client's `outbound.ttl`. */
  readonly ttl?: number | undefined
  /** Default: the client's `outbound.onSessionLost`. */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
  /** Before the first byte an abort removes the message; later it detaches the caller while the exchange finishes. */
  readonly signal?: AbortSignal | undefined
}

/** How a publish ended. */
export interface Receipt {
  /** Of PUBACK or PUBCOMP; 0 at QoS 0. */
  readonly reasonCode: number
  readonly reasonName: string
  readonly reasonString: string | undefined
  readonly userProperties: Readonly<UserProperties>
  /** Undefined at QoS 0. */
  readonly packetId: number | undefined
}

/** One filter with Subscription Options of its own (section 3.8.3.1). */
export interface FilterRequest {
  readonly filter: string
  readonly qos?: QoS | undefined
  readonly noLocal?: boolean | undefined
  readonly retainAsPublished?: boolean | undefined
  readonly retainHandling?: 0 | 1 | 2 | undefined
}

/** A filter, a filter with options, or several. */
export type Filters = string | FilterRequest | readonly (string | FilterRequest)[]

/** Options of a subscription. */
export interface SubscribeOptions extends SubscriptionDefaults {
  /** For filters that name none. Default 0. */
  readonly qos?: QoS | undefined
  /** Leave out what this client publishes. Default false. */
  readonly noLocal?: boolean | undefined
  /** Keep the RETAIN flag of live messages. Default false. */
  readonly retainAsPublished?: boolean | undefined
  /** Retained messages: 0 always, 1 only for a new subscription, 2 never. Default 0. */
  readonly retainHandling?: 0 | 1 | 2 | undefined
  /** Refuse a lower QoS than asked. Default false. */
  readonly requireQos?: boolean | undefined
  /** Default `'auto'`: asking for the next message acknowledges this one. */
  readonly ack?: AckMode | undefined
  /** What leaving the loop does. Default: `'detach'` for a durable session and for shared filters, else `'unsubscribe'`. */
  readonly onExit?: 'unsubscribe' | 'detach' | undefined
  /** `'owned'` (default) messages stay valid; `'borrowed'` ones until `ack()` or the next turn. */
  readonly lifetime?: 'owned' | 'borrowed' | undefined
  /** Told of each message that is dropped unread. */
  readonly onDrop?: ((message: Message) => void) | undefined
  readonly properties?: { readonly userProperties?: UserProperties | undefined; readonly subscriptionIdentifier?: number | undefined } | undefined
  /** Aborts the wait for the grant. */
  readonly signal?: AbortSignal | undefined
  /** Ends the subscription as `onExit` says. */
  readonly until?: AbortSignal | undefined
}

/** What the broker said of one filter. */
export interface Grant {
  readonly filter: string
  /** Undefined when refused. */
  readonly qos: QoS | undefined
  readonly reasonCode: number
  readonly reasonName: string
  /** Set when refused. */
  readonly error: MqttError | undefined
}

/** How one `next()` waits. */
export interface NextOptions {
  readonly signal?: AbortSignal | undefined
  /** Milliseconds. Default: no limit. */
  readonly timeout?: number | undefined
}

/** Messages of one or more filters, for one consumer. */
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

/** What a failed handler means for its message. */
export type HandlerFailure = 'retry' | 'reject' | 'stop'

/** Options of `listen`. */
export interface ListenOptions extends Omit<SubscribeOptions, 'ack'> {
  /** Messages handled at a time. Default 1. */
  readonly concurrency?: number | undefined
  /** Default `'retry'` at QoS 1 and 2 (5 times with backoff, then `'reject'`), `'reject'` at QoS 0. */
  readonly onError?: HandlerFailure | ((error: unknown, message: Message, attempt: number) => HandlerFailure | Promise<HandlerFailure>) | undefined
  /** `'on-receive'` acknowledges before the handler runs. Default `'auto'`: when it is done. */
  readonly ack?: 'auto' | 'on-receive' | undefined
}

/** Handles one message; it is acknowledged when the promise fulfils. */
export type Handler = (message: Message) => void | Promise<void> | unknown

/** A running `listen`. */
export interface Handling extends AsyncDisposable {
  readonly granted: readonly Grant[]
  /** Settles when it ended: fulfils after a clean end, rejects with what ended it. Never an unhandled rejection. */
  readonly done: Promise<void>
  unsubscribe(): Promise<void>
  detach(): void
}

/** What the broker said of one filter of an UNSUBSCRIBE. */
export interface UnsubscribeResult {
  readonly filter: string
  /** 0x00, or 0x11 when there was no such subscription (section 3.11.3). */
  readonly reasonCode: number
  readonly reasonName: string
  /** Set when refused. */
  readonly error: MqttError | undefined
}

/** Options of `unsubscribe`. */
export interface UnsubscribeOptions {
  readonly properties?: { readonly userProperties?: UserProperties | undefined } | undefined
  readonly signal?: AbortSignal | undefined
}

/** Options of `disconnect`. */
export interface DisconnectOptions {
  /** 0x00, or 0x04 so that the will is published; any code that a client may send (section 3.14.2.1). Default 0x00. */
  readonly reasonCode?: number | undefined
  readonly reasonString?: string | undefined
  /** Seconds. */
  readonly sessionExpiryInterval?: number | undefined
  readonly userProperties?: UserProperties | undefined
  /** Milliseconds for running turns and the goodbye. Default 5,000; 0 is at once. */
  readonly timeout?: number | undefined
  /** Cuts the wait short. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `reconnect`. */
export interface ReconnectNow {
  /** Replace a connection that is up. Default false. */
  readonly force?: boolean | undefined
  /** For the `disconnect` event. */
  readonly reason?: string | undefined
}

/** Where the client stands. */
export type ClientState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'disconnecting' | 'closed'

/** Bytes that belong to whoever got them. */
export type { Bytes }
