/**
 * What reconnecting needs from its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { Abort } from '../../common/abort.js'
import type { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { ConnectPacket, Properties } from '../../wire/packets.js'
import type { ClientContext } from '../context.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { AuthContext } from '../options/index.js'

/** The client as its reconnector sees it. */
export interface ReconnectHost extends ClientContext {
  /** The client identifier in use; '' when the server is to assign one. */
  clientId: string
  /** Credentials that a renewal obtained in advance, for the next attempt at this endpoint. */
  renewed: { readonly endpoint: ParsedEndpoint; readonly login: Login | undefined } | undefined
  readonly connections: {
    /** The connection, while it accepts packets of the application. */
    readonly connection: object | undefined
    /**
     * Called right before the transport is opened; `dropped` lists options that this attempt omits.
     */
    handleDial(url: string, attempt: number, dropped: readonly string[]): void
    /**
     * Runs the handshake on an open transport. Resolves at CONNACK; rejects on failure, and when
     * the attempt is aborted.
     */
    handshake(transport: Transport, packet: ConnectPacket, abort: Abort): Promise<void>
    /** Runs the actions that the session has queued. */
    pump(): void
    /** Replaces the connection in order. */
    replace(reason: string): void
    /** Closes the connection without sending anything more. */
    cut(error: MqttError): void
  }
  /** Properties for a CONNECT. @throws MqttError ERR_AUTH_FAILED */
  begin(context: () => AuthContext): Promise<Properties | undefined>
  /** An attempt succeeded. */
  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void
  /**
   * No connection will be made any more: everything that waits for one fails. While the client is
   * disconnecting, running turns continue.
   */
  finish(error: MqttError | undefined): void
}
