/**
 * Common part of all hooks: hold a client and objects derived from it while a component is mounted,
 * and show a selection of their state.
 */

import type { Client, ClientOptions, Endpoint } from 'mqwire'
import {
  createContext,
  type RefObject,
  useCallback,
  useContext,
  useLayoutEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react'
import {
  type Calls,
  ConnectingClient,
  type Feed,
  type Sharable,
  Shared,
  type Streams,
  type Values,
} from './shared.js'

/** Identifies a connection and creates it. */
export interface Wanted {
  readonly key: string
  readonly url: Endpoint
  readonly latest: RefObject<ClientOptions | undefined>
}

const clients = new Shared<ConnectingClient>()
export const feeds = new Shared<Feed>()
export const values = new Shared<Values>()
export const calls = new Shared<Calls>()
export const streams = new Shared<Streams>()
export const Context = createContext<Wanted | undefined>(undefined)

export const hold = ({ key, url, latest }: Wanted) => {
  const before = clients.peek(key)
  const held = clients.hold(key, (changed) => new ConnectingClient(url, latest.current, changed))
  // State read through a client that has ended continues with the next one.
  if (before !== undefined && before !== held.thing)
    for (const each of [feeds, values, calls, streams]) each.renew()
  return held
}

/**
 * Holds a client and objects derived from it while a component is mounted.
 * @throws what `make` throws; then nothing is held
 */
export function holdWith<T extends Sharable>(
  connection: Wanted,
  shared: Shared<T>,
  key: string,
  make: (client: Client, changed: () => void) => T,
  changed: () => void,
): () => void {
  const client = hold(connection)
  try {
    const { release } = shared.hold(key, (notify) =>
      make((clients.peek(connection.key) ?? client.thing).client, notify),
    )
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

/** A value read from the client, updated when it changes. */
export function useOfClient<Value>(read: (thing: ConnectingClient | undefined) => Value): Value {
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

export function useConnection(): Wanted {
  const connection = useContext(Context)
  if (connection === undefined) throw new Error('There is no <MqttProvider> around this component')
  return connection
}
/** Common options of hooks that show something. */
export interface ShowOptions<Given, Selected = Given> {
  /**
   * Selects what the component shows: it renders only when this changes. Called for each change,
   * and during renders. Default: everything.
   */
  readonly select?: ((given: Given) => Selected) | undefined
  /**
   * Compares two selected values; needed for lists and objects that `select` creates. Default
   * `Object.is`.
   */
  readonly equal?: ((one: Selected, other: Selected) => boolean) | undefined
  /** False: nothing is requested, and what was shown stays. Default true. */
  readonly enabled?: boolean | undefined
}

/** The state shown before there is any: while it is requested, and while it is not enabled. */
export interface Before<State> {
  readonly asked: State
  readonly idle: State
}

/** The selected state of a shared object. */
export function useShown<State extends { readonly isPending: boolean }, Selected>(
  shared: Shared<Sharable & { readonly shown: State }>,
  key: string,
  make: (
    client: Client,
    changed: () => void,
    before: State,
  ) => Sharable & { readonly shown: State },
  before: Before<State>,
  { select, equal = Object.is, enabled = true }: Partial<ShowOptions<State, Selected>>,
): Selected {
  const connection = useConnection()
  const making = useRef(make)
  /** The latest settled state, and its key. */
  const settled = useRef<{ readonly key: string; readonly state: State } | undefined>(undefined)
  const rendered = useRef<{ readonly value: Selected } | undefined>(undefined)
  const subscribe = useCallback(
    (changed: () => void) => {
      if (!enabled) return () => undefined
      const old = settled.current?.key === key ? settled.current.state : before.asked
      return holdWith(
        connection,
        shared,
        key,
        (client, notify) => making.current(client, notify, old),
        changed,
      )
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
      last = {
        state,
        value: shown !== undefined && equal(shown.value, value) ? shown.value : value,
      }
      return last.value
    }
    const now = (): State =>
      (enabled ? shared.peek(key)?.shown : undefined) ??
      (settled.current?.key === key ? settled.current.state : first)
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

/** The same type, inferred from elsewhere: TypeScript 5.2 has no `NoInfer`. */
export type Held<T> = [T][T extends unknown ? 0 : never]

/** The value of the last render that was shown. */
export function useLatestRef<Value>(value: Value): RefObject<Value> {
  const latest = useRef(value)
  useLayoutEffect(() => {
    latest.current = value
  })
  return latest
}
