/**
 * React hooks over a shared client: one CONNECT however often components mount and unmount, and one
 * DISCONNECT after the last has unmounted.
 *
 * StrictMode, Fast Refresh and quick remounts have no effect on the connection. Rendering only
 * reads state, so a discarded render, or one on a server, opens nothing. Effects acquire shared
 * objects by key and release them; a released object stays for a moment (`shared.ts`). Clients are
 * identified by URL, client id, user name and password, not by object identity: `options` may be a
 * new literal in every render. The other options are read when a client is created.
 *
 * @module
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
  /** The endpoint of the broker, as for `new Client()`. */
  readonly url: Endpoint
  /**
   * Options as for `new Client()`; `firstConnect` is `'wait'` unless given. Default: those of the
   * client.
   */
  readonly options?: ClientOptions | undefined
  /** The components that use the hooks. */
  readonly children?: ReactNode
}

/**
 * Connects while it is mounted. A change of URL, client id, user name or password creates another
 * client; other options are read when a client is created. A client that has ended stays ended
 * while its components are mounted: to connect again, remount them with another `key` of this
 * component.
 * @throws MqttError ERR_INVALID_OPTION, ERR_INVALID_URL as `new Client()`, in an effect
 */
export function MqttProvider({ url, options, children }: MqttProviderProps): ReactElement {
  const key = dataOf([url, options?.clientId, options?.username, options?.password])
  const latest = useRef(options)
  // A layout effect, so that it runs before the effects of the components below.
  useLayoutEffect(() => {
    latest.current = options
  })
  const connection = useMemo(() => ({ key, url, latest }), [key])
  useEffect(() => hold(connection).release, [connection])
  return createElement(Context.Provider, { value: connection }, children)
}

/**
 * The client, for operations without a hook; undefined until the component is mounted, and on a
 * server.
 */
export function useClient(): Client | undefined {
  return useOfClient((thing) => thing?.client)
}

/**
 * State of the client: `'idle'`, `'connecting'`, `'connected'`, `'reconnecting'`, `'disconnecting'`
 * or `'closed'`.
 */
export function useConnectionState(): ClientState {
  return useOfClient((thing) => thing?.client.state ?? 'idle')
}

/** The known reason why there is no connection; undefined while there is one. */
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
  /** Maximum QoS (section 3.8.3.1). Default: that of the channel, otherwise 0. */
  readonly qos?: QoS | undefined
  /** Most messages kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** Options of {@link useSubscription}. */
export interface UseSubscriptionOptions<Selected = Shown>
  extends UseMessagesOptions<Message, Selected> {}

/**
 * The last `limit` messages on a Topic Filter, oldest first, or the result of `select`. The list
 * has `error` if the server refused the subscription or it ended with an error, and `isPending`
 * until it is granted. Components with the same arguments share one subscription, and render at
 * most once per frame.
 * @throws MqttError ERR_INVALID_OPTION during the render, for invalid `select`, `equal`, `enabled`
 * or `limit`, and for unknown options; ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `subscription`, in
 * an effect
 */
export function useMessages<Selected = Shown>(
  filter: string,
  options?: UseMessagesOptions<Message, Selected>,
): Selected
/**
 * The last messages of a channel: each with `params`, `value` and `message`, as from
 * `subscription(params)` of `mqwire/typed`.
 */
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
 * Returns a stable function that publishes as `client.publish()` does. Arguments of the hook come
 * before those of the function: a topic, a channel, or a channel and its parameters. A message is
 * still sent after its component has unmounted.
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
 * The latest value of each topic of a channel, as from `latest(params, options)` of `mqwire/typed`:
 * a map that stays the same object until something changes; or the result of `select`. Its `error`
 * is the error that ended the subscription; `isPending` is true until the server has granted or
 * refused it. Components with the same arguments share one subscription, and render at most once
 * per frame. Parameters and options may be new literals in every render.
 * @throws MqttError ERR_INVALID_OPTION during the render, for invalid `select`, `equal`, `enabled`
 * or `limit`, and for unknown options; ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `latest`, in an
 * effect
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
