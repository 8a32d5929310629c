/**
 * The public option and result types of the client. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in seconds).
 */
import type { MqttError } from '../errors.js'
import type { SocketOptions, TlsOptions, Transport } from '../transport/transport.js'
import type { FrameScanner } from '../wire/frames.js'
import type { Bytes, QoS, UserProperties } from '../wire/packets.js'
import type { SubscriptionDefaults } from './api-subscriptions.js'
import type { Backoff } from './backoff.js'
import type { DecisionContext } from './dialling/supervisor.js'
import type { Verdict } from './dialling/verdicts.js'
import type { ClientListeners } from './events.js'

export type * from './api-subscriptions.js'

/** Bytes that a caller may give; a string means its UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView

/** Replaces the built-in dialling of an endpoint. */
export type CustomTransport = (endpoint: Endpoint, options: { signal: AbortSignal }) => Promise<Transport> | Transport

/** An endpoint with settings of its own. A setting that the platform cannot honour is refused (`ERR_UNSUPPORTED_OPTION`), never ignored. */
export interface EndpointOptions {
  /** Scheme, host, port and path, such as `wss://broker.example/mqtt`, without a fragment. User-info becomes user name and password (section 3.1.3.5). */
  readonly url: string | URL
  /** Certificates and their verification, for `mqtts:`, `ssl:`, `tls:` and `wss:`. Node only. Default: the platform's authorities. */
  readonly tls?: TlsOptions | undefined
  /** HTTP headers of the WebSocket handshake. Node only, and not in Bun. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** WebSocket sub-protocols, of which the server has to pick one: different tokens [MQTT-6.0.0-3]. Default `['mqtt']`. */
  readonly protocols?: readonly string[] | undefined
  /** Settings of the TCP socket, not for `unix:`. Node only. Default: the platform's. */
  readonly socket?: SocketOptions | undefined
  /** Opens the stream in place of the built-in transports; the URL may then have any scheme. Default: none. */
  readonly transport?: CustomTransport | undefined
}

/** Where a broker listens. Schemes: `mqtt`, `tcp`, `mqtts`, `ssl`, `tls`, `ws`, `wss`, `unix`. */
export type Endpoint = string | URL | EndpointOptions

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

/** What `credentials` is told about the attempt. */
export interface CredentialsContext {
  /** Counts the attempts since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info. */
  readonly endpoint: string
  /** Why the attempt before failed, or the connection was lost; undefined at the first. */
  readonly lastError: MqttError | undefined
  /** Aborts when the attempt is given up, at the latest after `connectTimeout`. */
  readonly signal: AbortSignal
}

/** What `credentials` may give. */
export interface Credentials {
  /** User Name (section 3.1.3.5). Default: the client's option, else that of the endpoint's URL. */
  readonly username?: string | undefined
  /** Password, at most 65,535 bytes (section 3.1.3.6). Default: the client's option, else that of the endpoint's URL. */
  readonly password?: Payload | undefined
  /** More HTTP headers for the WebSocket handshake. Node only. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Dial this instead, for example a signed URL. Default: the endpoint's. */
  readonly url?: string | URL | undefined
  /** When they run out, as a Date or in epoch milliseconds: they are renewed `refreshBefore` ahead. Default: never. */
  readonly expiresAt?: number | Date | undefined
  /** CONNECT options for this attempt, over those of the client. Default: none. */
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
  /** Authentication Method (section 3.1.2.11.9). */
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
  /** Milliseconds before each attempt. Default `exponential()`: full jitter, from 1 s to 30 s. */
  readonly backoff?: Backoff | undefined
  /** Milliseconds after which a connection counts as stable, so that delays start anew; 0 to 2,147,483,647. Default 30,000. */
  readonly stableAfter?: number | undefined
  /**
   * Dials to come back after a loss, 1 or more; then the client ends with `ERR_RETRIES_EXHAUSTED`. The count starts anew once a connection was stable.
   * Before the first connection every dial counts, but the first round goes over the whole list in any case. Default: no limit.
   */
  readonly maxAttempts?: number | undefined
  /** Decides otherwise than the table in the README; undefined leaves it at that. Default: none. */
  readonly decide?: ((error: MqttError, context: DecisionContext) => Verdict | undefined) | undefined
}

/** Limits of what waits to be sent. */
export interface OutboundOptions {
  /** Publishes that have not been sent, 1 or more, or Infinity. Default 10,000. */
  readonly maxQueuedMessages?: number | undefined
  /** Bytes of publishes, sent and unacknowledged ones included; 1 or more, or Infinity. Default 16 MiB. */
  readonly maxQueuedBytes?: number | undefined
  /** QoS 1 and 2 publishes in flight, 1 to 65,535. Default: the broker's Receive Maximum, which always holds (section 4.9). */
  readonly maxInflight?: number | undefined
  /** What a full queue does. Default `'wait'`: as many more wait for room, then `ERR_QUEUE_FULL`. */
  readonly overflow?: OutboundOverflow | undefined
  /** What happens to a publish while there is no connection. Default: QoS 0 is rejected, QoS 1 and 2 are queued. */
  readonly offline?: OfflineOptions | undefined
  /** Milliseconds to wait for PUBACK or PUBCOMP, then `ERR_TIMEOUT`; the exchange itself goes on. Default: no limit. */
  readonly ackTimeout?: number | undefined
  /** Milliseconds for which a publish may wait to be sent; then it rejects with `ERR_EXPIRED`. Default: no limit. */
  readonly ttl?: number | undefined
  /**
   * What happens to a publish that was sent and not acknowledged when the server has lost the session. Default: QoS 1 is published anew; QoS 2, which
   * may have arrived, rejects with `ERR_SESSION_LOST`, as does QoS 1 in a clean session of MQTT 3.1.1.
   */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
  /**
   * Connections that the server may end over one publish, 1 or more; then it rejects with `ERR_POISONED` and is not sent again, so that it does not block
   * those behind it. From the third on it is sent alone, and only an end right after it counts. `Infinity` sends it for ever, as [MQTT-4.4.0-1] has
   * it. Default 5.
   */
  readonly poisonAfter?: number | undefined
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
 * When the queue of publishes is full: `'wait'` for room, `'reject'` with `ERR_QUEUE_FULL`, or give up the newest or the oldest one that was not sent
 * (`ERR_DROPPED`).
 */
export type OutboundOverflow = 'wait' | 'reject' | 'drop-newest' | 'drop-oldest'

/** Keep a publish for the next connection, or refuse it with `ERR_NOT_CONNECTED`. */
export type OfflinePolicy = 'queue' | 'reject'

/** A console or anything like it. What a server said is escaped before it gets here. */
export interface Logger {
  /** What happens on the way, such as each dial with its number and endpoint. */
  debug?(message: string): void
  /** What a user may want to know, such as the next attempt with its number, endpoint and delay. */
  info?(message: string): void
  /** What should not be, and was dealt with: failed attempts, what `disconnect()` waits for after a second, a `keepAlive` of hours. */
  warn?(message: string): void
  /** What went wrong, such as a listener that threw. */
  error?(message: string): void
}

/** What `virtualPlatform()` of `mqwire/testing` gives: time that passes when a test says so. */
export interface VirtualPlatform {
  /** Milliseconds of the virtual clock. */
  now(): number
}

/** Options of a client. They are parsed into a frozen copy; the object given is never written to. */
export interface ClientOptions {
  /** Client Identifier (section 3.1.3.1). Default `''`: the broker assigns one; in 3.1.1 one is made up. */
  readonly clientId?: string | undefined
  /**
   * 5 is MQTT 5.0, 4 is 3.1.1: what that does not have is refused when it is set (`ERR_UNSUPPORTED_OPTION`). `'auto'` is 5, and 4 at an endpoint that
   * refuses 5; a refusal is followed by one try at the other. Not with `auth` or `userProperties`. Default 5.
   */
  readonly protocolVersion?: 5 | 4 | 'auto' | undefined
  /** User Name (section 3.1.3.5). Default: none, or that of the endpoint's URL. */
  readonly username?: string | undefined
  /** Password, at most 65,535 bytes; in errors, events and logs it is never shown (section 3.1.3.6). Default: none, or that of the endpoint's URL. */
  readonly password?: Payload | undefined
  /** Awaited before every CONNECT; a throw fails that attempt. Goes over `username` and `password`. Default: none. */
  readonly credentials?: ((context: CredentialsContext) => Credentials | Promise<Credentials>) | undefined
  /**
   * Seconds between signs of life, 0 to 65,535; `false` or 0 is off (section 3.1.2.10). Default 30. Above 3,600, an hour, the log warns that these are
   * no milliseconds. A page that connects while nobody sees it asks for 180 at least: its timers run once a
   * minute, and what comes in sends a PINGREQ that is due.
   */
  readonly keepAlive?: number | false | undefined
  /**
   * Milliseconds to wait for any byte after PINGREQ, 0 to 2,147,483,647; then `ERR_KEEPALIVE_TIMEOUT` (section 3.12.4). Default 10,000. At most half the
   * keep-alive in force counts, or 1,000 where that is less; `negotiated.pingTimeout` is what does.
   */
  readonly pingTimeout?: number | undefined
  /** Milliseconds from `credentials()` and dial to CONNACK, for each endpoint; then `ERR_CONNECT_TIMEOUT`. Default 10,000. */
  readonly connectTimeout?: number | undefined
  /** False declares that this `clientId`, which it needs, owns a session that is to be resumed (section 3.1.2.4). Default true. */
  readonly cleanStart?: boolean | undefined
  /** Seconds that the session outlives the connection, 0 to 4,294,967,295, which is for ever (section 3.1.2.11.2). Default 300. */
  readonly sessionExpiryInterval?: number | undefined
  /**
   * QoS 1 and 2 messages that the broker may have open towards us, 1 to 65,535 (section 3.1.2.11.3). Default 65,535: some
   * brokers drop what a smaller one makes them queue. After a close for `memoryBudget` the next connection announces half, and 1,024 at most.
   */
  readonly receiveMaximum?: number | undefined
  /**
   * What happens when the broker sends more than `receiveMaximum`, which several do. Default `'tolerate'`: taken as long as `memoryBudget` holds, told once
   * a connection (`warn`), counted in `stats()`. `'disconnect'`: DISCONNECT 0x93 (section 4.13.1).
   */
  readonly receiveMaximumExceeded?: 'tolerate' | 'disconnect' | undefined
  /** Bytes of a packet, 1 to 4,294,967,295; brokers silently drop messages that exceed it (section 3.1.2.11.4). Default 1 MiB. */
  readonly maximumPacketSize?: number | undefined
  /**
   * Topic aliases that the broker may use, 0 to 65,535 (section 3.1.2.11.5). Default none: some brokers store a message under an alias of one connection,
   * and lose its topic with it. From a broker that uses aliases unasked 10 are taken.
   */
  readonly topicAliasMaximum?: number | undefined
  /** Ask the broker for Response Information, which `request()` then builds its response topic on (section 3.1.2.11.6). Default false. */
  readonly requestResponseInformation?: boolean | undefined
  /** Let the broker send reason strings and user properties with failures (section 3.1.2.11.7). Default true. */
  readonly requestProblemInformation?: boolean | undefined
  /** User properties of CONNECT, pairs of name and value (section 3.1.2.11.8). MQTT 5.0 only. Default `[]`. */
  readonly userProperties?: UserProperties | undefined
  /** What the server publishes when this client vanishes (section 3.1.2.5). Default: none. */
  readonly will?: WillOptions | undefined
  /** `'reject'` (default): one round over the endpoints, then an error with a cause for each. `'wait'`: goes on as after a lost connection. */
  readonly firstConnect?: 'reject' | 'wait' | undefined
  /** `false`: a lost connection ends the client. Default `true`: it is made good. */
  readonly reconnect?: boolean | ReconnectOptions | undefined
  /** `'when-lost'` (default): subscriptions are made anew when the session is gone. `'always'`: on every connection, for servers that forget. */
  readonly resubscribe?: 'when-lost' | 'always' | undefined
  /** Hosts, or `host:port`, to which a server may send us with a Server Reference (section 4.11). Default: none. */
  readonly serverReferences?: readonly string[] | undefined
  /** Milliseconds before `expiresAt` at which credentials are renewed, 0 to 2,147,483,647. Default 60,000. */
  readonly refreshBefore?: number | undefined
  /** Enhanced authentication (section 4.12). MQTT 5.0 only. Default: none. */
  readonly auth?: AuthMechanism | undefined
  /** Count what happens, for `client.stats()`. Default false. */
  readonly stats?: boolean | undefined
  /**
   * Reads incoming packets with WebAssembly: what `loadScanner()` of `mqwire/wasm` gives, or the promise of it, which nothing waits for. Default: none
   * in browsers, loaded in the background in Node; `false`: none there either.
   */
  readonly scanner?: FrameScanner | PromiseLike<FrameScanner | undefined> | false | undefined
  /** Milliseconds for which QoS 1 and 2 messages of a resumed session wait for somebody to subscribe, 0 to 2,147,483,647. Default 30,000. */
  readonly unclaimedHold?: number | undefined
  /** Buffers of every subscription that does not say otherwise. Default: those of {@link SubscriptionDefaults}. */
  readonly subscriptions?: SubscriptionDefaults | undefined
  /** What may wait to be sent, and what happens beyond. Default: that of {@link OutboundOptions}. */
  readonly outbound?: OutboundOptions | undefined
  /** Filters in one SUBSCRIBE or UNSUBSCRIBE packet, 1 or more; larger calls become several packets. Default: no limit. */
  readonly maxFiltersPerSubscribe?: number | undefined
  /**
   * Bytes that everything held for a connection may take. Beyond, QoS 0 is dropped, and QoS 1 and 2 end the link with 0x97: what is held is handed out
   * before, as long as somebody reads, so that only what had no room comes again. Default 32 MiB, or twice `maximumPacketSize`.
   */
  readonly memoryBudget?: number | undefined
  /**
   * Listeners by event name, each attached as `client.on` would before anything is dialled: with `connect()` they hear of the first attempts too. A name
   * that is no event is refused with the nearest one (`ERR_INVALID_OPTION`), what is no function with `ERR_INVALID_HANDLER`. Default: none.
   */
  readonly on?: ClientListeners | undefined
  /** For tests: what `virtualPlatform()` of `mqwire/testing` gives, whose clock and random numbers take the place of the real ones. Default: none. */
  readonly platform?: VirtualPlatform | undefined
  /** Where notes go. Default: none. */
  readonly logger?: Logger | undefined
}

/** Properties of an outgoing PUBLISH (section 3.3.2.3). */
export interface PublishProperties {
  /** 0: bytes. 1: UTF-8 text (section 3.3.2.3.2). Default: not sent, which means 0. */
  readonly payloadFormatIndicator?: number | undefined
  /** Seconds that the message is worth delivering, 0 to 4,294,967,295; counted down while it is queued (section 3.3.2.3.3). Default: not sent. */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.3.2.3.9). Default: not sent. */
  readonly contentType?: string | undefined
  /** Where an answer is wanted, a topic without wildcards (section 3.3.2.3.5). Default: not sent. */
  readonly responseTopic?: string | undefined
  /** What the answer carries back, at most 65,535 bytes (section 3.3.2.3.6). Default: not sent. */
  readonly correlationData?: Payload | undefined
  /** Pairs of name and value, in order, names may repeat (section 3.3.2.3.7). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** Options of one publish. */
export interface PublishOptions {
  /** Quality of Service (section 4.3). Default 0. */
  readonly qos?: QoS | undefined
  /** The server keeps it for those who subscribe later (section 3.3.1.3). Default false. */
  readonly retain?: boolean | undefined
  /** What goes with it (section 3.3.2.3). MQTT 5.0 only. Default: none. */
  readonly properties?: PublishProperties | undefined
  /** QoS 0: settle when the bytes were written, not when they were handed to the transport. Default false. */
  readonly flush?: boolean | undefined
  /** Milliseconds to wait for the acknowledgement, then `ERR_TIMEOUT`. 0, and the default: the client's `outbound.ackTimeout`. */
  readonly ackTimeout?: number | undefined
  /** When the queue is full. Default: the client's `outbound.overflow`. */
  readonly overflow?: OutboundOverflow | undefined
  /** While there is no connection. Default: the client's `outbound.offline`. */
  readonly offline?: OfflinePolicy | undefined
  /** Milliseconds for which it may wait to be sent, then `ERR_EXPIRED`. Default: the client's `outbound.ttl`. */
  readonly ttl?: number | undefined
  /** When it was sent, and the server has lost the session. Default: the client's `outbound.onSessionLost`. */
  readonly onSessionLost?: 'republish' | 'reject' | undefined
  /** Before the first byte an abort removes the message; later it detaches the caller while the exchange finishes. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** How a publish ended. */
export interface Receipt {
  /** Of PUBACK or PUBCOMP; 0 at QoS 0. */
  readonly reasonCode: number
  /** The standard's name of the reason code (section 2.4). */
  readonly reasonName: string
  /** The server's Reason String, as received: escape it before printing (`printable`). */
  readonly reasonString: string | undefined
  /** Pairs of name and value that came with the acknowledgement; empty where there were none. */
  readonly userProperties: Readonly<UserProperties>
  /** Packet Identifier (section 2.2.1); undefined at QoS 0. */
  readonly packetId: number | undefined
}

/** Options of `disconnect`. */
export interface DisconnectOptions {
  /** 0x00, or 0x04 so that the will is published; any code that a client may send (section 3.14.2.1). Default 0x00. */
  readonly reasonCode?: number | undefined
  /** Why, for the server's operator (section 3.14.2.2.3). Default: not sent. */
  readonly reasonString?: string | undefined
  /**
   * Seconds that the session lives on, 0 to 4,294,967,295; more than 0 only where CONNECT had more than 0 (section 3.14.2.2.2). Default: 0 with
   * `cleanStart: true`, else as in CONNECT.
   */
  readonly sessionExpiryInterval?: number | undefined
  /** Pairs of name and value (section 3.14.2.2.4). Default: none. */
  readonly userProperties?: UserProperties | undefined
  /** Milliseconds for running turns and the goodbye, 0 to 2,147,483,647; 0 is at once. Default 5,000. */
  readonly timeout?: number | undefined
  /** Cuts the wait short. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `reconnect`. */
export interface ReconnectNow {
  /** Replace a connection that is up. Default false. */
  readonly force?: boolean | undefined
  /** Why, for the `disconnect` event. Default: none. */
  readonly reason?: string | undefined
}

/** Where the client stands. */
export type ClientState = 'idle' | 'connecting' | 'connected' | 'reconnecting' | 'disconnecting' | 'closed'

/** Bytes that belong to whoever got them. */
export type { Bytes }
