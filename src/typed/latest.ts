/**
 * The latest value of each topic of a channel, kept up to date: a bounded map that reports its
 * changes.
 *
 * It is built from retained and live messages. When the connection is lost, all entries become
 * stale. After a reconnect the retained messages are requested again; entries stay stale until a
 * message for their topic arrives.
 */

import type {
  Handling,
  ListenOptions,
  Message,
  SubscribeOptions,
  Subscriber,
} from '../client/options/index.js'
import { silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { ownListener } from '../common/own-listener.js'
import { MqttError } from '../errors.js'
import { ChangeWatchers } from './change-watchers.js'
import { after } from './codec.js'
import type { Incoming } from './incoming.js'
import { wholeNumber } from './refuse.js'
import { TopicRows } from './rows.js'
import type { Params, TopicTemplate } from './template.js'

/** Options of `latest`. */
export interface LatestOptions {
  /**
   * Most topics, 1 to 10,000,000; when exceeded, the topic that was added first is removed. Default
   * 10,000.
   */
  readonly limit?: number | undefined
  /**
   * Milliseconds without a message after which a topic is removed, up to 2 % later; 1 to
   * 2,147,483,647. Default: never.
   */
  readonly expire?: number | undefined
}

/** The latest message of a topic. */
export interface LatestEntry<Parameters, Value> {
  /** The parameters of the topic. */
  readonly params: Parameters
  /** The value of the payload. */
  readonly value: Value
  /** When it was received: milliseconds since 1970, by this machine's clock. */
  readonly at: number
  /** The message itself. */
  readonly message: Message
  /**
   * True while there is no connection, and on the next one until a message for the topic has
   * arrived.
   */
  readonly stale: boolean
}

/** A change of a topic. */
export interface LatestChange<Parameters, Value> {
  /** Topic Name. */
  readonly topic: string
  /** The current entry; undefined when the topic was removed. */
  readonly entry: LatestEntry<Parameters, Value> | undefined
}

/** A snapshot of the values, with the error that ended them. */
export interface LatestSnapshot<Parameters, Value>
  extends ReadonlyMap<string, LatestEntry<Parameters, Value>> {
  /** The error that ended the subscription; undefined after a clean end. */
  readonly error: Error | undefined
  /** True until the server has granted or refused the subscription. */
  readonly isPending: boolean
}

/** A map from Topic Name to latest value. `await using` ends it with the block. */
export interface LatestValues<Parameters, Value>
  extends ReadonlyMap<string, LatestEntry<Parameters, Value>>,
    AsyncDisposable {
  /** Settles with the grant. Never an unhandled rejection. */
  readonly ready: Promise<LatestValues<Parameters, Value>>
  /** Messages whose payload or topic did not fit the channel. */
  readonly invalid: number
  /** Topics removed because of `limit`; the first one is logged. */
  readonly evicted: number
  /**
   * The error that ended the subscription; undefined after a clean end. Listeners are also called
   * for it.
   */
  readonly error: Error | undefined
  /**
   * True until the server has granted or refused the subscription. Listeners are also called for
   * this change.
   */
  readonly isPending: boolean
  /**
   * Each change; unread changes of one topic are combined.
   * @throws MqttError the error that ended the subscription, unless it ended cleanly
   */
  changes(): AsyncIterableIterator<LatestChange<Parameters, Value>>
  /**
   * Calls back after changes, once for all changes of one turn of the event loop; returns a
   * function that ends it. For `useSyncExternalStore`.
   */
  readonly subscribe: (listener: () => void) => () => void
  /**
   * An immutable snapshot: the same object until something changes. For `useSyncExternalStore`.
   */
  readonly getSnapshot: () => LatestSnapshot<Parameters, Value>
  /**
   * Ends it and its subscription; also on the broker if that was the last one on its filter. The
   * values stay.
   */
  unsubscribe(): Promise<void>
}

/** Creates a map of latest values. @throws MqttError ERR_INVALID_OPTION */
export function latestOf<Template extends string, Value>(
  client: Subscriber,
  filter: string,
  subscribe: SubscribeOptions,
  incoming: Incoming<Template, Value>,
  topic: TopicTemplate<Template>,
  options: LatestOptions = {},
): LatestValues<Params<Template>, Value> {
  const limit = wholeNumber('limit', options.limit, 10_000, 10_000_000)
  const expire = wholeNumber('expire', options.expire, undefined)
  return new Latest(client, filter, subscribe, incoming, topic, limit, expire)
}

type Entry<Template extends string, Value> = LatestEntry<Params<Template>, Value>

class Latest<Template extends string, Value>
  extends TopicRows<Entry<Template, Value>>
  implements LatestValues<Params<Template>, Value>
{
  readonly #client: Subscriber
  readonly #filter: string
  readonly #options: ListenOptions
  readonly #incoming: Incoming<Template, Value>
  readonly #topic: TopicTemplate<Template>
  readonly #limit: number
  readonly #expire: number | undefined
  /** When each topic was last received, by a monotonic clock; used only with `expire`. */
  readonly #heard = new Map<string, number>()
  readonly #watchers = new ChangeWatchers((error) =>
    this.#incoming.report('a listener of latest values threw: ', error),
  )
  readonly #unlisten: readonly (() => void)[]
  readonly #abort = new AbortController()
  evicted = 0
  #handling: Handling | undefined
  #over = false
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The last SUBSCRIBE; each one waits for the one before. */
  #tail: Promise<void>

  constructor(
    client: Subscriber,
    filter: string,
    { ack: _, retainHandling: __, ...options }: SubscribeOptions,
    incoming: Incoming<Template, Value>,
    topic: TopicTemplate<Template>,
    limit: number,
    expire: number | undefined,
  ) {
    super()
    this.#client = client
    this.#filter = filter
    // `retainHandling` is left out: 0 is the default, and the only one on 3.1.1.
    this.#options = { ...options, lifetime: 'owned', signal: this.#abort.signal }
    this.#incoming = incoming
    this.#topic = topic
    this.#limit = limit
    this.#expire = expire
    this.#unlisten = [
      client.on(
        'disconnect',
        ownListener(
          () => this.#handleDisconnect(),
          () => this.#watchers.size > 0,
        ),
      ),
      client.on('connect', () => this.#handleConnect()),
    ]
    this.#tail = silent(this.#listen())
    this.#tail.then(
      () => this.#handleGrant(),
      (error: unknown) => this.#end(error),
    )
  }

  get ready(): Promise<this> {
    return silent(this.#tail.then(() => this))
  }

  get invalid(): number {
    return this.#incoming.invalid
  }

  readonly subscribe = (listener: () => void): (() => void) => this.#watchers.listen(listener)

  readonly getSnapshot = (): LatestSnapshot<Params<Template>, Value> => this.picture()

  changes(): AsyncIterableIterator<LatestChange<Params<Template>, Value>> {
    const reader = this.#watchers.read()
    if (this.#over) this.#watchers.leave(reader)
    const next = async (): Promise<IteratorResult<LatestChange<Params<Template>, Value>>> => {
      const topic = await reader.next()
      return topic === undefined
        ? { value: undefined, done: true }
        : { value: { topic, entry: this.get(topic) }, done: false }
    }
    const leave = async (): Promise<IteratorReturnResult<undefined>> => {
      this.#watchers.leave(reader)
      return { value: undefined, done: true }
    }
    const iterator: AsyncIterableIterator<LatestChange<Params<Template>, Value>> = {
      next,
      return: leave,
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  unsubscribe(): Promise<void> {
    return silent(this.#unsubscribe())
  }

  async #unsubscribe(): Promise<void> {
    this.#end()
    this.#abort.abort()
    await this.#tail.catch(() => undefined)
    const handling = this.#handling
    this.#handling = undefined
    await handling?.unsubscribe()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await this.unsubscribe()
  }

  // The new subscription starts before the old one ends, so that nothing is missed.
  async #listen(): Promise<void> {
    const handling = await this.#client.listen(
      this.#filter,
      (message) => this.#handle(message),
      this.#options,
    )
    const old = this.#handling
    this.#handling = handling
    old?.detach()
    const end = (error?: unknown): void => {
      if (this.#handling === handling) this.#end(error)
    }
    handling.done.then(() => end(), end)
  }

  // Ends the map and its readers, with the error if there is one.
  #end(error?: unknown): void {
    if (this.#over) return
    this.#over = true
    for (const unlisten of this.#unlisten) unlisten()
    clearTimeout(this.#timer)
    if (error !== undefined || this.isPending) this.settle(error as Error | undefined)
    this.#watchers.end(error)
  }

  #handleGrant(): void {
    if (this.#over) return
    this.settle()
    this.#watchers.handleChange()
  }

  #handleConnect(): void {
    // The first SUBSCRIBE is pending and sent by the client.
    if (this.#handling === undefined) return
    this.#handleDisconnect()
    // If it is refused, the old subscription stays, and the next connection tries again.
    this.#tail = this.#tail
      .then(() => (this.#over ? undefined : this.#listen()))
      .catch(() => undefined)
  }

  #handleDisconnect(): void {
    for (const [topic, entry] of this) if (!entry.stale) this.#put(topic, { ...entry, stale: true })
  }

  #handle(message: Message): unknown {
    if (this.#over) return undefined
    if (message.payloadLength === 0 && this.#topic.match(message.topic) !== undefined)
      return this.#remove(message.topic)
    return after(this.#incoming.take(message), (taken) => {
      if (taken === undefined || taken.error !== undefined || this.#over) return
      const { params, value } = taken
      this.#put(message.topic, { params, value, at: Date.now(), message, stale: false })
      if (this.size > this.#limit) this.#evict()
      if (this.#expire === undefined) return
      this.#heard.set(message.topic, performance.now())
      this.#timer ??= setTimeout(() => this.#handleTimer(), this.#expire)
    })
  }

  #evict(): void {
    this.evicted += 1
    const text = `'${this.#topic.template}' has more topics than its limit of ${this.#limit}`
    if (this.evicted === 1)
      this.#incoming.report(
        'latest values: the oldest ones make room: ',
        new MqttError('ERR_DROPPED', text, { option: 'limit' }),
      )
    this.#remove(this.oldest())
  }

  // One timer checks all topics.
  #handleTimer(): void {
    const expire = this.#expire as number
    const now = performance.now()
    let oldest = now
    for (const [topic, at] of this.#heard) {
      if (now - at >= expire) this.#remove(topic)
      else oldest = Math.min(oldest, at)
    }
    this.#timer =
      this.size > 0
        ? setTimeout(
            () => this.#handleTimer(),
            Math.max(Math.ceil(expire / 64), oldest + expire - now),
          )
        : undefined
  }

  #put(topic: string, entry: Entry<Template, Value>): void {
    const isNew = !this.has(topic)
    this.put(topic, entry)
    this.#watchers.handlePut(topic, isNew)
  }

  #remove(topic: string): void {
    this.#heard.delete(topic)
    if (this.take(topic)) this.#watchers.handleRemoved(topic, this.size)
  }
}
