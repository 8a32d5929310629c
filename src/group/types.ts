/**
 * Groups, as users see them. Types only.
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
  /** As of an endpoint; or several, with `options` alone beside it. */
  readonly url: string | URL | readonly Endpoint[]
  /** Of this client; they win over `shared`. Default: none. */
  readonly options?: ClientOptions | undefined
}

/** A member: an endpoint or a list of endpoints as `connect` takes it, with or without options of its own; or a client or a pool that is there already. */
export type GivenMember = Endpoint | readonly Endpoint[] | MemberEndpoint | MemberClient

/** To whom a publish goes: to every member, to one after the other of those that are healthy, or to the one that its topic belongs to. */
export type GroupRouting = 'broadcast' | 'round-robin' | 'hash'

/** Options of a group. */
export interface GroupOptions {
  /** Brokers by name: 1 to 64 letters, digits, `_` and `-` each. */
  readonly members: Readonly<Record<string, GivenMember>>
  /**
   * Options of each client that the group makes. Client identifiers are `<clientId>-<member>`; without one the servers assign them. `firstConnect` is
   * `'wait'` unless it is given. Default: those of the client.
   */
  readonly shared?: ClientOptions | undefined
  /** To whom a publish goes. Default `'broadcast'`. */
  readonly routing?: GroupRouting | undefined
  /**
   * `'broadcast'`: a member that is not connected is reported as `ERR_NOT_CONNECTED` (`'reject'`, default), or its client queues the publish
   * (`'queue'`, at QoS 0 too).
   */
  readonly offline?: 'reject' | 'queue' | undefined
  /**
   * `'hash'`: topics of a member that was lost while it had something of them in flight wait for it (`'wait'`, default), or `'move'` to another one,
   * which gives up their order.
   */
  readonly onLost?: OnLost | undefined
  /**
   * Milliseconds, 1 to 2,147,483,647, for which a member may leave a publish without an answer. From then on, until it answers again, a broadcast that another
   * one took does not wait for it, and `'round-robin'` passes it over. Default 1,000.
   */
  readonly stalledAfter?: number | undefined
}

/** What became of a publish at one member. */
export type MemberResult =
  | {
      /** It was delivered as its QoS asks. */
      readonly status: 'fulfilled'
      /** What the server said. */
      readonly value: Receipt
    }
  | {
      /** It was not. */
      readonly status: 'rejected'
      /** Why. */
      readonly reason: MqttError
    }
  | {
      /** It is queued, or on its way: the member was not connected, was lost, or does not answer. */
      readonly status: 'pending'
      /** How it ends. Never an unhandled rejection. */
      readonly delivered: Promise<Receipt>
    }

/** How a publish ended. */
export interface GroupReceipt {
  /** By name of the member: of all that were asked. */
  readonly members: Readonly<Record<string, MemberResult>>
}

/** Options of one publish. */
export interface GroupPublishOptions extends PublishOptions {
  /** Only to these members. Default: all. */
  readonly members?: readonly string[] | undefined
  /** To whom it goes. Default: that of the group. */
  readonly routing?: GroupRouting | undefined
}

/** How messages that come by several members are distinguished. */
export interface Deduplication {
  /**
   * What is the same for the same message. Messages for which it gives undefined are never duplicates. What it throws `next()` rejects with, in place of
   * the message: asking for the next one acknowledges that too, but under `ack: 'manual'` it stays unacknowledged.
   */
  readonly key: (message: GroupMessage) => unknown
  /** Milliseconds for which a key is remembered, 1 to 2,147,483,647. */
  readonly window: number
  /** Keys that are remembered, 1 to 10,000,000; the oldest goes first. Default 10,000. */
  readonly limit?: number | undefined
}

/** What subscriptions of groups take besides. */
export interface GroupReading {
  /** On these members. Default: all that subscribe, those that come later too. */
  readonly members?: readonly string[] | undefined
  /** Leaves out what came by another member before: it is acknowledged and counted. Default: nothing is left out. */
  readonly deduplicate?: Deduplication | undefined
  /** `'any'` (default): one member that grants it is enough. `'all'`: every one has to. */
  readonly require?: 'any' | 'all' | undefined
}

/** Options of a subscription. Limits such as `buffer` are for each member. */
export interface GroupSubscribeOptions extends SubscribeOptions, GroupReading {}

/** Options of `listen`. Limits such as `concurrency` and `buffer` are for each member. */
export interface GroupListenOptions extends ListenOptions, GroupReading {}

/** A message that says by which member it came. */
export interface GroupMessage extends Message {
  /** Name of the member. */
  readonly member: string
}

/** What one broker said of one filter. */
export interface GroupGrant extends Grant {
  /** Name of the member. */
  readonly member: string
}

/** Messages of all members, one after the other. */
export interface GroupSubscription extends Subscription {
  readonly ready: Promise<GroupSubscription>
  readonly granted: readonly GroupGrant[]
  /** Messages left out, as they came by another member before. */
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
  /** Messages left out, as they came by another member before. */
  readonly duplicates: number
}

/** One member. */
export interface GroupMember {
  /** Its name. */
  readonly name: string
  /** The client behind it, or the pool. */
  readonly client: MemberClient
  /** Where it stands. */
  readonly state: ClientState
  /** True while it is connected and answers. */
  readonly healthy: boolean
  /** Publishes that were handed to it and have not settled. */
  readonly inFlight: number
  /** Why the latest attempt failed, the connection was lost, or the client has ended; undefined while there is a connection. */
  readonly error: MqttError | undefined
}

/** What a group counts. */
export interface GroupStats {
  /** Members, up or not. */
  readonly size: number
  /** Members that are connected. */
  readonly up: number
  /** Members that are connected and answer. */
  readonly healthy: number
  /** Publishes that were handed to a member and have not settled. */
  readonly inFlight: number
  /** Publishes that one member could not send any more, and another one took. */
  readonly moved: number
  /** Messages left out as duplicates. */
  readonly duplicates: number
  /** What `stats()` of each member gives, by name. */
  readonly members: Readonly<Record<string, unknown>>
}

/** How a group connects. */
export interface GroupConnectOptions extends ConnectOptions {
  /** All at a time (default), or one after the other, in the order of their names in `members`. */
  readonly mode?: 'parallel' | 'sequential' | undefined
  /** `'any'` (default): one connection is enough. `'all'`: every one has to be up. */
  readonly require?: 'any' | 'all' | undefined
}

/** Several brokers as one. `await using` disconnects it with the block. */
export interface Group extends Publisher<GroupReceipt>, Poster, Subscriber, AsyncDisposable {
  /** `'connected'` while any member is. */
  readonly state: ClientState
  /** The members. */
  members(): readonly GroupMember[]
  /** One of them; undefined where none has this name. */
  member(name: string): GroupMember | undefined
  /**
   * Connects the members. Waits until each is up or has failed once; those that failed go on trying. Waiting for `writable` connects
   * them too.
   * @throws AggregateError with the error of each member by name, where none is up, or with `require: 'all'` where one is not; MqttError ERR_ABORTED,
   * which ends only the wait; ERR_CLOSED; ERR_INVALID_OPTION
   */
  connect(options?: GroupConnectOptions): Promise<void>
  /**
   * Adds a member; it connects if the group does. Subscriptions on all members are its too. Where its first attempt fails, that is what this rejects with;
   * the member is there and goes on trying.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED (of the group, or of the client that was given), and as `subscription` of the client: nothing was
   * added then
   */
  add(name: string, member: GivenMember): Promise<void>
  /**
   * Removes a member: it takes nothing more, and ends when running turns of its messages have ended and what it has in flight is acknowledged. Fulfils then.
   * What reads on all members goes on, without any if it was the last.
   * @throws MqttError ERR_INVALID_OPTION before anything has ended; ERR_CLOSED; as `drain` of the client
   */
  remove(name: string, options?: DisconnectOptions): Promise<void>
  /**
   * Ends all members in order, those that were given ready-made too. What the server of a member does not take of the options that member ends without,
   * and the call rejects when all have ended. A `remove()` that is under way waits no longer than this.
   * @throws MqttError ERR_INVALID_OPTION before anything has ended; as `disconnect` of the client
   */
  disconnect(options?: DisconnectOptions): Promise<void>
  /** The same, and waits for what is queued or in flight. @throws MqttError as `disconnect` */
  drain(options?: DisconnectOptions): Promise<void>
  /**
   * Publishes to one member or all. A broadcast waits for the members that are connected at the call, and fulfils if one of them took it.
   * @throws AggregateError with the error of each member by name, where none took a broadcast; MqttError ERR_NO_HEALTHY_PUBLISHERS where none is connected
   * (other routings), ERR_INVALID_OPTION, ERR_CLOSED
   */
  publish(topic: string, payload: Payload, options?: GroupPublishOptions): Promise<GroupReceipt>
  /** Publishes at QoS 0, now or not at all: true when a member took it. @throws MqttError as `post` of the client, where no member took it */
  post(topic: string, payload: Payload): boolean
  /**
   * Subscribes, and waits for the grant of the members that are connected; the others follow.
   * @throws AggregateError with the error of each member by name; MqttError ERR_INVALID_OPTION, ERR_CLOSED
   */
  subscribe(filters: Filters, options?: GroupSubscribeOptions): Promise<GroupSubscription>
  /** Subscribes at once, in any state. @throws MqttError as `subscription` of the client */
  subscription(filters: Filters, options?: GroupSubscribeOptions): GroupSubscription
  /** Subscribes and calls a handler with each message; those of one member in order. @throws as `subscribe`, and MqttError ERR_INVALID_HANDLER */
  listen(
    filters: Filters,
    handler: (message: GroupMessage) => unknown,
    options?: GroupListenOptions,
  ): Promise<GroupHandling>
  /**
   * Adds a listener of the events of all members; each event says whose it is, in `member`. A member that has ended for good is an `error` event.
   * @throws MqttError as `on` of the client
   */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: MemberEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten
  /** Has hooks called for all members, those that come later too; gives a function that ends it. @throws MqttError ERR_INVALID_OPTION */
  use(hooks: Hooks): Unlisten
  /** What happened so far, counted. */
  stats(): GroupStats
}
