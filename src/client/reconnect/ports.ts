/**
 * What reconnecting needs of its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { ConnectPacket, Properties } from '../../wire/packets.js'
import type { ClientContext } from '../context.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { AuthContext } from '../options/index.js'

/** The client that wants a connection. */
export interface ReconnectHost extends ClientContext {
  /** The client identifier in force; '' where the server is to assign one. */
  clientId: string
  /** For the next attempt, at this endpoint: what a renewal was given while the connection was up. */
  renewed: { readonly endpoint: ParsedEndpoint; readonly login: Login | undefined } | undefined
  readonly connections: {
    /** The connection, while it takes packets of the application. */
    readonly connection: object | undefined
    /** Right before the transport is opened; `dropped` are the options that the connection goes without. */
    handleDial(url: string, attempt: number, dropped: readonly string[]): void
    /** Runs the handshake on an open transport; fulfils at CONNACK, rejects otherwise and when the signal aborts. */
    handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void>
    /** Does what the session asks for, after a command given to it. */
    pump(): void
    /** Gives up the connection in order, for a new one. */
    replace(reason: string): void
    /** Ends the connection, without a further byte. */
    cut(error: MqttError): void
  }
  /** Properties for a CONNECT. @throws MqttError ERR_AUTH_FAILED */
  begin(context: AuthContext): Promise<Properties | undefined>
  /** An attempt has led to a connection. */
  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void
  /** No connection will come, because of this: what waits for one is over. Turns that run while the client ends go on. */
  finish(error: MqttError | undefined): void
}
