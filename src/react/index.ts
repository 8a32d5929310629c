/**
 * React hooks over a shared client: one CONNECT however often components come and go, one DISCONNECT when the last has gone.
 *
 * StrictMode, Fast Refresh and quick remounts do no harm. Rendering only reads, so a render that is thrown away, or one on a server, opens nothing. Effects
 * hold what they need by a key and let it go again; what is not held lives on for a moment (`shared.ts`). Clients are found by URL, client id, user name
 * and password, and not by the identity of an object: `options` may be a new literal in every render. The other options are read when a client is made.
 */
'use client'

import type {
  Client,
  ClientOptions,
  ClientState,
  Endpoint,
  Message,
  Payload,
  PublishOptions,
  QoS,
} from 'mqwire'
import {
  createElement,
  type ReactElement,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from 'react'
import type {
  Channel,
  Delivered,
  GivenParams,
  InvalidVerdict,
  LatestOptions,
  LatestSnapshot,
  LatestValues,
  Params,
  ParamsFirst,
  SomeFirst,
} from '../typed/index.js'
import {
  type Asked,
  apart,
  assertKind,
  dataOf,
  Feed,
  idOf,
  type Shown,
  type Source,
  shownOf,
  Values,
  valuesOf,
} from './shared.js'
import {
  type Before,
  Context,
  feeds,
  type Held,
  hold,
  type ShowOptions,
  useConnection,
  useLatestRef,
  useOfClient,
  useShown,
  values,
} from './showing.js'

/** Props of {@link MqttProvider}. */
export interface MqttProviderProps {
  /** Where the broker is, as for `new Client()`. */
  readonly url: Endpoint
  /** As for `new Client()`; `firstConnect` is `'wait'` unless it is given. Default: those of the client. */
  readonly options?: ClientOptions | undefined
  /** The components that use the hooks. */
  readonly children?: ReactNode
}

/**
 * Connects while it is mounted. Another URL, client id, user name or password is another client; the other options are read when a client is made. A client
 * that has ended stays ended while its components are mounted: another `key` of this component mounts them again, and connects.
 * @throws MqttError ERR_INVALID_OPTION, ERR_INVALID_URL as `new Client()`, in an effect
 */
export function MqttProvider({ url, options, children }: MqttProviderProps): ReactElement {
  const key = dataOf([url, options?.clientId, options?.username, options?.password])
  const latest = useRef(options)
  // Before the effects of any component below.
  useLayoutEffect(() => {
    latest.current = options
  })
  const connection = useMemo(() => ({ key, url, latest }), [key])
  useEffect(() => hold(connection).release, [connection])
  return createElement(Context.Provider, { value: connection }, children)
}

/** The client, for everything that has no hook; undefined until the component is mounted, and on a server. */
export function useClient(): Client | undefined {
  return useOfClient((thing) => thing?.client)
}

/** State of the client: `'idle'`, `'connecting'`, `'connected'`, `'reconnecting'`, `'disconnecting'` or `'closed'`. */
export function useConnectionState(): ClientState {
  return useOfClient((thing) => thing?.client.state ?? 'idle')
}

/** Why there is no connection, as far as the client knows; undefined while there is one. */
export function useTrouble(): Error | undefined {
  return useOfClient((thing) => thing?.trouble)
}

const noMessages: Before<Shown<never>> = {
  asked: shownOf([], undefined, true),
  idle: shownOf([], undefined, false),
}
const noValues: Before<LatestSnapshot<never, never>> = {
  asked: valuesOf([], true),
  idle: valuesOf([], false),
}

/** Options of {@link useMessages}. */
export interface UseMessagesOptions<Entry, Selected = Shown<Entry>>
  extends ShowOptions<Shown<Entry>, Selected> {
  /** Maximum QoS (section 3.8.3.1). Default that of the channel, else 0. */
  readonly qos?: QoS | undefined
  /** Messages that are kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** Options of {@link useSubscription}. */
export interface UseSubscriptionOptions<Selected = Shown>
  extends UseMessagesOptions<Message, Selected> {}

/**
 * The last `limit` messages on a Topic Filter, oldest first: a list, which has `error` where the server refused the subscription, and `isPending` until it has
 * granted it; or what `select` makes of it. Components that ask for the same messages share one subscription, and render once a frame at most.
 * @throws MqttError ERR_INVALID_OPTION for the options of showing, in the render; ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `subscription`, in an effect
 */
export function useMessages<Selected = Shown>(
  filter: string,
  options?: UseMessagesOptions<Message, Selected>,
): Selected
/** The same of a channel: each with `params`, `value` and `message`, as `subscription(params)` of `mqwire/typed` hands them out. */
export function useMessages<
  Template extends string,
  In,
  Value,
  Usual extends InvalidVerdict,
  Selected = Shown<Delivered<Params<Template>, Value, Usual>>,
>(
  channel: Channel<Template, In, Value, Usual>,
  ...call:
    | SomeFirst<
        Held<Template>,
        [options?: UseMessagesOptions<Delivered<Params<Template>, Value, Usual>, Selected>]
      >
    | [options: UseMessagesOptions<Delivered<Params<Template>, Value, Usual>, Selected>]
): Selected
export function useMessages(
  source: string | Channel<string, unknown, unknown, InvalidVerdict>,
  ...call: readonly unknown[]
): unknown {
  if (typeof source !== 'string') assertKind(source, 'channel', 'a Topic Filter, or ')
  const parameters = typeof source === 'string' ? [] : source.topic.parameters
  const most = Math.min(1, parameters.length)
  const { given, options } = apart<UseMessagesOptions<unknown, unknown>>(parameters, most, call, [
    'qos',
    'limit',
  ])
  const { qos, limit = 100 } = options
  const key = dataOf([
    useConnection().key,
    typeof source === 'string' ? source : idOf(source),
    dataOf(given, true),
    qos,
    limit,
  ])
  const make = (client: Client, changed: () => void, before: Shown<unknown>): Feed => {
    const subscribing = { ...(qos === undefined ? {} : { qos }), onExit: 'unsubscribe' } as const
    const bound =
      typeof source === 'string'
        ? undefined
        : (source.on(client) as unknown as { subscription(...call: unknown[]): Source<unknown> })
    const from =
      bound?.subscription(...(most > 0 ? [given[0]] : []), subscribing) ??
      client.subscription(source as string, subscribing)
    return new Feed(client, from, limit, changed, before)
  }
  return useShown(feeds, key, make, noMessages, options)
}

/** As {@link useMessages} with a Topic Filter. */
export function useSubscription<Selected = Shown>(
  filter: string,
  options: UseSubscriptionOptions<Selected> = {},
): Selected {
  return useMessages(filter, options)
}

const latestMessage = (shown: Shown): Message | undefined => shown.at(-1)

/** The latest message on a Topic Filter; undefined before the first. */
export function useLatest(
  topic: string,
  options: Pick<UseSubscriptionOptions, 'qos' | 'enabled'> = {},
): Message | undefined {
  return useSubscription(topic, { qos: 0, ...options, limit: 1, select: latestMessage })
}

/**
 * A function that publishes as `client.publish()` does; it stays the same. What the hook is given stands before the arguments of the function: a topic,
 * a channel, or a channel and its parameters. A message goes out also when its component has gone.
 * @throws MqttError as `publish`; the promise rejects with it
 */
export function usePublish(): Client['publish']
export function usePublish(
  topic: string,
): (payload: Payload, options?: PublishOptions) => ReturnType<Client['publish']>
export function usePublish<Template extends string, In, Value, Usual extends InvalidVerdict>(
  channel: Channel<Template, In, Value, Usual>,
): (
  ...call: ParamsFirst<Template, [value: In, options?: PublishOptions]>
) => ReturnType<Client['publish']>
export function usePublish<Template extends string, In, Value, Usual extends InvalidVerdict>(
  channel: Channel<Template, In, Value, Usual>,
  params: GivenParams<Held<Template>>,
): (value: In, options?: PublishOptions) => ReturnType<Client['publish']>
export function usePublish(...given: readonly unknown[]): unknown {
  const connection = useConnection()
  const latest = useLatestRef(given)
  return useCallback(
    (...call: unknown[]) => {
      const [source, ...bound] = latest.current
      const { thing, release } = hold(connection)
      const { client } = thing
      const by =
        typeof source === 'object' && source !== null
          ? (source as Channel<string, unknown>).on(client)
          : client
      const before = by === client ? latest.current : bound
      const sent = (by.publish as (...call: unknown[]) => Promise<unknown>).call(
        by,
        ...before,
        ...call,
      )
      sent.then(release, release)
      return sent
    },
    [connection, latest],
  )
}

/** Options of {@link useLatestValues}. */
export interface UseLatestValuesOptions<
  Parameters,
  Value,
  Selected = LatestSnapshot<Parameters, Value>,
> extends LatestOptions,
    ShowOptions<LatestSnapshot<Parameters, Value>, Selected> {}

/**
 * The latest value of each topic of a channel, as `latest(params, options)` of `mqwire/typed` has them: a map that is the same one until something changes;
 * or what `select` makes of it. Its `error` is what ended the subscription; `isPending` is true until the server has granted it. Components that ask for the
 * same values share one subscription, and render once a frame at most. Parameters and options may be new literals in every render.
 * @throws MqttError ERR_INVALID_OPTION for the options of showing, in the render; ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `latest`, in an effect
 */
export function useLatestValues<
  Template extends string,
  In,
  Value,
  Usual extends InvalidVerdict,
  Selected = LatestSnapshot<Params<Template>, Value>,
>(
  channel: Channel<Template, In, Value, Usual>,
  ...call:
    | SomeFirst<
        Held<Template>,
        [options?: UseLatestValuesOptions<Params<Template>, Value, Selected>]
      >
    | [options: UseLatestValuesOptions<Params<Template>, Value, Selected>]
): Selected {
  assertKind(channel, 'channel')
  const { parameters } = channel.topic
  const { given, options } = apart<UseLatestValuesOptions<unknown, unknown, Selected>>(
    parameters,
    Math.min(1, parameters.length),
    call,
    ['limit', 'expire'],
  )
  const { limit, expire } = options
  const key = dataOf([useConnection().key, idOf(channel), dataOf(given, true), limit, expire])
  const make = (
    client: Client,
    changed: () => void,
    before: LatestSnapshot<unknown, unknown>,
  ): Values => {
    const bound = channel.on(client) as unknown as {
      latest(...call: unknown[]): LatestValues<unknown, unknown>
    }
    return new Values(
      client,
      bound.latest(...(parameters.length > 0 ? [given[0]] : []), { limit, expire }),
      changed,
      before,
    )
  }
  return useShown(values, key, make, noValues, options)
}

export {
  type CallResult,
  type OptionsAlone,
  type StreamResult,
  type UseCallOptions,
  type UseStreamOptions,
  useCall,
  useStream,
} from './operations.js'
export type { Asked, Held, LatestOptions, Shown, ShowOptions }
