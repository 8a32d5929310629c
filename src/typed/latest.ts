/**
 * The latest value of each topic of a channel, kept up to date: a bounded map that tells of its changes.
 *
 * It is built from retained and live messages. After a reconnect the server is asked for its retained messages anew, and what it has not confirmed since is
 * stale.
 */

import type { Handling, Message, SubscribeOptions, Subscriber } from '../client/api/index.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { MqttError } from '../errors.js'
import { after } from './codec.js'
import type { Incoming } from './incoming.js'
import type { Params, TopicTemplate } from './template.js'

/** Options of `latest`. */
export interface LatestOptions {
  /** Topics that are kept, 1 to 10,000,000; the one that has been there longest makes room. Default 10,000. */
  readonly limit?: number | undefined
  /** Milliseconds without a message after which a topic goes, 1 to 2,147,483,647. Default: never. */
  readonly expire?: number | undefined
}

/** The latest message of a topic. */
export interface LatestEntry<Parameters, Value> {
  /** Of the topic. */
  readonly params: Parameters
  /** Of the payload. */
  readonly value: Value
  /** When it came: milliseconds since 1970, of this machine's clock. */
  readonly at: number
  /** The message itself. */
  readonly message: Message
  /** True until it has come again on the connection of now. */
  readonly stale: boolean
}

/** What became of a topic. */
export interface LatestChange<Parameters, Value> {
  /** Topic Name. */
  readonly topic: string
  /** As it is now; undefined when it is gone. */
  readonly entry: LatestEntry<Parameters, Value> | undefined
}

/** Topic Name to latest value. `await using` ends it with the block. */
export interface LatestValues<Parameters, Value> extends ReadonlyMap<string, LatestEntry<Parameters, Value>>, AsyncDisposable {
  /** Settles with the grant. Never an unhandled rejection. */
  readonly ready: Promise<LatestValues<Parameters, Value>>
  /** Messages whose payload or topic was none of the channel. */
  readonly invalid: number
  /** Each change; several of one topic that nobody has read yet are one. */
  changes(): AsyncIterableIterator<LatestChange<Parameters, Value>>
  /** Calls back after changes, once for those of one turn of the event loop; gives a function that ends it. For `useSyncExternalStore`. */
  readonly subscribe: (listener: () => void) => () => void
  /** A map that stays as it is: the same one until something changes. For `useSyncExternalStore`. */
  readonly getSnapshot: () => ReadonlyMap<string, LatestEntry<Parameters, Value>>
  /** Ends it: the subscription too, on the broker when it was the last on its filter. The values stay as they are. */
  unsubscribe(): Promise<void>
}

function within(name: string, value: number | undefined, most: number): number | undefined {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= most)) return value
  throw new MqttError('ERR_INVALID_OPTION', `${name} must be an integer from 1 to ${most}`, { option: name })
}

/** Makes one. @throws MqttError ERR_INVALID_OPTION */
export function latestOf<Template extends string, Value>(
  client: Subscriber,
  filter: string,
  subscribe: SubscribeOptions,
  incoming: Incoming<Template, Value>,
  topic: TopicTemplate<Template>,
  options: LatestOptions = {},
): LatestValues<Params<Template>, Value> {
  const limit = within('limit', options.limit, 10_000_000) ?? 10_000
  const expire = within('expire', options.expire, 2_147_483_647)
  return new Latest(client, filter, subscribe, incoming, topic, limit, expire)
}

type Entry<Template extends string, Value> = LatestEntry<Params<Template>, Value>

class Latest<Template extends string, Value> extends Map<string, Entry<Template, Value>> implements LatestValues<Params<Template>, Value> {
  readonly #filter: string
  readonly #client: Subscriber
  readonly #options: SubscribeOptions
  readonly #incoming: Incoming<Template, Value>
  readonly #topic: TopicTemplate<Template>
  readonly #limit: number
  readonly #expire: number | undefined
  readonly #listeners = new Set<() => void>()
  readonly #readers = new Set<UnreadTopics>()
  readonly #unlisten: () => void
  #handling: Handling | undefined
  #snapshot: ReadonlyMap<string, Entry<Template, Value>> | undefined
  #telling = false
  #over = false
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Subscribing, one after the other. */
  #tail: Promise<void>

  constructor(
    client: Subscriber,
    filter: string,
    options: SubscribeOptions,
    incoming: Incoming<Template, Value>,
    topic: TopicTemplate<Template>,
    limit: number,
    expire: number | undefined,
  ) {
    super()
    this.#client = client
    this.#filter = filter
    this.#options = options
    this.#incoming = incoming
    this.#topic = topic
    this.#limit = limit
    this.#expire = expire
    this.#tail = this.#listen()
    this.#tail.catch(() => undefined)
    this.#unlisten = client.on('connect', () => this.#handleConnect())
  }

  get ready(): Promise<this> {
    const ready = this.#tail.then(() => this)
    ready.catch(() => undefined)
    return ready
  }

  get invalid(): number {
    return this.#incoming.invalid
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const entry = (): void => listener()
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  readonly getSnapshot = (): ReadonlyMap<string, Entry<Template, Value>> => {
    this.#snapshot ??= new Map(this)
    return this.#snapshot
  }

  changes(): AsyncIterableIterator<LatestChange<Params<Template>, Value>> {
    const reader = new UnreadTopics()
    if (this.#over) reader.end()
    else this.#readers.add(reader)
    const next = async (): Promise<IteratorResult<LatestChange<Params<Template>, Value>>> => {
      const topic = await reader.next()
      return topic === undefined ? { value: undefined, done: true } : { value: { topic, entry: this.get(topic) }, done: false }
    }
    const leave = async (): Promise<IteratorReturnResult<undefined>> => {
      this.#readers.delete(reader)
      reader.end()
      return { value: undefined, done: true }
    }
    const iterator: AsyncIterableIterator<LatestChange<Params<Template>, Value>> = { next, return: leave, [Symbol.asyncIterator]: () => iterator }
    return iterator
  }

  async unsubscribe(): Promise<void> {
    if (this.#over) return
    this.#over = true
    this.#unlisten()
    clearTimeout(this.#timer)
    for (const reader of this.#readers) reader.end()
    await this.#tail.catch(() => undefined)
    await this.#handling?.unsubscribe()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await this.unsubscribe()
  }

  // The new one is there before the old one goes, so that nothing is missed.
  async #listen(): Promise<void> {
    const old = this.#handling
    const { ack: _, ...options } = this.#options
    const handling = await this.#client.listen(this.#filter, (message) => this.#handle(message), { ...options, retainHandling: 0, lifetime: 'owned' })
    handling.done.catch(() => undefined)
    this.#handling = handling
    old?.detach()
  }

  #handleConnect(): void {
    // The first SUBSCRIBE is on its way by itself.
    if (this.#handling === undefined) return
    for (const [topic, entry] of this) this.#put(topic, { ...entry, stale: true })
    this.#tail = this.#tail.then(() => (this.#over ? undefined : this.#listen()))
    this.#tail.catch(() => undefined)
  }

  #handle(message: Message): unknown {
    if (this.#over) return undefined
    if (message.payloadLength === 0 && this.#topic.match(message.topic) !== undefined) return this.#remove(message.topic)
    return after(this.#incoming.take(message), (taken) => {
      if (taken === undefined || taken.error !== undefined || this.#over) return
      const { params, value } = taken
      this.#put(message.topic, { params, value, at: Date.now(), message, stale: false })
      if (this.size > this.#limit) this.#remove(this.keys().next().value as string)
      if (this.#expire !== undefined) this.#timer ??= setTimeout(() => this.#handleTimer(), this.#expire)
    })
  }

  #handleTimer(): void {
    const expire = this.#expire as number
    this.#timer = undefined
    let oldest = Number.POSITIVE_INFINITY
    for (const [topic, { at }] of this) {
      if (Date.now() - at >= expire) this.#remove(topic)
      else oldest = Math.min(oldest, at)
    }
    if (this.size > 0) this.#timer = setTimeout(() => this.#handleTimer(), Math.max(1, oldest + expire - Date.now()))
  }

  #put(topic: string, entry: Entry<Template, Value>): void {
    this.set(topic, entry)
    this.#changed(topic)
  }

  #remove(topic: string): void {
    if (this.delete(topic)) this.#changed(topic)
  }

  #changed(topic: string): void {
    this.#snapshot = undefined
    for (const reader of this.#readers) reader.add(topic)
    if (this.#telling || this.#listeners.size === 0) return
    this.#telling = true
    setTimeout(() => {
      this.#telling = false
      for (const listener of [...this.#listeners]) listener()
    }, 0)
  }
}

/** Topics that changed and that one reader has not seen: at most as many as there are. */
class UnreadTopics {
  readonly #topics = new Set<string>()
  #wake: (() => void) | undefined
  #over = false

  add(topic: string): void {
    this.#topics.add(topic)
    this.#wake?.()
  }

  end(): void {
    this.#over = true
    this.#wake?.()
  }

  async next(): Promise<string | undefined> {
    while (this.#topics.size === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const { value } = this.#topics.values().next()
    if (value !== undefined) this.#topics.delete(value)
    return value
  }
}
