/**
 * What components share: things that are counted, the client, and the last messages of a subscription. Knows nothing of React.
 */
import { Client, type ClientOptions, type Endpoint, type Message, type QoS, type Subscription } from 'mqwire'
import type { LatestSnapshot } from '../typed/index.js'

/** Milliseconds for which things live on that nobody holds. */
const linger = 300

/** What can be shared. */
export interface Sharable {
  /** It is of no use any more: the next component gets a new one. */
  readonly isOver: boolean
  dispose(): void
}

interface Entry<T> {
  thing: T
  make: (changed: () => void) => T
  holders: number
  timer: ReturnType<typeof setTimeout> | undefined
}

/** Things by key, each made when it is held first and disposed of when nobody has held it for a moment. */
export class Shared<T extends Sharable> {
  readonly #entries = new Map<string, Entry<T>>()
  readonly #watchers = new Map<string, Set<() => void>>()

  /** The thing with this key, and what lets it go. One that is over is replaced for all its holders. @throws what `make` throws: then nothing is held */
  hold(key: string, make: (changed: () => void) => T): { readonly thing: T; readonly release: () => void } {
    const entry = this.#entries.get(key) ?? { thing: make(() => this.#tell(key)), make, holders: 0, timer: undefined }
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

  /** Calls back when the thing with this key has changed, or another one has taken its place; gives what ends that. */
  watch(key: string, changed: () => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Set()
    this.#watchers.set(key, watchers)
    watchers.add(changed)
    return () => {
      watchers.delete(changed)
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key)
    }
  }

  /** Replaces those that are over. */
  renew(): void {
    for (const [key, entry] of this.#entries) this.#renew(key, entry)
  }

  #renew(key: string, entry: Entry<T>): void {
    if (!entry.thing.isOver) return
    const { thing } = entry
    entry.thing = entry.make(() => this.#tell(key))
    thing.dispose()
    this.#tell(key)
  }

  #tell(key: string): void {
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
  /** Why the last attempt failed, or the connection was lost; undefined while there is one. */
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

/** What a subscription has to show: replaced, never changed. */
export interface Shown {
  /** The last messages, oldest first. */
  readonly messages: readonly Message[]
  /** Why the server refused the subscription. */
  readonly error: Error | undefined
}

/** What there is before the first message. */
export const nothing: Shown = Object.freeze({ messages: Object.freeze([]), error: undefined })

/** Shows what there is once a frame: what comes between two frames is shown together, so that components render once a frame at most. */
class Frames {
  readonly #show: () => void
  #frame: number | undefined

  constructor(show: () => void) {
    this.#show = show
  }

  ask(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      this.#show()
    })
  }

  end(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
  }
}

/** The last messages of a subscription. */
export class Feed implements Sharable {
  /** What components see. */
  shown = nothing
  readonly #client: Client
  readonly #subscription: Subscription
  #fresh: Message[] = []
  readonly #frames: Frames

  constructor(client: Client, filter: string, qos: QoS, limit: number, changed: () => void) {
    this.#client = client
    const show = (shown: Shown): void => {
      this.shown = shown
      changed()
    }
    this.#frames = new Frames(() => show({ messages: [...this.shown.messages, ...this.#fresh.splice(0)].slice(-limit), error: undefined }))
    this.#subscription = client.subscription(filter, { qos, onExit: 'unsubscribe' })
    this.#read(limit).catch((error: Error) => show({ ...this.shown, error }))
  }

  get isOver(): boolean {
    return this.#client.state === 'closed' || this.shown.error !== undefined
  }

  dispose(): void {
    this.#frames.end()
    this.#subscription.unsubscribe().catch(() => undefined)
  }

  async #read(limit: number): Promise<void> {
    for await (const batch of this.#subscription.batches(limit)) {
      this.#fresh = [...this.#fresh, ...batch].slice(-limit)
      this.#frames.ask()
    }
  }
}

/** What is used of the latest values of a channel. */
interface Store {
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => LatestSnapshot<unknown, unknown>
  unsubscribe(): Promise<void>
}

/** The latest values of a channel. */
export class Values implements Sharable {
  /** What components see. */
  shown: LatestSnapshot<unknown, unknown>
  readonly #latest: Store
  readonly #client: Client
  readonly #frames: Frames

  constructor(client: Client, latest: Store, changed: () => void) {
    this.#client = client
    this.#latest = latest
    this.shown = latest.getSnapshot()
    this.#frames = new Frames(() => {
      this.shown = latest.getSnapshot()
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

const ids = new WeakMap<object, number>()
let lastId = 0

/** A number that stands for an object, the same one each time. */
export function idOf(thing: object): number {
  const id = ids.get(thing) ?? ++lastId
  ids.set(thing, id)
  return id
}

/** Data as a text. Functions and objects of classes are left out: they may be new in every render. */
export function dataOf(given: unknown): string {
  return JSON.stringify(given, (_name, value) => {
    if (value instanceof Uint8Array) return Array.from(value)
    const prototype: unknown = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.getPrototypeOf(value) : undefined
    return prototype === undefined || prototype === null || Object.getPrototypeOf(prototype) === null ? value : undefined
  })
}
