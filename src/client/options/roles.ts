/**
 * The common interfaces of client, group, pool and queue: publish, post, subscribe, request. Types
 * only.
 */
import type { ClientEvents, ListenerOptions, Unlisten } from './events.js'
import type { Message, Payload } from './message.js'
import type { PublishOptions, Receipt } from './publish.js'
import type { RequestOptions, Responder, Responding, RespondOptions } from './request.js'
import type {
  Filters,
  Handler,
  Handling,
  ListenOptions,
  SubscribeOptions,
  Subscription,
} from './subscribe.js'

/** Publishes messages (section 3.3). */
export interface Publisher<R = Receipt> {
  /** Publishes a message; resolves when it is delivered according to its QoS. */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<R>
  /** Resolves when a publish would not have to wait. */
  readonly writable: Promise<void>
  /** True when messages to one topic arrive in the order of the calls (section 4.6). */
  readonly ordered: boolean
}

/** Publishes at QoS 0, at once or not at all. */
export interface Poster {
  /** Returns true when the message was accepted. */
  post(topic: string, payload: Payload): boolean
}

/** Receives messages (section 3.8). */
export interface Subscriber {
  /** Subscribes and waits for the grant. */
  subscribe(filters: Filters, options?: SubscribeOptions): Promise<Subscription>
  /** Subscribes without waiting, in any state. */
  subscription(filters: Filters, options?: SubscribeOptions): Subscription
  /** Subscribes and calls a handler with each message. */
  listen(filters: Filters, handler: Handler, options?: ListenOptions): Promise<Handling>
  /** Adds an event listener. */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
}

/** Sends and answers requests (section 4.10). */
export interface Requester {
  /** Publishes a request and returns the answering message. */
  request(topic: string, payload: Payload, options?: RequestOptions): Promise<Message>
  /** Answers requests. */
  respond(filters: Filters, handler: Responding, options?: RespondOptions): Promise<Responder>
}
