/**
 * The entries of one queue in its store: numbered keys, a record of their number and size, and writes that are gathered.
 *
 * One batch is under way at a time; what is asked for meanwhile goes into the next. So the record of the counts always fits the batch that it is in, and
 * many calls share one sync. A batch that fails changes nothing: additions in it reject, removals are tried again without them.
 */
import { type Deferred, deferred } from '../client/common/abort.js'
import { MqttError } from '../errors.js'
import { isOfLaterVersion, openRecord, quarantine, sealRecord } from '../store/record.js'
import type { Store, StoreOperation } from '../store/store.js'
import { decodeEntry, encodeEntry, type QueueEntry } from './entry.js'

/** Digits of a number in a key: as many as the largest safe one has. */
const digits = 16
/** Entries that are read at once. */
const pageSize = 100
/** Most changes and bytes in one batch. */
const mostChanges = 1024
const mostBatchBytes = 4 * 1024 * 1024

/** An entry with the size of its record. */
export interface StoredEntry {
  readonly entry: QueueEntry
  readonly size: number
}

/** What was read at once. */
export interface Page {
  readonly entries: readonly StoredEntry[]
  /** Number of the last one, damaged or not. */
  readonly last: number
  /** There may be more behind it. */
  readonly more: boolean
}

/** An entry that is to be added, with its record. */
export interface Addition {
  readonly entry: Omit<QueueEntry, 'id'>
  readonly value: Uint8Array
}

/** The record of an entry. */
export function additionOf(entry: Omit<QueueEntry, 'id'>): Addition {
  return { entry, value: sealRecord(encodeEntry(entry)) }
}

interface Change {
  readonly operations: readonly StoreOperation[]
  readonly count: number
  readonly bytes: number
  /** It takes room. */
  readonly adds: boolean
  readonly done: Deferred<void>
}

/** The entries of one queue. */
export class EntryLog {
  /** Entries and their bytes that are safe in the store. */
  count = 0
  bytes = 0
  readonly #store: Store
  readonly #prefix: string
  readonly #told: (key: string) => void
  #next = 1
  /** Entries and bytes that additions under way will take. */
  #claimed = 0
  #claimedBytes = 0
  #changes: Change[] = []
  #writing: Promise<void> | undefined

  constructor(store: Store, name: string, told: (key: string) => void) {
    this.#store = store
    this.#prefix = `q/${name}/`
    this.#told = told
  }

  /** Reads the counts, or counts. @throws MqttError ERR_STORE */
  async open(): Promise<void> {
    const meta = await this.#get(this.#metaKey)
    const counts = meta && (await this.#openMeta(meta))
    if (counts === undefined) for await (const { entry, size } of this.entries()) this.#recount(entry.id, size)
    else [this.count, this.bytes, this.#next] = counts
    // Never a number again, whatever the record says.
    for await (const key of this.#keys({ reverse: true, limit: 1 })) this.#next = Math.max(this.#next, this.#idOf(key) + 1)
  }

  /** The number that the next entry will have. */
  get next(): number {
    return this.#next
  }

  /** Adds an entry, and deletes others in the same batch. Gives it with its number at once; `done` fulfils when it is safe. */
  add({ entry: given, value }: Addition, instead: readonly StoredEntry[]): { readonly stored: StoredEntry; readonly done: Promise<void> } {
    const entry = { ...given, id: this.#next }
    this.#next += 1
    const removals = instead.map(({ entry: { id } }): StoreOperation => ({ type: 'delete', key: this.#keyOf(id) }))
    const operations: StoreOperation[] = [...removals, { type: 'put', key: this.#keyOf(entry.id), value }]
    const freed = instead.reduce((sum, { size }) => sum + size, 0)
    const done = this.#change({ operations, count: 1 - instead.length, bytes: value.length - freed, adds: true, done: deferred() })
    return { stored: { entry, size: value.length }, done }
  }

  /** True when there is room for one more of this size, with what is about to be added. */
  fits(size: number, maxEntries: number, maxBytes: number, freed: readonly StoredEntry[] = []): boolean {
    const bytes = freed.reduce((sum, stored) => sum - stored.size, this.bytes + this.#claimedBytes + size)
    return this.count + this.#claimed - freed.length < maxEntries && bytes <= maxBytes
  }

  /** Deletes entries, and makes other changes in the same batch. @throws MqttError ERR_STORE */
  remove(entries: readonly StoredEntry[], also: readonly StoreOperation[] = []): Promise<void> {
    const operations = entries.map(({ entry: { id } }): StoreOperation => ({ type: 'delete', key: this.#keyOf(id) }))
    const bytes = entries.reduce((sum, { size }) => sum - size, 0)
    return this.#change({ operations: [...operations, ...also], count: -entries.length, bytes, adds: false, done: deferred() })
  }

  /** The next entries behind this number, and how far this has read. Damaged ones are put aside. @throws MqttError ERR_STORE */
  async read(after: number, limit: number): Promise<Page> {
    const entries: StoredEntry[] = []
    let last = after
    let seen = 0
    for await (const [key, value] of this.#read({ after, limit })) {
      const id = this.#idOf(key)
      assertKnown(value)
      const body = openRecord(value)
      const entry = body && decodeEntry(id, body)
      if (entry !== undefined) entries.push({ entry, size: value.length })
      else await this.#putAside(key, value)
      last = id
      seen += 1
    }
    return { entries, last, more: seen >= limit }
  }

  /** Every entry behind this number, read as they are asked for. @throws MqttError ERR_STORE */
  async *entries(after = 0): AsyncIterableIterator<StoredEntry> {
    for (let at = after; ; ) {
      const { entries, last, more } = await this.read(at, pageSize)
      yield* entries
      if (!more) return
      at = last
    }
  }

  /** Nothing is left, as whoever has read to the end knows: what the counts say besides is of damaged records. */
  settle(): void {
    if (this.#changes.length > 0 || this.#writing !== undefined) return
    this.count = 0
    this.bytes = 0
  }

  /** Waits for what was asked for. */
  async idle(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  get #metaKey(): string {
    return `${this.#prefix}m`
  }

  #keyOf(id: number): string {
    return `${this.#prefix}e/${String(id).padStart(digits, '0')}`
  }

  #idOf(key: string): number {
    return Number(key.slice(-digits))
  }

  async #get(key: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#store.get(key)
    } catch (error) {
      throw storeError(error)
    }
  }

  async *#read({ after = 0, limit, reverse = false }: { after?: number; limit?: number | undefined; reverse?: boolean }) {
    const range = { gt: this.#keyOf(after), lt: `${this.#prefix}e0`, limit, reverse }
    try {
      for await (const entry of this.#store.entries(range)) yield entry
    } catch (error) {
      throw storeError(error)
    }
  }

  async *#keys(how: { readonly reverse: boolean; readonly limit: number }): AsyncIterableIterator<string> {
    for await (const [key] of this.#read(how)) yield key
  }

  async #openMeta(value: Uint8Array): Promise<readonly [number, number, number] | undefined> {
    assertKnown(value)
    const body = openRecord(value)
    if (body?.length === 24) {
      const view = new DataView(body.buffer, body.byteOffset)
      return [view.getFloat64(0), view.getFloat64(8), view.getFloat64(16)]
    }
    await quarantine(this.#store, this.#metaKey, value, 'damaged')
    this.#told(this.#metaKey)
    return undefined
  }

  #recount(id: number, size: number): void {
    this.count += 1
    this.bytes += size
    this.#next = Math.max(this.#next, id + 1)
  }

  async #putAside(key: string, value: Uint8Array): Promise<void> {
    try {
      await quarantine(this.#store, key, value, 'damaged')
    } catch (error) {
      throw storeError(error)
    }
    if (this.count > 0) {
      this.count -= 1
      this.bytes = Math.max(0, this.bytes - value.length)
    }
    this.#told(key)
  }

  #change(change: Change): Promise<void> {
    this.#changes.push(change)
    this.#claim(change, 1)
    this.#writing ??= this.#write()
    return change.done.promise
  }

  #claim({ count, bytes }: Change, by: 1 | -1): void {
    this.#claimed += by * Math.max(0, count)
    this.#claimedBytes += by * Math.max(0, bytes)
  }

  async #write(): Promise<void> {
    // Calls of one turn share a batch.
    await undefined
    while (this.#changes.length > 0) {
      const group = this.#changes.splice(0, this.#fitting())
      const error = await this.#commit(group)
      if (error === undefined) continue
      // What frees room must not fail with what takes it.
      const removals = group.filter(({ adds }) => !adds)
      const alone = removals.length < group.length && removals.length > 0 ? await this.#commit(removals) : error
      for (const change of group) if (change.adds || alone !== undefined) this.#fail(change, error)
    }
    // In the same turn: what is asked for next begins anew.
    this.#writing = undefined
  }

  #fail(change: Change, error: MqttError): void {
    this.#claim(change, -1)
    change.done.reject(error)
  }

  // How many of the changes make one batch.
  #fitting(): number {
    let bytes = 0
    const end = this.#changes.findIndex((change, index) => {
      bytes += Math.max(0, change.bytes)
      return index > 0 && (index >= mostChanges || bytes > mostBatchBytes)
    })
    return end < 0 ? this.#changes.length : end
  }

  async #commit(group: readonly Change[]): Promise<MqttError | undefined> {
    const count = group.reduce((sum, change) => sum + change.count, this.count)
    const bytes = group.reduce((sum, change) => sum + change.bytes, this.bytes)
    try {
      await this.#store.batch([...group.flatMap(({ operations }) => operations), this.#metaOf(count, bytes)])
    } catch (error) {
      return storeError(error)
    }
    this.count = count
    this.bytes = bytes
    for (const change of group) {
      this.#claim(change, -1)
      change.done.resolve()
    }
    return undefined
  }

  #metaOf(count: number, bytes: number): StoreOperation {
    const body = new Uint8Array(24)
    const view = new DataView(body.buffer)
    for (const [index, value] of [count, bytes, this.#next].entries()) view.setFloat64(index * 8, value)
    return { type: 'put', key: this.#metaKey, value: sealRecord(body) }
  }
}

// What a later release wrote is no damage: it stays as it is.
function assertKnown(record: Uint8Array): void {
  if (isOfLaterVersion(record)) throw new MqttError('ERR_STORE', 'the queue was written by a later version of this package')
}

/** Whatever a store rejects with, as `ERR_STORE`. */
export function storeError(error: unknown): MqttError {
  return MqttError.is(error) && error.code === 'ERR_STORE' ? error : new MqttError('ERR_STORE', undefined, { cause: error })
}
