/**
 * React hooks over a shared MQTT client: one CONNECT however often components come and go, one DISCONNECT when the last has gone.
 *
 * Why StrictMode, Fast Refresh and quick remounts do no harm: rendering only reads, so that a render that is thrown away, or one on a server, opens
 * nothing. Effects hold what they need by a key and let it go again; what nobody holds lives on for a moment (`shared.js`), so that letting go and
 * holding again, as StrictMode and Fast Refresh do, is nothing. Clients are found by URL, client id and user name, and not by the identity of an object:
 * `options` may be a new literal in every render. The other options are read when a client is made. (Next.js wants 'use client' before the imports.)
 */
import type { Client, ClientOptions, ClientState, Endpoint, Message, QoS } from 'mqwire'
import {
  createContext,
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
import { Connection, Feed, nothing, Shared, type Shown } from './shared.js'

/** What finds a connection, and makes it. */
interface Wanted {
  readonly key: string
  readonly url: Endpoint
  readonly latest: RefObject<ClientOptions | undefined>
}

const clients = new Shared<Connection>()
const feeds = new Shared<Feed>()
const Context = createContext<Wanted | undefined>(undefined)

const hold = ({ key, url, latest }: Wanted) => clients.hold(key, () => new Connection(url, latest.current))

function useConnection(): Wanted {
  const connection = useContext(Context)
  if (connection === undefined) throw new Error('There is no <MqttProvider> around this component')
  return connection
}

interface ProviderProps {
  readonly url: Endpoint
  readonly options?: ClientOptions
  readonly children?: ReactNode
}

/** Connects while it is mounted: `url` and `options` are those of `new Client()`. */
export function MqttProvider({ url, options, children }: ProviderProps) {
  const key = JSON.stringify([url, options?.clientId, options?.username])
  const latest = useRef(options)
  // Before the effects of any component below.
  useLayoutEffect(() => {
    latest.current = options
  })
  const connection = useMemo(() => ({ key, url, latest }), [key, url])
  useEffect(() => hold(connection).release, [connection])
  return <Context value={connection}>{children}</Context>
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

interface SubscriptionOptions {
  readonly qos?: QoS
  readonly limit?: number
}

/** The last `limit` messages on a topic filter, oldest first, and the error where the server refused it: `{ messages, error }`. */
export function useSubscription(filter: string, { qos = 0, limit = 100 }: SubscriptionOptions = {}): Shown {
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

/** The latest message on a topic; undefined before the first. */
export function useLatest(topic: string, { qos = 0 }: { readonly qos?: QoS } = {}): Message | undefined {
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
