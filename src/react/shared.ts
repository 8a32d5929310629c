/**
 * State shared by components: reference-counted objects, the client, and the latest messages of a
 * subscription. Does not use React.
 */
import { Client, type ClientOptions, type Endpoint, type Message, MqttError } from 'mqwire'
import type { LatestEntry, LatestSnapshot } from '../typed/index.js'

/** Milliseconds that a released object is kept. */
const linger = 300

/** An object that can be shared. */
export interface Sharable {
  /** Unusable: the next component gets a new one. */
  readonly isOver: boolean
  dispose(): void
}

interface Entry<T> {
  thing: T
  make: (changed: () => void) => T
  holders: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/**
 * Objects by key, each created when first held and disposed of a moment after its last release.
 */
export class Shared<T extends Sharable> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #watchers = new Map<string, Set<() => void>>()

  /**
   * Holds the object with this key; returns it with a function that releases it. An object that is
   * over is replaced for all its holders.
   * @throws the error of `make`; then nothing is held
   */
  hold(
    key: string,
    make: (changed: () => void) => T,
  ): { readonly thing: T; readonly release: () => void } {
    const entry = this.#entries.get(key) ?? {
      thing: make(() => this.#notify(key)),
      make,
      holders: 0,
      timer: undefined,
    }
    this.#entries.set(key, entry)
    entry.make = make
    this.#renew(key, entry)
    entry.holders += 1
    clearTimeout(entry.timer)
    let isHeld = true
    const release = () => {
      if (!isHeld) return
      isHeld = false
      entry.holders -= 1
      if (entry.holders === 0) entry.timer = setTimeout(() => this.#dispose(key, entry), linger)
    }
    return { thing: entry.thing, release }
  }

  peek(key: string): T | undefined {
    return this.#entries.get(key)?.thing
  }

  /**
   * Calls back when the object with this key has changed or was replaced; returns a function that
   * stops this.
   */
  watch(key: string, changed: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Set()
    this.#watchers.set(key, watchers)
    watchers.add(changed)
    return () => {
      watchers.delete(changed)
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key)
    }
  }

  /** Replaces all objects that are over. */
  renew(): void {
    for (const [key, entry] of this.#entries) this.#renew(key, entry)
  }

  #renew(key: string, entry: Entry<T>): void {
    if (!entry.thing.isOver) return
    const { thing } = entry
    entry.thing = entry.make(() => this.#notify(key))
    thing.dispose()
    this.#notify(key)
  }

  #notify(key: string): void {
    for (const changed of [...(this.#watchers.get(key) ?? [])]) changed()
  }

  #dispose(key: string, entry: Entry<T>): void {
    this.#entries.delete(key)
    entry.thing.dispose()
  }
}

/** A client that connects by itself. */
export class ConnectingClient implements Sharable {
  readonly client: Client
  /**
   * The error of the last attempt, or of the lost connection; undefined while there is a
   * connection.
   */
  trouble: Error | undefined

  constructor(url: Endpoint, options: ClientOptions | undefined, changed: () => void) {
    this.client = new Client(url, { firstConnect: 'wait', ...options })
    const note = (trouble: Error | undefined): void => {
      this.trouble = trouble
      changed()
    }
    this.client.on('state', changed)
    this.client.on('connect', () => note(undefined))
    this.client.on('connecterror', ({ error }) => note(error))
    this.client.on('disconnect', ({ error }) => note(error))
    this.client.connect().catch(() => undefined)
  }

  get isOver(): boolean {
    return this.client.state === 'closed'
  }

  dispose(): void {
    this.client.disconnect().catch(() => undefined)
  }
}

/** The last messages of a subscription, oldest first: replaced, never changed. */
export interface Shown<Entry = Message> extends ReadonlyArray<Entry> {
  /** The same list, by name. */
  readonly messages: readonly Entry[]
  /** Why the server refused the subscription, or the error that ended it. */
  readonly error: Error | undefined
  /**
   * True until the server has granted or refused the subscription; false while it is not enabled.
   */
  readonly isPending: boolean
}

/** A list with its `error` and `isPending`. */
export function shownOf<Entry>(
  entries: readonly Entry[],
  error: Error | undefined,
  isPending: boolean,
): Shown<Entry> {
  const messages = [...entries]
  return Object.assign(messages, { messages, error, isPending })
}

/** Shows changes once per frame, so that components render at most once per frame. */
class Frames {
  readonly #show: () => void
  #isOver = false
  #asked = false

  constructor(show: () => void) {
    this.#show = show
  }

  ask(): void {
    if (this.#asked || this.#isOver) return
    this.#asked = true
    const show = (): void => {
      this.#asked = false
      if (!this.#isOver) this.#show()
    }
    // Outside of browsers there are no animation frames.
    if (typeof requestAnimationFrame === 'function') requestAnimationFrame(show)
    else setTimeout(show, 16)
  }

  end(): void {
    this.#isOver = true
  }
}

/** The part of a client's or channel's subscription that is used. */
export interface Source<Entry> {
  readonly ready: Promise<unknown>
  batches(max: number): AsyncIterable<Entry[]>
  unsubscribe(): Promise<void>
}

/** The last messages of a subscription. */
export class Feed implements Sharable {
  /** The state that components see. */
  shown: Shown<unknown>
  readonly #client: Client
  readonly #source: Source<unknown>
  readonly #limit: number
  #fresh: unknown[] = []
  readonly #frames: Frames

  /** @param before shown until a message arrives */
  constructor(
    client: Client,
    source: Source<unknown>,
    limit: number,
    changed: () => void,
    before: Shown<unknown>,
  ) {
    this.shown = before.isPending ? before : shownOf(before, undefined, true)
    this.#client = client
    this.#source = source
    this.#limit = limit
    const show = (error?: Error): void => {
      this.shown = shownOf([...this.shown, ...this.#fresh.splice(0)].slice(-limit), error, false)
      changed()
    }
    this.#frames = new Frames(show)
    source.ready.then(
      () => this.#frames.ask(),
      () => undefined,
    )
    this.#read().catch((error: Error) => {
      this.#frames.end()
      show(error)
    })
  }

  get isOver(): boolean {
    return this.#client.state === 'closed' || this.shown.error !== undefined
  }

  dispose(): void {
    this.#frames.end()
    this.#source.unsubscribe().catch(() => undefined)
  }

  async #read(): Promise<void> {
    for await (const batch of this.#source.batches(this.#limit)) {
      this.#fresh = [...this.#fresh, ...batch].slice(-this.#limit)
      this.#frames.ask()
    }
  }
}

/** The part of a channel's latest values that is used. */
interface Store {
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => LatestSnapshot<unknown, unknown>
  unsubscribe(): Promise<void>
}

/** The latest values of a channel. */
export class Values implements Sharable {
  /** The state that components see. */
  shown: LatestSnapshot<unknown, unknown>
  readonly #latest: Store
  readonly #client: Client
  readonly #frames: Frames

  /** @param before shown until the server has answered */
  constructor(
    client: Client,
    latest: Store,
    changed: () => void,
    before: LatestSnapshot<unknown, unknown>,
  ) {
    this.#client = client
    this.#latest = latest
    this.shown = before.isPending ? before : valuesOf(before, true)
    this.#frames = new Frames(() => {
      const now = latest.getSnapshot()
      // A message may arrive before the grant, and is shown then.
      if (now.isPending && now.size === 0) return
      this.shown = now
      changed()
    })
    latest.subscribe(() => this.#frames.ask())
  }

  get isOver(): boolean {
    return this.#client.state === 'closed' || this.#latest.getSnapshot().error !== undefined
  }

  dispose(): void {
    this.#frames.end()
    this.#latest.unsubscribe().catch(() => undefined)
  }
}

/** Values that are shown while there is no subscription. */
export function valuesOf<Parameters, Value>(
  before: Iterable<[string, LatestEntry<Parameters, Value>]>,
  isPending: boolean,
): LatestSnapshot<Parameters, Value> {
  return Object.assign(new Map(before), { error: undefined, isPending })
}

/** The state of an operation that is shown: replaced, never changed. */
export interface Asked<Data> {
  /** The latest answer; stays until there is another one. */
  readonly data: Data
  /** The error of the last call or stream. */
  readonly error: Error | undefined
  /** True while a call has no answer, or a stream no first answer. */
  readonly isPending: boolean
  /** True when the stream has ended, or the call has its answer. */
  readonly isDone: boolean
}

/** Starts a call or stream with these arguments. The signal goes into their options. */
export type Ask<Result> = (call: readonly unknown[], signal: AbortSignal) => Result

/** Calls or streams of an operation, of which the last one is shown. */
abstract class Asking<Data, Result, Run> implements Sharable {
  /** The state that components see. */
  shown: Asked<Data>
  readonly #client: Client
  readonly #changed: () => void
  protected readonly ask: Ask<Result>
  protected readonly abort = new AbortController()
  /** Number of calls or streams started so far. */
  protected count = 0

  constructor(client: Client, ask: Ask<Result>, changed: () => void, before: Asked<Data>) {
    this.shown = { ...before, error: undefined, isPending: false, isDone: false }
    this.#client = client
    this.#changed = changed
    this.ask = ask
  }

  /** Starts, unless it has been started and has not failed. */
  begin(call: readonly unknown[]): void {
    if (this.count === 0 || (this.shown.error !== undefined && !this.shown.isPending))
      this.run(call)
  }

  abstract run(call: readonly unknown[]): Run

  get isOver(): boolean {
    return this.#client.state === 'closed'
  }

  dispose(): void {
    this.abort.abort()
  }

  protected show(shown: Partial<Asked<Data>>): void {
    this.shown = { ...this.shown, ...shown }
    this.#changed()
  }

  protected started(): number {
    this.show({ error: undefined, isPending: true, isDone: false })
    return ++this.count
  }
}

/** Calls of an operation. Each promise settles with its own answer. */
export class Calls extends Asking<unknown, Promise<unknown>, Promise<unknown>> {
  run(call: readonly unknown[]): Promise<unknown> {
    const number = this.started()
    const asked = this.ask(call, this.abort.signal)
    const settle = (shown: Partial<Asked<unknown>>): void => {
      if (number === this.count) this.show({ ...shown, isPending: false })
    }
    // Both outcomes are handled here, so that the promise need not be awaited.
    asked.then(
      (data) => settle({ data, isDone: true }),
      (error: Error) => settle({ error }),
    )
    return asked
  }
}

/** Streams of answers, of which the last ones are kept. A new stream ends the previous one. */
export class Streams extends Asking<readonly unknown[], AsyncIterableIterator<unknown>, void> {
  readonly #limit: number
  #iterator: AsyncIterableIterator<unknown> | undefined
  #frames: Frames | undefined

  constructor(
    client: Client,
    limit: number,
    ask: Ask<AsyncIterableIterator<unknown>>,
    changed: () => void,
    before: Asked<readonly unknown[]>,
  ) {
    super(client, ask, changed, before)
    this.#limit = limit
  }

  run(call: readonly unknown[]): void {
    this.#leave()
    const number = this.started()
    const iterator = this.ask(call, this.abort.signal)
    this.#iterator = iterator
    let kept: readonly unknown[] = []
    let fresh: unknown[] = []
    const show = (more: Partial<Asked<readonly unknown[]>> = {}): void => {
      kept = [...kept, ...fresh].slice(-this.#limit)
      fresh = []
      // A stream that fails before its first answer keeps the previous data.
      const data = kept.length === 0 && more.error !== undefined ? this.shown.data : kept
      this.show({ data, isPending: false, ...more })
    }
    const frames = new Frames(show)
    this.#frames = frames
    const end = (more: Partial<Asked<readonly unknown[]>>): void => {
      frames.end()
      if (number === this.count) show(more)
    }
    const read = async (): Promise<void> => {
      for await (const value of iterator) {
        fresh.push(value)
        if (fresh.length > this.#limit) fresh.shift()
        frames.ask()
      }
    }
    read().then(
      () => end({ isDone: true }),
      (error: Error) => end({ error }),
    )
  }

  /** Ends the stream; its values stay. */
  stop(): void {
    this.count += 1
    this.#leave()
    this.show({ isPending: false })
  }

  override dispose(): void {
    this.count += 1
    this.#leave()
  }

  #leave(): void {
    this.#frames?.end()
    this.#iterator?.return?.()
  }
}

const ids = new WeakMap<object, number>()
let lastId = 0

/** A number that identifies an object. */
export function idOf(thing: object): number {
  const id = ids.get(thing) ?? ++lastId
  ids.set(thing, id)
  return id
}

/**
 * A text that identifies data: different data give different texts, and undefined fields differ
 * from absent ones. All functions count as equal, because they may be new in every render; so do
 * instances of a class, unless `whole` (for values that are sent): then they are compared by their
 * own fields.
 */
export function dataOf(
  given: unknown,
  whole = false,
  around: Map<object, number> = new Map(),
): string {
  if (typeof given === 'string') return JSON.stringify(given)
  if (typeof given === 'bigint') return `${given}n`
  if (typeof given === 'function') return 'function'
  if (typeof given !== 'object' || given === null)
    return Object.is(given, -0) ? '-0' : String(given)
  // A circular reference.
  const above = around.get(given)
  if (above !== undefined) return `^${above}`
  around.set(given, around.size)
  const text = objectText(given, whole, (value) => dataOf(value, whole, around))
  around.delete(given)
  return text
}

function objectText(given: object, whole: boolean, inner: (value: unknown) => string): string {
  const kind = Object.prototype.toString.call(given).slice(8, -1)
  if (ArrayBuffer.isView(given))
    return `${kind}[${new Uint8Array(given.buffer, given.byteOffset, given.byteLength)}]`
  if (given instanceof ArrayBuffer) return `${kind}[${new Uint8Array(given)}]`
  if (given instanceof Date) return `${kind}[${given.getTime()}]`
  if (Array.isArray(given)) return `[${Array.from(given, inner)}]`
  const { toJSON } = given as { readonly toJSON?: unknown }
  const shown: unknown = typeof toJSON === 'function' ? toJSON.call(given, '') : given
  if (typeof shown !== 'object' || shown === null) return `(${inner(shown)})`
  const prototype: unknown = Object.getPrototypeOf(given)
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  if (!isPlain && !whole && shown === given) return 'object'
  const name = isPlain ? '' : kind
  if (shown instanceof Map || shown instanceof Set) return `${name}[${Array.from(shown, inner)}]`
  return `${name}{${Object.entries(shown).map(([field, value]) => `${JSON.stringify(field)}:${inner(value)}`)}}`
}

const optionNames = ['select', 'equal', 'enabled', 'limit', 'expire', 'qos', 'timeout', 'window']
/** Types of some options; the others are checked where they are used. */
const kinds: Readonly<Record<string, string>> = {
  select: 'function',
  equal: 'function',
  enabled: 'boolean',
}

function refuse(option: string, rule: string): never {
  throw new MqttError('ERR_INVALID_OPTION', `${option} ${rule}`, { option })
}

/** @throws MqttError ERR_INVALID_OPTION unless it is a channel or an operation */
export function assertKind(source: unknown, kind: 'channel' | 'operation', or = ''): void {
  if ((source as { kind?: unknown } | null | undefined)?.kind !== kind)
    refuse(kind, `must be ${or}what ${kind}() of mqwire/typed gives`)
}

function assertOptions(options: unknown, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    refuse('options', 'must be an object, as in { enabled: false }')
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    const kind = kinds[name]
    if (kind === undefined && !names.includes(name))
      refuse(name, `is no option here; there are select, equal, enabled, ${names.join(', ')}`)
    if (kind !== undefined && typeof value !== kind)
      refuse(name, kind === 'boolean' ? 'must be true or false' : 'must be a function')
    if (
      name === 'limit' &&
      !(value > 0 && (value === Number.POSITIVE_INFINITY || Number.isInteger(value)))
    )
      refuse(name, 'must be a whole number above 0')
  }
}

/**
 * Splits the arguments of a hook: at most `most` arguments, and the options after them. Options may
 * take the place of omitted parameters if none of their names is that of a parameter. `own`: the
 * options of the hook besides `select`, `equal` and `enabled`.
 *
 * @throws MqttError ERR_INVALID_OPTION
 */
export function apart<Options>(
  parameters: readonly string[],
  most: number,
  call: readonly unknown[],
  own: readonly string[],
): { given: unknown[]; options: Partial<Options> } {
  const [first] = call
  const names = typeof first === 'object' && first !== null ? Object.keys(first) : []
  const alone = parameters.length > 0 && call.length === 1 && names.length > 0
  const isFirst =
    alone && names.every((name) => optionNames.includes(name) && !parameters.includes(name))
  const options = isFirst ? first : call[most] === undefined ? {} : call[most]
  assertOptions(options, own)
  const [params, ...values] = isFirst ? [] : call.slice(0, most)
  const given =
    isFirst || most === 0
      ? []
      : [parameters.length === 0 ? params : named(parameters, params), ...values]
  return { given: given.slice(0, call.length), options: options as Partial<Options> }
}

/** Parameters by name, including those inherited from a class, as `mqwire/typed` reads them. */
function named(parameters: readonly string[], params: unknown): unknown {
  if (Array.isArray(params)) return Array.from(params, (each) => named(parameters, each))
  if (Object.prototype.toString.call(params) !== '[object Object]') return params
  const given = params as Readonly<Record<string, unknown>>
  const inherited = parameters.filter((name) => name in given && !(name in Object.prototype))
  return { ...given, ...Object.fromEntries(inherited.map((name) => [name, given[name]])) }
}

/** A signal that aborts with either of the two. */
export function either(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  if (other === undefined) return one
  const both = new AbortController()
  for (const signal of [one, other]) {
    const abort = (): void => both.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { signal: both.signal })
  }
  return both.signal
}
