/**
 * Pools, as users see them. Types only.
 */
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Hooks,
  ListenerOptions,
  Payload,
  Poster,
  Publisher,
  PublishOptions,
  Receipt,
  Stats,
  Unlisten,
} from '../client/options/index.js'
import type { MqttError } from '../errors.js'
import type { MemberEvents } from '../members/listeners.js'
import type { MemberClient } from '../members/member.js'
import type { OnLost, Routing } from '../members/router.js'

/** Options of a pool. */
export interface PoolOptions {
  /** Connections, 1 to 1,000. Default 4. */
  readonly size?: number | undefined
  /**
   * Client identifiers: of a text, `<text>-pub-<n>` with n from 1; or a function that gives the one of connection n. Default: `clientId` of `options`,
   * and without that those that the server assigns.
   */
  readonly clientId?: string | ((n: number) => string) | undefined
  /**
   * Which connection takes a publish. `'round-robin'` (default): one after the other. `'hash'`: all of one topic the same, so that their order holds.
   * `'least-in-flight'`: the one with the fewest publishes without an answer.
   */
  readonly routing?: Routing | undefined
  /**
   * Under `'hash'`, topics of a connection that was lost while it had something of them in flight: `'wait'` (default) for it, or `'move'` to another
   * one, which gives up their order.
   */
  readonly onLost?: OnLost | undefined
  /** Takes publishes while no connection is up: any publisher. It stays the caller's. Default: none. */
  readonly fallback?: Publisher<unknown> | undefined
  /**
   * What becomes of publishes while no connection is up and there is no `fallback`. `'queue'` (default): they wait for the first one that is, at QoS 0 too,
   * within the limits that `outbound` sets for one client. `'reject'`: they reject with `ERR_NO_HEALTHY_PUBLISHERS`. `outbound.offline`, and `offline` of a
   * publish, win over it.
   */
  readonly offline?: 'queue' | 'reject' | undefined
  /** Of each connection, as `new Client()` takes them; `firstConnect` is `'wait'` unless it is given. Default: those of the client. */
  readonly options?: ClientOptions | undefined
}

/** One connection of a pool. */
export interface PoolMember {
  /** `pub-<n>`. */
  readonly name: string
  /** The client behind it. One that has ended is replaced; `resize()` makes the pool smaller. */
  readonly client: MemberClient
  /** Where it stands. */
  readonly state: ClientState
  /** Publishes that were handed to it and have not settled. */
  readonly inFlight: number
  /** Why the latest attempt failed, the connection was lost, or the client has ended; undefined while there is a connection. */
  readonly error: MqttError | undefined
}

/** What a pool counts. */
export interface PoolStats {
  /** Connections, up or not. */
  readonly size: number
  /** Connections that are up. */
  readonly up: number
  /** Publishes that were handed to a connection and have not settled. */
  readonly inFlight: number
  /** Publishes that wait for a connection, or until one that leaves has ended what it has of their topics. */
  readonly queued: number
  /** Publishes that went to the fallback. */
  readonly fallback: number
  /** Publishes that one connection could not send any more, and another one took. */
  readonly moved: number
  /** What the client of each connection counts, by name: all zero while its `stats` option is off. */
  readonly members: Readonly<Record<string, Stats>>
}

/**
 * Publishes over several connections. One that has ended for good, as the server refuses it for example, is replaced after the delays of
 * `options.reconnect.backoff`, while another one is up. When all have ended, the pool is closed. `await using` disconnects it with the block.
 */
export interface Pool extends Publisher<Receipt>, Poster, AsyncDisposable {
  /** `'connected'` while any connection is up. */
  readonly state: ClientState
  /**
   * Settles once, when the pool is closed: with undefined after `disconnect()` or `drain()`, else with the last error, when every connection has ended for
   * good. Never rejects.
   */
  readonly closed: Promise<MqttError | undefined>
  /** Connections, up or not. */
  readonly size: number
  /** The connections. */
  members(): readonly PoolMember[]
  /**
   * Opens the connections. Fulfils when the first one is up; the others follow. While none is up it rejects when each has failed once, and goes on trying.
   * The first publish does it too, and so does `writable`.
   * @throws AggregateError with the error of each connection by name; MqttError ERR_ABORTED, which ends only the wait; ERR_CLOSED
   */
  connect(options?: ConnectOptions): Promise<void>
  /**
   * Publishes by one of the connections. What a connection that ends has certainly not sent goes to another one.
   * @throws MqttError ERR_NO_HEALTHY_PUBLISHERS under `offline: 'reject'` while none is up and there is no fallback; ERR_QUEUE_FULL; ERR_CLOSED; as `publish`
   * of the client
   */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt>
  /** Publishes at QoS 0, now or not at all. True when it was taken. @throws MqttError as `post` of the client */
  post(topic: string, payload: Payload): boolean
  /**
   * Makes it larger, or smaller: first those go that have ended or are not up. They take nothing more, and end when what they have in flight is acknowledged.
   * Fulfils when they have.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED
   */
  resize(size: number, options?: DisconnectOptions): Promise<void>
  /**
   * Ends all connections in order, as `disconnect()` of the client. A `resize()` that is under way waits no longer than this.
   * @throws MqttError as `disconnect` of the client
   */
  disconnect(options?: DisconnectOptions): Promise<void>
  /** The same, and waits for what is queued or in flight, as `drain()` of the client. @throws MqttError as `drain` of the client */
  drain(options?: DisconnectOptions): Promise<void>
  /**
   * Adds a listener of the events of all connections; each event says whose it is, in `member`. A connection that has ended for good is an `error` event.
   * @throws MqttError as `on` of the client
   */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /** Has hooks called around the publishes of all connections, those that come later too; gives a function that ends it. @throws MqttError ERR_INVALID_OPTION */
  use(hooks: Hooks): Unlisten
  /** What happened so far, counted. */
  stats(): PoolStats
}
