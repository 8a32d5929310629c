/**
 * The options of a client. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in
 * seconds).
 */
import type { MqttError } from '../../errors.js'
import type { Store } from '../../store/base/store.js'
import type { SocketOptions, TlsOptions, Transport } from '../../transport/transport.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { QoS, UserProperties } from '../../wire/packets.js'
import type { ClientListeners } from './events.js'
import type { Bytes, Payload } from './message.js'
import type { OutboundOptions } from './publish.js'
import type { ReconnectOptions } from './reconnect.js'
import type { SubscriptionDefaults } from './subscribe.js'

/** What `credentials` gets about the attempt. */
export interface CredentialsContext {
  /** Number of the attempt since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info. */
  readonly endpoint: string
  /** The error of the previous attempt, or of the lost connection; undefined at first. */
  readonly lastError: MqttError | undefined
  /** Aborts when the attempt is given up, at the latest after `credentialsTimeout`. */
  readonly signal: AbortSignal
}

/** Result of `credentials`. */
export interface Credentials {
  /** User Name (section 3.1.3.5). Default: the client's option, else that of the endpoint's URL. */
  readonly username?: string | undefined
  /**
   * Password, at most 65,535 bytes (section 3.1.3.6). Default: the client's option, else that of
   * the endpoint's URL.
   */
  readonly password?: Payload | undefined
  /** Additional HTTP headers for the WebSocket handshake. Node only. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Dial this URL instead, for example a signed one. Default: the endpoint's. */
  readonly url?: string | URL | undefined
  /**
   * When they expire, as a Date or in epoch milliseconds; they are renewed `refreshBefore` ahead.
   * Default: never.
   */
  readonly expiresAt?: number | Date | undefined
  /** CONNECT options for this attempt, which override those of the client. Default: none. */
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

/** A console or similar object. Text from a server is escaped before it is logged. */
export interface Logger {
  /** Details, such as each dial with its number and endpoint. */
  debug?(message: string): void
  /** Information for users, such as the next attempt with its number, endpoint and delay. */
  info?(message: string): void
  /**
   * Problems that were handled: failed attempts, what `disconnect()` waits for after a second, a
   * `keepAlive` of hours.
   */
  warn?(message: string): void
  /** Errors, such as a listener that threw. */
  error?(message: string): void
}

/**
 * Result of `virtualPlatform()` of `mqwire/testing`: time that passes only when a test advances it.
 */
export interface VirtualPlatform {
  /** Milliseconds of the virtual clock. */
  now(): number
}

/** Options for a stored session. */
export interface SessionStore {
  /** The store. */
  readonly store: Store
  /**
   * Also store identifiers of incoming messages, with one write for each read: `message.id` then
   * distinguishes repeats from new messages, and QoS 2 messages are handed out once across
   * restarts. False saves the write. Default true.
   */
  readonly inbound?: boolean | undefined
}

/**
 * Options of a client. They are parsed into a frozen copy; the object given is never written to.
 */
export interface ClientOptions {
  /**
   * Client Identifier (section 3.1.3.1). Default `''`: the broker assigns one; on 3.1.1 the client
   * generates one.
   */
  readonly clientId?: string | undefined
  /**
   * 5 is MQTT 5.0, 4 is 3.1.1; options that 3.1.1 does not have are then refused if set
   * (`ERR_UNSUPPORTED_OPTION`). `'auto'` is 5, and 4 at endpoints that refuse 5; after a refusal
   * the other version is tried once. No fallback with `auth` or `userProperties`. Default 5.
   */
  readonly protocolVersion?: 5 | 4 | 'auto' | undefined
  /** User Name (section 3.1.3.5). Default: none, or that of the endpoint's URL. */
  readonly username?: string | undefined
  /**
   * Password, at most 65,535 bytes; never shown in errors, events and logs (section 3.1.3.6).
   * Default: none, or that of the endpoint's URL.
   */
  readonly password?: Payload | undefined
  /**
   * Called and awaited before every CONNECT; if it throws, that attempt fails. Its result overrides
   * `username` and `password`. Before `expiresAt` it is called while the connection stays up; if it
   * throws then, the connection stays and the function is called again after a backoff. Default:
   * none.
   */
  readonly credentials?:
    | ((context: CredentialsContext) => Credentials | Promise<Credentials>)
    | undefined
  /**
   * Milliseconds for one call of `credentials()`, 0 to 2,147,483,647; then `ERR_CONNECT_TIMEOUT`.
   * Default 30,000.
   */
  readonly credentialsTimeout?: number | undefined
  /**
   * Keep-alive in seconds, 0 to 65,535; `false` or 0 is off (section 3.1.2.10). Default 30. Above
   * 3,600, an hour, a warning is logged, because milliseconds may have been meant. A page that is
   * hidden when it connects uses at least 180, unless keep-alive is off, because browsers throttle
   * its timers to once a minute; incoming packets also trigger overdue pings.
   */
  readonly keepAlive?: number | false | undefined
  /**
   * Milliseconds to wait for any byte after PINGREQ, 0 to 2,147,483,647; then
   * `ERR_KEEPALIVE_TIMEOUT` (section 3.12.4). Default 10,000. The value in use,
   * `negotiated.pingTimeout`, is at most half the keep-alive or 1,000, whichever is more.
   */
  readonly pingTimeout?: number | undefined
  /**
   * Milliseconds from dialling to CONNACK, 0 to 2,147,483,647, for each endpoint; then
   * `ERR_CONNECT_TIMEOUT`. Default 10,000.
   */
  readonly connectTimeout?: number | undefined
  /**
   * False declares that this `clientId`, which is then required, has a session to be resumed
   * (section 3.1.2.4). Default true; false with a `store`, where an empty `clientId` is allowed:
   * the one that the broker assigns is stored.
   */
  readonly cleanStart?: boolean | undefined
  /**
   * Stores the session so that it survives the process (section 4.1): publishes that were sent and
   * not acknowledged, and identifiers of incoming messages. A `Store` of `mqwire/store`, or an
   * object with `store` and `inbound`. Nothing is sent or acknowledged before it is stored. The
   * client does not close the store. It may hold the sessions of several clients, each with its own
   * `clientId`. Default: none.
   */
  readonly store?: Store | SessionStore | undefined
  /**
   * Seconds that the session outlives the connection, 0 to 4,294,967,295, which means for ever
   * (section 3.1.2.11.2). Default 300; a week with a `store`.
   */
  readonly sessionExpiryInterval?: number | undefined
  /**
   * Unacknowledged QoS 1 and 2 messages that the broker may have sent, 1 to 65,535 (section
   * 3.1.2.11.3). Default 65,535, because some brokers drop messages that a smaller value makes them
   * queue. After a connection was closed because of `memoryBudget`, the next one announces the
   * least of: `memoryBudget` divided by the largest message so far, half of what was announced
   * before, and 1,024.
   */
  readonly receiveMaximum?: number | undefined
  /**
   * What to do when the broker exceeds `receiveMaximum`, as several do. Default `'tolerate'`: the
   * messages are accepted within `memoryBudget`, reported once a connection (`warn`), and counted
   * in `stats()`. `'disconnect'`: DISCONNECT 0x93 (section 4.13.1).
   */
  readonly receiveMaximumExceeded?: 'tolerate' | 'disconnect' | undefined
  /**
   * Largest packet accepted in bytes, 1 to 4,294,967,295 (section 3.1.2.11.4). Default 16 MiB, or
   * half of `memoryBudget` if that is less. 5.0 brokers silently drop messages that exceed it; it
   * cannot be announced on 3.1.1: see `oversized`.
   */
  readonly maximumPacketSize?: number | undefined
  /**
   * What to do with an incoming message above `maximumPacketSize`: on 3.1.1 every broker sends it,
   * on 5.0 some do. `'skip'` (default): its payload is discarded while it is read; the message is
   * acknowledged (5.0: with 0x97), counted in `stats()`, and reported as a `drop` event whose
   * `reason` is `'too-large'`. `'disconnect'`: ends the connection with 0x95, as section 3.1.2.11.4
   * says. A message whose topic and properties alone exceed it, or any other packet that does,
   * always ends the connection. Over WebSocket the platform holds a whole message, up to four times
   * `maximumPacketSize`; a larger one ends the connection.
   */
  readonly oversized?: 'skip' | 'disconnect' | undefined
  /**
   * Topic aliases that the broker may use (Topic Alias Maximum), 0 to 65,535 (section 3.1.2.11.5).
   * Default: none. Nothing is announced then, which means 0, because some brokers store a message
   * under an alias of one connection and then lose its topic. Up to 10 aliases are accepted from
   * brokers that use them all the same.
   */
  readonly topicAliasMaximum?: number | undefined
  /**
   * Ask the broker for Response Information, from which `request()` builds its response topic
   * (section 3.1.2.11.6). Default false.
   */
  readonly requestResponseInformation?: boolean | undefined
  /**
   * Let the broker send reason strings and user properties with failures (section 3.1.2.11.7).
   * Default true.
   */
  readonly requestProblemInformation?: boolean | undefined
  /**
   * User properties of CONNECT, pairs of name and value (section 3.1.2.11.8). MQTT 5.0 only.
   * Default `[]`.
   */
  readonly userProperties?: UserProperties | undefined
  /**
   * The message that the server publishes if this client disappears (section 3.1.2.5). Default:
   * none.
   */
  readonly will?: WillOptions | undefined
  /**
   * `'reject'` (default): each endpoint is tried once, then an error with a cause for each.
   * `'wait'`: continues as after a lost connection.
   */
  readonly firstConnect?: 'reject' | 'wait' | undefined
  /** `false`: a lost connection ends the client. Default `true`: the client reconnects. */
  readonly reconnect?: boolean | ReconnectOptions | undefined
  /**
   * `'when-lost'` (default): subscriptions are restored when the session is lost. `'always'`: on
   * every connection, for servers that forget them.
   */
  readonly resubscribe?: 'when-lost' | 'always' | undefined
  /** Hosts, or `host:port`, that a Server Reference may lead to (section 4.11). Default: none. */
  readonly serverReferences?: readonly string[] | undefined
  /**
   * Milliseconds before `expiresAt` at which credentials are renewed, 0 to 2,147,483,647. Default
   * 60,000.
   */
  readonly refreshBefore?: number | undefined
  /** Enhanced authentication (section 4.12). MQTT 5.0 only. Default: none. */
  readonly auth?: AuthMechanism | undefined
  /** Collect counters for `client.stats()`. Default false. */
  readonly stats?: boolean | undefined
  /**
   * Decodes incoming packets with WebAssembly: the result of `loadScanner()` of `mqwire/wasm`, or
   * its promise, which nothing waits for. Default: none in browsers; in Node, it is loaded in the
   * background. `false`: none in Node either.
   */
  readonly scanner?: FrameScanner | PromiseLike<FrameScanner | undefined> | false | undefined
  /**
   * Milliseconds for which QoS 1 and 2 messages of a resumed session wait for a subscription, 0 to
   * 2,147,483,647. Default 30,000.
   */
  readonly unclaimedHold?: number | undefined
  /**
   * Defaults for the buffers of subscriptions, and settings that hold for all of them. Default: see
   * {@link SubscriptionDefaults}.
   */
  readonly subscriptions?: SubscriptionDefaults | undefined
  /**
   * Limits of waiting publishes, and what happens beyond. Default: that of {@link OutboundOptions}.
   */
  readonly outbound?: OutboundOptions | undefined
  /**
   * Filters in one SUBSCRIBE or UNSUBSCRIBE packet, 1 or more; larger calls are split into several
   * packets. Default: no limit for `subscribe()`. UNSUBSCRIBE, and packets that mqwire composes
   * itself, as after a lost session, have at most 8, or as many as the endpoint has acknowledged in
   * one packet.
   */
  readonly maxFiltersPerSubscribe?: number | undefined
  /**
   * Bytes that everything held for a connection may take. Beyond that, QoS 0 is dropped. At QoS 1
   * and 2 the client stops reading until the application has made room. If the transport cannot be
   * paused, there is no reader, the client awaits an answer, or nothing moves for ten seconds, the
   * connection is closed with 0x97. Before that, readers get what is held, so that only messages
   * without room are redelivered. Default 32 MiB, or twice `maximumPacketSize`.
   */
  readonly memoryBudget?: number | undefined
  /**
   * Listeners by event name, attached as with `client.on` before the first attempt, also with
   * `connect()`. An unknown event name is refused with the nearest one (`ERR_INVALID_OPTION`),
   * anything but a function with `ERR_INVALID_HANDLER`. Default: none.
   */
  readonly on?: ClientListeners | undefined
  /**
   * For tests: the result of `virtualPlatform()` of `mqwire/testing`, whose clock and random
   * numbers replace the real ones. Default: none.
   */
  readonly platform?: VirtualPlatform | undefined
  /**
   * Receives log lines. Without one, errors that no listener receives (a handler that throws, a
   * publish that fails) are printed as a process warning, or with `console.error` if those cannot
   * be emitted; `null` prints and logs nothing. Default: none.
   */
  readonly logger?: Logger | null | undefined
}

/** Options of `client.connect()`. */
export interface ConnectOptions {
  /**
   * For the caller that started connecting: ends the client. For a caller that joined: rejects only
   * that call.
   */
  readonly signal?: AbortSignal | undefined
}

/** Properties of the Will Message (section 3.1.3.2). */
export interface WillProperties {
  /**
   * Seconds from the loss of the connection until the will is published, 0 to 4,294,967,295
   * (section 3.1.3.2.2). Default 0.
   */
  readonly willDelayInterval?: number | undefined
  /** 0: bytes. 1: UTF-8 text (section 3.1.3.2.3). Default: not sent, which means 0. */
  readonly payloadFormatIndicator?: number | undefined
  /**
   * Seconds until the message expires, 0 to 4,294,967,295 (section 3.1.3.2.4). Default: not sent,
   * it does not expire.
   */
  readonly messageExpiryInterval?: number | undefined
  /** What the payload is, for example a MIME type (section 3.1.3.2.5). Default: not sent. */
  readonly contentType?: string | undefined
  /** Topic for an answer, without wildcards (section 3.1.3.2.6). Default: not sent. */
  readonly responseTopic?: string | undefined
  /**
   * Data that the answer must carry, at most 65,535 bytes (section 3.1.3.2.7). Default: not sent.
   */
  readonly correlationData?: Payload | undefined
  /** Pairs of name and value, in order, names may repeat (section 3.1.3.2.8). Default: none. */
  readonly userProperties?: UserProperties | undefined
}

/** The message that the server publishes if this client disappears (section 3.1.2.5). */
export interface WillOptions {
  /** Topic without wildcards (section 3.1.3.3). */
  readonly topic: string
  /** At most 65,535 bytes (section 3.1.3.4). Default: empty. */
  readonly payload?: Payload | undefined
  /** Quality of Service at which it is published (section 3.1.2.6). Default 0. */
  readonly qos?: QoS | undefined
  /** Publish it as a retained message (section 3.1.2.7). Default false. */
  readonly retain?: boolean | undefined
  /** Properties of the message (section 3.1.3.2). MQTT 5.0 only. Default: none. */
  readonly properties?: WillProperties | undefined
}

/** Opens the stream to an endpoint instead of the built-in transports. */
export type CustomTransport = (
  endpoint: Endpoint,
  options: { signal: AbortSignal },
) => Promise<Transport> | Transport

/**
 * An endpoint with its own settings. Settings that the platform cannot honour are refused
 * (`ERR_UNSUPPORTED_OPTION`), never ignored.
 */
export interface EndpointOptions {
  /**
   * Scheme, host, port and path, such as `wss://broker.example/mqtt`, without a fragment. User-info
   * becomes user name and password (section 3.1.3.5).
   */
  readonly url: string | URL
  /**
   * Certificates and their verification, for `mqtts:`, `ssl:`, `tls:` and `wss:`. Node only.
   * Default: the platform's authorities.
   */
  readonly tls?: TlsOptions | undefined
  /** HTTP headers of the WebSocket handshake. Node only, and not in Bun. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * WebSocket sub-protocols, of which the server has to pick one: different tokens [MQTT-6.0.0-3].
   * Default `['mqtt']`.
   */
  readonly protocols?: readonly string[] | undefined
  /** Settings of the TCP socket, not for `unix:`. Node only. Default: the platform's. */
  readonly socket?: SocketOptions | undefined
  /**
   * Opens the stream instead of the built-in transports; the URL may then have any scheme. Default:
   * none.
   */
  readonly transport?: CustomTransport | undefined
}

/** The address of a broker. Schemes: `mqtt`, `tcp`, `mqtts`, `ssl`, `tls`, `ws`, `wss`, `unix`. */
export type Endpoint = string | URL | EndpointOptions

/** Passed to an authentication mechanism with each step. */
export interface AuthContext {
  /** Number of the attempt since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info and query. */
  readonly endpoint: string
  /** Aborts when the exchange is given up. */
  readonly signal: AbortSignal
  /** True when the connection is already up. */
  readonly reauthentication: boolean
}

/** Authentication Data of one step: bytes, a string sent as UTF-8, or none. */
export type AuthData = Payload | undefined

/**
 * A mechanism of enhanced authentication (section 4.12). If it throws, the attempt or the
 * connection ends at once without sending anything more (`ERR_AUTH_FAILED`).
 */
export interface AuthMechanism {
  /** Authentication Method (section 3.1.2.11.9). */
  readonly method: string
  /**
   * Starts an exchange. Returns the data of CONNECT, or of the AUTH that requests
   * re-authentication.
   */
  start(context: AuthContext): AuthData | Promise<AuthData>
  /** The server continues the exchange. Returns the data of the answer. */
  continue(data: Bytes | undefined, context: AuthContext): AuthData | Promise<AuthData>
  /**
   * The server has accepted, with this final data. Nothing else from the server is processed before
   * the promise resolves.
   */
  success?: ((data: Bytes | undefined, context: AuthContext) => void | Promise<void>) | undefined
}
