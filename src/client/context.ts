/**
 * What every folder of one client uses: platform, options, session, events and log. Types only.
 *
 * What a folder needs from other folders is in its own `ports.ts`.
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

/** One client as all of its parts see it. */
export interface ClientContext {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly events: Emitter<ClientEvents>
  /** Undefined unless the `stats` option is on. */
  readonly counters: Counters | undefined
  /** Undefined until hooks are used. */
  readonly hooks: HookChain | undefined
  /** Writes a log line. `parts` are converted to text only if there is a logger. */
  log(level: keyof Logger, ...parts: readonly unknown[]): void
  /**
   * Logs something that the program should know. Without a logger and without a listener of
   * `heard`, it is printed: see `platform.ts`.
   */
  report(
    code: ReportCode,
    text: string | (() => string),
    cause: unknown,
    heard?: keyof ClientEvents,
    count?: number,
  ): void
}

/**
 * A part that only attaches to a client: enhanced authentication, renewal of credentials, a stored
 * session. No other part knows it.
 *
 * An extra is created with the client's context and sees no other part. Each member is called at
 * one place and may be omitted.
 */
export interface Extra {
  /** CONNECT is about to be built: returns properties for it. A rejection ends the attempt. */
  begin?(context: AuthContext): Promise<Properties>
  /**
   * The transport is open: CONNECT is sent once the returned promise resolves, at once without one.
   * `handshake` rejects if no CONNACK accepts the connection.
   */
  open?(handshake: Promise<void>): Promise<void> | undefined
  /**
   * CONNACK came in; it takes effect once the returned promise resolves, at once without one. A
   * rejection ends the connection.
   */
  verify?(packet: ConnackPacket): Promise<void> | undefined
  /** AUTH came (section 3.15). */
  handleAuth?(packet: AuthPacket): void
  /**
   * An attempt succeeded, at this endpoint and with these credentials, if they came from
   * `credentials()`.
   */
  handleUp?(endpoint: ParsedEndpoint, login: Login | undefined): void
  /** The connection or the client has ended. */
  handleLost?(error: MqttError): void
}
