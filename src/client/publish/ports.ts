/**
 * What publishing needs from its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { Connection } from '../connection/connection.js'
import type { ClientContext } from '../context.js'
import type { ClientState } from '../options/index.js'

/** The client that publishes. */
export interface PublishHost extends ClientContext {
  readonly connections: {
    /** The connection, while it accepts publishes. */
    readonly connection: Connection | undefined
    /** Milliseconds that the previous connection was up; 0 before the first ended. */
    readonly lifetime: number
    /** Runs the actions that the session has queued. */
    pump(): void
    /** Closes the connection without sending anything more. */
    cut(error: MqttError): void
  }
  readonly states: {
    readonly current: ClientState
    /** True once `disconnect()` began. */
    readonly stopping: boolean
    /** True when the client is closed. */
    readonly ended: boolean
    /** Why the client is closed, as text. */
    readonly why: string
  }
  /** Sent publishes that lack their last acknowledgement. */
  readonly publishing: { readonly inFlight: number }
  /** Sends what waits, as far as allowed. */
  flush(): void
}
