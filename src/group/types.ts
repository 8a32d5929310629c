/**
 * The public types of groups. Types only.
 */
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Endpoint,
  EndpointOptions,
  Filters,
  Grant,
  Handling,
  Hooks,
  ListenerOptions,
  ListenOptions,
  Message,
  NextOptions,
  Payload,
  Poster,
  Publisher,
  PublishOptions,
  Receipt,
  SubscribeOptions,
  Subscriber,
  Subscription,
  Unlisten,
} from '../client/options/index.js'
import type { MqttError } from '../errors.js'
import type { MemberEvents } from '../members/listeners.js'
import type { MemberClient } from '../members/member.js'
import type { OnLost } from '../members/router.js'

/** An endpoint with options of the client that connects to it. */
export interface MemberEndpoint extends Omit<EndpointOptions, 'url'> {
  /** As `url` of an endpoint; or a list of endpoints, with which only `options` may be given. */
  readonly url: string | URL | readonly Endpoint[]
  /** Options of this client; they override `shared`. Default: none. */
  readonly options?: ClientOptions | undefined
}

/**
 * A member: an endpoint or a list of endpoints, as for `connect`, with or without options of its
 * own; or an existing client or pool.
 */
export type GivenMember = Endpoint | readonly Endpoint[] | MemberEndpoint | MemberClient

/**
 * The members that get a publish: every member; the healthy members in turn; or the one that owns
 * the topic by its hash.
 */
export type GroupRouting = 'broadcast' | 'round-robin' | 'hash'

/** Options of a group. */
export interface GroupOptions {
  /** Brokers by name: 1 to 64 letters, digits, `_` and `-` each. */
  readonly members: Readonly<Record<string, GivenMember>>
  /**
   * Options of each client that the group creates. Client identifiers are `<clientId>-<member>`;
   * without `clientId` the servers assign them. `firstConnect` is `'wait'` unless given. Default:
   * those of the client.
   */
  readonly shared?: ClientOptions | undefined
  /** The members that get a publish. Default `'broadcast'`. */
  readonly routing?: GroupRouting | undefined
  /**
   * `'broadcast'`: a member that is not connected is reported as `ERR_NOT_CONNECTED` (`'reject'`,
   * default), or its client queues the publish (`'queue'`, at QoS 0 too).
   */
  readonly offline?: 'reject' | 'queue' | undefined
  /**
   * For `'hash'`: topics with messages in flight at a member that lost its connection wait for it
   * (`'wait'`, default), or `'move'` to another member, which gives up their order.
   */
  readonly onLost?: OnLost | undefined
  /**
   * Milliseconds, 1 to 2,147,483,647, after which a member with an unanswered publish counts as not
   * healthy. Until it answers again, a broadcast accepted by another member does not wait for it,
   * and `'round-robin'` skips it. Default 1,000.
   */
  readonly stalledAfter?: number | undefined
}

/** The result of a publish at one member. */
export type MemberResult =
  | {
      /** It was delivered at its QoS. */
      readonly status: 'fulfilled'
      /** The receipt. */
      readonly value: Receipt
    }
  | {
      /** It was not delivered. */
      readonly status: 'rejected'
      /** The reason. */
      readonly reason: MqttError
    }
  | {
      /**
       * It is queued or in flight: the member was not connected, has lost its connection, or does
       * not answer.
       */
      readonly status: 'pending'
      /** Settles with its result. Never an unhandled rejection. */
      readonly delivered: Promise<Receipt>
    }

/** The result of a publish. */
export interface GroupReceipt {
  /** Results of all members involved, by name. */
  readonly members: Readonly<Record<string, MemberResult>>
}

/** Options of one publish. */
export interface GroupPublishOptions extends PublishOptions {
  /** Only to these members. Default: all. */
  readonly members?: readonly string[] | undefined
  /** The members that get it. Default: that of the group. */
  readonly routing?: GroupRouting | undefined
}

/** How duplicates from several members are recognised. */
export interface Deduplication {
  /**
   * Returns a key that is equal for copies of the same message; undefined for a message that never
   * counts as a duplicate. If it throws, `next()` rejects with the error in place of the message.
   * The following `next()` acknowledges that message too, but with `ack: 'manual'` it stays
   * unacknowledged.
   */
  readonly key: (message: GroupMessage) => unknown
  /** Milliseconds for which a key is remembered, 1 to 2,147,483,647. */
  readonly window: number
  /** Most remembered keys, 1 to 10,000,000; the oldest is removed first. Default 10,000. */
  readonly limit?: number | undefined
}

/** Additional options of subscriptions of groups. */
export interface GroupReading {
  /**
   * Subscribe on these members. Default: all that can subscribe, including members added later.
   */
  readonly members?: readonly string[] | undefined
  /**
   * Skips messages that already arrived through another member; they are acknowledged and counted.
   * Default: nothing is skipped.
   */
  readonly deduplicate?: Deduplication | undefined
  /** `'any'` (default): the grant of one member is enough. `'all'`: every member must grant it. */
  readonly require?: 'any' | 'all' | undefined
}

/** Options of a subscription. Limits such as `buffer` are for each member. */
export interface GroupSubscribeOptions extends SubscribeOptions, GroupReading {}

/** Options of `listen`. Limits such as `concurrency` and `buffer` are for each member. */
export interface GroupListenOptions extends ListenOptions, GroupReading {}

/** A message with the name of its member. */
export interface GroupMessage extends Message {
  /** Name of the member. */
  readonly member: string
}

/** The grant of one broker for one filter. */
export interface GroupGrant extends Grant {
  /** Name of the member. */
  readonly member: string
}

/** A subscription with the messages of all members. */
export interface GroupSubscription extends Subscription {
  readonly ready: Promise<GroupSubscription>
  readonly granted: readonly GroupGrant[]
  /** Messages skipped because they had already arrived through another member. */
  readonly duplicates: number
  next(options?: NextOptions): Promise<GroupMessage | undefined>
  read(): GroupMessage | undefined
  batches(max?: number): AsyncIterableIterator<GroupMessage[]>
  [Symbol.asyncIterator](): AsyncIterableIterator<GroupMessage>
  readable(): ReadableStream<GroupMessage>
}

/** A running `listen` of all members. */
export interface GroupHandling extends Handling {
  readonly granted: readonly GroupGrant[]
  /** Messages skipped because they had already arrived through another member. */
  readonly duplicates: number
}

/** One member. */
export interface GroupMember {
  /** Its name. */
  readonly name: string
  /** The client or pool of the member. */
  readonly client: MemberClient
  /** The state of its client. */
  readonly state: ClientState
  /** True while it is connected and answers. */
  readonly healthy: boolean
  /** Publishes passed to it that have not settled. */
  readonly inFlight: number
  /**
   * Why the latest attempt failed, the connection was lost, or the client has ended; undefined
   * while there is a connection.
   */
  readonly error: MqttError | undefined
}

/** Statistics of a group. */
export interface GroupStats {
  /** Members, connected or not. */
  readonly size: number
  /** Members that are connected. */
  readonly up: number
  /** Members that are connected and answer. */
  readonly healthy: number
  /** Publishes passed to members that have not settled. */
  readonly inFlight: number
  /** Publishes moved to another member because the first one could no longer send them. */
  readonly moved: number
  /** Messages skipped as duplicates. */
  readonly duplicates: number
  /** The `stats()` of each member, by name. */
  readonly members: Readonly<Record<string, unknown>>
}

/** How a group connects. */
export interface GroupConnectOptions extends ConnectOptions {
  /**
   * Connect all members at once (default), or one after the other, in the order of their names in
   * `members`.
   */
  readonly mode?: 'parallel' | 'sequential' | undefined
  /** `'any'` (default): one connection is enough. `'all'`: every member must be connected. */
  readonly require?: 'any' | 'all' | undefined
}

/** Several brokers behind one interface. `await using` disconnects it with the block. */
export interface Group extends Publisher<GroupReceipt>, Poster, Subscriber, AsyncDisposable {
  /** `'connected'` while any member is connected. */
  readonly state: ClientState
  /** The members. */
  members(): readonly GroupMember[]
  /** The member with this name; undefined if no member has it. */
  member(name: string): GroupMember | undefined
  /**
   * Connects the members. Waits until each is connected or has failed once; failed ones keep
   * trying. Waiting for `writable` also connects them.
   * @throws AggregateError with the error of each member by name, if none is connected, or with
   * `require: 'all'` if one is not; MqttError ERR_ABORTED, which ends only the wait; ERR_CLOSED;
   * ERR_INVALID_OPTION
   */
  connect(options?: GroupConnectOptions): Promise<void>
  /**
   * Adds a member, and connects it if the group was connected. Subscriptions on all members include
   * it. Rejects with the error of its first attempt to connect if that fails; the member is still
   * added and keeps trying.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED (of the group, or of the client that was
   * given), and as `subscription` of the client: nothing was added then
   */
  add(name: string, member: GivenMember): Promise<void>
  /**
   * Removes a member. It accepts nothing more, and ends when its messages have been handled and its
   * publishes in flight are acknowledged; then this fulfils. Subscriptions on all members continue,
   * even without members.
   * @throws MqttError ERR_INVALID_OPTION before anything has ended; ERR_CLOSED; as `drain` of the
   * client
   */
  remove(name: string, options?: DisconnectOptions): Promise<void>
  /**
   * Ends all members in an orderly way, including existing clients that were passed in. If the
   * server of a member does not support one of the options, that member ends with `timeout` and
   * `signal` only, and the call rejects when all have ended. A running `remove()` waits no longer
   * than this.
   * @throws MqttError ERR_INVALID_OPTION before anything has ended; as `disconnect` of the client
   */
  disconnect(options?: DisconnectOptions): Promise<void>
  /**
   * As `disconnect`, and waits for queued publishes and publishes in flight.
   * @throws MqttError as `disconnect`
   */
  drain(options?: DisconnectOptions): Promise<void>
  /**
   * Publishes to one member or all. A broadcast waits for the members that are connected at the
   * call, and fulfils if at least one accepted it.
   * @throws AggregateError with the error of each member by name, if none accepted a broadcast;
   * MqttError ERR_NO_HEALTHY_PUBLISHERS if none is connected (other routings), ERR_INVALID_OPTION,
   * ERR_CLOSED
   */
  publish(topic: string, payload: Payload, options?: GroupPublishOptions): Promise<GroupReceipt>
  /**
   * Publishes at QoS 0 immediately, or discards the message: true if a member accepted it.
   * @throws MqttError as `post` of the client, if no member accepted it
   */
  post(topic: string, payload: Payload): boolean
  /**
   * Subscribes, and waits for the grants of the connected members; the others subscribe later.
   * @throws AggregateError with the error of each member by name; MqttError ERR_INVALID_OPTION,
   * ERR_CLOSED
   */
  subscribe(filters: Filters, options?: GroupSubscribeOptions): Promise<GroupSubscription>
  /**
   * Subscribes in any state and returns immediately.
   * @throws MqttError as `subscription` of the client
   */
  subscription(filters: Filters, options?: GroupSubscribeOptions): GroupSubscription
  /**
   * Subscribes and calls a handler with each message; those of one member in order.
   * @throws as `subscribe`, and MqttError ERR_INVALID_HANDLER
   */
  listen(
    filters: Filters,
    handler: (message: GroupMessage) => unknown,
    options?: GroupListenOptions,
  ): Promise<GroupHandling>
  /**
   * Adds a listener of the events of all members; `member` of each event has the name. A member
   * that has ended permanently causes an `error` event.
   * @throws MqttError as `on` of the client
   */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /**
   * Adds hooks to all members, including members added later; returns a function that removes them.
   * @throws MqttError ERR_INVALID_OPTION
   */
  use(hooks: Hooks): Unlisten
  /** Counters since the group was created. */
  stats(): GroupStats
}
