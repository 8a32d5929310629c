/**
 * React hooks over a shared client: one CONNECT however often components come and go, one DISCONNECT when the last has gone.
 *
 * StrictMode, Fast Refresh and quick remounts do no harm. Rendering only reads, so a render that is thrown away, or one on a server, opens nothing. Effects
 * hold what they need by a key and let it go again; what nobody holds lives on for a moment (`shared.ts`). Clients are found by URL, client id, user name
 * and password, and not by the identity of an object: `options` may be a new literal in every render. The other options are read when a client is made.
 */
'use client'

import type { Client, ClientOptions, ClientState, Endpoint, Message, Payload, PublishOptions, QoS } from 'mqwire'
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
import type {
  CallOptions,
  Channel,
  Delivered,
  GivenParams,
  InvalidVerdict,
  LatestOptions,
  LatestSnapshot,
  LatestValues,
  Operation,
  Params,
  ParamsFirst,
  SomeFirst,
  StreamOptions,
  ValueFirst,
} from '../typed/index.js'
import {
  type Ask,
  type Asked,
  apart,
  Calls,
  ConnectingClient,
  dataOf,
  either,
  Feed,
  idOf,
  type Sharable,
  Shared,
  type Shown,
  type Source,
  Streams,
  shownOf,
  Values,
  valuesOf,
} from './shared.js'

/** What finds a connection, and makes it. */
interface Wanted {
  readonly key: string
  readonly url: Endpoint
  readonly latest: RefObject<ClientOptions | undefined>
}

const clients = new Shared<ConnectingClient>()
const feeds = new Shared<Feed>()
const values = new Shared<Values>()
const calls = new Shared<Calls>()
const streams = new Shared<Streams>()
const Context = createContext<Wanted | undefined>(undefined)

const hold = ({ key, url, latest }: Wanted) => {
  const before = clients.peek(key)
  const held = clients.hold(key, (changed) => new ConnectingClient(url, latest.current, changed))
  // What was read by way of a client that has ended goes on with the next.
  if (before !== undefined && before !== held.thing) for (const each of [feeds, values, calls, streams]) each.renew()
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

/** Options of {@link useMessages}. */
export interface UseMessagesOptions<Entry, Selected = Shown<Entry>> extends ShowOptions<Shown<Entry>, Selected> {
  /** Maximum QoS (section 3.8.3.1). Default that of the channel, else 0. */
  readonly qos?: QoS | undefined
  /** Messages that are kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** The same type, inferred from elsewhere: TypeScript 5.2 has no `NoInfer`. */
type Held<T> = [T][T extends unknown ? 0 : never]

/** Options of {@link useSubscription}. */
export interface UseSubscriptionOptions<Selected = Shown> extends UseMessagesOptions<Message, Selected> {}

/**
 * The last `limit` messages on a Topic Filter, oldest first: a list, which has `error` where the server refused the subscription, and `isPending` until it has
 * granted it; or what `select` makes of it. Components that ask for the same messages share one subscription, and render once a frame at most.
 * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION as `subscription`, in an effect
 */
export function useMessages<Selected = Shown>(filter: string, options?: UseMessagesOptions<Message, Selected>): Selected
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
    | SomeFirst<Held<Template>, [options?: UseMessagesOptions<Delivered<Params<Template>, Value, Usual>, Selected>]>
    | [options: UseMessagesOptions<Delivered<Params<Template>, Value, Usual>, Selected>]
): Selected
export function useMessages(source: string | Channel<string, unknown, unknown, InvalidVerdict>, ...call: readonly unknown[]): unknown {
  const parameters = typeof source === 'string' ? [] : source.topic.parameters
  const most = Math.min(1, parameters.length)
  const { given, options } = apart<UseMessagesOptions<unknown, unknown>>(parameters, most, call)
  const { qos, limit = 100 } = options
  const key = dataOf([useConnection().key, typeof source === 'string' ? source : idOf(source), given, qos, limit])
  const make = (client: Client, changed: () => void, before: Shown<unknown>): Feed => {
    const subscribing = { ...(qos === undefined ? {} : { qos }), onExit: 'unsubscribe' } as const
    const bound = typeof source === 'string' ? undefined : (source.on(client) as unknown as { subscription(...call: unknown[]): Source<unknown> })
    const from = bound?.subscription(...(most > 0 ? [given[0]] : []), subscribing) ?? client.subscription(source as string, subscribing)
    return new Feed(client, from, limit, changed, before)
  }
  return useShown(feeds, key, make, noMessages, options)
}

/** As {@link useMessages} with a Topic Filter. */
export function useSubscription<Selected = Shown>(filter: string, options: UseSubscriptionOptions<Selected> = {}): Selected {
  return useMessages(filter, options)
}

const latestMessage = (shown: Shown): Message | undefined => shown.at(-1)

/** The latest message on a Topic Filter; undefined before the first. */
export function useLatest(topic: string, { qos = 0, enabled }: Pick<UseSubscriptionOptions, 'qos' | 'enabled'> = {}): Message | undefined {
  return useSubscription(topic, { qos, enabled, limit: 1, select: latestMessage })
}

/**
 * A function that publishes as `client.publish()` does; it stays the same. What the hook is given stands before the arguments of the function: a topic,
 * a channel, or a channel and its parameters. A message goes out also when its component has gone.
 * @throws MqttError as `publish`; the promise rejects with it
 */
export function usePublish(): Client['publish']
export function usePublish(topic: string): (payload: Payload, options?: PublishOptions) => ReturnType<Client['publish']>
export function usePublish<Template extends string, In, Value, Usual extends InvalidVerdict>(
  channel: Channel<Template, In, Value, Usual>,
): (...call: ParamsFirst<Template, [value: In, options?: PublishOptions]>) => ReturnType<Client['publish']>
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
      const by = typeof source === 'object' && source !== null ? (source as Channel<string, unknown>).on(client) : client
      const before = by === client ? latest.current : bound
      const sent = (by.publish as (...call: unknown[]) => Promise<unknown>).call(by, ...before, ...call)
      sent.then(release, release)
      return sent
    },
    [connection, latest],
  )
}

/** The value of the last render that was shown. */
function useLatestRef<Value>(value: Value): RefObject<Value> {
  const latest = useRef(value)
  useLayoutEffect(() => {
    latest.current = value
  })
  return latest
}

/** Options of {@link useCall}. */
export interface UseCallOptions<Out, Selected = Out> extends Pick<CallOptions, 'timeout' | 'qos'>, ShowOptions<Out, Selected> {}

/** Options of {@link useStream}. */
export interface UseStreamOptions<Out, Selected = readonly Out[]>
  extends Pick<StreamOptions, 'timeout' | 'window'>,
    ShowOptions<readonly Out[], Selected> {
  /** Answers that are kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** What {@link useCall} gives. */
export interface CallResult<Rest extends readonly unknown[], Out, Selected> extends Asked<Selected | undefined> {
  /** Calls, with the arguments that the hook was not given, and gives the answer; it stays the same. A rejection that nobody awaits stays silent. */
  readonly call: (...rest: Rest) => Promise<Out>
}

/** What {@link useStream} gives. */
export interface StreamResult<Rest extends readonly unknown[], Selected> extends Asked<Selected> {
  /** Asks for a stream, with the arguments that the hook was not given, and ends the one before; it stays the same. */
  readonly stream: (...rest: Rest) => void
  /** Ends the stream; what it gave stays. It stays the same. */
  readonly stop: () => void
}

/** Options behind arguments that are left out. */
type OptionsAlone<Options> = [options: Options] | [given: undefined, options: Options] | [params: undefined, value: undefined, options: Options]

type AnyOperation = Operation<string, unknown, unknown, unknown, unknown>

const notAsked = { data: undefined, error: undefined, isPending: false, isDone: false }
const noAnswer = beforeAnswer<unknown>(undefined)
const noAnswers = beforeAnswer<readonly unknown[]>([])

/** What is shown of an operation at first: where it is asked by itself, and where it waits. */
function beforeAnswer<Data>(data: Data): { readonly now: Before<Asked<Data>>; readonly later: Before<Asked<Data>> } {
  const idle = { ...notAsked, data }
  const asked = { ...idle, isPending: true }
  return { now: { asked, idle }, later: { asked: idle, idle } }
}

interface Askable<Data, Result> extends Sharable {
  readonly shown: Asked<Data>
  begin(call: readonly unknown[]): void
  run(call: readonly unknown[]): Result
}

type AskOptions = UseCallOptions<unknown> & UseStreamOptions<unknown>

/** An operation that is asked by itself once all its arguments are there, and the component wants it; and whenever `run` is called. */
function useAsked<Data, Asking, Result, Thing extends Askable<Data, Result>>(
  shared: Shared<Thing>,
  name: 'call' | 'stream',
  operation: AnyOperation,
  call: readonly unknown[],
  first: ReturnType<typeof beforeAnswer<Data>>,
  create: (client: Client, ask: Ask<Asking>, changed: () => void, before: Asked<Data>, limit: number) => Thing,
): { readonly shown: Asked<unknown>; readonly run: (...rest: readonly unknown[]) => Result; readonly peek: () => Thing | undefined } {
  const connection = useConnection()
  const own = useRef({})
  const { takes, topic } = operation
  const { given, options } = apart<AskOptions>(topic.parameters, takes, call)
  const { select, equal = Object.is, enabled = true, limit = 100, timeout, qos, window } = options
  const usual = { timeout, qos, window }
  const isReady = given.length === takes && !given.includes(undefined) && (takes > 0 || call[0] !== undefined)
  const isWanted = isReady && enabled
  // What is asked with the same arguments is shared; what waits for arguments is this component's own.
  const key = dataOf([connection.key, idOf(operation), isReady ? given : idOf(own.current), limit, usual])
  const make = (client: Client, changed: () => void, before: Asked<Data>): Thing => {
    const bound = operation.on(client) as unknown as Record<typeof name, (...call: unknown[]) => Asking>
    const ask: Ask<Asking> = (asked, signal) => {
      const [more = {}, ...others] = asked.slice(takes)
      const own = { ...usual, ...(more as CallOptions), signal: either(signal, (more as CallOptions).signal) }
      const all = Array.from({ length: takes }, (_, index) => asked[index])
      return bound[name](...all, typeof more === 'object' ? own : more, ...others)
    }
    return create(client, ask, changed, before, limit)
  }
  const begun = (client: Client, changed: () => void, before: Asked<Data>): Thing => {
    const thing = make(client, changed, before)
    if (isWanted) thing.begin(given)
    return thing
  }
  const shown = useShown<Asked<Data>, Asked<unknown>>(shared, key, begun, isWanted ? first.now : first.later, {
    select: (state) => (select === undefined || state.data === undefined ? state : { ...state, data: select(state.data as never) }),
    equal: (one, other) =>
      one.error === other.error && one.isPending === other.isPending && one.isDone === other.isDone && equal(one.data as never, other.data as never),
  })
  const missing = given.indexOf(undefined)
  const latest = useLatestRef({ key, make, bound: missing < 0 ? given : given.slice(0, missing) })
  // Behind the effect that holds it.
  useEffect(() => {
    if (isWanted) shared.peek(key)?.begin(latest.current.bound)
  }, [shared, key, isWanted, latest])
  const run = useCallback(
    (...rest: readonly unknown[]) => {
      const { key, make, bound } = latest.current
      // A component that has gone, or is not there yet, holds nothing.
      if (shared.peek(key)?.isOver !== false)
        holdWith(
          connection,
          shared,
          key,
          (client, tell) => make(client, tell, first.later.idle),
          () => undefined,
        )()
      return (shared.peek(key) as Thing).run([...bound, ...rest])
    },
    [connection, shared, first, latest],
  )
  const peek = useCallback(() => shared.peek(latest.current.key), [shared, latest])
  return { shown, run, peek }
}

/**
 * The answer to a call of an operation. With all its arguments it is called by itself, again when they change, and components that ask the same share the
 * answer; `{ enabled: false }` waits. Without them it is called by `call`, which takes those that are missing: the last call is shown. An operation without
 * parameters and input is called by itself when there are options, if only `{}`. What is in flight when the last component has gone is given up.
 * `select` picks of an answer what `data` is.
 */
export function useCall<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
): CallResult<ParamsFirst<Template, ValueFirst<In, [options?: CallOptions]>>, Out, Out>
export function useCall<Template extends string, In, Request, Answer, Out, Selected = Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<Held<Template>, ValueFirst<Held<In>, [options?: UseCallOptions<Out, Selected>]>>
): CallResult<[options?: CallOptions], Out, Selected>
export function useCall<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<Held<Template>, []>
): CallResult<ValueFirst<In, [options?: CallOptions]>, Out, Out>
export function useCall<Template extends string, In, Request, Answer, Out, Selected = Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: OptionsAlone<UseCallOptions<Out, Selected>>
): CallResult<ParamsFirst<Template, ValueFirst<In, [options?: CallOptions]>>, Out, Selected>
export function useCall(operation: object, ...call: readonly unknown[]): unknown {
  const { shown, run } = useAsked(calls, 'call', operation as AnyOperation, call, noAnswer, newCalls)
  return { ...shown, call: run }
}

/**
 * The last answers of a stream of an operation, oldest first; renders once a frame at most. It is asked for as in {@link useCall}: by itself with all
 * arguments, else by `stream`. The stream ends with the last component that shows it, and with `stop`.
 * `select` picks of the list what `data` is.
 */
export function useStream<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
): StreamResult<ParamsFirst<Template, ValueFirst<In, [options?: StreamOptions]>>, readonly Out[]>
export function useStream<Template extends string, In, Request, Answer, Out, Selected = readonly Out[]>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<Held<Template>, ValueFirst<Held<In>, [options?: UseStreamOptions<Out, Selected>]>>
): StreamResult<[options?: StreamOptions], Selected>
export function useStream<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<Held<Template>, []>
): StreamResult<ValueFirst<In, [options?: StreamOptions]>, readonly Out[]>
export function useStream<Template extends string, In, Request, Answer, Out, Selected = readonly Out[]>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: OptionsAlone<UseStreamOptions<Out, Selected>>
): StreamResult<ParamsFirst<Template, ValueFirst<In, [options?: StreamOptions]>>, Selected>
export function useStream(operation: object, ...call: readonly unknown[]): unknown {
  const { shown, run, peek } = useAsked(streams, 'stream', operation as AnyOperation, call, noAnswers, newStreams)
  const stop = useCallback(() => peek()?.stop(), [peek])
  return { ...shown, stream: run, stop }
}

const newCalls = (client: Client, ask: Ask<Promise<unknown>>, changed: () => void, before: Asked<unknown>): Calls =>
  new Calls(client, ask, changed, before)

const newStreams = (
  client: Client,
  ask: Ask<AsyncIterableIterator<unknown>>,
  changed: () => void,
  before: Asked<readonly unknown[]>,
  limit: number,
): Streams => new Streams(client, limit, ask, changed, before)

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
    | SomeFirst<Held<Template>, [options?: UseLatestValuesOptions<Params<Template>, Value, Selected>]>
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

export type { Asked, LatestOptions, Shown }
