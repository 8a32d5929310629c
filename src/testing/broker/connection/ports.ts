/**
 * What the parts of one connection need from each other, and the connection from its broker. Types
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

/** The life of a connection, for what carries its packets. */
export interface ConnectionLife {
  /** True once nothing is handled or sent any more. */
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

/** The same, for what handles its packets. */
export interface ConnectionEnding extends ConnectionLife {
  /** True once the client's stream has ended, while earlier packets are still handled. */
  readonly gone: boolean
  /** Ends the connection, after a DISCONNECT where the client understands one. */
  disconnect(reasonCode: number, properties?: Properties): void
  /** The client said goodbye. */
  leave(reasonCode: number): void
}

/** What carries packets works with. */
export interface CarryingConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly end: ConnectionLife
}

/** The way out, for what handles packets. */
export interface AnswerWriter extends DeliveryLink {
  /** Takes the client's limits from its CONNECT. */
  configure(connect: ConnectPacket): void
  /** Sends a packet, if no hook or fault is against it. */
  send(packet: ServerPacket): void
}

/** What handles packets works with. */
export interface HandledConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly requests: OpenRequests
  readonly sender: AnswerWriter
  readonly end: ConnectionEnding
  /** Goes on with what a hook gave: at once, or when its promise has settled; then what came meanwhile is handled, in order. */
  decide<T>(given: Eventually<T>, next: (value: T) => void): void
  /** Notes that the client broke a rule; with a reason code the connection ends [MQTT-4.13.1-1]. */
  violate(text: string, packet: ClientPacket['type'] | undefined, reasonCode?: number): void
  /** The handshake is done: Keep Alive is watched. */
  begin(): void
}

/** The broker, for one of its connections. */
export interface ConnectionOwner {
  readonly state: BrokerState
  /** Where transports read into. */
  readonly window: Uint8Array
  /** The connection is over. */
  forget(connection: HandledConnection): void
  /** Its stream is over. */
  forgetStream(connection: HandledConnection): void
  /** Cuts all connections, and forgets everything unless sessions are kept. */
  restart(keepSessions: boolean): void
}
