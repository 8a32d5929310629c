/**
 * Recognises messages that already came by another member.
 */
import { type Deferred, deferred } from '../common/abort.js'
import type { CheckedDeduplication } from './options.js'
import type { GroupCommon } from './sources.js'
import type { GroupMessage } from './types.js'

/** A handler that runs. */
interface Running {
  /** Whose message it has. */
  readonly member: object
  /** Whether it was handled. */
  readonly over: Deferred<boolean>
}

/** Recognises messages that were delivered before; they are acknowledged. */
export class Duplicates {
  count = 0
  readonly #seen: SeenKeys | undefined
  readonly #key: CheckedDeduplication['key'] | undefined
  readonly #total: { duplicates: number }
  /** Keys of messages whose handler runs. */
  readonly #running = new Map<unknown, Running>()

  constructor(given: CheckedDeduplication | undefined, group: GroupCommon) {
    this.#seen = given && new SeenKeys(given.window, given.limit, () => group.time().now())
    this.#key = given?.key
    this.#total = group.total
  }

  /** True for a message that was here before, by its key; false from now on for another one with that. */
  has(message: GroupMessage): boolean {
    const key = this.#key?.(message)
    const isKnown = key !== undefined && this.#seen?.has(key) === true
    if (isKnown) this.#leaveOut()
    return isKnown
  }

  /**
   * Calls the handler, unless another copy was handled. A copy that comes while the handler runs for another one waits for that: where it fails, or its member
   * goes, this one is handled. What is acknowledged here was handled.
   */
  handle(
    message: GroupMessage,
    member: object,
    handler: (message: GroupMessage) => unknown,
  ): unknown {
    const key = this.#key?.(message)
    return key === undefined ? handler(message) : this.#handle(key, message, member, handler)
  }

  #handle(
    key: unknown,
    message: GroupMessage,
    member: object,
    handler: (message: GroupMessage) => unknown,
  ): unknown {
    const before = this.#running.get(key)
    if (this.#seen?.has(key) === true) {
      if (before === undefined) return this.#leaveOut()
      return before.over.promise.then((handled) =>
        handled ? this.#leaveOut() : this.#handle(key, message, member, handler),
      )
    }
    // The window is over: those that wait for the one before wait for this one.
    before?.over.resolve(false)
    const running: Running = { member, over: deferred() }
    this.#running.set(key, running)
    const end = (failed: boolean): void => this.#end(key, running, failed)
    const fail = (error: unknown): never => {
      end(true)
      throw error
    }
    try {
      const outcome = handler(message) as PromiseLike<unknown> | undefined
      if (typeof outcome?.then === 'function')
        return Promise.resolve(outcome).then((value) => {
          end(false)
          return value
        }, fail)
      end(false)
      return outcome
    } catch (error) {
      return fail(error)
    }
  }

  /** A member has gone: what it has not handled by now, others may. */
  release(member: object): void {
    for (const [key, running] of this.#running)
      if (running.member === member) this.#end(key, running, true)
  }

  #leaveOut(): void {
    this.count += 1
    this.#total.duplicates += 1
  }

  // It counts once: a handler may end after its member.
  #end(key: unknown, running: Running, failed: boolean): void {
    if (this.#running.get(key) !== running) return
    this.#running.delete(key)
    if (failed) this.#seen?.forget(key)
    running.over.resolve(!failed)
  }
}

/** Keys of messages that were here a while ago. Bounded in time and number. */
class SeenKeys {
  /** Key to the millisecond in which it came, the oldest first. */
  readonly #keys = new Map<unknown, number>()
  readonly #window: number
  readonly #limit: number
  readonly #now: () => number

  constructor(window: number, limit: number, now: () => number) {
    this.#window = window
    this.#limit = limit
    this.#now = now
  }

  /** True when the key was here within the window; else it is from now on. */
  has(key: unknown): boolean {
    const now = this.#now()
    for (const [oldest, at] of this.#keys) {
      if (now - at < this.#window) break
      this.#keys.delete(oldest)
    }
    if (this.#keys.has(key)) return true
    this.#keys.set(key, now)
    if (this.#keys.size > this.#limit) this.#keys.delete(this.#keys.keys().next().value)
    return false
  }

  /** It was not handled: it may come again. */
  forget(key: unknown): void {
    this.#keys.delete(key)
  }
}
