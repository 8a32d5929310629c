/**
 * The events of a broker for its test, and a small emitter for them.
 *
 * A listener that throws never disturbs the broker: the error is thrown again in a microtask, where
 * test runners see it.
 */
import type {
  ClientPacket,
  Properties,
  ProtocolVersion,
  SubscriptionRequest,
} from '../../../wire/packets.js'
import type { BrokerMessage } from './message.js'

/** A connected client. */
export interface BrokerClient {
  /** Client Identifier in force. */
  readonly clientId: string
  /** User Name of CONNECT. */
  readonly username: string | undefined
  /** 5, or 4 for 3.1.1. */
  readonly protocolVersion: ProtocolVersion
  /** In force, in seconds; 0 is off. */
  readonly keepAlive: number
  /** The `remote` argument of `accept`. */
  readonly remote: string | undefined
  /** Bytes received. */
  readonly bytesIn: number
  /** Bytes of packets sent. */
  readonly bytesOut: number
}

/** A protocol rule broken by a client. */
export interface Violation {
  /** Client Identifier; empty before CONNECT. */
  readonly clientId: string
  /** Milliseconds of the broker's clock. */
  readonly time: number
  /**
   * Packet that broke it; undefined for a keep-alive timeout and for bytes that are not a packet.
   */
  readonly packet: ClientPacket['type'] | undefined
  /** The reason code with which the connection was ended; undefined when it continued. */
  readonly reasonCode: number | undefined
  /** The rule, with the id of its statement. Never contains text of the packet. */
  readonly text: string
}

/** The hooks of a broker, by the option that sets them. */
export type HookName =
  | 'auth'
  | 'authenticate'
  | 'authorizeDelivery'
  | 'authorizePublish'
  | 'authorizeSubscribe'
  | 'faults'
  | 'intercept'
  | 'responseInformation'

/** A hook threw, rejected, took too long, or returned an invalid value. The request was refused. */
export interface HookError {
  /** The hook. */
  readonly hook: HookName
  /** Identifier of the client concerned; empty before CONNECT. */
  readonly clientId: string
  /** Milliseconds of the broker's clock. */
  readonly time: number
  /** The thrown value or rejection reason, or an error that describes the invalid value. */
  readonly error: unknown
}

/** An application message that the broker accepted from a client. */
export interface AcceptedMessage extends BrokerMessage {
  /** Client that published it. */
  readonly clientId: string
  /** Packet Identifier; undefined at QoS 0. */
  readonly packetId: number | undefined
  /** DUP flag of the PUBLISH. */
  readonly dup: boolean
  /** True for a Will Message. */
  readonly will: boolean
}

/** Events by name. */
export interface BrokerEvents {
  /** A client has connected. */
  connect: {
    /** The client. */
    readonly client: BrokerClient
    /** Whether a session was resumed. */
    readonly sessionPresent: boolean
  }
  /** A client has disconnected. */
  disconnect: {
    /** The client. */
    readonly client: BrokerClient
    /** Which side ended the connection. */
    readonly by: 'client' | 'broker' | 'network'
    /** Reason code of the DISCONNECT, from either side; undefined without one. */
    readonly reasonCode: number | undefined
  }
  /** A message was accepted. */
  publish: {
    /** The message. */
    readonly message: BrokerMessage
    /** Packet Identifier; undefined at QoS 0. */
    readonly packetId: number | undefined
    /** DUP flag of the PUBLISH. */
    readonly dup: boolean
    /** True for a Will Message. */
    readonly will: boolean
  }
  /** A SUBSCRIBE was answered. */
  subscribe: {
    /** The client. */
    readonly client: BrokerClient
    /** The requested subscriptions. */
    readonly subscriptions: readonly SubscriptionRequest[]
    /** The reason codes of the answer, in the same order. */
    readonly reasonCodes: readonly number[]
    /** Properties of the SUBSCRIBE. */
    readonly properties: Properties
  }
  /** An UNSUBSCRIBE was answered. */
  unsubscribe: {
    /** The client. */
    readonly client: BrokerClient
    /** The filters to unsubscribe. */
    readonly filters: readonly string[]
    /** The reason codes of the answer, in the same order. */
    readonly reasonCodes: readonly number[]
  }
  /** A client broke a rule. */
  violation: Violation
  /**
   * A hook failed. Without a listener the first failure of each hook is printed with
   * `console.error`.
   */
  hookerror: HookError
}

/** All events. */
export const eventNames: readonly (keyof BrokerEvents)[] = [
  'connect',
  'disconnect',
  'publish',
  'subscribe',
  'unsubscribe',
  'violation',
  'hookerror',
]

type Listener<T> = (event: T) => void

/** Calls listeners in the order in which they were added. */
export class BrokerEmitter {
  readonly #listeners = new Map<keyof BrokerEvents, Set<Listener<never>>>()

  /** Adds a listener; returns a function that removes it. */
  on<K extends keyof BrokerEvents>(type: K, listener: Listener<BrokerEvents[K]>): () => void {
    const list = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, list.add(listener))
    return () => {
      list.delete(listener)
    }
  }

  /** Whether the event has a listener. */
  has(type: keyof BrokerEvents): boolean {
    return (this.#listeners.get(type)?.size ?? 0) > 0
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

/** Throws the error in a microtask, outside of the caller's stack. */
export function report(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
