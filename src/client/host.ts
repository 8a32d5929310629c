/**
 * The parts of one client, as they know each other. Types only.
 *
 * `core.ts` makes them; each part is given the host and calls the others through it. No part may keep another part's data.
 */
import type { MqttError } from '../errors.js'
import type { Transport } from '../transport/transport.js'
import type { FrameScanner } from '../wire/frames.js'
import type { ConnackPacket, ConnectPacket, Packet } from '../wire/packets.js'
import type { Logger } from './api.js'
import type { Emitter } from './common/emitter.js'
import type { Connection } from './connection/connection.js'
import type { Turns } from './connection/turns.js'
import type { Inbox } from './delivery/inbox.js'
import type { Settler } from './delivery/message.js'
import type { ClientEvents } from './events.js'
import type { Config } from './parsing/options.js'
import type { Platform } from './platform.js'
import type { Outbox } from './publishing/outbound.js'
import type { Action } from './session/actions.js'
import type { Session } from './session/session.js'
import type { Counters } from './statistics.js'
import type { Registry } from './subscribing/registry.js'

/** One client, seen from its parts. As a settler it takes the outcome of messages to the wire. */
export interface Host extends Settler {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly registry: Registry
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly events: Emitter<ClientEvents>
  /** The client identifier in force. */
  readonly clientId: string
  /** The connection, while it takes packets of the application. */
  readonly connection: Connection | undefined
  /** Bytes that the connection itself holds. */
  readonly held: number
  /** What is done once a turn; a consumer has had its turn when `marks` has changed. */
  readonly turns: Turns
  /** Finds frames faster; undefined where there is none, or not yet. */
  readonly scanner: FrameScanner | undefined
  /** Undefined unless the `stats` option is on. */
  readonly counters: Counters | undefined
  /** True once `disconnect()` began. */
  readonly stopping: boolean
  /** True when the session ends with the connection that is being ended. */
  readonly sessionEnds: boolean
  /** True when the client is closed. */
  readonly ended: boolean
  /** Undefined unless somebody watches packets. */
  readonly watch: ((direction: 'in' | 'out', packet: Packet) => void) | undefined
  /** The parts are made text only where somebody listens. */
  log(level: keyof Logger, ...parts: readonly unknown[]): void
  /** Right before the transport is opened; `dropped` are the options that the connection goes without. */
  handleDial(url: string, attempt: number, dropped: readonly string[]): void
  /** Runs the handshake on an open transport; fulfils at CONNACK, rejects otherwise and when the signal aborts. */
  handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void>
  /** What the session's control plane asks for, but for what the connection does itself. */
  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void
  /** Everything of one read was handed over. */
  handleReadEnd(): void
  /** What a CONNACK has to wait for before it counts; rejects when it is not to be believed. */
  verify(packet: ConnackPacket): Promise<void> | undefined
  /** Does what the session asks for, after a command given to it. */
  pump(): void
  /** Ends the connection, without a further byte. */
  cut(error: MqttError): void
  /** Sends what waits, as far as it may. */
  flush(): void
  /** The end of the connection, exactly once. Undefined: orderly, after our DISCONNECT. */
  handleClosed(error: MqttError | undefined): void
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
}
