/**
 * What the two windows of a session need of it. Types only.
 */
import type { AckQueue } from './ack-queue.js'
import type { Action } from './actions.js'
import type { PersistPort } from './persistence.js'

/** The session, as its windows see it. */
export interface WindowHost {
  readonly acks: AckQueue
  readonly actions: Action[]
  readonly persistence: PersistPort
  /** The peer broke the protocol: ends the connection with this reason code, whose name is the message where none is given. */
  fail(reasonCode: number, message?: string): void
}
