/**
 * What every room of one client works with: the platform, the options, the session, events and the log. Types only.
 *
 * It names no part of another room; what a room needs of those stands in its own `ports.ts`.
 */

import type { Counters } from '../common/counters.js'
import type { Emitter } from '../common/emitter.js'
import type { MqttError } from '../errors.js'
import type { AuthPacket, ConnackPacket, Properties } from '../wire/packets.js'
import type { HookChain } from './hooks.js'
import type { Login, ParsedEndpoint } from './options/check-endpoint.js'
import type { Config } from './options/check-options.js'
import type { AuthContext, ClientEvents, Logger } from './options/index.js'
import type { Platform, ReportCode } from './platform.js'
import type { Session } from './session/session.js'

/** One client, as all of its parts know it. */
export interface ClientContext {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly events: Emitter<ClientEvents>
  /** Undefined unless the `stats` option is on. */
  readonly counters: Counters | undefined
  /** Undefined until one is used. */
  readonly hooks: HookChain | undefined
  /** The parts are made text only where there is a listener. */
  log(level: keyof Logger, ...parts: readonly unknown[]): void
  /** Logs what the program should know. Without a logger, and without a listener of `heard`, it is reported: see `platform.ts`. */
  report(
    code: ReportCode,
    text: string | (() => string),
    cause: unknown,
    heard?: keyof ClientEvents,
    count?: number,
  ): void
}

/**
 * What attaches to a client without any part of it knowing more than this: enhanced authentication, the renewal of credentials, a session in a store.
 *
 * An extra is made with the client's context, and sees no other part. Each member is called at one place; those that are left out cost nothing.
 */
export interface Extra {
  /** CONNECT is about to be made: gives properties for it. What it rejects with ends the attempt. */
  begin?(context: AuthContext): Promise<Properties>
  /** The transport is open: CONNECT leaves once this has fulfilled, at once where it is undefined. `handshake` rejects where no CONNACK says yes. */
  open?(handshake: Promise<void>): Promise<void> | undefined
  /** CONNACK came, and counts once this has fulfilled: at once where it is undefined. What it rejects with ends the connection. */
  verify?(packet: ConnackPacket): Promise<void> | undefined
  /** AUTH came (section 3.15). */
  handleAuth?(packet: AuthPacket): void
  /** An attempt has led to a connection: at which endpoint, and with what credentials of a function. */
  handleUp?(endpoint: ParsedEndpoint, login: Login | undefined): void
  /** The connection is over, or the client. */
  handleLost?(error: MqttError): void
}
