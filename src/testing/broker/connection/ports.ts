/**
 * Interfaces between the parts of one connection, and from the connection to its broker. Types
 * only.
 */
import type {
  ClientPacket,
  ConnectPacket,
  Properties,
  ServerPacket,
} from '../../../wire/packets.js'
import type { HookName } from '../common/events.js'
import type { Eventually } from '../common/hooks.js'
import type { BrokerState } from '../state/broker-state.js'
import type { DeliveryLink } from '../state/ports.js'
import type { OpenRequests } from './open-requests.js'
import type { Peer } from './peer.js'

/** The life of a connection, for the parts that transfer its packets. */
export interface ConnectionLife {
  /** True once the connection has ended: nothing is handled or sent after that. */
  readonly over: boolean
  /** Ends the connection at once. */
  cut(): void
  /** Ends the connection after pending output was sent. */
  finish(): void
  /** Restarts the broker. */
  restart(keepSessions: boolean): void
  /** A hook of the test threw: reports it and ends the connection. */
  failHook(hook: HookName, error: unknown): void
}

/** The life of a connection, for the parts that handle its packets. */
export interface ConnectionEnding extends ConnectionLife {
  /** True once the client's stream has ended, while earlier packets are still handled. */
  readonly gone: boolean
  /** Ends the connection, after a DISCONNECT if the protocol version has one from the server. */
  disconnect(reasonCode: number, properties?: Properties): void
  /** The client sent DISCONNECT. */
  leave(reasonCode: number): void
}

/** The connection, for the parts that transfer packets. */
export interface CarryingConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly end: ConnectionLife
}

/** The sending side, for the parts that handle packets. */
export interface AnswerWriter extends DeliveryLink {
  /** Takes the client's limits from its CONNECT. */
  configure(connect: ConnectPacket): void
  /** Sends a packet, unless a hook or fault prevents it. */
  send(packet: ServerPacket): void
}

/** The connection, for the parts that handle packets. */
export interface HandledConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly requests: OpenRequests
  readonly sender: AnswerWriter
  readonly end: ConnectionEnding
  /**
   * Continues with a hook's result: synchronously, or when its promise has settled. Packets
   * received meanwhile are handled after that, in order.
   */
  decide<T>(given: Eventually<T>, next: (value: T) => void): void
  /** Notes that the client broke a rule; with a reason code the connection ends [MQTT-4.13.1-1]. */
  violate(text: string, packet: ClientPacket['type'] | undefined, reasonCode?: number): void
  /** Called after the handshake: starts the keep-alive timer. */
  begin(): void
}

/** The broker, for one of its connections. */
export interface ConnectionOwner {
  readonly state: BrokerState
  /** The buffer that transports read into. */
  readonly window: Uint8Array
  /** The connection has ended. */
  forget(connection: HandledConnection): void
  /** The stream of the connection has ended. */
  forgetStream(connection: HandledConnection): void
  /** Cuts all connections, and discards all state unless `keepSessions` is true. */
  restart(keepSessions: boolean): void
}
