/**
 * The client with the interface of MQTT.js: methods with callbacks or promises, events, and state.
 *
 * Arguments are parsed here; the backing client handles connections. Methods never throw for errors
 * at the broker: those go to the callback or the event `error`.
 */
import { type Message, MqttError } from 'mqwire'
import { BackingClient, type Emit } from './backing.js'
import { type Granting, publish, subscribe, unsubscribe } from './calls.js'
import { ErrorWithReasonCode, familiar, isMistake } from './errors.js'
import type {
  ClientSubscribeCallback,
  DoneCallback,
  MqttClientEventCallbacks,
  OnCloseCallback,
  OnErrorCallback,
  PacketCallback,
} from './event-types.js'
import { Listeners } from './listeners.js'
import { assertKnown, defaultId, planOf, refused } from './options.js'
import type { IConnackPacket, IDisconnectPacket, IPublishPacket, Packet } from './packet-types.js'
import { propertiesOf, publishOf } from './packets.js'
import type {
  IClientOptions,
  IClientPublishOptions,
  IClientSubscribeOptions,
  IClientSubscribeProperties,
  IClientUnsubscribeProperties,
  ISubscriptionGrant,
  SubscribeTopics,
} from './types.js'

/** Stands in for the stream of MQTT.js, across all connections. */
export interface ConnectionStream {
  /** Adds a listener. */
  on<Event extends keyof StreamEvents>(event: Event, listener: StreamEvents[Event]): this
  /** Adds a listener for the next event only. */
  once<Event extends keyof StreamEvents>(event: Event, listener: StreamEvents[Event]): this
  /** The same as `on`. */
  addListener<Event extends keyof StreamEvents>(event: Event, listener: StreamEvents[Event]): this
  /** Removes a listener. */
  off<Event extends keyof StreamEvents>(event: Event, listener: StreamEvents[Event]): this
  /** The same as `off`. */
  removeListener<Event extends keyof StreamEvents>(
    event: Event,
    listener: StreamEvents[Event],
  ): this
  /** Removes the listeners of an event, or all. */
  removeAllListeners(event?: keyof StreamEvents): this
  /**
   * Cuts the open connection, as a network failure would: the next one is dialled after
   * `reconnectPeriod`. A given error is the `cause` of the `error` event.
   */
  destroy(error?: Error): this
  /** Cuts the open connection, as `destroy()`. */
  end(): this
}

/** Events of {@link MqttClient.stream}. */
export interface StreamEvents {
  /** An attempt failed, or a connection broke. */
  error: OnErrorCallback
  /** A connection or an attempt has ended. */
  close: OnCloseCallback
}

type Ended<T> = (error: Error | null, result?: T) => unknown

/**
 * A client with the methods and events of MQTT.js, over an mqwire client. `connect()` creates one.
 */
export class MqttClient extends Listeners<MqttClientEventCallbacks> {
  /** Returns a random client identifier: `mqttjs_` and eight hexadecimal digits. */
  static readonly defaultId: () => string = defaultId
  /** True from `end()` on. */
  disconnecting = false
  /** True once it has ended. */
  disconnected = false
  /** The options with defaults; a copy. */
  readonly options: IClientOptions
  /**
   * The stream, as programs for MQTT.js use it: events `error` and `close` of all connections;
   * `destroy()` and `end()` cut the open one.
   */
  readonly stream: ConnectionStream
  readonly #stream: ConnectionStream & Listeners<StreamEvents> = Object.assign(
    new Listeners<StreamEvents>(() => undefined),
    {
      destroy: (error?: Error) => this.#cut(error),
      end: () => this.#cut(),
    },
  )
  readonly #backing: BackingClient
  readonly #emit: Emit
  /** Number of publishes in progress. */
  #open = 0
  /** The `connect()` or `reconnect()` to run once it has ended. */
  #next: (() => void) | undefined
  /**
   * Handling of the previous message: with a custom `handleMessage`, messages are handled one after
   * the other.
   */
  #before: Promise<unknown> = Promise.resolve()

  /**
   * @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL, ERR_INVALID_OPTION,
   * ERR_UNSUPPORTED_OPTION
   */
  constructor(brokerUrl: string | IClientOptions | undefined, opts?: IClientOptions) {
    super((event) => {
      if (event.startsWith('packet')) this.#backing.tap()
    })
    if (typeof brokerUrl === 'function') throw refused('streamBuilder')
    const options = opts ?? (typeof brokerUrl === 'object' ? brokerUrl : undefined)
    const plan = planOf(typeof brokerUrl === 'string' ? brokerUrl : '', options ?? {}, this)
    this.options = plan.shown
    this.stream = this.#stream
    const emit: Emit = (event, ...given) => {
      if (event === 'close' || event === 'error')
        outside(() => this.#stream.emit(event, ...(given as [])))
      outside(() => this.emit(event, ...given))
    }
    this.#emit = emit
    this.#backing = new BackingClient(plan, emit, (message) => this.#receive(message))
    if (plan.shown.manualConnect !== true) this.#backing.start()
  }

  #cut(error?: Error): ConnectionStream & Listeners<StreamEvents> {
    this.#backing.cut(error)
    return this.#stream
  }

  /** True while a connection is up. */
  get connected(): boolean {
    return this.#backing.connected
  }

  /** True from a lost connection or failed attempt to the next connection. */
  get reconnecting(): boolean {
    return this.#backing.reconnecting
  }

  /** Properties of the CONNACK of the open connection. */
  get serverProperties(): IConnackPacket['properties'] {
    return this.#backing.serverProperties
  }

  /** The keep-alive in use, in seconds. */
  get keepalive(): number {
    return this.serverProperties?.serverKeepAlive ?? (this.options.keepalive as number)
  }

  /**
   * Handles a message, and calls back when the next one may follow; with an error, the message is
   * retried. Subclasses and instances may replace it.
   */
  handleMessage(_packet: IPublishPacket, callback: DoneCallback): void {
    callback()
  }

  /** Dials, with `manualConnect` or after the end. */
  connect(): this {
    return this.#dial(() => this.#backing.start())
  }

  publish(topic: string, message: string | Uint8Array, callback?: PacketCallback): this
  publish(
    topic: string,
    message: string | Uint8Array,
    opts?: IClientPublishOptions,
    callback?: PacketCallback,
  ): this
  /** Publishes; calls back when the broker has acknowledged it, at QoS 0 when it was sent. */
  publish(
    topic: string,
    message: string | Uint8Array,
    opts?: IClientPublishOptions | PacketCallback,
    callback?: PacketCallback,
  ): this {
    const [options, done] = typeof opts === 'function' ? [{}, opts] : [opts ?? {}, callback]
    const emit: Ended<Packet | undefined> = (error, packet) =>
      done?.(error, packet ?? refusalOf(error, options))
    this.#call(() => this.#publish(topic, message, options), done && emit)
    return this
  }

  /** Publishes; fulfils when the broker has acknowledged it, at QoS 0 when it was sent. */
  publishAsync(
    topic: string,
    message: string | Uint8Array,
    opts?: IClientPublishOptions,
  ): Promise<Packet | undefined> {
    return promised<Packet | undefined>((done) =>
      this.publish(topic, message, opts, done as PacketCallback),
    )
  }

  subscribe(topicObject: SubscribeTopics, callback?: ClientSubscribeCallback): this
  subscribe(
    topicObject: SubscribeTopics,
    opts?: IClientSubscribeOptions | IClientSubscribeProperties,
    callback?: ClientSubscribeCallback,
  ): this
  /** Subscribes; calls back with the grants, and with an error if a filter was refused. */
  subscribe(
    topicObject: SubscribeTopics,
    opts?: IClientSubscribeOptions | IClientSubscribeProperties | ClientSubscribeCallback,
    callback?: ClientSubscribeCallback,
  ): this {
    const [options, done] = typeof opts === 'function' ? [{}, opts] : [opts ?? {}, callback]
    const emit: Ended<Granting> = (error, result) =>
      done?.(error ?? result?.error ?? null, result?.grants, result?.packet)
    this.#call(() => subscribe(this.#backing, topicObject, options), done && emit)
    return this
  }

  /** Subscribes; resolves with the grants, rejects if a filter was refused. */
  subscribeAsync(
    topicObject: SubscribeTopics,
    opts?: IClientSubscribeOptions | IClientSubscribeProperties,
  ): Promise<ISubscriptionGrant[]> {
    return promised((done) => this.subscribe(topicObject, opts, done as ClientSubscribeCallback))
  }

  unsubscribe(topic: string | readonly string[], callback?: PacketCallback): this
  unsubscribe(
    topic: string | readonly string[],
    opts?: IClientUnsubscribeProperties,
    callback?: PacketCallback,
  ): this
  /** Unsubscribes; calls back with the broker's answer. */
  unsubscribe(
    topic: string | readonly string[],
    opts?: IClientUnsubscribeProperties | PacketCallback,
    callback?: PacketCallback,
  ): this {
    const [options, done] = typeof opts === 'function' ? [{}, opts] : [opts ?? {}, callback]
    this.#call(
      () => unsubscribe(this.#backing, [topic].flat(), options),
      done as Ended<Packet | undefined> | undefined,
    )
    return this
  }

  /** Unsubscribes; fulfils with the broker's answer. */
  unsubscribeAsync(
    topic: string | readonly string[],
    opts?: IClientUnsubscribeProperties,
  ): Promise<Packet | undefined> {
    return promised<Packet | undefined>((done) =>
      this.unsubscribe(topic, opts, done as PacketCallback),
    )
  }

  end(cb?: DoneCallback): this
  end(opts?: Partial<IDisconnectPacket>, cb?: DoneCallback): this
  end(force?: boolean, cb?: DoneCallback): this
  end(force?: boolean, opts?: Partial<IDisconnectPacket>, cb?: DoneCallback): this
  /**
   * Ends the client: with DISCONNECT when everything is acknowledged; with `force`, immediately and
   * without DISCONNECT.
   */
  end(...given: unknown[]): this {
    const done = given.find((each) => typeof each === 'function') as DoneCallback | undefined
    const packet = given.find((each) => typeof each === 'object' && each !== null) as
      | Partial<IDisconnectPacket>
      | undefined
    if (this.disconnecting) {
      done?.()
      return this
    }
    this.disconnecting = true
    this.#end(given[0] === true, packet ?? {}).then(
      () => outside(() => done?.()),
      (error: Error) => this.#refuse(error, done as Ended<never>),
    )
    return this
  }

  endAsync(opts?: Partial<IDisconnectPacket>): Promise<void>
  endAsync(force?: boolean, opts?: Partial<IDisconnectPacket>): Promise<void>
  /** Ends the client, as `end` does; fulfils when it has ended. */
  endAsync(
    force?: boolean | Partial<IDisconnectPacket>,
    opts?: Partial<IDisconnectPacket>,
  ): Promise<void> {
    return promised((done) =>
      this.end(force as boolean, opts as Partial<IDisconnectPacket>, done as DoneCallback),
    )
  }

  /** Dials now, also after the end; replaces an open connection. Stores are not supported. */
  reconnect(opts?: object): this {
    assertKnown(opts ?? {}, '')
    return this.#dial(() => this.#backing.restart())
  }

  // Dials after a running `end()`.
  #dial(begin: () => void): this {
    const isEnding = this.disconnecting && !this.disconnected
    this.#next = isEnding ? begin : undefined
    if (isEnding) return this
    this.disconnecting = false
    this.disconnected = false
    begin()
    return this
  }

  async #publish(
    topic: string,
    message: string | Uint8Array,
    options: IClientPublishOptions,
  ): Promise<Packet | undefined> {
    this.#open += 1
    try {
      return await publish(this.#backing, topic, message, options)
    } finally {
      this.#open -= 1
      if (this.disconnecting && this.#open === 0 && options.qos) this.#emit('outgoingEmpty')
    }
  }

  async #end(
    force: boolean,
    { reasonCode, properties = {} }: Partial<IDisconnectPacket>,
  ): Promise<void> {
    const goodbye = this.#backing.modern
      ? { ...(reasonCode !== undefined && { reasonCode }), ...propertiesOf(properties) }
      : {}
    const stop = (by: object): Promise<void> => this.#backing.stop(force, this.#open > 0, by)
    let mistake: Error | undefined
    await stop(goodbye).catch((error: Error) => {
      // Invalid options of DISCONNECT are left out, so that the client ends all the same.
      mistake = error
      return stop({})
    })
    this.disconnected = true
    this.#emit('end')
    const next = this.#next
    if (next !== undefined) this.#dial(next)
    else if (this.options.reconnectPeriod === 0 || this.options.manualConnect === true)
      this.disconnecting = false
    if (mistake !== undefined) throw mistake
  }

  // Runs a call unless the client is ending; without a callback, only mistakes are reported.
  #call<T>(call: () => Promise<T>, done: Ended<T> | undefined): void {
    if (this.disconnecting)
      return this.#refuse(new MqttError('ERR_CLOSED', 'client disconnecting'), done)
    call().then(
      (result) => outside(() => done?.(null, result)),
      (error: unknown) =>
        this.#refuse(familiar(error, this.#backing.modern), done, isMistake(error)),
    )
  }

  #refuse(error: Error, done: Ended<never> | undefined, reported = true): void {
    if (done !== undefined) outside(() => done(error))
    else if (reported) this.#emit('error', error)
  }

  #receive(message: Message): void | Promise<void> {
    const packet = publishOf(message, this.#backing.modern, this.#backing.identifiers)
    const handle = (): void => this.#emit('message', packet.topic, packet.payload, packet)
    if (this.handleMessage === MqttClient.prototype.handleMessage) return handle()
    const handled = this.#before.then(() => {
      handle()
      return promised<void>((done) => this.handleMessage(packet, done as DoneCallback))
    })
    this.#before = handled.catch(() => undefined)
    return handled
  }
}

// Errors of the program's own code are thrown to the process, as in MQTT.js.
function outside(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

// The packet that refused a publish.
function refusalOf(error: Error | null, { qos }: IClientPublishOptions): Packet | undefined {
  return error instanceof ErrorWithReasonCode
    ? { cmd: qos === 2 ? 'pubrec' : 'puback', reasonCode: error.code }
    : undefined
}

/** A call with a callback, as a promise. */
function promised<T>(call: (done: Ended<T>) => void): Promise<T> {
  return new Promise((resolve, reject) =>
    call((error, result) => (error ? reject(error) : resolve(result as T))),
  )
}
