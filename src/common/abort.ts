/**
 * Abort signals: the error of an abort, promises that a signal can end early, and promises whose
 * unhandled rejections stay silent.
 */
import { isProgramFault, MqttError, type Outcome } from '../errors.js'

/** The error of an aborted operation: `name` is `'AbortError'`, `cause` the signal's reason. */
export function aborted(signal: AbortSignal | undefined, outcome: Outcome = 'not-sent'): MqttError {
  return new MqttError('ERR_ABORTED', undefined, { cause: signal?.reason, outcome })
}

/** @throws MqttError ERR_ABORTED when the signal has aborted */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw aborted(signal)
}

interface Watch {
  readonly callbacks: Set<() => void>
  readonly listener: () => void
}

// One listener for each signal, shared by all operations.
const watches = new WeakMap<AbortSignal, Watch>()

/**
 * Calls back when the signal aborts, or at once if it already has; returns a function that stops
 * listening. `callback` must be a new function for each call.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal?.aborted) callback()
  if (signal === undefined || signal.aborted) return nothing
  const { callbacks, listener } = watches.get(signal) ?? watch(signal)
  callbacks.add(callback)
  return () => {
    callbacks.delete(callback)
    if (callbacks.size > 0) return
    watches.delete(signal)
    signal.removeEventListener('abort', listener)
  }
}

function watch(signal: AbortSignal): Watch {
  const callbacks = new Set<() => void>()
  const listener = (): void => {
    watches.delete(signal)
    for (const callback of callbacks) callback()
  }
  const made = { callbacks, listener }
  watches.set(signal, made)
  signal.addEventListener('abort', listener, { once: true })
  return made
}

/**
 * An AbortController for one attempt to connect, at a fraction of its cost. Has those members of an
 * AbortSignal that the diallers of this package use, and makes a real signal when the program's
 * code gets one.
 */
export class Abort {
  aborted = false
  reason: MqttError | undefined
  // An array: clients keep this object, and an empty Set has two hundred bytes.
  #listeners: readonly (() => void)[] = []
  #controller: AbortController | undefined

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  abort(reason: MqttError): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.#controller?.abort(reason)
    for (const listener of this.#listeners) {
      try {
        listener()
      } catch (error) {
        // As in an AbortSignal: it ends nothing else.
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = [...this.#listeners, listener]
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener)
  }
}

// Shared, because there are many promises.
function nothing(): void {}

/** Returns the same promise; an unhandled rejection stays silent. */
export function silent<T>(promise: Promise<T>): Promise<T> {
  promise.catch(nothing)
  return promise
}

/**
 * A promise that settles in the same way; an unhandled rejection stays silent, unless the program
 * is at fault.
 */
export function tolerant<T>(promise: Promise<T>): Promise<T> {
  const outcome: Promise<T> = new Promise((resolve, reject) => {
    promise.then(resolve, (error: unknown) => {
      if (!isProgramFault(error)) silent(outcome)
      reject(error)
    })
  })
  return outcome
}

/** A silent promise, with the functions that settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = nothing
  let reject: (error: unknown) => void = nothing
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil
    reject = refuse
  })
  return { promise: silent(promise), resolve, reject }
}

/** The promise, unless the signal aborts first: then rejects with ERR_ABORTED. */
export function within<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  outcome?: Outcome,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = onAbort(signal, () => reject(aborted(signal, outcome)))
    promise.then(stop, stop)
    promise.then(resolve, reject)
  })
}

/** A rejected promise; silent if unhandled, unless the program is at fault. */
export function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject(error)
  return isProgramFault(error) ? promise : silent(promise)
}
