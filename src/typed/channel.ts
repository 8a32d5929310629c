/**
 * Channels: a topic and a codec as one value, which device, service and page share and bind to
 * their clients.
 */

import type { ClientAccess } from '../client/access.js'
import type {
  HandlerFailure,
  Handling,
  ListenOptions,
  Message,
  Payload,
  Poster,
  Publisher,
  PublishOptions,
  SubscribeOptions,
  Subscriber,
  Subscription,
  WillOptions,
} from '../client/options/index.js'
import { rejected, silent, tolerant, within } from '../common/abort.js'
import { MqttError } from '../errors.js'
import { argumentsOf, checkedArguments, merged, nameOf, oncePerClient, templateOf } from './call.js'
import { after, type Codec, isPromise } from './codec.js'
import {
  type Delivered,
  Incoming,
  type Invalid,
  type InvalidVerdict,
  type OnInvalid,
  policyOf,
  type Received,
  type Tally,
} from './incoming.js'
import { type LatestOptions, type LatestValues, latestOf } from './latest.js'
import { accessOf, encoded, propertiesOf } from './payload.js'
import { assertAble, assertCodec, assertHandler, refuse } from './refuse.js'
import { ReadSubscription, type TypedSubscription } from './subscription.js'
import type {
  Checked,
  GivenParams,
  Params,
  ParamsFirst,
  SomeFirst,
  TopicTemplate,
} from './template.js'
import { writableStream } from './writable-stream.js'

/** Defaults for each message of a channel. */
export interface ChannelDefaults<
  Parameters = never,
  Verdict extends InvalidVerdict = InvalidVerdict,
> extends Pick<PublishOptions, 'qos' | 'retain'> {
  /** Options of publishes; override `qos` and `retain`. Default: none. */
  readonly publish?: PublishOptions | undefined
  /** Options of subscriptions; override `qos`. Default: none. */
  readonly subscribe?: SubscribeOptions | undefined
  /** What to do with invalid payloads. Default `'skip'`. */
  readonly onInvalid?: OnInvalid<Parameters, Verdict> | undefined
}

/** Options of a subscription of a channel. */
export interface ChannelSubscribeOptions<Parameters, Verdict extends InvalidVerdict>
  extends SubscribeOptions {
  /** What to do with invalid payloads. Default: that of the channel, otherwise `'skip'`. */
  readonly onInvalid?: OnInvalid<Parameters, Verdict> | undefined
  /** Name of a shared subscription (section 4.8.2). Default: not shared. */
  readonly share?: string | undefined
}

/** Options of `listen` on a channel. */
export interface ChannelListenOptions<Parameters, Verdict extends InvalidVerdict>
  extends ListenOptions {
  /**
   * What to do with invalid payloads; `'throw'` ends the `listen`. Default: that of the channel,
   * otherwise `'skip'`.
   */
  readonly onInvalid?: OnInvalid<Parameters, Verdict> | undefined
  /** Name of a shared subscription (section 4.8.2). Default: not shared. */
  readonly share?: string | undefined
}

/** A channel for publishing. */
export interface ChannelPublisher<Template extends string, In, R = unknown> {
  /**
   * Publishes a value.
   * @throws MqttError ERR_INVALID_PAYLOAD with `issues`, ERR_INVALID_TOPIC with the parameter; as
   * `publish` of the client
   */
  publish(...call: ParamsFirst<Template, [value: In, options?: PublishOptions]>): Promise<R>
  /**
   * Clears the retained message by publishing an empty one (section 3.3.1.3).
   * @throws MqttError as `publish`
   */
  clear(...call: ParamsFirst<Template, [options?: PublishOptions]>): Promise<R>
  /**
   * A stream that publishes each value written to it; the client's queue provides the backpressure.
   */
  writableStream(...call: ParamsFirst<Template, [options?: PublishOptions]>): WritableStream<In>
}

/** A channel for `post()`. */
export interface ChannelPoster<Template extends string, In> {
  /**
   * Publishes a value at QoS 0 immediately, or discards it.
   * @throws MqttError ERR_UNSUPPORTED_OPTION with an asynchronous schema; as `publish`
   */
  post(...call: ParamsFirst<Template, [value: In]>): boolean
}

/** A channel for subscribing. */
export interface ChannelSubscriber<
  Template extends string,
  Out,
  Usual extends InvalidVerdict = 'skip',
> {
  /**
   * Subscribes and waits for the grant. Several sets of parameters share one SUBSCRIBE.
   * @throws MqttError as `subscribe` of the client
   */
  subscribe<Verdict extends InvalidVerdict = Usual>(
    ...call: FiltersFirst<Template, [options?: ChannelSubscribeOptions<Params<Template>, Verdict>]>
  ): Promise<TypedSubscription<Delivered<Params<Template>, Out, Verdict>>>
  /**
   * Subscribes in any state of the client and returns immediately: messages are routed from now on,
   * and `ready` settles with the grant.
   * @throws MqttError as `subscription` of the client
   */
  subscription<Verdict extends InvalidVerdict = Usual>(
    ...call: FiltersFirst<Template, [options?: ChannelSubscribeOptions<Params<Template>, Verdict>]>
  ): TypedSubscription<Delivered<Params<Template>, Out, Verdict>>
  /**
   * Calls a handler with each message, which is acknowledged when the handler has finished.
   * @throws MqttError as `listen` of the client
   */
  listen<Verdict extends InvalidVerdict = Usual>(
    handler: (received: Delivered<Params<Template>, Out, Verdict>) => unknown,
    options?: ChannelListenOptions<Params<Template>, Verdict>,
  ): Promise<TypedHandling>
  /** As above, with some of the parameters, or several sets of them. */
  listen<Verdict extends InvalidVerdict = Usual>(
    params: Partial<GivenParams<Template>> | readonly Partial<GivenParams<Template>>[] | undefined,
    handler: (received: Delivered<Params<Template>, Out, Verdict>) => unknown,
    options?: ChannelListenOptions<Params<Template>, Verdict>,
  ): Promise<TypedHandling>
  /** The latest value of each topic, from retained and live messages. */
  latest(
    ...call: SomeFirst<Template, [options?: LatestOptions]>
  ): LatestValues<Params<Template>, Out>
}

/** A running `listen` of a channel. */
export interface TypedHandling extends Handling {
  /** Messages whose payload or topic did not fit this channel. */
  readonly invalid: number
}

/**
 * Arguments with the parameters of one or several filters first, if the template has parameters.
 */
export type FiltersFirst<Template extends string, Rest extends unknown[]> =
  SomeFirst<Template, Rest> extends Rest
    ? Rest
    : [params?: Partial<GivenParams<Template>> | readonly Partial<GivenParams<Template>>[], ...Rest]

/** A channel bound to a client: the methods that the client supports. */
export type BoundChannel<
  Client,
  Template extends string,
  In,
  Out,
  Usual extends InvalidVerdict = 'skip',
> = (Client extends Publisher<infer R> ? ChannelPublisher<Template, In, R> : unknown) &
  (Client extends Poster ? ChannelPoster<Template, In> : unknown) &
  (Client extends Subscriber ? ChannelSubscriber<Template, Out, Usual> : unknown) &
  ChannelWill<Template, In>

/** The methods that need no client. */
export interface ChannelWill<Template extends string, In> {
  /**
   * The will (section 3.1.2.5) for the options of a client.
   * @throws MqttError ERR_UNSUPPORTED_OPTION with an asynchronous schema; as `publish`
   */
  will(
    ...call: ParamsFirst<
      Template,
      [value: In, options?: Pick<WillOptions, 'qos' | 'retain' | 'properties'>]
    >
  ): WillOptions
}

/** A topic with the type of its messages. */
export class Channel<Template extends string, In, Out = In, Usual extends InvalidVerdict = 'skip'>
  implements ChannelWill<Template, In>
{
  /** Distinguishes channels from operations. */
  readonly kind = 'channel'
  /** The topic. */
  readonly topic: TopicTemplate<Template>
  /** Encodes and decodes payloads. */
  readonly codec: Codec<In, Out>
  /** Defaults for each message. */
  readonly defaults: ChannelDefaults<Params<Template>, Usual>
  readonly #bound = oncePerClient(
    (client: Client) => new ChannelOnClient<Template, In, Out>(this as never, client),
  )

  constructor(
    topic: TopicTemplate<Template>,
    codec: Codec<In, Out>,
    defaults: ChannelDefaults<Params<Template>, Usual>,
  ) {
    this.topic = topic
    this.codec = codec
    this.defaults = defaults
    policyOf(defaults.onInvalid)
  }

  /** Binds the channel to a client: any object that publishes, posts or subscribes. */
  on<Client extends Publisher<unknown> | Subscriber>(
    client: Client,
  ): BoundChannel<Client, Template, In, Out, Usual> {
    return this.#bound(client as never) as never
  }

  will(
    ...call: ParamsFirst<
      Template,
      [value: In, options?: Pick<WillOptions, 'qos' | 'retain' | 'properties'>]
    >
  ): WillOptions {
    const [params, value, options = {}] = argumentsOf(this.topic, call) as [
      object,
      In,
      Partial<WillOptions>?,
    ]
    const { qos, retain } = publishingOf(this.defaults)
    // For 3.1.1, which has no properties, callers pass `properties: undefined`.
    const without = 'properties' in options && options.properties === undefined
    const properties = without ? undefined : propertiesOf(this.codec, true, options.properties)
    return merged<WillOptions>(
      { topic: nameOf(this.topic, params), payload: now(encoded(this.codec, value), 'will') },
      { qos, retain },
      options,
      {
        properties,
      },
    )
  }
}

/**
 * Creates a channel for a topic, or a topic template, with the type of its messages.
 * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION
 */
export function channel<
  Template extends string,
  In,
  Out = In,
  Usual extends InvalidVerdict = 'skip',
>(
  topic: Checked<Template> | TopicTemplate<Template>,
  codec: Codec<In, Out>,
  defaults: ChannelDefaults<Params<Template>, Usual> = {},
): Channel<Template, In, Out, Usual> {
  assertCodec(codec)
  return new Channel(templateOf<Template>(topic), codec, defaults)
}

type Client = Publisher & Poster & Subscriber

function publishingOf({
  qos,
  retain,
  publish,
}: Pick<ChannelDefaults, 'qos' | 'retain' | 'publish'>): PublishOptions {
  return merged<PublishOptions>({ qos, retain }, publish)
}

class ChannelOnClient<Template extends string, In, Out> {
  readonly #channel: Channel<Template, In, Out>
  readonly #client: Client
  readonly #access: ClientAccess
  readonly #tally: Tally = { invalid: 0 }
  readonly #publishing: PublishOptions
  readonly #subscribing: SubscribeOptions
  /**
   * The last of the publishes that wait for an asynchronous schema; they keep the order of the
   * calls.
   */
  #tail: Promise<unknown> | undefined

  constructor(channel: Channel<Template, In, Out>, client: Client) {
    const { qos, subscribe } = channel.defaults
    this.#channel = channel
    this.#client = client
    this.#access = accessOf(client)
    this.#publishing = publishingOf(channel.defaults)
    this.#subscribing = merged<SubscribeOptions>({ qos }, subscribe)
  }

  publish(...call: unknown[]): Promise<unknown> {
    return this.#settled(() => {
      assertAble(this.#client, 'publish')
      const [name, value, options] = this.#named(call, 2) as [string, In, PublishOptions?]
      return this.#publish(name, this.#options(options), encoded(this.#channel.codec, value))
    })
  }

  clear(...call: unknown[]): Promise<unknown> {
    return this.#settled(() => {
      assertAble(this.#client, 'publish')
      const [name, options] = this.#named(call, 1) as [string, PublishOptions?]
      return this.#publish(
        name,
        merged<PublishOptions>(this.#publishing, options, { retain: true }),
        '',
      )
    })
  }

  // Without an asynchronous schema the call publishes immediately. Asynchronous ones still publish
  // in the order of the calls.
  #publish(
    name: string,
    options: PublishOptions,
    payload: Payload | Promise<Payload>,
  ): Promise<unknown> {
    const before = this.#tail
    if (!isPromise(payload) && before === undefined)
      return this.#client.publish(name, payload, options)
    const ready = within(Promise.all([payload, before]), options.signal)
    // Reported here, because the client does not know of this publish yet.
    silent(ready.catch((error) => this.#access.refuse?.(name, error)))
    const tail = Promise.allSettled([before, ready]).then(() => {
      if (this.#tail === tail) this.#tail = undefined
    })
    this.#tail = tail
    return ready.then(([made]) => this.#client.publish(name, made, options))
  }

  post(...call: unknown[]): boolean {
    assertAble(this.#client, 'post')
    const [name, value, options] = this.#named(call, 2) as [string, In, unknown]
    if (options !== undefined) refuse('options', 'must be left out: publish() takes them')
    return this.#client.post(name, now(encoded(this.#channel.codec, value), 'post'))
  }

  will(...call: unknown[]): WillOptions {
    return this.#channel.will(...(call as never))
  }

  writableStream(...call: unknown[]): WritableStream<In> {
    assertAble(this.#client, 'publish')
    const [name, options] = this.#named(call, 1) as [string, PublishOptions?]
    return writableStream<In>(this.#client, name, this.#options(options), (value) =>
      encoded(this.#channel.codec, value),
    )
  }

  async subscribe(...call: unknown[]): Promise<unknown> {
    return this.#subscribed('subscribe', call, (filters, options) =>
      this.#client.subscribe(filters, options),
    )
  }

  subscription(...call: unknown[]): unknown {
    return this.#subscribed('subscription', call, (filters, options) =>
      this.#client.subscription(filters, options),
    )
  }

  #subscribed<S extends Subscription | Promise<Subscription>>(
    name: 'subscribe' | 'subscription',
    call: unknown[],
    subscribe: (filters: string[], options: SubscribeOptions) => S,
  ): unknown {
    assertAble(this.#client, name)
    const [params, given = {}] = this.#arguments(call) as [
      unknown,
      ChannelSubscribeOptions<Params<Template>, InvalidVerdict>?,
    ]
    const { onInvalid, share, ...options } = given
    const incoming = this.#incoming(onInvalid)
    return after(
      subscribe(this.#filters(params, share), merged(this.#subscribing, options)),
      (from: Subscription) => new ReadSubscription(from, incoming),
    )
  }

  async listen(...call: unknown[]): Promise<Handling> {
    const [params, handler, given = {}] = (
      typeof call[0] === 'function' ? [undefined, ...call] : call
    ) as [
      unknown,
      (received: unknown) => unknown,
      ChannelListenOptions<Params<Template>, InvalidVerdict>?,
    ]
    assertHandler(handler)
    assertAble(this.#client, 'listen')
    const { onInvalid, share, onError, ...options } = given
    const incoming = this.#incoming(onInvalid)
    const ends = new WeakSet<object>()
    const again = new WeakSet<Message>()
    const handle = (message: Message): unknown =>
      after(takenBy(incoming, message, again.delete(message), ends), (taken) =>
        taken === undefined ? undefined : handler(taken),
      )
    const decide = async (
      error: unknown,
      message: Message,
      attempt: number,
    ): Promise<HandlerFailure> => {
      if (ends.has(error as object)) return 'stop'
      const usual =
        attempt > mostRetries
          ? 'reject'
          : ((onError as HandlerFailure) ?? (message.qos === 0 ? 'reject' : 'retry'))
      const verdict = typeof onError === 'function' ? await onError(error, message, attempt) : usual
      if (verdict === 'retry') again.add(message)
      return verdict
    }
    // With `'skip'` and `'reject'`, the handler gets no invalid message and no error is thrown
    // here, so `onError` goes to the client unchanged.
    const deciding = incoming.policy !== 'skip' && incoming.policy !== 'reject'
    if (
      deciding &&
      !(onError === undefined || typeof onError === 'function' || failures.includes(onError))
    )
      refuse('onError', "must be 'retry', 'reject', 'stop' or a function")
    const { ack, ...subscribing } = this.#subscribing
    const all = merged<ListenOptions>(subscribing, ack === 'manual' ? {} : { ack }, options, {
      onError: deciding ? decide : onError,
    })
    const handling = await this.#client.listen(this.#filters(params, share), handle, all)
    // The error of the payload is more precise than that of the failed handler.
    const done = silent(
      handling.done.catch((error: { cause?: object }) => {
        throw ends.has(error?.cause ?? handle) ? error.cause : error
      }),
    )
    return Object.defineProperties(handling, {
      invalid: { get: () => incoming.invalid },
      done: { value: done },
    })
  }

  latest(...call: unknown[]): LatestValues<Params<Template>, Out> {
    assertAble(this.#client, 'subscription')
    const [params, options] = this.#arguments(call) as [
      Partial<GivenParams<Template>> | undefined,
      LatestOptions?,
    ]
    const { topic } = this.#channel
    return latestOf(
      this.#client,
      topic.filter(params),
      this.#subscribing,
      this.#incoming('skip' as never),
      topic,
      options,
    )
  }

  #incoming(policy: OnInvalid<Params<Template>> | undefined): Incoming<Template, Out> {
    const { topic, codec, defaults } = this.#channel
    return new Incoming(
      topic,
      codec,
      policyOf(policy ?? defaults.onInvalid),
      this.#access,
      this.#tally,
    )
  }

  // The promise of a publish, or of its error; an unhandled rejection stays silent, unless the
  // program is at fault.
  #settled<T>(publish: () => Promise<T>): Promise<T> {
    try {
      return tolerant(publish())
    } catch (error) {
      return this.#access.refuse?.(this.#channel.topic.template, error) ?? rejected(error)
    }
  }

  // The arguments with the Topic Name in place of the parameters. `most` is the number of arguments
  // after it, options last.
  #named(call: unknown[], most: number): unknown[] {
    const [params, ...others] = checkedArguments(this.#channel.topic, call, most)
    return [nameOf(this.#channel.topic, params as object), ...others]
  }

  #arguments(call: unknown[]): unknown[] {
    return argumentsOf(this.#channel.topic, call)
  }

  #filters(params: unknown, share: string | undefined): string[] {
    const { topic } = this.#channel
    const sets = (
      Array.isArray(params) ? Array.from(params) : [params === undefined ? {} : params]
    ) as Partial<GivenParams<Template>>[]
    // A missing set must not match everything.
    return sets.map((set) =>
      topic.filter(set ?? refuse('params', 'must be an object, or a list of objects'), { share }),
    )
  }

  #options(given: PublishOptions | undefined): PublishOptions {
    const all = merged<PublishOptions>(this.#publishing, given)
    return merged<PublishOptions>(all, {
      properties: propertiesOf(this.#channel.codec, this.#access.modern, all.properties),
    })
  }
}

const failures: readonly unknown[] = ['retry', 'reject', 'stop']
/** Same as in the client. */
const mostRetries = 5

// Errors thrown here end the `listen`; they are distinguished from errors of the handler.
function takenBy<Template extends string, Out>(
  incoming: Incoming<Template, Out>,
  message: Message,
  again: boolean,
  ends: WeakSet<object>,
): unknown {
  const mark = (error: unknown): never => {
    ends.add(error as object)
    throw error
  }
  try {
    const taken = incoming.take(message, again)
    return taken instanceof Promise ? taken.catch(mark) : taken
  } catch (error) {
    return mark(error)
  }
}

/** The payload, unless it is a promise. @throws MqttError ERR_UNSUPPORTED_OPTION for a promise */
function now(
  payload: string | Uint8Array | Promise<string | Uint8Array>,
  call: string,
): string | Uint8Array {
  if (!isPromise(payload)) return payload
  silent(payload)
  throw new MqttError(
    'ERR_UNSUPPORTED_OPTION',
    `${call}() cannot wait for an asynchronous schema`,
    { option: 'schema' },
  )
}

export type { Delivered, Invalid, InvalidVerdict, OnInvalid, Received }
