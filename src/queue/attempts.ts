/**
 * Publishing attempts: each passes an entry to the publisher once, with its remaining time to live,
 * and ends with a receipt, an error, or `publishTimeout`. The end of an attempt is never reported
 * twice.
 */

import { type EntryLink, isStored, type StoredPublish } from '../client/options/hidden.js'
import type { Publisher, Receipt } from '../client/options/index.js'
import { MqttError } from '../errors.js'
import type { StoreOperation } from '../store/base/store.js'
import type { StoredEntry } from './entry-log.js'
import { accessOf } from './sharing.js'
import { endsEntry, verdictOf } from './verdict.js'

const longestExpiry = 0xffff_ffff

/** Changes to write in one batch with the changes to an entry. */
export type Changes = readonly StoreOperation[]

/** Receives the results of attempts. */
export interface AttemptOwner {
  /** The entry was acknowledged. */
  handleReceipt(stored: StoredEntry, receipt: Receipt, also: Changes): void
  /** The entry was acknowledged after its attempt had failed, and no other attempt is under way. */
  handleLateReceipt(stored: StoredEntry, receipt: Receipt): void
  /** The entry was refused or timed out, or its outcome is unknown. */
  handleFailure(stored: StoredEntry, error: unknown, also: Changes): void
}

/** Configuration of attempts. */
export interface AttemptConfig {
  /** Milliseconds. */
  readonly publishTimeout: number
  /** The entries are in the store of the publisher's session. */
  readonly shared: boolean
  /** The key of an entry. */
  keyOf(stored: StoredEntry): string
  /** Stores how many connections ended on an entry. */
  countOf(stored: StoredEntry): StoredPublish
}

/** Attempts of one turn, which share a signal and a timer. */
interface Group {
  readonly controller: AbortController
  timer: ReturnType<typeof setTimeout> | undefined
  /** Attempts that have not ended. */
  readonly open: Set<Attempt>
}

/** One attempt to publish an entry. */
interface Attempt {
  readonly stored: StoredEntry
  readonly group: Group
  /** The attempt no longer counts. */
  over: boolean
  /** Changes that end its publish in the store. */
  also: Changes
}

/** Attempts that have not ended. */
export class Attempts {
  readonly #publisher: Publisher<unknown>
  readonly #config: AttemptConfig
  readonly #owner: AttemptOwner
  readonly #open = new Map<number, Attempt>()
  /** The group of the current turn. */
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

  /** The entries under way. */
  get entries(): StoredEntry[] {
    return [...this.#open.values()].map(({ stored }) => stored)
  }

  /** True while this entry is under way. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /** True while the publisher's session has it in flight, even from an earlier process. */
  isKept(stored: StoredEntry): boolean {
    const { shared, keyOf } = this.#config
    return shared && accessOf(this.#publisher)?.publishing?.keeper?.isKept(keyOf(stored)) === true
  }

  /** An entry was deleted. */
  forget(stored: StoredEntry): void {
    const { shared, keyOf } = this.#config
    if (shared) accessOf(this.#publisher)?.publishing?.keeper?.forgetEntry(keyOf(stored))
  }

  /** Publishes an entry. */
  begin(stored: StoredEntry): void {
    this.#group ??= this.#newGroup()
    const attempt: Attempt = { stored, group: this.#group, over: false, also: [] }
    this.#group.open.add(attempt)
    this.#open.set(stored.entry.id, attempt)
    // A publisher that throws counts as one that rejects; without a promise, the message counts as
    // accepted.
    const sent = new Promise<unknown>((resolve) => resolve(this.#publish(attempt)))
    sent.then(
      (receipt) => this.#handleReceipt(attempt, receipt as Receipt),
      (error: unknown) => this.#handleFailure(attempt, error),
    )
  }

  /** Stops waiting: all outcomes stay unknown, and are not reported if they come later. */
  abandon(): void {
    this.#abandoned = true
    for (const attempt of this.#open.values()) {
      this.#end(attempt)
      attempt.group.controller.abort()
    }
  }

  #newGroup(): Group {
    const group: Group = { controller: new AbortController(), timer: undefined, open: new Set() }
    // In the session's store it is published only once, without a time limit.
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
    const keeper = accessOf(this.#publisher)?.publishing?.keeper
    // The client has not read the store yet.
    if (keeper === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    const ended: EntryLink['ended'] = (error, changes) => this.#handleEnded(attempt, error, changes)
    return keeper.publishEntry({ key: this.#config.keyOf(stored), ended }, topic, payload, options)
  }

  // The entry is deleted together with its publish, or stays.
  #handleEnded(attempt: Attempt, error: unknown, changes: Changes): boolean | undefined {
    if (attempt.over || this.#abandoned) return undefined
    const goes = error === undefined || endsEntry(verdictOf(error, attempt.stored.entry.qos === 2))
    if (goes) attempt.also = changes
    return goes
  }

  // Adds the remaining time as message expiry interval (section 3.3.2.3.3), if the protocol version
  // has it.
  #propertiesOf({
    entry: { properties, at, expires },
  }: StoredEntry): StoredEntry['entry']['properties'] {
    if (expires === undefined) return properties
    const { modern } = accessOf(this.#publisher) ?? { modern: true }
    // A clock that was set back must not extend the time.
    const left = Math.min(expires - Date.now(), expires - at)
    const seconds = Math.min(longestExpiry, Math.max(1, Math.ceil(left / 1000)))
    return modern ? { ...properties, messageExpiryInterval: seconds } : properties
  }

  #arm(group: Group): void {
    group.timer = setTimeout(() => this.#handleTimeout(group), this.#config.publishTimeout)
  }

  // Only time with a connection counts.
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

  // Watches the publisher once, however many groups need it.
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
    // If another attempt is under way or waits, this late acknowledgement counts for it: the
    // message has arrived.
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
