/**
 * The public client: methods that check their arguments and pass them on to the core. `node.ts` and
 * `browser.ts` bind it to a platform.
 */

import { onAbort, tolerant } from '../common/abort.js'
import { asyncDisposeSymbol, disposeSymbol } from '../common/dispose.js'
import { closedError, errorOfAll } from '../common/outcome.js'
import {
  assertLast,
  object,
  optional,
  signal as parseSignal,
  settingsIn,
} from '../common/schema.js'
import { locate, type MqttError, put } from '../errors.js'
import { Printed } from '../printing.js'
import { access, type ClientAccess } from './access.js'
import { Consumer } from './deliver/consumer.js'
import { HandlerLoop, ListenHandle } from './deliver/handling.js'
import { SubscriptionHandle } from './deliver/subscription.js'
import { HookChain } from './hooks.js'
import { destroy } from './lifecycle/closing.js'
import { connect, reauthenticate, reconnect, setBrokers } from './lifecycle/connecting.js'
import { Core } from './lifecycle/core.js'
import { snapshot } from './lifecycle/stats.js'
import {
  type CheckedSubscription,
  checkedTopic,
  goodbye,
  listenCall,
  payloadBytes,
  publishCall,
  reconnectCall,
  subscriptionCall,
  unsubscribeCall,
} from './options/check-calls.js'
import { parseEndpoints, sharedEndpoints } from './options/check-endpoint.js'
import { eventName, parseOptions } from './options/check-options.js'
import type {
  ClientEvents,
  ClientOptions,
  ClientState,
  ConnectOptions,
  DisconnectOptions,
  Endpoint,
  Filters,
  Handler,
  Handling,
  Hooks,
  ListenerOptions,
  ListenOptions,
  Message,
  Negotiated,
  OutboundView,
  Payload,
  PublishCall,
  PublishOptions,
  Receipt,
  ReconnectNow,
  RequestOptions,
  Responder,
  Responding,
  RespondOptions,
  Stats,
  SubscribeOptions,
  Subscription,
  Unlisten,
  UnsubscribeOptions,
  UnsubscribeResult,
} from './options/index.js'
import type { Platform } from './platform.js'
import { Requests } from './request/request.js'
import { respond } from './request/respond.js'
import { unsubscribe } from './subscribe/unsubscribing.js'

const connectOptions = object<ConnectOptions>({ signal: optional(parseSignal) })

/**
 * An MQTT client. Create one with `connect()` or `new Client(endpoints, options)`; `await using`
 * disconnects it at the end of the block.
 */
export class BaseClient extends Printed implements AsyncDisposable {
  /** The state of the client; each change emits a `state` event. */
  declare readonly state: ClientState
  /** The client identifier in use: configured, or assigned by the server. */
  declare readonly clientId: string
  readonly #core: Core

  /**
   * @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL, ERR_INVALID_OPTION,
   * ERR_UNSUPPORTED_OPTION
   */
  constructor(
    platform: Platform,
    endpoints: Endpoint | readonly Endpoint[],
    options: ClientOptions,
  ) {
    super()
    const parsed = parseOptions(options)
    const real = parsed.platform ?? platform
    const core = new Core(real, sharedEndpoints(endpoints, real), parsed)
    this.#core = core
    Object.defineProperties(this, shown)
    put(this, inside, itself.bind(core))
    const { on = {} } = parsed
    for (const type of settingsIn(on) as (keyof ClientEvents)[])
      this.on(type, on[type] as (event: unknown) => void)
  }

  /** What consoles print: state and waiting messages. */
  override toJSON(): object {
    const { publishingIfUsed, subscriptions, connections } = this.#core
    return {
      ...this,
      endpoint: connections.dialled.endpoint,
      queued: publishingIfUsed?.size ?? 0,
      inFlight: publishingIfUsed?.inFlight ?? 0,
      subscriptions: subscriptions.filters,
    }
  }

  /**
   * Resolves once, when the client is closed: with the error that ended it, or undefined after
   * `disconnect()`. Never rejects.
   */
  get closed(): Promise<MqttError | undefined> {
    this.#core.states.watched = true
    return this.#core.states.closed
  }

  /** What the server allows; undefined before CONNACK. */
  get negotiated(): Negotiated | undefined {
    return this.#core.session.negotiated
  }

  /** The publishes that wait to be sent, and a way to drop them. */
  get outbound(): OutboundView {
    return this.#core.publishing
  }

  /** Resolves when a publish would not have to wait. */
  get writable(): Promise<void> {
    return this.#core.publishing.writable
  }

  /**
   * Opens the connection. While that is in progress, initially or after a loss, a further call
   * joins it.
   * @throws MqttError ERR_ALREADY_CONNECTED, ERR_CLOSED, ERR_CONNECT_REFUSED, ERR_CONNECT_TIMEOUT,
   * ERR_CONNECT_FAILED, ERR_TLS, ERR_ABORTED
   */
  async connect(options?: ConnectOptions): Promise<void> {
    const site = siteOf()
    try {
      await connect(this.#core, connectOptions(options).signal)
    } catch (error) {
      locate(error, site)
      throw error
    }
  }

  /**
   * Publishes a message (section 3.3). Resolves at QoS 0 when it was handed to the transport, at
   * QoS 1 with PUBACK, at QoS 2 with PUBCOMP. The payload must not change until then; once the
   * promise has settled in any way, the payload is not read again.
   * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION, ERR_QOS_UNSUPPORTED,
   * ERR_RETAIN_UNSUPPORTED, ERR_PACKET_TOO_LARGE, ERR_NOT_CONNECTED, ERR_QUEUE_FULL, ERR_DROPPED,
   * ERR_PUBLISH_REFUSED, ERR_CONNECTION_LOST, ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED; `outcome` says
   * whether it may have arrived
   */
  publish(topic: string, payload: Payload, options?: PublishOptions): Promise<Receipt>
  publish(
    topic: string,
    payload: Payload,
    options?: PublishOptions,
    more?: unknown,
  ): Promise<Receipt> {
    const core = this.#core
    const { hooks, states, publishing } = core
    try {
      assertLast(more)
      assertOpen(states, states.sealed)
      if (hooks === undefined) return publish(core, topic, payload, options)
    } catch (error) {
      return publishing.refuse(topic, error)
    }
    const last = (call: PublishCall): Promise<Receipt> =>
      publish(core, call.topic, call.payload, call.options)
    return hooks.publish({ topic, payload, options }, last, () => publishing.draining.notify(false))
  }

  /**
   * Publishes at QoS 0, at once or not at all. Returns true when the message was accepted; false
   * otherwise, also while the client stops and after its end. The payload may change afterwards.
   * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION, ERR_PACKET_TOO_LARGE: when it can
   * never be sent
   */
  post(topic: string, payload: Payload): boolean
  post(topic: string, payload: Payload, more?: unknown): boolean {
    assertLast(more, 'no callback: it returns true or false', 'no options: publish() does')
    return this.#core.publishing.post(
      checkedTopic(topic),
      typeof payload === 'string' ? payload : payloadBytes(payload),
    )
  }

  /**
   * Subscribes (section 3.8) and waits for the grant.
   * @throws MqttError ERR_SUBSCRIBE_REFUSED when every filter was refused, ERR_INVALID_TOPIC,
   * ERR_INVALID_OPTION, ERR_SUBSCRIPTION_CONFLICT, ERR_SHARED_SUBS_UNSUPPORTED,
   * ERR_WILDCARD_SUBS_UNSUPPORTED, ERR_SUBSCRIPTION_IDS_UNSUPPORTED, ERR_CONNECTION_LOST,
   * ERR_ABORTED, ERR_CLOSED
   */
  async subscribe(filters: Filters, options?: SubscribeOptions): Promise<Subscription>
  async subscribe(
    filters: Filters,
    options?: SubscribeOptions,
    more?: unknown,
  ): Promise<Subscription> {
    assertLast(more, noCallback)
    return this.subscription(filters, options).ready
  }

  /**
   * Subscribes without waiting, in any state: messages are routed from now on; `ready` resolves
   * when they are granted.
   * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION, ERR_SUBSCRIPTION_CONFLICT, ERR_CLOSED
   */
  subscription(filters: Filters, options?: SubscribeOptions): Subscription {
    return subscribed(this.#core, subscriptionCall(filters, options, this.#core.options))
      .subscription
  }

  /**
   * Subscribes and calls a handler with each message, in order; a message is acknowledged when its
   * handler is done.
   * @throws MqttError as `subscribe`, and ERR_INVALID_HANDLER
   */
  async listen(filters: Filters, handler: Handler, options?: ListenOptions): Promise<Handling>
  async listen(
    filters: Filters,
    handler: Handler,
    options?: ListenOptions,
    more?: unknown,
  ): Promise<Handling> {
    assertLast(more)
    const call = listenCall(filters, handler, options, this.#core.options)
    const consumer = subscribed(this.#core, call)
    const loop = new HandlerLoop(consumer, handler, call.listen, this.#core)
    await consumer.ready
    return new ListenHandle(consumer.subscription, loop)
  }

  /**
   * Ends subscriptions on the broker, and the local ones on these filters; messages that waited for
   * a reader are acknowledged and dropped. Rejects when it failed for every filter; if it failed
   * for some, see their results.
   * @throws MqttError ERR_UNSUBSCRIBE_REFUSED, ERR_PACKET_TOO_LARGE, ERR_INVALID_TOPIC,
   * ERR_CONNECTION_LOST, ERR_ABORTED, ERR_CLOSED
   */
  unsubscribe(
    filters: string | readonly string[],
    options?: UnsubscribeOptions,
  ): Promise<UnsubscribeResult[]>
  unsubscribe(
    filters: string | readonly string[],
    options?: UnsubscribeOptions,
    more?: unknown,
  ): Promise<UnsubscribeResult[]> {
    const { states } = this.#core
    const answer = async (): Promise<UnsubscribeResult[]> => {
      assertLast(more)
      assertOpen(states, states.stopping)
      const call = unsubscribeCall(filters, options, this.#core)
      const results = await unsubscribe(
        this.#core.subscriptions,
        call.filters,
        call.userProperties,
        call.signal,
      )
      const error = errorOfAll(results)
      if (error !== undefined) throw error
      return results
    }
    // A rejection because the client ended must not end the process.
    return tolerant(answer())
  }

  /**
   * Publishes a request with a response topic and returns the message that answers it (section
   * 4.10). Without a connection, waits for one.
   * @throws MqttError ERR_REMOTE when the responder answers with an error, ERR_TIMEOUT,
   * ERR_ABORTED, ERR_CLOSED, ERR_QUEUE_FULL, ERR_UNSUPPORTED_OPTION on 3.1.1, ERR_INVALID_OPTION,
   * ERR_INVALID_TOPIC, and all errors of `subscribe` and `publish`; `outcome` says whether the
   * request may have arrived
   */
  request(topic: string, payload: Payload, options?: RequestOptions): Promise<Message>
  request(
    topic: string,
    payload: Payload,
    options?: RequestOptions,
    more?: unknown,
  ): Promise<Message> {
    const { watched } = this.#core.states
    const made =
      requests.get(this) ??
      new Requests({ ...this.#core, publishing: this.#core.publishing, client: this })
    // `Requests` reads `closed`, which does not mean that the program watches it.
    this.#core.states.watched = watched
    requests.set(this, made)
    return made.request(topic, payload, options, more)
  }

  /** Adds hooks; returns a function that removes them. @throws MqttError ERR_INVALID_OPTION */
  use(hooks: Hooks): Unlisten {
    const core = this.#core
    core.hooks ??= new HookChain(core.states)
    const remove = core.hooks.add(hooks)
    return Object.assign(remove, { [disposeSymbol]: remove }) as Unlisten
  }

  /**
   * Answers requests on these filters: publishes the handler's result to the response topic of each
   * request, if `allow` permits it.
   * @throws MqttError as `listen`, and ERR_UNSUPPORTED_OPTION on 3.1.1
   */
  async respond(
    filters: Filters,
    handler: Responding,
    options?: RespondOptions,
  ): Promise<Responder> {
    const { states } = this.#core
    assertOpen(states, states.stopping)
    return respond(
      { ...this.#core, publishing: this.#core.publishing, client: this },
      filters,
      handler,
      options,
    )
  }

  /**
   * Resolves when everything published at QoS 0 so far was written. @throws MqttError
   * ERR_NOT_CONNECTED, ERR_CONNECTION_LOST
   */
  async flush(): Promise<void> {
    await this.#core.publishing.draining.flushed()
  }

  /**
   * Ends the client in order: no more messages are handed out, running turns end, and outstanding
   * publishes, acknowledgements and DISCONNECT are sent. Limited by `timeout`; a lost connection
   * ends the wait. Publishes that are not acknowledged by then are given up: each rejects and
   * raises `drop`, one `warn` line is logged, and Node prints the warning `MQWIRE_UNSENT` with
   * their number. Messages in a `store` are not given up.
   * If the session ends with the connection, `$share` filters are unsubscribed first, and their
   * remaining messages are handed out. Messages dropped unread raise `drop`, unless the session
   * keeps them. A lost connection is not re-established, unless `reconnect()` or a renewal was
   * replacing it at that moment; running turns still end. A further call joins.
   * After 1,000 ms, a `warn` line of the log names what is being waited for.
   * @throws MqttError ERR_INVALID_OPTION
   */
  async disconnect(options?: DisconnectOptions): Promise<void> {
    await this.#core.disconnect(goodbye(options, this.#core))
  }

  /**
   * As `disconnect()`, but also waits for a connection when the client has none, or loses it while
   * publishes are queued or in flight. Limited by `timeout`; logs as `disconnect()` does. In Node,
   * a process that ends without it while publishes are outstanding prints the warning
   * `MQWIRE_UNSENT`.
   * @throws MqttError ERR_INVALID_OPTION
   */
  async drain(options?: DisconnectOptions): Promise<void> {
    await this.#core.disconnect(goodbye(options, this.#core), true)
  }

  /**
   * Without a connection: connects now instead of after the delay. With one: does nothing, or with
   * `force` replaces it and resumes the session. Resolves when the connection is up.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED, or the error that ended the client meanwhile
   */
  reconnect(options?: ReconnectNow): Promise<void> {
    const again = async (): Promise<void> => {
      const { force, reason } = reconnectCall(options)
      await reconnect(this.#core, force, reason)
    }
    // Callers in listeners usually do not await it, so a rejection must not be unhandled.
    return tolerant(again())
  }

  /**
   * Replaces the list of endpoints. An open connection stays; an attempt at an endpoint that is not
   * in the new list is aborted. In a listener of `serverdisconnect` or `connecterror` it also
   * causes the next attempt, whatever the failure was.
   * @throws MqttError as the constructor for endpoints; ERR_CLOSED
   */
  setBrokers(endpoints: Endpoint | readonly Endpoint[]): void {
    setBrokers(this.#core, parseEndpoints(endpoints, this.#core.platform))
  }

  /**
   * Re-authenticates on the open connection, with the mechanism of the `auth` option (section
   * 4.12.1).
   * @throws MqttError ERR_UNSUPPORTED_OPTION without `auth`, ERR_NOT_CONNECTED, ERR_AUTH_FAILED,
   * ERR_CONNECTION_LOST, ERR_ABORTED, ERR_CLOSED
   */
  async reauthenticate(options?: ConnectOptions): Promise<void> {
    await reauthenticate(this.#core, connectOptions(options).signal)
  }

  /** Counters since the client was created; all zero without the `stats` option. */
  stats(): Stats {
    return snapshot(this.#core)
  }

  /**
   * Closes the connection without DISCONNECT, so that the server publishes the will. No more
   * messages are handed out.
   */
  destroy(): void {
    destroy(this.#core)
  }

  /**
   * Adds a listener; returns a function that removes it. @throws MqttError ERR_INVALID_HANDLER;
   * ERR_INVALID_OPTION for an unknown event
   */
  on<K extends keyof ClientEvents>(
    type: K,
    listener: (event: ClientEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten {
    return this.#core.events.on(eventName(type), listener, options)
  }

  /** True: messages to one topic arrive in the order of the calls (section 4.6). */
  get ordered(): boolean {
    return true
  }

  [access](): ClientAccess {
    return this.#core
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await this.disconnect()
  }
}

function publish(
  { states, publishing }: Core,
  topic: string,
  payload: Payload,
  options: PublishOptions | undefined,
): Promise<Receipt> {
  try {
    assertOpen(states, states.ended)
    const call = publishCall(topic, payload, options)
    return publishing.publish(call.topic, call.payload, call.options)
  } catch (error) {
    return publishing.refuse(topic, error)
  }
}

// Created on first use, because most clients send no requests.
const requests = /* @__PURE__ */ new WeakMap<BaseClient, Requests>()

function subscribed(core: Core, { requests, options }: CheckedSubscription): Consumer {
  assertOpen(core.states, core.states.stopping)
  const consumer = new Consumer(core, options)
  consumer.subscription = new SubscriptionHandle(consumer, core.subscriptions)
  consumer.ready = core.subscriptions.subscribe(consumer, requests, options)
  const stop = onAbort(options.until, () => consumer.leave())
  if (consumer.ended) stop()
  else consumer.onLeave = stop
  return consumer
}

/**
 * Where the getters below find the client's parts. A function, because a Proxy may wrap objects that
 * it returns, and consoles print what is in them.
 */
const inside = Symbol('inside')

type Inside = { readonly [inside]: () => Core }

function itself(this: Core): Core {
  return this
}

/** Own and enumerable, so that consoles show them. The same functions for all clients. */
const shown = {
  state: shownAs(({ states }) => states.current),
  clientId: shownAs(({ clientId }) => clientId),
}

function shownAs(read: (core: Core) => string): PropertyDescriptor & ThisType<Inside> {
  return {
    get() {
      return read(this[inside]())
    },
    enumerable: true,
    configurable: true,
  }
}

function assertOpen(states: Core['states'], over: boolean): void {
  if (over) throw closedError(states)
}

/** Hint for callers that pass a callback to `subscribe`. */
const noCallback = 'no callback: listen(filters, handler) does'

// An error whose stack shows where the program called; network errors have no such line.
function siteOf(): Error {
  const { stackTraceLimit } = Error as { stackTraceLimit?: number }
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit && stackTraceLimit + 20)
  const site = new Error()
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  return site
}

/** The class of the clients of one platform. */
export interface ClientClass<C extends BaseClient = BaseClient> {
  /**
   * @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL, ERR_INVALID_OPTION,
   * ERR_UNSUPPORTED_OPTION
   */
  new (endpoints: Endpoint | readonly Endpoint[], options?: ClientOptions): C
}

/** Clients on a platform. */
export function clientOn(platform: Platform): ClientClass {
  return class extends BaseClient {
    constructor(endpoints: Endpoint | readonly Endpoint[], options: ClientOptions = {}) {
      super(platform, endpoints, options)
    }
  }
}

/** Creates a client with all options except `signal`, and connects it with that. */
export function connectWith<C extends BaseClient>(
  Client: ClientClass<C>,
): (
  endpoints: Endpoint | readonly Endpoint[],
  options?: ClientOptions & ConnectOptions,
) => Promise<C> {
  // As a method, the function keeps its name in a bundle.
  const { connect } = {
    async connect(
      endpoints: Endpoint | readonly Endpoint[],
      options: ClientOptions & ConnectOptions = {},
      more?: unknown,
    ): Promise<C> {
      assertLast(more)
      const { signal, ...rest } =
        typeof options === 'object' && options !== null
          ? options
          : (connectOptions(options) as typeof options)
      const client = new Client(endpoints, rest)
      await client.connect({ signal })
      return client
    },
  }
  return connect
}
