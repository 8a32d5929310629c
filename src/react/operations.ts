/**
 * Hooks of operations: calls and streams, started automatically or by a function.
 */

import type { Client } from 'mqwire'
import { useCallback, useEffect, useRef } from 'react'
import type {
  CallOptions,
  Operation,
  ParamsFirst,
  StreamOptions,
  ValueFirst,
} from '../typed/index.js'
import {
  type Ask,
  type Asked,
  apart,
  assertKind,
  Calls,
  dataOf,
  either,
  idOf,
  type Sharable,
  type Shared,
  Streams,
} from './shared.js'
import {
  type Before,
  calls,
  type Held,
  holdWith,
  type ShowOptions,
  streams,
  useConnection,
  useLatestRef,
  useShown,
} from './showing.js'

/** Options of {@link useCall}. */
export interface UseCallOptions<Out, Selected = Out>
  extends Pick<CallOptions, 'timeout' | 'qos'>,
    ShowOptions<Out, Selected> {}

/** Options of {@link useStream}. */
export interface UseStreamOptions<Out, Selected = readonly Out[]>
  extends Pick<StreamOptions, 'timeout' | 'window'>,
    ShowOptions<readonly Out[], Selected> {
  /** Most answers kept, 1 or more. Default 100. */
  readonly limit?: number | undefined
}

/** Result of {@link useCall}. */
export interface CallResult<Rest extends readonly unknown[], Out, Selected>
  extends Asked<Selected | undefined> {
  /**
   * Calls with the arguments that the hook did not get, and resolves with the answer. The function
   * is stable. An unhandled rejection is silent.
   */
  readonly call: (...rest: Rest) => Promise<Out>
}

/** Result of {@link useStream}. */
export interface StreamResult<Rest extends readonly unknown[], Selected> extends Asked<Selected> {
  /**
   * Requests a stream with the arguments that the hook did not get, and ends the previous one. The
   * function is stable.
   */
  readonly stream: (...rest: Rest) => void
  /** Ends the stream; its values stay. The function is stable. */
  readonly stop: () => void
}

/** Options alone, without the other arguments. */
export type OptionsAlone<Options> =
  | [options: Options]
  | [given: undefined, options: Options]
  | [params: undefined, value: undefined, options: Options]

type AnyOperation = Operation<string, unknown, unknown, unknown, unknown>

const notAsked = { data: undefined, error: undefined, isPending: false, isDone: false }
const noAnswer = beforeAnswer<unknown>(undefined)
const noAnswers = beforeAnswer<readonly unknown[]>([])

/** The initial state of an operation: if it starts automatically, and if it waits. */
function beforeAnswer<Data>(data: Data): {
  readonly now: Before<Asked<Data>>
  readonly later: Before<Asked<Data>>
} {
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

/**
 * An operation that starts automatically if it has all its arguments and is enabled, and whenever
 * `run` is called.
 */
function useAsked<Data, Asking, Result, Thing extends Askable<Data, Result>>(
  shared: Shared<Thing>,
  name: 'call' | 'stream',
  operation: AnyOperation,
  call: readonly unknown[],
  first: ReturnType<typeof beforeAnswer<Data>>,
  create: (
    client: Client,
    ask: Ask<Asking>,
    changed: () => void,
    before: Asked<Data>,
    limit: number,
  ) => Thing,
): {
  readonly shown: Asked<unknown>
  readonly run: (...rest: readonly unknown[]) => Result
  readonly peek: () => Thing | undefined
} {
  const connection = useConnection()
  const own = useRef({})
  assertKind(operation, 'operation')
  const { takes, topic } = operation
  const { given, options } = apart<AskOptions>(
    topic.parameters,
    takes,
    call,
    name === 'call' ? ['timeout', 'qos'] : ['timeout', 'limit', 'window'],
  )
  const { select, equal = Object.is, enabled = true, limit = 100, timeout, qos, window } = options
  const usual = { timeout, qos, window }
  const isReady =
    given.length === takes && !given.includes(undefined) && (takes > 0 || call[0] !== undefined)
  const isWanted = isReady && enabled
  // Operations with the same arguments are shared; one that waits for arguments belongs to this
  // component.
  const key = dataOf([
    connection.key,
    idOf(operation),
    isReady ? dataOf(given, true) : idOf(own.current),
    limit,
    usual,
  ])
  const make = (client: Client, changed: () => void, before: Asked<Data>): Thing => {
    const bound = operation.on(client) as unknown as Record<
      typeof name,
      (...call: unknown[]) => Asking
    >
    const ask: Ask<Asking> = (asked, signal) => {
      const [more = {}, ...others] = asked.slice(takes)
      const own = {
        ...usual,
        ...(more as CallOptions),
        signal: either(signal, (more as CallOptions).signal),
      }
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
  const shown = useShown<Asked<Data>, Asked<unknown>>(
    shared,
    key,
    begun,
    isWanted ? first.now : first.later,
    {
      select: (state) =>
        select === undefined || state.data === undefined
          ? state
          : { ...state, data: select(state.data as never) },
      equal: (one, other) =>
        one.error === other.error &&
        one.isPending === other.isPending &&
        one.isDone === other.isDone &&
        equal(one.data as never, other.data as never),
    },
  )
  const missing = given.indexOf(undefined)
  const latest = useLatestRef({ key, make, bound: missing < 0 ? given : given.slice(0, missing) })
  // Runs after the effect that holds the object.
  useEffect(() => {
    if (isWanted) shared.peek(key)?.begin(latest.current.bound)
  }, [shared, key, isWanted, latest])
  const run = useCallback(
    (...rest: readonly unknown[]) => {
      const { key, make, bound } = latest.current
      // Without a mounted component nothing holds the object, so it is held here.
      if (shared.peek(key)?.isOver !== false)
        holdWith(
          connection,
          shared,
          key,
          (client, notify) => make(client, notify, first.later.idle),
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
 * The answer to a call of an operation. With all its arguments, the hook calls automatically, and
 * again when they change; components with the same arguments share the answer; `{ enabled: false }`
 * waits. Without all arguments, the returned `call` takes the missing ones, and the hook shows the
 * last call. An operation without parameters and input is called automatically if options are
 * given, even `{}`. A call in flight is aborted when the last component has unmounted. `select`
 * picks `data` from an answer.
 */
export function useCall<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
): CallResult<ParamsFirst<Template, ValueFirst<In, [options?: CallOptions]>>, Out, Out>
export function useCall<Template extends string, In, Request, Answer, Out, Selected = Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<
    Held<Template>,
    ValueFirst<Held<In>, [options?: UseCallOptions<Out, Selected>]>
  >
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
  const { shown, run } = useAsked(
    calls,
    'call',
    operation as AnyOperation,
    call,
    noAnswer,
    newCalls,
  )
  return { ...shown, call: run }
}

/**
 * The last answers of a stream of an operation, oldest first; renders at most once per frame. It
 * starts as in {@link useCall}: automatically with all arguments, otherwise by `stream`. The stream
 * ends with the last component that shows it, or by `stop`. `select` picks `data` from the list.
 */
export function useStream<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
): StreamResult<ParamsFirst<Template, ValueFirst<In, [options?: StreamOptions]>>, readonly Out[]>
export function useStream<
  Template extends string,
  In,
  Request,
  Answer,
  Out,
  Selected = readonly Out[],
>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<
    Held<Template>,
    ValueFirst<Held<In>, [options?: UseStreamOptions<Out, Selected>]>
  >
): StreamResult<[options?: StreamOptions], Selected>
export function useStream<Template extends string, In, Request, Answer, Out>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: ParamsFirst<Held<Template>, []>
): StreamResult<ValueFirst<In, [options?: StreamOptions]>, readonly Out[]>
export function useStream<
  Template extends string,
  In,
  Request,
  Answer,
  Out,
  Selected = readonly Out[],
>(
  operation: Operation<Template, In, Request, Answer, Out>,
  ...call: OptionsAlone<UseStreamOptions<Out, Selected>>
): StreamResult<ParamsFirst<Template, ValueFirst<In, [options?: StreamOptions]>>, Selected>
export function useStream(operation: object, ...call: readonly unknown[]): unknown {
  const { shown, run, peek } = useAsked(
    streams,
    'stream',
    operation as AnyOperation,
    call,
    noAnswers,
    newStreams,
  )
  const stop = useCallback(() => peek()?.stop(), [peek])
  return { ...shown, stream: run, stop }
}

const newCalls = (
  client: Client,
  ask: Ask<Promise<unknown>>,
  changed: () => void,
  before: Asked<unknown>,
): Calls => new Calls(client, ask, changed, before)

const newStreams = (
  client: Client,
  ask: Ask<AsyncIterableIterator<unknown>>,
  changed: () => void,
  before: Asked<readonly unknown[]>,
  limit: number,
): Streams => new Streams(client, limit, ask, changed, before)
