/**
 * React hooks over a shared client: one CONNECT however often components come and go, one DISCONNECT when the last has gone.
 *
 * StrictMode, Fast Refresh and quick remounts do no harm. Rendering only reads, so a render that is thrown away, or one on a server, opens nothing. Effects
 * hold what they need by a key and let it go again; what nobody holds lives on for a moment (`shared.ts`). Clients are found by URL, client id and user
 * name, and not by the identity of an object: `options` may be a new literal in every render. The other options are read when a client is made.
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
import type { LatestOptions, LatestValues } from '../typed/index.js'
import { ConnectingClient, Feed, idOf, nothing, Shared, type Shown, Values } from './shared.js'

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
const none: ReadonlyMap<string, never> = new Map<string, never>()

const hold = ({ key, url, latest }: Wanted) => clients.hold(key, () => new ConnectingClient(url, latest.current))

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

/** Connects while it is mounted. @throws MqttError ERR_INVALID_OPTION, ERR_INVALID_URL as `new Client()`, in an effect */
export function MqttProvider({ url, options, children }: MqttProviderProps): ReactElement {
  const key = JSON.stringify([url, options?.clientId, options?.username])
  const latest = useRef(options)
  // Before the effects of any component below.
  useLayoutEffect(() => {
    latest.current = options
  })
  const connection = useMemo(() => ({ key, url, latest }), [key, url])
  useEffect(() => hold(connection).release, [connection])
  return createElement(Context.Provider, { value: connection }, children)
}

/** The client, for everything that has no hook; undefined until the component is mounted, and on a server. */
export function useClient(): Client | undefined {
  const connection = useConnection()
  const subscribe = useCallback(() => hold(connection).release, [connection])
  return useSyncExternalStore(
    subscribe,
    () => clients.peek(connection.key)?.client,
    () => undefined,
  )
}

/** State of the client: `'idle'`, `'connecting'`, `'connected'`, `'reconnecting'`, `'disconnecting'` or `'closed'`. */
export function useConnectionState(): ClientState {
  const connection = useConnection()
  const subscribe = useCallback(
    (changed: () => void) => {
      const { thing, release } = hold(connection)
      const stop = thing.client.on('state', changed)
      return () => {
        stop()
        release()
      }
    },
    [connection],
  )
  return useSyncExternalStore(
    subscribe,
    () => clients.peek(connection.key)?.client.state ?? 'idle',
    () => 'idle',
  )
}

/** Why there is no connection, as far as the client knows; undefined while there is one. */
export function useTrouble(): Error | undefined {
  const connection = useConnection()
  const subscribe = useCallback(
    (changed: () => void) => {
      const { thing, release } = hold(connection)
      const stop = thing.watch(changed)
      return () => {
        stop()
        release()
      }
    },
    [connection],
  )
  return useSyncExternalStore(
    subscribe,
    () => clients.peek(connection.key)?.trouble,
    () => undefined,
  )
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
    (changed: () => void) => {
      const { thing, release } = hold(connection)
      const feed = feeds.hold(key, () => new Feed(thing.client, filter, qos, limit))
      feed.thing.listeners.add(changed)
      return () => {
        feed.thing.listeners.delete(changed)
        feed.release()
        release()
      }
    },
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
 * Components that ask for the same values share one subscription. Parameters and options may be new literals in every render.
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
    (changed: () => void) => {
      const { thing, release } = hold(connection)
      const shared = values.hold(key, () => new Values(thing.client, channel.on(thing.client).latest(...given.current)))
      const stop = shared.thing.latest.subscribe(changed)
      return () => {
        stop()
        shared.release()
        release()
      }
    },
    [connection, key, channel],
  )
  return useSyncExternalStore(
    subscribe,
    () => (values.peek(key)?.latest.getSnapshot() ?? none) as ReturnType<LatestValues<Parameters, Value>['getSnapshot']>,
    () => none,
  )
}

export type { LatestOptions, Shown }
