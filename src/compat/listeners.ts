/**
 * Listeners with the interface of Node's EventEmitter, also for browsers.
 *
 * Errors of listeners are thrown to the caller of `emit`.
 */

import { MqttError } from 'mqwire'

type AnyListener = (...given: never[]) => unknown
interface Entry {
  readonly listener: AnyListener
  readonly once: boolean
  /** A listener for only one event was called. */
  over?: boolean
}

/** Listeners by event. */
export class Listeners<Events extends Record<keyof Events, AnyListener>> {
  readonly #entries = new Map<keyof Events, readonly Entry[]>()
  #most = 10
  readonly #added: (event: keyof Events) => void

  /** @param added called with each event that gets a listener */
  constructor(added: (event: keyof Events) => void) {
    this.#added = added
  }

  /** Adds a listener. */
  on<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.#add(event, callback)
  }

  /** Adds a listener. */
  addListener<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.#add(event, callback)
  }

  /** Adds a listener for the next event only. */
  once<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.#add(event, callback, true)
  }

  /** Adds a listener before the others. */
  prependListener<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.#add(event, callback, false, true)
  }

  /** Adds a listener for the next event only, before the others. */
  prependOnceListener<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.#add(event, callback, true, true)
  }

  /** Removes a listener; if it was added twice, the last one. */
  removeListener<E extends keyof Events>(event: E, callback: Events[E]): this {
    const entries = [...this.#of(event)]
    const at = entries.findLastIndex(({ listener }) => listener === callback)
    if (at >= 0) entries.splice(at, 1)
    this.#entries.set(event, entries)
    return this
  }

  /** Removes a listener. */
  off<E extends keyof Events>(event: E, callback: Events[E]): this {
    return this.removeListener(event, callback)
  }

  /** Removes the listeners of an event, or all. */
  removeAllListeners(event?: keyof Events): this {
    if (event === undefined) this.#entries.clear()
    else this.#entries.delete(event)
    return this
  }

  /** Calls the listeners in order. True if there is one. */
  emit<E extends keyof Events>(event: E, ...given: Parameters<Events[E]>): boolean {
    const entries = this.#of(event)
    for (const entry of entries) {
      if (entry.over) continue
      if (entry.once)
        this.#entries.set(
          event,
          this.#of(event).filter((each) => each !== entry),
        )
      entry.over = entry.once
      Reflect.apply(entry.listener, this, given)
    }
    return entries.length > 0
  }

  /** The listeners of an event, in order. */
  listeners<E extends keyof Events>(event: E): Events[E][] {
    return this.#of(event).map(({ listener }) => listener as Events[E])
  }

  /** The same. */
  rawListeners<E extends keyof Events>(event: E): Events[E][] {
    return this.listeners(event)
  }

  /** How many listeners an event has, or how often this one. */
  listenerCount<E extends keyof Events>(event: E, callback?: Events[E]): number {
    return this.#of(event).filter(({ listener }) => callback === undefined || listener === callback)
      .length
  }

  /** Events that have listeners. */
  eventNames(): (keyof Events)[] {
    return [...this.#entries.keys()].filter((event) => this.#of(event).length > 0)
  }

  /** Stored without effect: no warning is printed. */
  setMaxListeners(most: number): this {
    this.#most = most
    return this
  }

  /** The stored value; 10 by default. */
  getMaxListeners(): number {
    return this.#most
  }

  #of(event: keyof Events): readonly Entry[] {
    return this.#entries.get(event) ?? []
  }

  // Creates a new array, because `emit` may be iterating over the old one.
  #add(event: keyof Events, listener: AnyListener, once = false, first = false): this {
    if (typeof listener !== 'function')
      throw new MqttError('ERR_INVALID_HANDLER', 'a listener must be a function')
    this.#added(event)
    const entry: Entry = { listener, once }
    const entries = this.#of(event)
    this.#entries.set(event, first ? [entry, ...entries] : [...entries, entry])
    return this
  }
}
