/**
 * An MQTT broker in memory: 5.0 and 3.1.1, for tests and simulations, in Node and in browsers.
 *
 * The thin public handle over `core.ts`. It shares the codec with the client and nothing else, touches no platform but a clock, and does the same
 * at every run that sees the same bytes at the same times.
 */
import { type MemoryOptions, memoryPair } from '../../transport/memory.js'
import type { Transport } from '../../transport/transport.js'
import { encode } from '../../wire/encode.js'
import { refused } from '../../wire/error.js'
import type { Properties, PublishPacket, QoS } from '../../wire/packets.js'
import { realClock } from './clock.js'
import { Core } from './core.js'
import type { AcceptedMessage, BrokerClient, BrokerEvents, Violation } from './events.js'
import type { FaultTable } from './fault-table.js'
import { type BrokerMessage, messageOf } from './message.js'
import { type MemoryBrokerOptions, parseOptions } from './options.js'
import type { BrokerSession } from './session.js'

/** What {@link MemoryBroker.publish} takes. */
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

/**
 * A broker in memory: it takes any transport, follows the standard, and shows what it was sent. `using` closes it at the end of the block.
 */
export class MemoryBroker {
  readonly #core: Core

  /** Takes a stream that was accepted from a client, of any transport. May be passed on alone: `listenTcp({}, broker.accept)`. */
  readonly accept: (transport: Transport, remote?: string) => void

  /** Dials this broker: fits `transport` of an endpoint, whatever its URL. Rejects with `code: 'ECONNREFUSED'` after `close()`. */
  readonly dial: (endpoint?: unknown, options?: { readonly signal?: AbortSignal | undefined }) => Promise<Transport>

  /** @throws MqttError ERR_INVALID_OPTION */
  constructor(options: MemoryBrokerOptions = {}) {
    const core = new Core(parseOptions(options))
    this.#core = core
    this.accept = (transport, remote) => core.accept(transport, remote)
    this.dial = async (_endpoint, dialOptions) => {
      dialOptions?.signal?.throwIfAborted()
      if (core.closed) throw Object.assign(new Error('The broker was closed'), { code: 'ECONNREFUSED' })
      return this.connect()
    }
  }

  /** Faults that are to happen, and those that did. */
  get faults(): FaultTable {
    return this.#core.faults
  }

  /** Connected clients by identifier, a copy. */
  get clients(): ReadonlyMap<string, BrokerClient> {
    const { connections } = this.#core
    return new Map([...connections].filter(({ state }) => state === 'connected').map(({ clientId, client }) => [clientId, client]))
  }

  /** Sessions by client identifier, connected or not, as they are now. */
  get sessions(): ReadonlyMap<string, BrokerSession> {
    return new Map([...this.#core.sessions].map(([clientId, session]) => [clientId, session.view()]))
  }

  /** Retained messages by topic, a copy. */
  get retained(): ReadonlyMap<string, BrokerMessage> {
    return this.#core.retained.view()
  }

  /** Application messages taken over from clients, wills included, oldest first. QoS 2 repeats are not in it. The newest 100,000 at most. */
  get accepted(): readonly AcceptedMessage[] {
    return this.#core.accepted.entries
  }

  /** Rules that clients broke, oldest first. */
  get violations(): readonly Violation[] {
    return this.#core.violations.entries
  }

  /** Listens to what happens; gives what stops that. What a listener throws is thrown again in a microtask. */
  on<K extends keyof BrokerEvents>(type: K, listener: (event: BrokerEvents[K]) => void): () => void {
    return this.#core.events.on(type, listener)
  }

  /** The client's end of a new connection in memory; `knobs` shape both directions or one (`forward` is from the client). Its time is the broker's. */
  connect(knobs: MemoryOptions = {}): Transport {
    const { clock } = this.#core.settings
    const schedule = clock === realClock ? undefined : (callback: () => void, delay: number) => clock.setTimer(callback, delay)
    const [client, server] = memoryPair({ schedule, ...knobs })
    this.accept(server)
    return client
  }

  /**
   * Publishes a message from inside; true when somebody has subscribed to it.
   *
   * @throws WireError for a message that no PUBLISH could carry
   */
  publish({ topic, payload = '', qos = 0, retain = false, properties = {} }: BrokerPublish): boolean {
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : new Uint8Array(payload)
    const packet: PublishPacket = { type: 'publish', topic, payload: bytes, qos, retain, properties, dup: false, packetId: qos > 0 ? 1 : undefined }
    encode(packet)
    return this.#core.publish(messageOf(packet, undefined, this.#core.settings.clock.now()), { packetId: undefined, dup: false, will: false })
  }

  /**
   * Ends a client's connection with DISCONNECT (0x98 administrative action by default); false when it is not connected.
   *
   * @throws WireError for a packet that cannot be encoded, or with a Session Expiry Interval [MQTT-3.14.2-2]
   */
  disconnect(clientId: string, reasonCode = 0x98, properties: Properties = {}): boolean {
    if (properties.sessionExpiryInterval !== undefined) throw refused('properties.sessionExpiryInterval', 'is for clients to send')
    encode({ type: 'disconnect', reasonCode, properties })
    const connection = this.#core.sessions.get(clientId)?.connection
    connection?.disconnect(reasonCode, properties)
    return connection !== undefined
  }

  /** Cuts all connections, as a broker does that dies and is started again; without its sessions it has lost retained messages and wills as well. */
  restart({ keepSessions }: { readonly keepSessions: boolean }): void {
    this.#core.restart(keepSessions)
  }

  /** Sends everybody away (0x8B), forgets everything, and takes no connections any more. */
  close(): void {
    this.#core.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
