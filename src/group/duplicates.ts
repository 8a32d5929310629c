/**
 * Recognises messages that already arrived through another member.
 */
import { type Deferred, deferred } from '../common/abort.js'
import type { CheckedDeduplication } from './options.js'
import type { GroupCommon } from './sources.js'
import type { GroupMessage } from './types.js'

/** A running handler. */
interface Running {
  /** The member of its message. */
  readonly member: object
  /** Fulfils with true when the message was handled. */
  readonly over: Deferred<boolean>
}

/** Recognises messages that were delivered before; they are acknowledged. */
export class Duplicates {
  count = 0
  readonly #seen: SeenKeys | undefined
  readonly #key: CheckedDeduplication['key'] | undefined
  readonly #total: { duplicates: number }
  /** Running handlers by key. */
  readonly #running = new Map<unknown, Running>()

  constructor(given: CheckedDeduplication | undefined, group: GroupCommon) {
    this.#seen = given && new SeenKeys(given.window, given.limit, () => group.time().now())
    this.#key = given?.key
    this.#total = group.total
  }

  /**
   * True if a message with the same key was seen within the window. Otherwise false, and the key
   * counts as seen.
   */
  has(message: GroupMessage): boolean {
    const key = this.#key?.(message)
    const isKnown = key !== undefined && this.#seen?.has(key) === true
    if (isKnown) this.#leaveOut()
    return isKnown
  }

  /**
   * Calls the handler, unless another copy was handled. A copy that arrives while the handler runs
   * for another one waits for it, and is handled if that one fails or its member is removed.
   * Duplicates are acknowledged only after a copy was handled.
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
    // The window has passed while a handler still runs: copies that wait for it wait for this one
    // instead.
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

  /**
   * A member was removed: messages that it has not handled yet may be handled for other members.
   */
  release(member: object): void {
    for (const [key, running] of this.#running)
      if (running.member === member) this.#end(key, running, true)
  }

  #leaveOut(): void {
    this.count += 1
    this.#total.duplicates += 1
  }

  // Counts only the first end, because a handler may end after its member was removed.
  #end(key: unknown, running: Running, failed: boolean): void {
    if (this.#running.get(key) !== running) return
    this.#running.delete(key)
    if (failed) this.#seen?.forget(key)
    running.over.resolve(!failed)
  }
}

/** Keys of recent messages. Bounded in time and number. */
class SeenKeys {
  /** Time of arrival in milliseconds by key, oldest first. */
  readonly #keys = new Map<unknown, number>()
  readonly #window: number
  readonly #limit: number
  readonly #now: () => number

  constructor(window: number, limit: number, now: () => number) {
    this.#window = window
    this.#limit = limit
    this.#now = now
  }

  /** True if the key was seen within the window; otherwise adds it. */
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

  /** Removes the key of a message that was not handled. */
  forget(key: unknown): void {
    this.#keys.delete(key)
  }
}
