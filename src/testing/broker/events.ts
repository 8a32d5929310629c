/**
 * What a broker tells its test, and a small emitter for it.
 *
 * A listener that throws never disturbs the broker: the error is thrown again in a microtask, where test runners see it.
 */
import type { ClientPacket, Properties, ProtocolVersion, SubscriptionRequest } from '../../wire/packets.js'
import type { BrokerMessage } from './message.js'

/** A connected client. */
export interface BrokerClient {
  readonly clientId: string
  readonly username: string | undefined
  readonly protocolVersion: ProtocolVersion
  /** In force, in seconds; 0 is off. */
  readonly keepAlive: number
  /** What `accept` was given besides the transport. */
  readonly remote: string | undefined
  /** Bytes of packets that came in and went out. */
  readonly bytesIn: number
  readonly bytesOut: number
}

/** A rule that a client broke. */
export interface Violation {
  readonly clientId: string
  /** Milliseconds of the broker's clock. */
  readonly time: number
  /** Packet that broke it; undefined for silence and for bytes that are no packet. */
  readonly packet: ClientPacket['type'] | undefined
  /** What the connection was ended with; undefined when the broker went on. */
  readonly reasonCode: number | undefined
  /** The rule, with the id of its statement. Never text of the packet. */
  readonly text: string
}

/** An application message that the broker took over from a client. */
export interface AcceptedMessage extends BrokerMessage {
  readonly clientId: string
  readonly packetId: number | undefined
  readonly dup: boolean
  /** True for a Will Message. */
  readonly will: boolean
}

/** Events by name. */
export interface BrokerEvents {
  connect: { readonly client: BrokerClient; readonly sessionPresent: boolean }
  /** `reasonCode` is that of the DISCONNECT, whoever sent it; `by` who ended the connection. */
  disconnect: { readonly client: BrokerClient; readonly by: 'client' | 'broker' | 'network'; readonly reasonCode: number | undefined }
  publish: { readonly message: BrokerMessage; readonly packetId: number | undefined; readonly dup: boolean; readonly will: boolean }
  subscribe: {
    readonly client: BrokerClient
    readonly subscriptions: readonly SubscriptionRequest[]
    readonly reasonCodes: readonly number[]
    readonly properties: Properties
  }
  unsubscribe: { readonly client: BrokerClient; readonly filters: readonly string[]; readonly reasonCodes: readonly number[] }
  violation: Violation
}

type Listener<T> = (event: T) => void

/** Calls listeners in the order in which they were added. */
export class BrokerEmitter {
  readonly #listeners = new Map<keyof BrokerEvents, Set<Listener<never>>>()

  /** Adds a listener; gives what removes it. */
  on<K extends keyof BrokerEvents>(type: K, listener: Listener<BrokerEvents[K]>): () => void {
    const list = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, list.add(listener))
    return () => {
      list.delete(listener)
    }
  }

  emit<K extends keyof BrokerEvents>(type: K, event: BrokerEvents[K]): void {
    const list = this.#listeners.get(type) as Set<Listener<BrokerEvents[K]>> | undefined
    if (list === undefined || list.size === 0) return
    for (const listener of [...list]) {
      try {
        listener(event)
      } catch (error) {
        report(error)
      }
    }
  }
}

/** Throws outside everybody's stack. */
export function report(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
