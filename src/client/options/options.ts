/**
 * The options of a client. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in seconds).
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
  /** Counts the attempts since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info. */
  readonly endpoint: string
  /** Why the attempt before failed, or the connection was lost; undefined at the first. */
  readonly lastError: MqttError | undefined
  /** Aborts when the attempt is given up, at the latest after `credentialsTimeout`. */
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

/** A session in a store. */
export interface SessionStore {
  /** Where. */
  readonly store: Store
  /**
   * Incoming messages are kept, too, one write for each read: `message.id` distinguishes a repeat from a new message, and QoS 2 is handed out once across
   * restarts. False saves the write. Default true.
   */
  readonly inbound?: boolean | undefined
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
  /**
   * Awaited before every CONNECT; a throw fails that attempt. Goes over `username` and `password`. Before `expiresAt` it is awaited while the connection
   * stays up; a throw leaves that as it is, and the function is called again after a backoff. Default: none.
   */
  readonly credentials?:
    | ((context: CredentialsContext) => Credentials | Promise<Credentials>)
    | undefined
  /** Milliseconds for one call of `credentials()`, 0 to 2,147,483,647; then `ERR_CONNECT_TIMEOUT`. Default 30,000. */
  readonly credentialsTimeout?: number | undefined
  /**
   * Seconds between signs of life, 0 to 65,535; `false` or 0 is off (section 3.1.2.10). Default 30. Above 3,600, an hour, the log warns that these are
   * no milliseconds. A page that connects while it is hidden asks for 180 at least: its timers run once a
   * minute, and what comes in sends a PINGREQ that is due.
   */
  readonly keepAlive?: number | false | undefined
  /**
   * Milliseconds to wait for any byte after PINGREQ, 0 to 2,147,483,647; then `ERR_KEEPALIVE_TIMEOUT` (section 3.12.4). Default 10,000. At most half the
   * keep-alive in force counts, or 1,000 where that is less; `negotiated.pingTimeout` is what does.
   */
  readonly pingTimeout?: number | undefined
  /** Milliseconds from the dial to CONNACK, 0 to 2,147,483,647, for each endpoint; then `ERR_CONNECT_TIMEOUT`. Default 10,000. */
  readonly connectTimeout?: number | undefined
  /**
   * False declares that this `clientId`, which it needs, owns a session that is to be resumed (section 3.1.2.4). Default true; false with a `store`, where
   * an empty `clientId` will do: the one that the broker assigns is kept.
   */
  readonly cleanStart?: boolean | undefined
  /**
   * Keeps the session where it survives the process (section 4.1): publishes that were sent and not acknowledged, and identifiers of messages that came in.
   * A `Store` of `mqwire/store`, or `{ store, inbound }`. Nothing is sent or acknowledged before it is stored. The store stays the caller's: the client
   * does not close it. It may hold the sessions of several clients, each under its own `clientId`. Default: none.
   */
  readonly store?: Store | SessionStore | undefined
  /** Seconds that the session outlives the connection, 0 to 4,294,967,295, which is for ever (section 3.1.2.11.2). Default 300; a week with a `store`. */
  readonly sessionExpiryInterval?: number | undefined
  /**
   * QoS 1 and 2 messages that the broker may have open towards us, 1 to 65,535 (section 3.1.2.11.3). Default 65,535: some
   * brokers drop what a smaller one makes them queue. After a close for `memoryBudget` the next connection announces `memoryBudget` divided by the largest
   * message so far, half of what was announced before, or 1,024: whichever is least.
   */
  readonly receiveMaximum?: number | undefined
  /**
   * What happens when the broker sends more than `receiveMaximum`, which several do. Default `'tolerate'`: taken as long as `memoryBudget` holds, reported once
   * a connection (`warn`), counted in `stats()`. `'disconnect'`: DISCONNECT 0x93 (section 4.13.1).
   */
  readonly receiveMaximumExceeded?: 'tolerate' | 'disconnect' | undefined
  /**
   * Bytes of a packet, 1 to 4,294,967,295 (section 3.1.2.11.4). Default 16 MiB, or half of `memoryBudget` where that is less. Brokers of 5.0 silently drop
   * messages that exceed it; 3.1.1 has no way to announce it: see `oversized`.
   */
  readonly maximumPacketSize?: number | undefined
  /**
   * What happens to an incoming message above `maximumPacketSize`: on 3.1.1 every broker sends it, on 5.0 some do. `'skip'` (default): its payload is read
   * past and not kept; the message is acknowledged (5.0: with 0x97), counted in `stats()`, and reported as `drop` with `reason: 'too-large'`. `'disconnect'`:
   * ends the connection with 0x95, as section 3.1.2.11.4 says. A topic with properties above it, and any other packet, always do. Over WebSocket the
   * platform holds a whole message, up to four times `maximumPacketSize`; a larger one ends the connection.
   */
  readonly oversized?: 'skip' | 'disconnect' | undefined
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
  /** `false`: a lost connection ends the client. Default `true`: the client reconnects. */
  readonly reconnect?: boolean | ReconnectOptions | undefined
  /** `'when-lost'` (default): subscriptions are made again when the session is gone. `'always'`: on every connection, for servers that forget. */
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
  /** Milliseconds for which QoS 1 and 2 messages of a resumed session wait for a subscription, 0 to 2,147,483,647. Default 30,000. */
  readonly unclaimedHold?: number | undefined
  /** Buffers of every subscription that does not say otherwise, and what is said of all. Default: those of {@link SubscriptionDefaults}. */
  readonly subscriptions?: SubscriptionDefaults | undefined
  /** What may wait to be sent, and what happens beyond. Default: that of {@link OutboundOptions}. */
  readonly outbound?: OutboundOptions | undefined
  /**
   * Filters in one SUBSCRIBE or UNSUBSCRIBE packet, 1 or more; larger calls become several packets. Default: no limit for `subscribe()`. Packets that mqwire
   * makes itself, as after a lost session, and UNSUBSCRIBE hold 8, or as many as the endpoint has acknowledged in one packet.
   */
  readonly maxFiltersPerSubscribe?: number | undefined
  /**
   * Bytes that everything held for a connection may take. Beyond, QoS 0 is dropped. At QoS 1 and 2 the client stops to read until the application has made
   * room. Where the transport cannot wait, no reader is there, an answer to the client is awaited, or nothing moves for ten seconds, the link ends with 0x97:
   * what is held is handed out before, as long as there is a reader, so that only what had no room comes again. Default 32 MiB, or twice `maximumPacketSize`.
   */
  readonly memoryBudget?: number | undefined
  /**
   * Listeners by event name, each attached as `client.on` would before anything is dialled: with `connect()` they hear of the first attempts too. A name
   * that is no event is refused with the nearest one (`ERR_INVALID_OPTION`), what is no function with `ERR_INVALID_HANDLER`. Default: none.
   */
  readonly on?: ClientListeners | undefined
  /** For tests: what `virtualPlatform()` of `mqwire/testing` gives, whose clock and random numbers take the place of the real ones. Default: none. */
  readonly platform?: VirtualPlatform | undefined
  /**
   * Where notes go. Without one, what no listener hears (a handler that throws, a publish that fails) is printed as a process warning, or with
   * `console.error` where those cannot be emitted; `null` prints nothing and logs nothing. Default: none.
   */
  readonly logger?: Logger | null | undefined
}

/** Options of `client.connect()`. */
export interface ConnectOptions {
  /** Of the caller that began the attempt: gives it up. Of one that joined: drops only that caller. */
  readonly signal?: AbortSignal | undefined
}

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

/** Replaces the built-in dialling of an endpoint. */
export type CustomTransport = (
  endpoint: Endpoint,
  options: { signal: AbortSignal },
) => Promise<Transport> | Transport

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

/** What a mechanism of enhanced authentication gets about the exchange. */
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
