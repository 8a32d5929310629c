/**
 * What subscribing needs from its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { PacketWriter } from '../connection/packet-writer.js'
import type { ClientContext } from '../context.js'
import type { MessageRouter } from '../deliver/message-router.js'

/** The client that subscribes. */
export interface SubscribeHost extends ClientContext {
  readonly connections: {
    /** The connection, while it accepts packets of the application. */
    readonly connection: { readonly writer: PacketWriter } | undefined
    /** The connection in any state, with the time at which its CONNACK was accepted. */
    readonly current: { readonly acceptedAt: number | undefined } | undefined
    /** Lifetime of the previous connection, in milliseconds. */
    readonly lifetime: number
    /** The endpoint of the latest attempt. */
    readonly dialled: { readonly endpoint: string }
    /** Runs the actions that the session has queued. */
    pump(): void
  }
  /** True once `disconnect()` began. */
  readonly states: { readonly stopping: boolean }
  readonly router: MessageRouter
  /** Outgoing messages; undefined before the first. */
  readonly publishingIfUsed:
    | {
        /** Sent publishes that lack their last acknowledgement. */
        readonly inFlight: number
        /** A suspect is being sent alone: nothing else may risk the connection meanwhile. */
        readonly isolating: boolean
      }
    | undefined
  /** A consumer's turn ended; `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
  /** Sends what waits, as far as allowed. */
  flush(): void
}
