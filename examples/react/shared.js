/**
 * What components share: things that are counted, the client, and the last messages of a subscription. Knows nothing of React.
 */
import { Client } from 'mqwire'

/** Milliseconds for which things live on that nobody holds. */
const linger = 300

/** Things by key, each made when it is held first and disposed of when nobody has held it for a moment. */
export class Shared {
  #entries = new Map()

  /** The thing with this key, and what lets it go. One that is over is made anew. */
  hold(key, make) {
    let entry = this.#entries.get(key)
    if (entry === undefined || entry.thing.isOver) {
      clearTimeout(entry?.timer)
      entry = { thing: make(), holders: 0, timer: undefined }
      this.#entries.set(key, entry)
    }
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

  peek(key) {
    return this.#entries.get(key)?.thing
  }

  #dispose(key, entry) {
    if (this.#entries.get(key) === entry) this.#entries.delete(key)
    entry.thing.dispose()
  }
}

/** A client that connects by itself. */
export class Connection {
  client

  constructor(url, options) {
    this.client = new Client(url, { firstConnect: 'wait', ...options })
    this.client.connect().catch(() => undefined)
  }

  get isOver() {
    return this.client.state === 'closed'
  }

  dispose() {
    this.client.disconnect()
  }
}

/** What there is before the first message. */
export const nothing = Object.freeze({ messages: Object.freeze([]), error: undefined })

/** The last messages of a subscription. What comes between two frames is shown together, so that components render once a frame at most. */
export class Feed {
  /** What components see: replaced, never changed. */
  shown = nothing
  listeners = new Set()
  #client
  #subscription
  #fresh = []
  #frame

  constructor(client, filter, qos, limit) {
    this.#client = client
    this.#subscription = client.subscription(filter, { qos, onExit: 'unsubscribe' })
    this.#read(limit).catch((error) => this.#show({ ...this.shown, error }))
  }

  get isOver() {
    return this.#client.state === 'closed'
  }

  dispose() {
    cancelAnimationFrame(this.#frame)
    this.#subscription.unsubscribe().catch(() => undefined)
  }

  async #read(limit) {
    for await (const batch of this.#subscription.batches(limit)) {
      this.#fresh = [...this.#fresh, ...batch].slice(-limit)
      this.#frame ??= requestAnimationFrame(() => {
        this.#frame = undefined
        this.#show({ messages: [...this.shown.messages, ...this.#fresh.splice(0)].slice(-limit), error: undefined })
      })
    }
  }

  #show(shown) {
    this.shown = shown
    for (const listener of this.listeners) listener()
  }
}
