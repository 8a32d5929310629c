/**
 * Queue entries that are published from the same store as the session: an entry and its publish end
 * in one batch.
 *
 * The queue creates that batch, because it counts its entries. If no queue is open, the end is
 * recorded until one is. A queue that opens meanwhile joins the publish in progress, or learns how
 * it ended. An entry is never published twice, and never deleted here.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import { closedError, withOutcome } from '../../common/outcome.js'
import type { Store, StoreOperation } from '../../store/base/store.js'
import type { EntryPublisher } from '../access.js'
import { publishCall } from '../options/check-calls.js'
import type { EntryLink } from '../options/hidden.js'
import type { PublishOptions, Receipt } from '../options/index.js'
import { sessionLost } from '../publish/queued-publish.js'
import type { Journal } from './journal.js'
import type { DurableHost } from './ports.js'

/** A queue entry that is being published. */
interface KeptEntry {
  /** The queue, which is informed of the end. */
  link: EntryLink
  readonly outcome: Deferred<Receipt>
  /** The key of the stored publish; undefined before it is stored. */
  publish: string | undefined
  /**
   * Set when it has ended but the queue was not informed, or has not deleted it yet; `stored`
   * resolves when the record of the end is written.
   */
  over: { readonly error: unknown; readonly stored: Promise<void> } | undefined
}

/** The result when no queue is open. */
const unheard = (): undefined => undefined

/** Entries whose publish is in progress, or ended without a queue. */
export class KeptEntries implements EntryPublisher {
  readonly #host: DurableHost
  readonly #journal: Journal
  readonly #entries = new Map<string, KeptEntry>()

  constructor(host: DurableHost, journal: Journal) {
    this.#host = host
    this.#journal = journal
  }

  publishEntry(
    link: EntryLink,
    topic: string,
    payload: Uint8Array,
    options: PublishOptions,
  ): Promise<Receipt> {
    const { key } = link
    const known = this.#entries.get(key)
    if (known !== undefined) return this.#join(link, known)
    const call = publishCall(topic, payload, options)
    const entry = this.#add(link, undefined)
    const sent = this.#host.publishing.publish(call.topic, call.payload, {
      ...call.options,
      link,
    })
    // Once stored, it ends with its exchange, whatever becomes of the call.
    sent.catch((error) => {
      if (entry.publish === undefined) this.handleFailed(key, error)
    })
    return entry.outcome.promise
  }

  /** An earlier process was publishing this entry. */
  restore({ key }: Pick<EntryLink, 'key'>, publish: string): EntryLink {
    return this.#add({ key, ended: unheard }, publish).link
  }

  /**
   * The publish of an earlier process ended without its queue being informed: acknowledged, or lost
   * with the session.
   */
  restoreEnded(
    { key }: Pick<EntryLink, 'key'>,
    publish: string,
    acknowledged: Receipt | undefined,
  ): void {
    const entry = this.#add({ key, ended: unheard }, publish)
    entry.over = {
      error: acknowledged === undefined ? sessionLost() : undefined,
      stored: Promise.resolve(),
    }
    if (acknowledged === undefined) entry.outcome.reject(entry.over.error)
    else entry.outcome.resolve(acknowledged)
  }

  /** Deletes records for entries that are no longer in the store: no queue will ask for them. */
  async forgetDeleted(store: Store): Promise<void> {
    for (const [key, { over, publish = '' }] of [...this.#entries]) {
      if (over === undefined || (await store.get(key)) !== undefined) continue
      this.#entries.delete(key)
      await store.batch([{ type: 'delete', key: publish }])
    }
  }

  /** The publish is stored under this key. */
  handleKept(key: string, publish: string): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.publish = publish
  }

  /** The publish was never sent. */
  handleFailed(key: string, error: unknown): void {
    const entry = this.#entries.get(key)
    this.#entries.delete(key)
    entry?.outcome.reject(error)
  }

  /** The exchange is over. `ending` creates the record that says so. */
  handleOver(
    key: string,
    error: unknown,
    receipt: Receipt | undefined,
    ending: () => StoreOperation,
  ): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    const heard = this.#settle(entry.link, entry, error)
    const stored = deferred<void>()
    const settle = (): void =>
      receipt === undefined ? entry.outcome.reject(error) : entry.outcome.resolve(receipt)
    if (heard !== false) entry.over = { error, stored: stored.promise }
    // Until the queue has deleted both, a failed publish must not be taken for an acknowledged one,
    // because its identifier is free again.
    const isFirst = heard === true && receipt === undefined
    if (heard === undefined || isFirst) this.#journal.write([ending()], stored.resolve)
    else stored.resolve()
    if (isFirst) void stored.promise.then(settle)
    else settle()
  }

  /** True while the entry's publish is in flight, or its queue was not informed of the end. */
  isKept(key: string): boolean {
    return this.#entries.has(key)
  }

  /** The entry and its publish were deleted. */
  forgetEntry(key: string): void {
    if (this.#entries.get(key)?.over !== undefined) this.#entries.delete(key)
  }

  /** The client has ended or the store is closed: how they end is for the next client. */
  stop(error = withOutcome(closedError(), 'unknown')): void {
    for (const { outcome } of this.#entries.values()) outcome.reject(error)
  }

  async #join(link: EntryLink, known: KeptEntry): Promise<Receipt> {
    known.link = link
    const { over } = known
    if (over !== undefined) {
      // Waits for the record of the end, so that deletions come after it.
      await Promise.race([over.stored, this.#journal.idle()])
      this.#settle(link, known, over.error)
    }
    return known.outcome.promise
  }

  #add(link: EntryLink, publish: string | undefined): KeptEntry {
    const entry: KeptEntry = { link, outcome: deferred(), publish, over: undefined }
    entry.outcome.promise.catch(unheard)
    this.#entries.set(link.key, entry)
    return entry
  }

  // Informs the queue. Returns whether the queue deletes the entry; undefined when no queue is
  // open.
  #settle(link: EntryLink, { publish = '' }: KeptEntry, error: unknown): boolean | undefined {
    const changes: StoreOperation[] = [{ type: 'delete', key: publish }]
    const heard = link.ended(error, changes)
    if (heard === undefined) return undefined
    // Stays registered until the queue has deleted it, because the queue may be closed before that.
    if (heard) return true
    this.#entries.delete(link.key)
    this.#journal.insist(changes)
    return false
  }
}
