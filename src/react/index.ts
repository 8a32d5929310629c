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
import type { LatestOptions, LatestSnapshot, LatestValues } from '../typed/index.js'
import { ConnectingClient, dataOf, Feed, idOf, nothing, type Sharable, Shared, type Shown, Values } from './shared.js'

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

/** As long as there is none. */
const none: LatestSnapshot<never, never> = Object.assign(new Map<string, never>(), { error: undefined })

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

/** Options of {@link useSubscription}. */
export interface UseSubscriptionOptions {
  /** Maximum QoS (section 3.8.3.1). Default 0. */
  readonly qos?: QoS | undefined
  /** Messages that are kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** The last `limit` messages on a Topic Filter, oldest first, and the error where the server refused it. Renders once a frame at most. */
export function useSubscription(filter: string, { qos = 0, limit = 100 }: UseSubscriptionOptions = {}): Shown {
  const connection = useConnection()
  const key = JSON.stringify([connection.key, filter, qos, limit])
  const subscribe = useCallback(
    (changed: () => void) => holdWith(connection, feeds, key, (client, tell) => new Feed(client, filter, qos, limit, tell), changed),
    [connection, key, filter, qos, limit],
  )
  return useSyncExternalStore(
    subscribe,
    () => feeds.peek(key)?.shown ?? nothing,
    () => nothing,
  )
}

/** The latest message on a Topic Filter; undefined before the first. */
export function useLatest(topic: string, { qos = 0 }: { readonly qos?: QoS | undefined } = {}): Message | undefined {
  return useSubscription(topic, { qos, limit: 1 }).messages.at(-1)
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

/** What {@link useLatestValues} takes: a channel of `mqwire/typed`. */
export interface ChannelOfValues<Call extends readonly unknown[], Parameters, Value> {
  /** Binds it to a client. */
  on(client: Client): {
    /** Opens the latest values. */
    latest(...call: Call): LatestValues<Parameters, Value>
  }
}

/**
 * The latest value of each topic of a channel, as `latest(params, options)` of `mqwire/typed` has them: a map that is the same one until something changes.
 * Its `error` is what ended the subscription. Components that ask for the same values share one subscription, and render once a frame at most. Parameters
 * and options may be new literals in every render.
 * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `latest`, in an effect
 */
export function useLatestValues<Call extends readonly unknown[], Parameters, Value>(
  channel: ChannelOfValues<Call, Parameters, Value>,
  ...call: Call
): ReturnType<LatestValues<Parameters, Value>['getSnapshot']> {
  const connection = useConnection()
  const key = JSON.stringify([connection.key, idOf(channel), call])
  const given = useRef(call)
  useLayoutEffect(() => {
    given.current = call
  })
  const subscribe = useCallback(
    (changed: () => void) =>
      holdWith(connection, values, key, (client, tell) => new Values(client, channel.on(client).latest(...given.current), tell), changed),
    [connection, key, channel],
  )
  return useSyncExternalStore(
    subscribe,
    () => (values.peek(key)?.shown ?? none) as ReturnType<LatestValues<Parameters, Value>['getSnapshot']>,
    () => none,
  )
}

export type { LatestOptions, Shown }
