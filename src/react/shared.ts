/**
 * What components share: things that are counted, the client, and the last messages of a subscription. Knows nothing of React.
 */
import { Client, type ClientOptions, type Endpoint, type Message, type QoS, type Subscription } from 'mqwire'

/** Milliseconds for which things live on that nobody holds. */
const linger = 300

/** What can be shared. */
export interface Sharable {
  /** It is of no use any more: whoever comes next gets a new one. */
  readonly isOver: boolean
  dispose(): void
}

interface Entry<T> {
  readonly thing: T
  holders: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/** Things by key, each made when it is held first and disposed of when nobody has held it for a moment. */
export class Shared<T extends Sharable> {
  readonly #entries = new Map<string, Entry<T>>()

  /** The thing with this key, and what lets it go. One that is over is made anew. */
  hold(key: string, make: () => T): { readonly thing: T; readonly release: () => void } {
    let entry = this.#entries.get(key)
    if (entry === undefined || entry.thing.isOver) {
      clearTimeout(entry?.timer)
      entry = { thing: make(), holders: 0, timer: undefined }
      this.#entries.set(key, entry)
    }
    entry.holders += 1
    clearTimeout(entry.timer)
    const held = entry
    let isHeld = true
    const release = () => {
      if (!isHeld) return
      isHeld = false
      held.holders -= 1
      if (held.holders === 0) held.timer = setTimeout(() => this.#dispose(key, held), linger)
    }
    return { thing: held.thing, release }
  }

  peek(key: string): T | undefined {
    return this.#entries.get(key)?.thing
  }

  #dispose(key: string, entry: Entry<T>): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
    entry.thing.dispose()
  }
}

/** A client that connects by itself. */
export class ConnectingClient implements Sharable {
  readonly client: Client
  /** Why the last attempt failed, or the connection was lost; undefined while there is one. */
  trouble: Error | undefined
  readonly #listeners = new Set<() => void>()

  constructor(url: Endpoint, options?: ClientOptions) {
    this.client = new Client(url, { firstConnect: 'wait', ...options })
    this.client.on('connect', () => this.#note(undefined))
    this.client.on('connecterror', ({ error }) => this.#note(error))
    this.client.on('disconnect', ({ error }) => this.#note(error))
    this.client.connect().catch(() => undefined)
  }

  /** Calls back when `trouble` has changed; gives what ends that. */
  watch(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => this.#listeners.delete(changed)
  }

  #note(trouble: Error | undefined): void {
    this.trouble = trouble
    for (const listener of this.#listeners) listener()
  }

  get isOver(): boolean {
    return this.client.state === 'closed'
  }

  dispose(): void {
    this.client.disconnect()
  }
}

/** What a subscription has to show: replaced, never changed. */
export interface Shown {
  /** The last messages, oldest first. */
  readonly messages: readonly Message[]
  /** Why the server refused the subscription. */
  readonly error: Error | undefined
}

/** What there is before the first message. */
export const nothing: Shown = Object.freeze({ messages: Object.freeze([]), error: undefined })

/** The last messages of a subscription. What comes between two frames is shown together, so that components render once a frame at most. */
export class Feed implements Sharable {
  /** What components see. */
  shown = nothing
  readonly listeners = new Set<() => void>()
  readonly #client: Client
  readonly #subscription: Subscription
  #fresh: Message[] = []
  #frame: number | undefined

  constructor(client: Client, filter: string, qos: QoS, limit: number) {
    this.#client = client
    this.#subscription = client.subscription(filter, { qos, onExit: 'unsubscribe' })
    this.#read(limit).catch((error: Error) => this.#show({ ...this.shown, error }))
  }

  get isOver(): boolean {
    return this.#client.state === 'closed'
  }

  dispose(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
    this.#subscription.unsubscribe().catch(() => undefined)
  }

  async #read(limit: number): Promise<void> {
    for await (const batch of this.#subscription.batches(limit)) {
      this.#fresh = [...this.#fresh, ...batch].slice(-limit)
      this.#frame ??= requestAnimationFrame(() => {
        this.#frame = undefined
        this.#show({ messages: [...this.shown.messages, ...this.#fresh.splice(0)].slice(-limit), error: undefined })
      })
    }
  }

  #show(shown: Shown): void {
    this.shown = shown
    for (const listener of this.listeners) listener()
  }
}

/** What is used of the latest values of a channel. */
interface Store {
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => ReadonlyMap<string, unknown>
  unsubscribe(): Promise<void>
}

/** The latest values of a channel. */
export class Values implements Sharable {
  /** What components see. */
  readonly latest: Store
  readonly #client: Client

  constructor(client: Client, latest: Store) {
    this.#client = client
    this.latest = latest
  }

  get isOver(): boolean {
    return this.#client.state === 'closed'
  }

  dispose(): void {
    this.latest.unsubscribe().catch(() => undefined)
  }
}

const ids = new WeakMap<object, number>()
let lastId = 0

/** A number that stands for an object, the same one each time. */
export function idOf(thing: object): number {
  const id = ids.get(thing) ?? ++lastId
  ids.set(thing, id)
  return id
}
