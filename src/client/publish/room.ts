/**
 * Who waits for room to publish, in every state of the client.
 *
 * A loop over `writable` must never keep timers and input from their turn, whatever the loop does between.
 */

import { type Deferred, deferred, rejected } from '../../common/abort.js'
import { closedError } from '../../common/outcome.js'
import type { PublishHost } from './ports.js'

/** Times that `writable` is fulfilled at once, before a turn of the event loop passes. */
const grantsInTurn = 64

/** The promise behind `client.writable`. */
export class Room {
  readonly #host: PublishHost
  readonly #isThere: (post: boolean) => boolean
  #waiting: Deferred<void> | undefined
  /** `post` took nothing since room was last announced. */
  #refused = false
  #grants = 0

  /** @param isThere is there room now, also for `post`, which never queues? */
  constructor(host: PublishHost, isThere: (post: boolean) => boolean) {
    this.#host = host
    this.#isThere = isThere
  }

  /** Fulfils when there is room, rejects when there will be none. */
  get promise(): Promise<void> {
    if (this.#host.states.stopping) return rejected(closedError(this.#host.states))
    const there = this.#isThere(this.#refused)
    if (there && !this.#refused && ++this.#grants % grantsInTurn > 0) return Promise.resolve()
    this.#waiting ??= deferred()
    if (there) this.#host.platform.nextTurn(() => this.tell())
    return this.#waiting.promise
  }

  /** Somebody waits for it. */
  get awaited(): boolean {
    return this.#waiting !== undefined
  }

  /** `post` took nothing. */
  handleRefusal(): void {
    this.#refused = true
  }

  /** There may be room again. */
  tell(): void {
    if (!this.#isThere(this.#refused)) return
    this.#refused = false
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /** Another message may leave, at `outbound.rate`. Those who wait to post have the first turn, if it is theirs and they take it. */
  lead(theirs: boolean): void {
    const flush = (): void => this.#host.flush()
    if (!theirs || !this.#refused) return flush()
    this.tell()
    this.#host.platform.nextTurn(flush)
  }

  /** There will be none. */
  close(): void {
    this.#waiting?.reject(closedError(this.#host.states))
    this.#waiting = undefined
  }
}
