/**
 * An MQTT broker in memory: 5.0 and 3.1.1, for tests and simulations, in Node and in browsers.
 *
 * The public handle over `broker-core.ts`. It shares only the codec with the client and uses no
 * platform but a clock. The same bytes at the same times always give the same run.
 */
import { MqttError } from '../../errors.js'
import { type MemoryOptions, memoryPair } from '../../transport/memory.js'
import { checkNames, unknownName } from '../../transport/names.js'
import type { TlsOptions, Transport } from '../../transport/transport.js'
import { decode } from '../../wire/decode.js'
import { encode } from '../../wire/encode.js'
import { refused } from '../../wire/error.js'
import { isBytes } from '../../wire/fields.js'
import type { Properties, PublishPacket, QoS } from '../../wire/packets.js'
import { BrokerCore } from './broker-core.js'
import type { BrokerSession } from './common/broker-session.js'
import { checkType, invalid, kindOf } from './common/check.js'
import { realClock } from './common/clock.js'
import {
  type AcceptedMessage,
  type BrokerClient,
  type BrokerEvents,
  eventNames,
  type HookError,
  type Violation,
} from './common/events.js'
import type { FaultTable } from './common/fault-table.js'
import { type BrokerMessage, messageOf } from './common/message.js'
import { type BrokerSettings, type MemoryBrokerOptions, parseOptions } from './common/options.js'

/** Where {@link MemoryBroker.serve} listens over TCP. */
export interface BrokerTcpOptions {
  /** Port. Default 0: a free one. */
  readonly port?: number | undefined
  /** Address. Default: `host` of {@link BrokerServeOptions}. */
  readonly host?: string | undefined
  /** Certificate and key: uses TLS. Default: `tls` of {@link BrokerServeOptions}. */
  readonly tls?: TlsOptions | undefined
}

/** Where {@link MemoryBroker.serve} listens over WebSocket. */
export interface BrokerWebSocketOptions extends BrokerTcpOptions {
  /** Path of the endpoint. Default `/mqtt`. */
  readonly path?: string | undefined
}

/** Options of {@link MemoryBroker.serve}; listeners without an option are not started. */
export interface BrokerServeOptions {
  /** MQTT over TCP (over TLS with `tls`): a port, 0 for a free one, or all settings. */
  readonly tcp?: number | BrokerTcpOptions | undefined
  /** MQTT over WebSocket (wss with `tls`): a port, 0 for a free one, or all settings. */
  readonly ws?: number | BrokerWebSocketOptions | undefined
  /** MQTT over a Unix domain socket: its path, which must not exist. */
  readonly unix?: string | undefined
  /**
   * Address for TCP and WebSocket. Default 127.0.0.1; `'0.0.0.0'` and `'::'` let other machines in.
   */
  readonly host?: string | undefined
  /** Certificate and key for TCP and WebSocket. Default: no TLS. */
  readonly tls?: TlsOptions | undefined
}

/** A listener of {@link MemoryBroker.serve}. */
export interface BrokerListener {
  /** The URL for clients on this machine, for example `mqtt://127.0.0.1:1883`. */
  readonly url: string
  /** The port that it listens on; undefined for a Unix domain socket. */
  readonly port: number | undefined
}

/** Result of {@link MemoryBroker.serve}. `await using` closes it at the end of the block. */
export interface BrokerListeners extends AsyncDisposable {
  /** The listener of the option `tcp`. */
  readonly tcp: BrokerListener | undefined
  /** The listener of the option `ws`. */
  readonly ws: BrokerListener | undefined
  /** The listener of the option `unix`. */
  readonly unix: BrokerListener | undefined
  /** The URLs of all, in the order `tcp`, `ws`, `unix`. */
  readonly urls: readonly string[]
  /**
   * Stops listening, frees the ports and cuts the connections made through them. The broker keeps
   * running.
   */
  close(): Promise<void>
}

/** Arguments of {@link MemoryBroker.publish}. */
export interface BrokerPublish {
  /** Topic Name. */
  readonly topic: string
  /** Bytes, or text for its UTF-8. Default: empty. */
  readonly payload?: string | Uint8Array | undefined
  /** Default 0. */
  readonly qos?: QoS | undefined
  /** Default false. */
  readonly retain?: boolean | undefined
  /** Default: none. */
  readonly properties?: Properties | undefined
}

/** The internals of a broker that the Node entry needs. */
export interface BrokerInside {
  readonly settings: BrokerSettings
  /** True once no more connections are accepted. */
  readonly closed: boolean
  /** Fulfils when all streams have ended. */
  idle(): Promise<void>
}

/**
 * For the Node entry only. `BrokerInside` is a separate type so that the published types do not
 * include the internals.
 */
export let insideOf: (broker: MemoryBroker) => BrokerInside

/**
 * An in-memory broker: it accepts any transport, follows the standard, and shows what it received.
 * `using` and `await using` close it at the end of the block.
 */
export class MemoryBroker {
  static {
    insideOf = (broker) => broker.#core
  }

  readonly #core: BrokerCore

  /**
   * Accepts a client's stream, of any transport. Works when passed on alone: `listenTcp({},
   * broker.accept)`.
   */
  readonly accept: (transport: Transport, remote?: string) => void

  /**
   * Dials this broker: a value for `transport` of an endpoint with any URL. Rejects with `code:
   * 'ECONNREFUSED'` after `close()`.
   */
  readonly dial: (
    endpoint?: unknown,
    options?: { readonly signal?: AbortSignal | undefined },
  ) => Promise<Transport>

  /** @throws MqttError ERR_INVALID_OPTION */
  constructor(options: MemoryBrokerOptions = {}) {
    const core = new BrokerCore(parseOptions(options))
    this.#core = core
    this.accept = (transport, remote) => core.accept(transport, remote)
    this.dial = async (_endpoint, dialOptions) => {
      dialOptions?.signal?.throwIfAborted()
      if (core.closed)
        throw Object.assign(new Error('The broker was closed'), { code: 'ECONNREFUSED' })
      return this.connect()
    }
  }

  /** Faults to inject, and faults that have happened. */
  get faults(): FaultTable {
    return this.#core.state.faults
  }

  /** Connected clients by identifier, a copy. */
  get clients(): ReadonlyMap<string, BrokerClient> {
    const { connections } = this.#core
    return new Map(
      [...connections]
        .filter(({ peer }) => peer.state === 'connected')
        .map(({ peer }) => [peer.clientId, peer.view]),
    )
  }

  /** Sessions by client identifier, connected or not, as they are now. */
  get sessions(): ReadonlyMap<string, BrokerSession> {
    return new Map(
      [...this.#core.state.sessions.byClientId].map(([clientId, session]) => [
        clientId,
        session.view(),
      ]),
    )
  }

  /** Retained messages by topic, a copy. */
  get retained(): ReadonlyMap<string, BrokerMessage> {
    return this.#core.state.retained.view()
  }

  /**
   * Application messages accepted from clients, wills included, oldest first, without QoS 2
   * repeats. Limited by `maxLog` (100,000 by default) and `maxLogBytes`: the older half is removed
   * when there are more.
   */
  get accepted(): readonly AcceptedMessage[] {
    return this.#core.state.log.accepted.entries
  }

  /** Protocol violations by clients, oldest first. */
  get violations(): readonly Violation[] {
    return this.#core.state.log.violations.entries
  }

  /** Hooks that failed, oldest first. */
  get hookErrors(): readonly HookError[] {
    return this.#core.state.log.hookErrors.entries
  }

  /**
   * Adds a listener; returns a function that removes it. Errors of listeners are thrown again in a
   * microtask.
   *
   * @throws MqttError ERR_INVALID_OPTION for an unknown event
   */
  on<K extends keyof BrokerEvents>(
    type: K,
    listener: (event: BrokerEvents[K]) => void,
  ): () => void {
    if (!eventNames.includes(type)) throw unknownName('event', type, eventNames)
    checkType('listener', listener, 'function')
    return this.#core.state.log.events.on(type, listener)
  }

  /**
   * Opens an in-memory connection and returns the client's end. `knobs` shape both directions, or
   * one of them (`forward` is from the client). It uses the broker's clock.
   */
  connect(knobs: MemoryOptions = {}): Transport {
    checkNames('connect', knobs, [
      'latency',
      'split',
      'drop',
      'highWaterMark',
      'delivery',
      'forward',
      'backward',
      'schedule',
    ])
    const { clock } = this.#core.state
    const schedule =
      clock === realClock
        ? undefined
        : (callback: () => void, delay: number) => clock.setTimer(callback, delay)
    const [client, server] = memoryPair({ schedule, ...knobs })
    this.accept(server)
    return client
  }

  /**
   * Publishes a message from the test; true when it has a subscription. The publish hook is not
   * called. The arguments may be changed afterwards.
   *
   * @throws MqttError ERR_INVALID_OPTION for an invalid message, WireError for a message that no
   * PUBLISH can carry
   */
  publish(message: BrokerPublish): boolean {
    checkNames('publish', message, ['topic', 'payload', 'qos', 'retain', 'properties'])
    const { topic, payload = '', qos = 0, retain = false, properties = {} } = message
    if (typeof payload !== 'string' && !isBytes(payload))
      throw invalid('payload', `must be a string or a Uint8Array, not ${kindOf(payload)}`)
    checkType('retain', retain, 'boolean')
    const bytes =
      typeof payload === 'string' ? new TextEncoder().encode(payload) : new Uint8Array(payload)
    // Encoding copies everything, including the bytes in properties.
    const encoded = encode({
      type: 'publish',
      topic,
      qos,
      retain,
      properties,
      packetId: qos > 0 ? 1 : undefined,
    })
    const packet = { ...(decode(encoded, { from: 'server' }) as PublishPacket), payload: bytes }
    const { state } = this.#core
    return state.publish(messageOf(packet, undefined, state.clock.now()), {
      packetId: undefined,
      dup: false,
      will: false,
    })
  }

  /**
   * Ends a client's connection with DISCONNECT (0x98 administrative action by default); false when
   * it is not connected.
   *
   * @throws WireError for a packet that cannot be encoded, or with a Session Expiry Interval
   * [MQTT-3.14.2-2]
   */
  disconnect(clientId: string, reasonCode = 0x98, properties: Properties = {}): boolean {
    if (properties.sessionExpiryInterval !== undefined)
      throw refused('properties.sessionExpiryInterval', 'is for clients to send')
    encode({ type: 'disconnect', reasonCode, properties })
    const connection = this.#core.state.sessions.byClientId.get(clientId)?.connection
    connection?.disconnect(reasonCode, properties)
    return connection !== undefined
  }

  /**
   * Cuts all connections, like a broker that crashes and starts again. With `keepSessions: false`
   * it loses sessions, retained messages and wills.
   */
  restart(options: { readonly keepSessions: boolean }): void {
    checkNames('restart', options, ['keepSessions'])
    checkType('keepSessions', options.keepSessions, 'boolean')
    this.#core.restart(options.keepSessions)
  }

  /**
   * Listens for clients: `await broker.serve({ tcp: 1883, ws: 8080 })`. Node only. The broker's
   * `close()` also closes these listeners.
   *
   * Rejects with `ERR_INVALID_OPTION`; with `ERR_CLOSED` after `close()`; with the platform's error
   * (such as `EADDRINUSE`) when one of the listeners cannot listen, in which case none of them
   * does; with `ERR_UNSUPPORTED_OPTION` in browsers.
   */
  async serve(_options: BrokerServeOptions): Promise<BrokerListeners> {
    throw new MqttError('ERR_UNSUPPORTED_OPTION', 'serve() needs the sockets of Node', {
      option: 'serve',
    })
  }

  /**
   * Disconnects all clients (0x8B), discards everything, and accepts no more connections. Resolves
   * when the listeners of {@link serve} are closed and their ports free; never rejects. Other
   * listeners must be closed by their creator.
   */
  close(): Promise<void> {
    this.#core.close()
    return Promise.resolve()
  }

  [Symbol.dispose](): void {
    void this.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
