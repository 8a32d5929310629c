/**
 * The parts of one client as the functions in this folder see them. Types only.
 */
import type { MqttError } from '../../errors.js'
import type { ClientContext, Extra } from '../context.js'
import type { ReaderTurns } from '../deliver/buffer.js'
import type { MessageRouter } from '../deliver/message-router.js'
import type { Publishing } from '../publish/publishing.js'
import type { Authentication } from '../reconnect/authentication.js'
import type { Reconnector } from '../reconnect/reconnector.js'
import type { Subscriptions } from '../subscribe/subscriptions.js'
import type { ConnectionHolder } from './connection-holder.js'
import type { States } from './states.js'

/** Everything behind a client. */
export interface ClientInternals extends ClientContext {
  /** The client identifier in use: configured, assigned by the server, or generated. */
  clientId: string
  readonly states: States
  readonly connections: ConnectionHolder
  readonly subscriptions: Subscriptions
  readonly router: MessageRouter
  /** Created on first use. */
  readonly publishing: Publishing
  /** The same, without creating it. */
  readonly publishingIfUsed: Publishing | undefined
  readonly reconnector: Reconnector
  /** Undefined without the `auth` option. */
  readonly authentication: Authentication | undefined
  /** Optional parts that only attach to the client. */
  extras: readonly Extra[]
  readonly turns: ReaderTurns
  /** The application has decided about a message. */
  settle(ticket: number, reasonCode: number): boolean
  /** No connection will be made any more, because of this error. */
  finish(error: MqttError | undefined): void
  /** Sends what waits, as far as allowed. */
  flush(): void
}
