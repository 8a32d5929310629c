/**
 * What a share needs of the client that it is of. Types only.
 */
import type {
  ClientEvents,
  Filters,
  Handler,
  Handling,
  ListenerOptions,
  ListenOptions,
  SubscribeOptions,
  Subscription,
  Unlisten,
} from '../options/index.js'

/** A client of this copy of the package. */
export interface SharingClient {
  /** Settles once, when the client is closed. */
  readonly closed: Promise<unknown>
  /** Subscribes at once, in any state. */
  subscription(filters: Filters, options?: SubscribeOptions): Subscription
  /** Subscribes and calls a handler with each message. */
  listen(filters: Filters, handler: Handler, options?: ListenOptions): Promise<Handling>
  /** Ends subscriptions on the broker. */
  unsubscribe(filters: string): Promise<unknown>
  /** Adds a listener of events. */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
}
