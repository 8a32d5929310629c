/**
 * What the two windows of a session need of it, and the answer that they share.
 */
import type { AckQueue } from './ack-queue.js'
import type { Action } from './actions.js'
import type { PersistPort } from './persistence.js'

/** A window answers this when the peer broke the protocol; `fail` was called. */
export const FAULT = -2

/** The session, as its windows see it. */
export interface WindowHost {
  readonly acks: AckQueue
  readonly actions: Action[]
  readonly persistence: PersistPort
  /** The peer broke the protocol: ends the connection with this reason code, whose name is the message where none is given. */
  fail(reasonCode: number, message?: string): void
}
