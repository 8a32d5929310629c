/**
 * Shared subscriptions that leave without loss: consumers on several machines. Types only.
 *
 * Durations are milliseconds.
 */
import type { Message } from './message.js'
import type { Handling, ListenOptions, SubscribeOptions, Subscription } from './subscribe.js'

/** Where a broker publishes how much it has waiting. */
export interface LagSource {
  /** Topic filter of what it publishes about that, for example `$SYS/broker/store/messages/count`; subscribed to at QoS 0 until the share is left. */
  readonly topic: string
  /** Makes the number of messages that wait of such a message; undefined where it says nothing about that. Default: the payload as a decimal number. */
  readonly read?: ((message: Message) => number | undefined) | undefined
}

/** What a share has besides the options of its subscription. */
export interface ShareOptions {
  /**
   * How long nothing may come after UNSUBACK until it is taken that the broker has nothing left for this client, 0 to 2,147,483,647 milliseconds.
   * A round trip to the broker comes on top. Default 250.
   */
  readonly quiet?: number | undefined
  /** Where the broker publishes how many messages wait. Default: nowhere; `lag().broker` is undefined then. */
  readonly lag?: LagSource | undefined
}

/** Options of `subscribeShared`. */
export interface SharedSubscribeOptions extends SubscribeOptions, ShareOptions {}

/** Options of `listenShared`. */
export interface SharedListenOptions extends ListenOptions, ShareOptions {}

/** How long `drain()` waits. */
export interface DrainOptions {
  /** Milliseconds, 0 to 2,147,483,647, then `ERR_TIMEOUT`. Default 30,000. */
  readonly timeout?: number | undefined
  /** Gives the wait up with `ERR_ABORTED`. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** What waits for the consumers of a group, as far as this one knows. */
export interface Lag {
  /** Messages in the buffer of this consumer. */
  readonly buffered: number
  /** Messages that this consumer was given and is not done with. */
  readonly inHand: number
  /** The last number from the broker; undefined where it publishes none, or has not yet. */
  readonly broker: number | undefined
}

/** A consumer that is a member of a group (section 4.8.2). */
export interface SharedConsumer {
  /** What waits. */
  lag(): Lag
  /**
   * Leaves the group without loss, and settles at UNSUBACK: from then on the broker gives new messages to the others. What is buffered here, and what the
   * broker still sends to this client, is handed out; then the loop, or the `listen`, ends. The application has to read on meanwhile. What is not read stays
   * unacknowledged, and is the broker's again when the session ends. Where others on this client read the same share, it ends here only.
   * @throws MqttError ERR_UNSUBSCRIBE_REFUSED: it is a member still; ERR_CONNECTION_LOST, ERR_CLOSED
   */
  unsubscribe(): Promise<void>
  /**
   * As `unsubscribe()`, and waits until everything was handled. Where it gives up, the leaving goes on. Not to be awaited by who handles a message of it.
   * @throws MqttError ERR_TIMEOUT, ERR_ABORTED, and as `unsubscribe()`
   */
  drain(options?: DrainOptions): Promise<void>
}

/** A subscription to a share. */
export interface SharedSubscription extends Subscription, SharedConsumer {}

/** A running `listenShared`. */
export interface SharedHandling extends Handling, SharedConsumer {}
