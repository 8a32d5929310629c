/**
 * Publishes of entries of queues that lie in the store of the session: each entry and its publish end in one batch.
 *
 * The queue makes that batch, as it counts its entries. Where no queue is there, the end is kept until one is. A queue that is opened meanwhile joins the
 * publish that is under way, and hears of one that has ended. It must never let an entry be published twice, nor delete one.
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

/** One entry. */
interface KeptEntry {
  /** Who hears of its end. */
  link: EntryLink
  readonly outcome: Deferred<Receipt>
  /** The key of its publish; undefined before that was stored. */
  publish: string | undefined
  /** It has ended, and its queue did not hear of it, or it is not deleted yet; `stored` fulfils when the record that says so is safe. */
  over: { readonly error: unknown; readonly stored: Promise<void> } | undefined
}

/** No queue is open. */
const unheard = (): undefined => undefined

/** Entries whose publishes are under way, or have ended unheard. */
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
    const sent = this.#host.publishQueue.publish(call.topic, call.payload, {
      ...call.options,
      link,
    })
    // What was stored ends with its exchange, however the call ended.
    sent.catch((error) => {
      if (entry.publish === undefined) this.handleFailed(key, error)
    })
    return entry.outcome.promise
  }

  /** An earlier process has published this entry. */
  restore({ key }: Pick<EntryLink, 'key'>, publish: string): EntryLink {
    return this.#add({ key, ended: unheard }, publish).link
  }

  /** The publish of an earlier process has ended, and its queue did not hear of it: it was acknowledged, or lost with its session. */
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

  /** Forgets the ends of entries that are not in the store any more: no queue will ask for those. */
  async forgetDeleted(store: Store): Promise<void> {
    for (const [key, { over, publish = '' }] of [...this.#entries]) {
      if (over === undefined || (await store.get(key)) !== undefined) continue
      this.#entries.delete(key)
      await store.batch([{ type: 'delete', key: publish }])
    }
  }

  /** Its publish is stored now, under this key. */
  handleKept(key: string, publish: string): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.publish = publish
  }

  /** Its publish was never sent. */
  handleFailed(key: string, error: unknown): void {
    const entry = this.#entries.get(key)
    this.#entries.delete(key)
    entry?.outcome.reject(error)
  }

  /** Its exchange is over. `ending` makes the record that says so, for those who come later. */
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
    // Until the queue has deleted both, the record of a failure must not pass for one that was acknowledged: its identifier is free.
    const isFirst = heard === true && receipt === undefined
    if (heard === undefined || isFirst) this.#journal.write([ending()], stored.resolve)
    else stored.resolve()
    if (isFirst) void stored.promise.then(settle)
    else settle()
  }

  /** True while the publish of this entry is in flight, or its end was not heard. */
  isKept(key: string): boolean {
    return this.#entries.has(key)
  }

  /** The entry is gone, and so is its publish. */
  forgetEntry(key: string): void {
    if (this.#entries.get(key)?.over !== undefined) this.#entries.delete(key)
  }

  /** The client is over, or its store: how they end is for the next one. */
  stop(error = withOutcome(closedError(), 'unknown')): void {
    for (const { outcome } of this.#entries.values()) outcome.reject(error)
  }

  async #join(link: EntryLink, known: KeptEntry): Promise<Receipt> {
    known.link = link
    const { over } = known
    if (over !== undefined) {
      // What ends it must not come before the record of its end.
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

  // Whether the entry goes; undefined when its queue is not there.
  #settle(link: EntryLink, { publish = '' }: KeptEntry, error: unknown): boolean | undefined {
    const changes: StoreOperation[] = [{ type: 'delete', key: publish }]
    const heard = link.ended(error, changes)
    if (heard === undefined) return undefined
    // What the queue is to delete is known here until it has done so: it may be closed before that.
    if (heard) return true
    this.#entries.delete(link.key)
    this.#journal.insist(changes)
    return false
  }
}
