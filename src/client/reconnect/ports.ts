/**
 * What dialling needs of the other rooms. Types only; `lifecycle/` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { ConnectPacket, Properties } from '../../wire/packets.js'
import type { ClientContext } from '../lifecycle/context.js'
import type { Login, ParsedEndpoint } from '../options/check-endpoint.js'
import type { AuthContext } from '../options/index.js'

/** Enhanced authentication, where the client has it. */
export interface Authenticator {
  /** Authenticates again on the open connection to this endpoint. */
  renew(endpoint: string): Promise<void>
}

/** The client that wants a connection. */
export interface DiallingOwner {
  /** The client identifier in force; '' where the server is to assign one. */
  clientId: string
  /** Properties for a CONNECT. @throws MqttError ERR_AUTH_FAILED */
  begin(context: AuthContext): Promise<Properties | undefined>
  /** For the next attempt, at this endpoint: what a renewal was given while the connection was up. */
  renewed: { readonly endpoint: ParsedEndpoint; readonly login: Login | undefined } | undefined
  /** An attempt has led to a connection. */
  handleUp(endpoint: ParsedEndpoint, login: Login | undefined): void
  readonly links: ConnectionMaker
  /** No connection will come, because of this: what waits for one is over. Turns that run while the client ends go on. */
  finish(error: MqttError | undefined): void
}

/** Where connections are made of transports. */
export interface ConnectionMaker {
  /** While it takes packets of the application. */
  readonly connection: { pump(): void } | undefined
  /** Right before the transport is opened; `dropped` are the options that the connection goes without. */
  handleDial(url: string, attempt: number, dropped: readonly string[]): void
  /** Runs the handshake on an open transport; fulfils at CONNACK, rejects otherwise and when the signal aborts. */
  handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void>
  /** Gives up the connection in order, for a new one. */
  replace(reason: string): void
}

/** The client that authenticates. */
export interface AuthenticationOwner {
  readonly links: {
    /** The connection, while it takes packets of the application. */
    readonly connection: object | undefined
    /** Does what the session asks for, after a command given to it. */
    pump(): void
    /** Ends the connection, without a further byte. */
    cut(error: MqttError): void
  }
}

/** All of it. */
export type DiallingHost = ClientContext & DiallingOwner
/** What an exchange needs. */
export type AuthenticationHost = ClientContext & AuthenticationOwner
