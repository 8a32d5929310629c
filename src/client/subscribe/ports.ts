/**
 * What subscribing needs of its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { PacketWriter } from '../connection/packet-writer.js'
import type { ClientContext } from '../context.js'
import type { MessageRouter } from '../deliver/message-router.js'

/** The client that subscribes. */
export interface SubscribeHost extends ClientContext {
  readonly connections: {
    /** The connection, while it takes packets of the application. */
    readonly connection: { readonly writer: PacketWriter } | undefined
    /** In every state, with the moment at which its CONNACK counted. */
    readonly current: { readonly acceptedAt: number | undefined } | undefined
    /** Milliseconds that the connection before was up. */
    readonly lifetime: number
    /** The endpoint that was dialled last. */
    readonly dialled: { readonly endpoint: string }
    /** Does what the session asks for, after a command given to it. */
    pump(): void
  }
  /** True once `disconnect()` began. */
  readonly states: { readonly stopping: boolean }
  readonly router: MessageRouter
  /** Our messages on their way; undefined before the first. */
  readonly publishQueueIfUsed:
    | {
        /** Publishes that were sent and lack their last acknowledgement. */
        readonly inFlight: number
        /** One of them is being tried alone: nothing else may end the connection meanwhile. */
        readonly isolating: boolean
      }
    | undefined
  /** A turn of a consumer ended: `disconnect()` may be waiting for it. */
  handleTurnEnd(): void
  /** Sends what waits, as far as it may. */
  flush(): void
}
