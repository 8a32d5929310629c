/**
 * The public types of pools. Types only.
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
  /** Number of connections, 1 to 1,000. Default 4. */
  readonly size?: number | undefined
  /**
   * Client identifiers: a text gives `<text>-pub-<n>` with n from 1; a function returns that of
   * connection n. Default: `clientId` of `options` as the text; without one, the server assigns
   * them.
   */
  readonly clientId?: string | ((n: number) => string) | undefined
  /**
   * Which connection gets a publish. `'round-robin'` (default): each in turn. `'hash'`: the same
   * one for all publishes to a topic, which keeps their order. `'least-in-flight'`: the one with
   * the fewest unsettled publishes.
   */
  readonly routing?: Routing | undefined
  /**
   * For `'hash'`: topics with messages in flight on a lost connection `'wait'` (default) for it, or
   * `'move'` to another one, which gives up their order.
   */
  readonly onLost?: OnLost | undefined
  /**
   * Any publisher, which gets publishes while no connection is up. The pool does not close it.
   * Default: none.
   */
  readonly fallback?: Publisher<unknown> | undefined
  /**
   * Handling of publishes while no connection is up and there is no `fallback`. `'queue'`
   * (default): they wait for a connection, at QoS 0 too, within the limits that `outbound` sets for
   * one client. `'reject'`: they reject with `ERR_NO_HEALTHY_PUBLISHERS`. `outbound.offline`, and
   * `offline` of a publish, override it.
   */
  readonly offline?: 'queue' | 'reject' | undefined
  /**
   * Options of each connection, as for `new Client()`; `firstConnect` is `'wait'` unless given.
   * Default: those of the client.
   */
  readonly options?: ClientOptions | undefined
}

/** One connection of a pool. */
export interface PoolMember {
  /** `pub-<n>`. */
  readonly name: string
  /**
   * The client of the connection. An ended client is replaced; to make the pool smaller, use
   * `resize()`.
   */
  readonly client: MemberClient
  /** The state of its client. */
  readonly state: ClientState
  /** Publishes passed to it that have not settled. */
  readonly inFlight: number
  /**
   * Why the latest attempt failed, the connection was lost, or the client has ended; undefined
   * while there is a connection.
   */
  readonly error: MqttError | undefined
}

/** Statistics of a pool. */
export interface PoolStats {
  /** Connections, up or not. */
  readonly size: number
  /** Connections that are up. */
  readonly up: number
  /** Publishes passed to connections that have not settled. */
  readonly inFlight: number
  /**
   * Publishes that wait for a connection, or for publishes of their topic in flight on a connection
   * that is ending.
   */
  readonly queued: number
  /** Publishes that went to the fallback. */
  readonly fallback: number
  /** Publishes moved to another connection because the first one could no longer send them. */
  readonly moved: number
  /** The `stats()` of each client, by name: all zero while the option `stats` is off. */
  readonly members: Readonly<Record<string, Stats>>
}

/**
 * Publishes over several connections. A connection that has ended permanently, for example refused
 * by the server, is replaced after the delays of `options.reconnect.backoff`, while another one is
 * up. When all have ended, the pool is closed. `await using` disconnects it with the block.
 */
export interface Pool extends Publisher<Receipt>, Poster, AsyncDisposable {
  /** `'connected'` while any connection is up. */
  readonly state: ClientState
  /**
   * Fulfils when the pool is closed: with undefined after `disconnect()` or `drain()`, or with the
   * last error when every connection has ended permanently. Never rejects.
   */
  readonly closed: Promise<MqttError | undefined>
  /** Connections, up or not. */
  readonly size: number
  /** The connections. */
  members(): readonly PoolMember[]
  /**
   * Opens the connections. Fulfils when the first one is up. Rejects when each has failed once;
   * they keep trying. The first publish and `writable` also open them.
   * @throws AggregateError with the error of each connection by name; MqttError ERR_ABORTED, which
   * ends only the wait; ERR_CLOSED
   */
  connect(options?: ConnectOptions): Promise<void>
  /**
   * Publishes over one of the connections. If that one ends and has certainly not sent the message,
   * another one sends it.
   * @throws MqttError ERR_NO_HEALTHY_PUBLISHERS under `offline: 'reject'` while none is up and
   * there is no fallback; ERR_QUEUE_FULL; ERR_CLOSED; as `publish` of the client
   */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt>
  /**
   * Publishes at QoS 0 immediately, or discards the message. True if it was accepted.
   * @throws MqttError as `post` of the client
   */
  post(topic: string, payload: Payload): boolean
  /**
   * Changes the number of connections. Ended ones are removed first, then those that are not up.
   * Removed connections accept nothing more, and end when their publishes in flight are
   * acknowledged; then this fulfils.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED
   */
  resize(size: number, options?: DisconnectOptions): Promise<void>
  /**
   * Ends all connections in an orderly way, as `disconnect()` of the client. A running `resize()`
   * waits no longer than this.
   * @throws MqttError as `disconnect` of the client
   */
  disconnect(options?: DisconnectOptions): Promise<void>
  /**
   * As `disconnect()`, and waits for queued publishes and publishes in flight, as `drain()` of the
   * client.
   * @throws MqttError as `drain` of the client
   */
  drain(options?: DisconnectOptions): Promise<void>
  /**
   * Adds a listener of the events of all connections; `member` of each event has the name. A
   * connection that has ended permanently causes an `error` event.
   * @throws MqttError as `on` of the client
   */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /**
   * Adds hooks around the publishes of all connections, including later ones; returns a function
   * that removes them.
   * @throws MqttError ERR_INVALID_OPTION
   */
  use(hooks: Hooks): Unlisten
  /** Counters since the pool was created. */
  stats(): PoolStats
}
