/**
 * Entries under way: each is given to the publisher once, with what is left of its time, and ends with a receipt, an error, or `publishTimeout`.
 *
 * It must never report the end of an attempt twice.
 */

import { type EntryLink, isStored, type StoredPublish } from '../client/options/hidden.js'
import type { Publisher, Receipt } from '../client/options/index.js'
import { MqttError } from '../errors.js'
import type { StoreOperation } from '../store/base/store.js'
import type { StoredEntry } from './entry-log.js'
import { accessOf } from './sharing.js'
import { endsEntry, verdictOf } from './verdict.js'

const longestExpiry = 0xffff_ffff

/** Changes that are to be made in one batch with what is done to an entry. */
export type Changes = readonly StoreOperation[]

/** What becomes of entries under way. */
export interface AttemptOwner {
  /** It was acknowledged. */
  handleReceipt(stored: StoredEntry, receipt: Receipt, also: Changes): void
  /** It was acknowledged after its attempt had failed, and is not under way again. */
  handleLateReceipt(stored: StoredEntry, receipt: Receipt): void
  /** It was refused, took too long, or its outcome is unknown. */
  handleFailure(stored: StoredEntry, error: unknown, also: Changes): void
}

/** How entries are published. */
export interface AttemptConfig {
  /** Milliseconds. */
  readonly publishTimeout: number
  /** They lie in the store of the publisher's session. */
  readonly shared: boolean
  /** The key of an entry. */
  keyOf(stored: StoredEntry): string
  /** The count of the connections that ended over an entry. */
  countOf(stored: StoredEntry): StoredPublish
}

/** Attempts that began in one turn: they have one signal, and one timer. */
interface Group {
  readonly controller: AbortController
  timer: ReturnType<typeof setTimeout> | undefined
  /** Those that are not over. */
  readonly open: Set<Attempt>
}

/** One publish of an entry. */
interface Attempt {
  readonly stored: StoredEntry
  readonly group: Group
  /** It counts no more. */
  over: boolean
  /** What ends its publish in the store. */
  also: Changes
}

/** Publishes of entries that have not ended. */
export class Attempts {
  readonly #publisher: Publisher<unknown>
  readonly #config: AttemptConfig
  readonly #owner: AttemptOwner
  readonly #open = new Map<number, Attempt>()
  /** What begins in this turn. */
  #group: Group | undefined
  #watching = false
  #abandoned = false

  constructor(publisher: Publisher<unknown>, config: AttemptConfig, owner: AttemptOwner) {
    this.#publisher = publisher
    this.#config = config
    this.#owner = owner
  }

  get size(): number {
    return this.#open.size
  }

  /** The entries. */
  get entries(): StoredEntry[] {
    return [...this.#open.values()].map(({ stored }) => stored)
  }

  /** True while this entry is under way. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /** True while the session of the publisher has it in flight, even from an earlier process. */
  isKept(stored: StoredEntry): boolean {
    const { shared, keyOf } = this.#config
    return shared && accessOf(this.#publisher)?.publishQueue?.keeper?.isKept(keyOf(stored)) === true
  }

  /** An entry is deleted. */
  forget(stored: StoredEntry): void {
    const { shared, keyOf } = this.#config
    if (shared) accessOf(this.#publisher)?.publishQueue?.keeper?.forgetEntry(keyOf(stored))
  }

  /** Publishes an entry. */
  begin(stored: StoredEntry): void {
    this.#group ??= this.#newGroup()
    const attempt: Attempt = { stored, group: this.#group, over: false, also: [] }
    this.#group.open.add(attempt)
    this.#open.set(stored.entry.id, attempt)
    // A publisher that throws rejects, and one that gives no promise has taken it.
    const sent = new Promise<unknown>((resolve) => resolve(this.#publish(attempt)))
    sent.then(
      (receipt) => this.#handleReceipt(attempt, receipt as Receipt),
      (error: unknown) => this.#handleFailure(attempt, error),
    )
  }

  /** Gives up waiting: the outcome of each stays unknown, and is not reported, whenever it comes. */
  abandon(): void {
    this.#abandoned = true
    for (const attempt of this.#open.values()) {
      this.#end(attempt)
      attempt.group.controller.abort()
    }
  }

  #newGroup(): Group {
    const group: Group = { controller: new AbortController(), timer: undefined, open: new Set() }
    // In the store of the session it is published once, however long that takes.
    if (!this.#config.shared) this.#arm(group)
    queueMicrotask(() => {
      this.#group = undefined
    })
    return group
  }

  #publish(attempt: Attempt): Promise<unknown> {
    const { stored } = attempt
    const { topic, payload, qos, retain } = stored.entry
    const { shared, countOf } = this.#config
    const { signal } = attempt.group.controller
    const options = {
      qos,
      retain,
      properties: this.#propertiesOf(stored),
      signal,
      [isStored]: shared || countOf(stored),
    }
    if (!shared) return this.#publisher.publish(topic, payload, options)
    const keeper = accessOf(this.#publisher)?.publishQueue?.keeper
    // The client has not read the store yet.
    if (keeper === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    const ended: EntryLink['ended'] = (error, changes) => this.#handleEnded(attempt, error, changes)
    return keeper.publishEntry({ key: this.#config.keyOf(stored), ended }, topic, payload, options)
  }

  // The entry goes together with its publish, or stays.
  #handleEnded(attempt: Attempt, error: unknown, changes: Changes): boolean | undefined {
    if (attempt.over || this.#abandoned) return undefined
    const goes = error === undefined || endsEntry(verdictOf(error, attempt.stored.entry.qos === 2))
    if (goes) attempt.also = changes
    return goes
  }

  // What is left of its time goes along (section 3.3.2.3.3), where the version has it.
  #propertiesOf({
    entry: { properties, at, expires },
  }: StoredEntry): StoredEntry['entry']['properties'] {
    if (expires === undefined) return properties
    const { modern } = accessOf(this.#publisher) ?? { modern: true }
    // A clock that was set back gives it no more time than it had.
    const left = Math.min(expires - Date.now(), expires - at)
    const seconds = Math.min(longestExpiry, Math.max(1, Math.ceil(left / 1000)))
    return modern ? { ...properties, messageExpiryInterval: seconds } : properties
  }

  #arm(group: Group): void {
    group.timer = setTimeout(() => this.#handleTimeout(group), this.#config.publishTimeout)
  }

  // Time without a connection does not count.
  #handleTimeout(group: Group): void {
    this.#watch()
    group.timer = setTimeout(() => {
      if (this.#watching) return this.#arm(group)
      for (const attempt of group.open)
        this.#handleFailure(
          attempt,
          new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' }),
        )
      group.controller.abort()
    }, 0)
  }

  // One look at the publisher at a time, however many ask.
  #watch(): void {
    if (this.#watching) return
    this.#watching = true
    const seen = (): void => {
      this.#watching = false
    }
    Promise.resolve(this.#publisher.writable).then(seen, seen)
  }

  #end(attempt: Attempt): void {
    const { group, stored } = attempt
    attempt.over = true
    group.open.delete(attempt)
    if (group.open.size === 0) clearTimeout(group.timer)
    this.#open.delete(stored.entry.id)
  }

  #handleReceipt(attempt: Attempt, receipt: Receipt): void {
    const { stored, over } = attempt
    if (!over) {
      this.#end(attempt)
      return this.#owner.handleReceipt(stored, receipt, attempt.also)
    }
    if (this.#abandoned) return
    // It took its time, and another attempt is under way, or waits: the message has arrived.
    const other = this.#open.get(stored.entry.id)
    if (other !== undefined) this.#handleReceipt(other, receipt)
    else this.#owner.handleLateReceipt(stored, receipt)
  }

  #handleFailure(attempt: Attempt, error: unknown): void {
    if (attempt.over) return
    this.#end(attempt)
    this.#owner.handleFailure(attempt.stored, error, attempt.also)
  }
}
