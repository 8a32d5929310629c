/**
 * What publishing needs of its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { Connection } from '../connection/connection.js'
import type { ClientContext } from '../context.js'
import type { ClientState } from '../options/index.js'

/** The client that publishes. */
export interface PublishHost extends ClientContext {
  readonly connections: {
    /** The connection, while it takes packets of the application. */
    readonly connection: Connection | undefined
    /** Milliseconds that the latest connection was up which is over; 0 before the first. */
    readonly lifetime: number
    /** Does what the session asks for, after a command given to it. */
    pump(): void
    /** Ends the connection, without a further byte. */
    cut(error: MqttError): void
  }
  readonly states: {
    readonly current: ClientState
    /** True once `disconnect()` began. */
    readonly stopping: boolean
    /** True when the client is closed. */
    readonly ended: boolean
    /** Why it is closed, in words. */
    readonly why: string
  }
  /** Publishes that were sent and lack their last acknowledgement. */
  readonly publishQueue: { readonly inFlight: number }
  /** Sends what waits, as far as it may. */
  flush(): void
}
