/**
 * Typed events, the same in browsers and Node. A listener that throws is reported and counted; the
 * others still run.
 *
 * Listeners are called in the order in which they were added: immediately, or when the current
 * transition is complete.
 */

import { onAbort } from './abort.js'
import { disposeSymbol } from './dispose.js'
import { isHeard, markAs } from './own-listener.js'
import { assertHandler, boolean, object, optional, signal as parseSignal } from './schema.js'
import { SparseMap } from './sparse.js'

/** Options of `on`, as in clients. */
interface ListenerOptions {
  readonly once?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** Removes a listener. */
type Unlisten = Disposable & (() => void)

const listenerOptions = object<ListenerOptions>({
  once: optional(boolean),
  signal: optional(parseSignal),
})

type Listener<T> = (event: T) => void

/** The owner of an emitter. */
export interface EmitterOwner {
  /** A listener threw. */
  handleListenerFailed(error: unknown, type: string): void
  /** Receives every event before the listeners. */
  trace?(type: string, event: object): void
  /** A listener was added: the result of `has` may have changed. */
  handleListenerAdded?(): void
}

/** Emits events; `Events` maps names to event objects. */
export class Emitter<Events extends object> {
  /** Number of listeners that threw. */
  failures = 0
  /** By event: each listener, with the function that stops watching its signal. */
  readonly #listeners = new SparseMap<keyof Events, Map<Listener<never>, () => void>>()
  readonly #owner: EmitterOwner
  /** Depth of nested transitions. */
  #open = 0
  /** Events to emit when they are complete. */
  #due: (() => void)[] | undefined

  constructor(owner: EmitterOwner) {
    this.#owner = owner
  }

  /** Adds a listener. @throws MqttError ERR_INVALID_HANDLER */
  on<K extends keyof Events>(
    type: K,
    listener: Listener<Events[K]>,
    options?: ListenerOptions,
  ): Unlisten {
    assertHandler(listener, 'listener')
    const { signal, once } = listenerOptions(options)
    const listeners = this.#listeners.get(type) ?? new Map<Listener<never>, () => void>()
    this.#listeners.set(type, listeners)
    const entry: Listener<Events[K]> = (event) => {
      if (once) remove()
      listener(event)
    }
    const remove = (): void => {
      listeners.get(entry)?.()
      listeners.delete(entry)
    }
    markAs(entry, listener)
    if (!signal?.aborted) listeners.set(entry, onAbort(signal, remove))
    this.#owner.handleListenerAdded?.()
    return Object.assign(remove, { [disposeSymbol]: remove }) as Unlisten
  }

  /** True when there is a listener, so that expensive events are created only then. */
  has(type: keyof Events): boolean {
    return (this.#listeners.get(type)?.size ?? 0) > 0
  }

  /** True when the program hears of an event of this type. */
  isHeard(type: keyof Events): boolean {
    return [...(this.#listeners.get(type)?.keys() ?? [])].some(isHeard)
  }

  /**
   * Runs a change of several steps. Its events, including those that listeners cause meanwhile, are
   * emitted in order when it is complete.
   */
  transition(change: () => void): void {
    this.#open += 1
    try {
      change()
    } finally {
      // Still counts as open while emitting, so that events caused by listeners are queued behind.
      if (this.#open === 1) {
        for (let emit = this.#due?.shift(); emit; emit = this.#due?.shift()) emit()
        this.#due = undefined
      }
      this.#open -= 1
    }
  }

  emit<K extends keyof Events>(type: K, event: Events[K]): void {
    if (this.#open > 0) this.#defer(() => this.#emit(type, event))
    else this.#emit(type, event)
  }

  #defer(emit: () => void): void {
    this.#due ??= []
    this.#due.push(emit)
  }

  #emit<K extends keyof Events>(type: K, event: Events[K]): void {
    this.#owner.trace?.(String(type), event as object)
    const listeners = this.#listeners.get(type)
    if (listeners === undefined) return
    for (const listener of [...listeners.keys()] as Listener<Events[K]>[]) {
      // An earlier listener may have removed it.
      if (!listeners.has(listener as Listener<never>)) continue
      try {
        listener(event)
      } catch (error) {
        this.failures += 1
        this.#owner.handleListenerFailed(error, String(type))
      }
    }
  }

  /** Removes all listeners, after pending events were emitted. */
  clear(): void {
    this.transition(() => this.#defer(() => this.#forget()))
  }

  #forget(): void {
    for (const listeners of this.#listeners.values()) for (const stop of listeners.values()) stop()
    this.#listeners.clear()
  }
}
