/**
 * The parts of one client, as the functions of this room see them. Types only.
 */
import type { MqttError } from '../../errors.js'
import type { ClientContext, Extra } from '../context.js'
import type { ReaderTurns } from '../deliver/buffer.js'
import type { MessageRouter } from '../deliver/message-router.js'
import type { PublishQueue } from '../publish/publish-queue.js'
import type { Authentication } from '../reconnect/authentication.js'
import type { Reconnector } from '../reconnect/reconnector.js'
import type { Subscriptions } from '../subscribe/subscriptions.js'
import type { ConnectionHolder } from './connection-holder.js'
import type { States } from './states.js'

/** Everything behind a client. */
export interface ClientInternals extends ClientContext {
  /** In force: given, assigned by the server, or made up. */
  clientId: string
  readonly states: States
  readonly connections: ConnectionHolder
  readonly subscriptions: Subscriptions
  readonly router: MessageRouter
  /** Made by its first use. */
  readonly publishQueue: PublishQueue
  /** The same, without making it. */
  readonly publishQueueIfUsed: PublishQueue | undefined
  readonly reconnector: Reconnector
  /** Undefined without the `auth` option. */
  readonly authentication: Authentication | undefined
  /** What attaches to the client and is known by nothing else. */
  readonly extras: readonly Extra[]
  readonly turns: ReaderTurns
  /** The application is done with a message. */
  settle(ticket: number, reasonCode: number): boolean
  /** No connection will come, because of this. */
  finish(error: MqttError | undefined): void
  /** Sends what waits, as far as it may. */
  flush(): void
}
