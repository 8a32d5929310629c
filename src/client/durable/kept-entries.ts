/**
 * Publishes of entries of queues that lie in the store of the session: each entry and its publish end in one batch.
 *
 * The queue makes that batch, or this does where no queue is there. Whoever opens the queue meanwhile joins the publish that is under way, and hears of
 * one that has ended. It must never let an entry be published twice.
 */
import type { StoreOperation } from '../../store/store.js'
import type { PublishOptions, Receipt } from '../api/index.js'
import { type Deferred, deferred } from '../common/abort.js'
import type { EntryLink, EntryPublisher } from '../common/inside.js'
import { publishCall } from '../parsing/requests.js'
import { sessionLost } from '../publishing/queued-publish.js'
import type { Journal } from './journal.js'
import type { DurableHost } from './ports.js'

type Keys = Pick<EntryLink, 'key' | 'countsKey'>

/** One entry. */
interface KeptEntry {
  /** Who hears of its end. */
  link: EntryLink
  readonly outcome: Deferred<Receipt>
  /** The key of its publish; undefined before that was stored. */
  publish: string | undefined
  /** It has ended, and nobody heard of it. */
  over: { readonly error: unknown } | undefined
}

/** The end of an exchange. */
interface End {
  readonly error: unknown
  readonly receipt: Receipt | undefined
  /** Makes the record of one that failed, for those who come later. */
  failure(): StoreOperation
  /** To be called when the record of the publish is gone. */
  gone(): void
}

/** Nobody is there. */
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

  publishEntry(link: EntryLink, topic: string, payload: Uint8Array, options: PublishOptions): Promise<Receipt> {
    const { key } = link
    const known = this.#entries.get(key)
    if (known?.over !== undefined) this.#settle(link, known, known.over.error, unheard)
    if (known !== undefined) {
      known.link = link
      return known.outcome.promise
    }
    const call = publishCall(topic, payload, options)
    const entry = this.#add(link, undefined)
    const sent = this.#host.publishQueue.publish(call.topic, call.payload, { ...call.options, link })
    // What was stored ends with its exchange, whatever its caller was told.
    sent.catch((error) => {
      if (entry.publish === undefined) this.handleFailed(key, error)
    })
    return entry.outcome.promise
  }

  /** An earlier process has published this entry. */
  restore(keys: Keys, publish: string): EntryLink {
    return this.#add({ ...keys, ended: unheard }, publish).link
  }

  /** The publish of an earlier process is lost, with its session. */
  restoreFailed(keys: Keys, publish: string): void {
    const entry = this.#add({ ...keys, ended: unheard }, publish)
    entry.over = { error: sessionLost() }
    entry.outcome.reject(entry.over.error)
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

  /** Its exchange is over. */
  handleOver(key: string, { error, receipt, failure, gone }: End): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    if (!this.#settle(entry.link, entry, error, gone)) {
      entry.over = { error }
      const { countsKey } = entry.link
      const removals = [entry.publish ?? '', key, countsKey].map((each): StoreOperation => ({ type: 'delete', key: each }))
      this.#journal.write(error === undefined ? removals : [failure()], gone)
    }
    if (receipt === undefined) entry.outcome.reject(error)
    else entry.outcome.resolve(receipt)
  }

  #add(link: EntryLink, publish: string | undefined): KeptEntry {
    const entry: KeptEntry = { link, outcome: deferred(), publish, over: undefined }
    entry.outcome.promise.catch(unheard)
    this.#entries.set(link.key, entry)
    return entry
  }

  // False when nobody is there to hear of it.
  #settle(link: EntryLink, { publish = '' }: KeptEntry, error: unknown, gone: () => void): boolean {
    const changes: StoreOperation[] = [{ type: 'delete', key: publish }]
    // What was said about the publish before may still be on its way, and would bring it back.
    const made = (): void => (this.#journal.changes(publish) ? this.#journal.write(changes, gone) : gone())
    const heard = link.ended(error, changes, made)
    if (heard === undefined) return false
    this.#entries.delete(link.key)
    if (!heard) this.#journal.write(changes, gone)
    return true
  }
}
