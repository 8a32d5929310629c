/**
 * React hooks over a shared client: one CONNECT however often components come and go, one DISCONNECT when the last has gone.
 *
 * StrictMode, Fast Refresh and quick remounts do no harm. Rendering only reads, so a render that is thrown away, or one on a server, opens nothing. Effects
 * hold what they need by a key and let it go again; what nobody holds lives on for a moment (`shared.ts`). Clients are found by URL, client id, user name
 * and password, and not by the identity of an object: `options` may be a new literal in every render. The other options are read when a client is made.
 */
'use client'

import type { Client, ClientOptions, ClientState, Endpoint, Message, QoS } from 'mqwire'
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  type RefObject,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react'
import type { Channel, InvalidVerdict, LatestOptions, LatestSnapshot, LatestValues, Params, SomeFirst } from '../typed/index.js'
import { apart, ConnectingClient, dataOf, Feed, idOf, type Sharable, Shared, type Shown, shownOf, Values, valuesOf } from './shared.js'

/** What finds a connection, and makes it. */
interface Wanted {
  readonly key: string
  readonly url: Endpoint
  readonly latest: RefObject<ClientOptions | undefined>
}

const clients = new Shared<ConnectingClient>()
const feeds = new Shared<Feed>()
const values = new Shared<Values>()
const Context = createContext<Wanted | undefined>(undefined)

const hold = ({ key, url, latest }: Wanted) => {
  const before = clients.peek(key)
  const held = clients.hold(key, (changed) => new ConnectingClient(url, latest.current, changed))
  // What was read by way of a client that has ended goes on with the next.
  if (before !== undefined && before !== held.thing) for (const each of [feeds, values]) each.renew()
  return held
}

/** Holds a client, and what is made of it, while a component is mounted. @throws what `make` throws: then nothing is held */
function holdWith<T extends Sharable>(
  connection: Wanted,
  shared: Shared<T>,
  key: string,
  make: (client: Client, changed: () => void) => T,
  changed: () => void,
): () => void {
  const client = hold(connection)
  try {
    const { release } = shared.hold(key, (tell) => make((clients.peek(connection.key) ?? client.thing).client, tell))
    const stop = shared.watch(key, changed)
    return () => {
      stop()
      release()
      client.release()
    }
  } catch (error) {
    client.release()
    throw error
  }
}

/** Something of the client, watched. */
function useOfClient<Value>(read: (thing: ConnectingClient | undefined) => Value): Value {
  const connection = useConnection()
  const subscribe = useCallback(
    (changed: () => void) => {
      const { release } = hold(connection)
      const stop = clients.watch(connection.key, changed)
      return () => {
        stop()
        release()
      }
    },
    [connection],
  )
  return useSyncExternalStore(
    subscribe,
    () => read(clients.peek(connection.key)),
    () => read(undefined),
  )
}

function useConnection(): Wanted {
  const connection = useContext(Context)
  if (connection === undefined) throw new Error('There is no <MqttProvider> around this component')
  return connection
}

/** What {@link MqttProvider} takes. */
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

/** What hooks that show something have in common. */
export interface ShowOptions<Given, Selected = Given> {
  /** What the component shows of it: it renders only when this has changed. Called for each change, and in renders. Default: all of it. */
  readonly select?: ((given: Given) => Selected) | undefined
  /** True where two selected values are the same, as for lists and objects that `select` makes. Default `Object.is`. */
  readonly equal?: ((one: Selected, other: Selected) => boolean) | undefined
  /** False: nothing is asked for, and what was shown stays. Default true. */
  readonly enabled?: boolean | undefined
}

/** What is shown before there is anything: while it is asked for, and while it is not enabled. */
interface Before<State> {
  readonly asked: State
  readonly idle: State
}

const noMessages: Before<Shown<never>> = { asked: shownOf([], undefined, true), idle: shownOf([], undefined, false) }
const noValues: Before<LatestSnapshot<never, never>> = { asked: valuesOf([], true), idle: valuesOf([], false) }

/** What a shared thing shows, as much as is selected of it. */
function useShown<State extends { readonly isPending: boolean }, Selected>(
  shared: Shared<Sharable & { readonly shown: State }>,
  key: string,
  make: (client: Client, changed: () => void, before: State) => Sharable & { readonly shown: State },
  before: Before<State>,
  { select, equal = Object.is, enabled = true }: Partial<ShowOptions<State, Selected>>,
): Selected {
  const connection = useConnection()
  const making = useRef(make)
  /** The last that was settled, and what it was of. */
  const settled = useRef<{ readonly key: string; readonly state: State } | undefined>(undefined)
  const rendered = useRef<{ readonly value: Selected } | undefined>(undefined)
  const subscribe = useCallback(
    (changed: () => void) => {
      if (!enabled) return () => undefined
      const old = settled.current?.key === key ? settled.current.state : before.asked
      return holdWith(connection, shared, key, (client, tell) => making.current(client, tell, old), changed)
    },
    [connection, shared, key, before, enabled],
  )
  const [read, readFirst] = useMemo(() => {
    const first = enabled ? before.asked : before.idle
    let last: { readonly state: State; readonly value: Selected } | undefined
    const selected = (state: State): Selected => {
      if (last?.state === state) return last.value
      const value = select === undefined ? (state as unknown as Selected) : select(state)
      const shown = last ?? rendered.current
      last = { state, value: shown !== undefined && equal(shown.value, value) ? shown.value : value }
      return last.value
    }
    const now = (): State => (enabled ? shared.peek(key)?.shown : undefined) ?? (settled.current?.key === key ? settled.current.state : first)
    return [() => selected(now()), () => selected(first)]
  }, [shared, key, before, enabled, select, equal])
  const value = useSyncExternalStore(subscribe, read, readFirst)
  useLayoutEffect(() => {
    making.current = make
    rendered.current = { value }
    const state = enabled ? shared.peek(key)?.shown : undefined
    if (state?.isPending === false) settled.current = { key, state }
  })
  return value
}

/** Options of {@link useSubscription}. */
export interface UseSubscriptionOptions<Selected = Shown> extends ShowOptions<Shown, Selected> {
  /** Maximum QoS (section 3.8.3.1). Default 0. */
  readonly qos?: QoS | undefined
  /** Messages that are kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/**
 * The last `limit` messages on a Topic Filter, oldest first, the error where the server refused it, and `isPending` until it has granted it; or what
 * `select` makes of them. Renders once a frame at most.
 */
export function useSubscription<Selected = Shown>(filter: string, options: UseSubscriptionOptions<Selected> = {}): Selected {
  const { qos = 0, limit = 100 } = options
  const key = JSON.stringify([useConnection().key, filter, qos, limit])
  const make = (client: Client, changed: () => void, before: Shown<unknown>): Feed =>
    new Feed(client, client.subscription(filter, { qos, onExit: 'unsubscribe' }), limit, changed, before)
  return useShown<Shown<unknown>, Selected>(feeds, key, make, noMessages, options as ShowOptions<Shown<unknown>, Selected>)
}

const latestMessage = (shown: Shown): Message | undefined => shown.at(-1)

/** The latest message on a Topic Filter; undefined before the first. */
export function useLatest(topic: string, { qos = 0, enabled }: Pick<UseSubscriptionOptions, 'qos' | 'enabled'> = {}): Message | undefined {
  return useSubscription(topic, { qos, enabled, limit: 1, select: latestMessage })
}

/** A function that publishes as `client.publish()` does; it stays the same. */
export function usePublish(): Client['publish'] {
  const connection = useConnection()
  return useCallback<Client['publish']>(
    (topic, payload, options) => {
      const { thing, release } = hold(connection)
      const sent = thing.client.publish(topic, payload, options)
      sent.then(release, release)
      return sent
    },
    [connection],
  )
}

/** Options of {@link useLatestValues}. */
export interface UseLatestValuesOptions<Parameters, Value, Selected = LatestSnapshot<Parameters, Value>>
  extends LatestOptions,
    ShowOptions<LatestSnapshot<Parameters, Value>, Selected> {}

/**
 * The latest value of each topic of a channel, as `latest(params, options)` of `mqwire/typed` has them: a map that is the same one until something changes;
 * or what `select` makes of it. Its `error` is what ended the subscription; `isPending` is true until the server has granted it. Components that ask for the
 * same values share one subscription, and render once a frame at most. Parameters and options may be new literals in every render.
 * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `latest`, in an effect
 */
export function useLatestValues<Template extends string, In, Value, Usual extends InvalidVerdict, Selected = LatestSnapshot<Params<Template>, Value>>(
  channel: Channel<Template, In, Value, Usual>,
  ...call:
    | SomeFirst<Template, [options?: UseLatestValuesOptions<Params<Template>, Value, Selected>]>
    | [options: UseLatestValuesOptions<Params<Template>, Value, Selected>]
): Selected {
  const { parameters } = channel.topic
  const { given, options } = apart<UseLatestValuesOptions<unknown, unknown, Selected>>(parameters, Math.min(1, parameters.length), call)
  const { limit, expire } = options
  const key = dataOf([useConnection().key, idOf(channel), given, limit, expire])
  const make = (client: Client, changed: () => void, before: LatestSnapshot<unknown, unknown>): Values => {
    const bound = channel.on(client) as unknown as { latest(...call: unknown[]): LatestValues<unknown, unknown> }
    return new Values(client, bound.latest(...(parameters.length > 0 ? [given[0]] : []), { limit, expire }), changed, before)
  }
  return useShown(values, key, make, noValues, options)
}

export type { LatestOptions, Shown }
