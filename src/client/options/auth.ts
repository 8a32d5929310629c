/**
 * Enhanced authentication (section 4.12). Types only.
 */
import type { Bytes, Payload } from './payload.js'

/** What a mechanism of enhanced authentication gets about the exchange. */
export interface AuthContext {
  /** Counts the attempts since a connection was stable, from 1. */
  readonly attempt: number
  /** URL of the endpoint, without user-info and query. */
  readonly endpoint: string
  /** Aborts when the exchange is given up. */
  readonly signal: AbortSignal
  /** True when the connection is up already. */
  readonly reauthentication: boolean
}

/** Data of one step: bytes, text for its UTF-8, or none. */
export type AuthData = Payload | undefined

/**
 * A mechanism of enhanced authentication (section 4.12). What it throws ends the attempt, or the connection, without a further byte
 * (`ERR_AUTH_FAILED`).
 */
export interface AuthMechanism {
  /** Authentication Method (section 3.1.2.11.9). */
  readonly method: string
  /** Begins an exchange: the data of CONNECT, or of the AUTH that asks for re-authentication. */
  start(context: AuthContext): AuthData | Promise<AuthData>
  /** The server goes on: the data of the answer. */
  continue(data: Bytes | undefined, context: AuthContext): AuthData | Promise<AuthData>
  /** The server is satisfied, and gave this as its last word: nothing else that it sends is read before this is done. */
  success?: ((data: Bytes | undefined, context: AuthContext) => void | Promise<void>) | undefined
}
