/**
 * The entries of one queue: their number and size, and batched writes.
 *
 * One batch is written at a time; changes requested meanwhile go into the next one. So each batch
 * contains matching counts, and many calls share one sync. A failed batch counts as not written:
 * its additions reject, and its removals are retried without them. If a failed addition was stored
 * all the same, the next batch deletes it.
 */

import type { StoredPublish } from '../client/options/hidden.js'
import { type Deferred, deferred } from '../common/abort.js'
import { withOutcome } from '../common/outcome.js'
import type { MqttError } from '../errors.js'
import { isClosed } from '../store/base/backed-store.js'
import type { Store, StoreOperation } from '../store/base/store.js'
import type { QueueEntry } from './entry.js'
import { EntryRecords, recordOf, type Suspect } from './entry-records.js'
import { FailedNumbers } from './failed-numbers.js'

/** Entries read at once. */
const pageSize = 100
/** Most changes and bytes in one batch. */
const mostChanges = 1024
const mostBatchBytes = 4 * 1024 * 1024

/** An entry with the size of its record. */
export interface StoredEntry {
  readonly entry: QueueEntry
  readonly size: number
}

/** Entries read at once. */
export interface Page {
  readonly entries: readonly StoredEntry[]
  /** Number of the last one, including damaged ones. */
  readonly last: number
  /** There may be more after it. */
  readonly more: boolean
}

/** An entry to be added, with its record. */
export interface Addition {
  readonly entry: Omit<QueueEntry, 'id'>
  readonly value: Uint8Array
  /** Changes for the same batch, and the changes that undo them. */
  readonly also: readonly StoreOperation[]
  readonly undo: readonly StoreOperation[]
}

/** The record of an entry. */
export function additionOf(
  { topic, payload, qos, retain, properties, at, expires }: Omit<QueueEntry, 'id'>,
  also: Addition['also'] = [],
  undo = also,
): Addition {
  const entry = { topic, payload, qos, retain, properties, at, expires }
  return { entry, value: recordOf(entry), also, undo }
}

interface Change {
  readonly operations: readonly StoreOperation[]
  readonly count: number
  readonly bytes: number
  /** The number of the entry that it adds; undefined for other changes. */
  readonly adds: number | undefined
  /** Bytes of that entry. */
  readonly size: number
  readonly done: Deferred<void>
}

/** The entries of one queue. */
export class EntryLog {
  /** Number of the stored entries. */
  count = 0
  /** Their bytes; below 0 while a damaged record counts with a length that it did not have before. */
  #bytes = 0
  /** Of those, the entries not yet taken for publishing; and the last entry that was. */
  #unread = 0
  #unreadBytes = 0
  #taken = 0
  readonly #records: EntryRecords
  #next = 1
  /** Entries and bytes of pending additions. */
  #claimed = 0
  #claimedBytes = 0
  /** Numbers of pending additions, in order. */
  readonly #adding = new Set<number>()
  readonly #failed = new FailedNumbers()
  /** The entry on which connections ended most recently, and how often. */
  #suspect: Suspect | undefined
  /** Changes to undo when an addition fails. */
  readonly #undo = new Map<number, readonly StoreOperation[]>()
  /** Keys of failed removals that may be deleted all the same. */
  readonly #doubtful = new Set<string>()
  /**
   * Bytes of damaged records that could not be moved, by number: they are counted only in the
   * store.
   */
  readonly #staying = new Map<number, number>()
  #changes: Change[] = []
  #writing: Promise<void> | undefined
  #stopped = false
  readonly #handleRoom: () => void

  /** @param handleRoom called when entries turned out to be damaged or gone, which makes room */
  constructor(
    store: Store,
    name: string,
    reportDamaged: (key: string) => void,
    handleRoom: () => void,
  ) {
    this.#records = new EntryRecords(store, name, reportDamaged)
    this.#handleRoom = handleRoom
  }

  /** Bytes of the stored entries. */
  get bytes(): number {
    return Math.max(0, this.#bytes)
  }

  /** Reads the counts, or counts the entries. @throws MqttError ERR_STORE */
  async open(): Promise<void> {
    const counts = await this.#records.readCounts()
    // A count that is not a number was in doubt.
    this.#next = counts?.next ?? 1
    this.#suspect = counts?.suspect
    const [count, bytes] =
      counts === undefined || Number.isNaN(counts.count)
        ? await this.#recounted()
        : [counts.count, counts.bytes]
    this.#add(count, bytes)
    this.#handOver(-count, -bytes)
    // A number is never reused, whatever the record says.
    this.#next = Math.max(this.#next, (await this.#records.lastId()) + 1)
  }

  /** The key of an entry. */
  keyOf({ entry: { id } }: StoredEntry): string {
    return this.#records.deleting(id).key
  }

  /**
   * Stores how many connections ended on an entry, together with the counts, until the entry is
   * deleted.
   */
  countOf({ entry: { id } }: StoredEntry): StoredPublish {
    const suspect = (strikes: number): Promise<void> | undefined => {
      if (this.#stopped) return undefined
      this.#suspect = strikes > 0 ? { id, strikes } : undefined
      return this.#change({
        operations: [],
        count: 0,
        bytes: 0,
        adds: undefined,
        size: 0,
        done: deferred(),
      }).catch(() => undefined)
    }
    return { strikes: this.#suspect?.id === id ? this.#suspect.strikes : 0, suspect }
  }

  /** The number of the next entry. */
  get next(): number {
    return this.#next
  }

  /** Entries are being stored. */
  get adding(): boolean {
    return this.#claimed > 0
  }

  /**
   * Adds an entry, and deletes others in the same batch. Returns it with its number at once; `done`
   * resolves when it is stored.
   */
  add(
    { entry: given, value, also, undo }: Addition,
    instead: readonly StoredEntry[],
  ): { readonly stored: StoredEntry; readonly done: Promise<void> } {
    const entry = { ...given, id: this.#next }
    this.#next += 1
    const removals = instead.map(({ entry: { id } }) => this.#records.deleting(id))
    const operations = [...removals, ...also, this.#records.putting(entry.id, value)]
    if (undo.length > 0) this.#undo.set(entry.id, undo)
    this.#adding.add(entry.id)
    const freed = instead.reduce((sum, { size }) => sum + size, 0)
    const done = this.#change({
      operations,
      count: 1 - instead.length,
      bytes: value.length - freed,
      adds: entry.id,
      size: value.length,
      done: deferred(),
    })
    return { stored: { entry, size: value.length }, done }
  }

  /** True when one more entry of this size fits, including pending additions. */
  fits(
    size: number,
    maxEntries: number,
    maxBytes: number,
    freed: readonly StoredEntry[] = [],
  ): boolean {
    const bytes = freed.reduce(
      (sum, stored) => sum - stored.size,
      this.bytes + this.#claimedBytes + size,
    )
    return this.count + this.#claimed - freed.length < maxEntries && bytes <= maxBytes
  }

  /** Deletes entries and makes other changes in the same batch. @throws MqttError ERR_STORE */
  remove(entries: readonly StoredEntry[], also: readonly StoreOperation[] = []): Promise<void> {
    if (entries.some(({ entry: { id } }) => id === this.#suspect?.id)) this.#suspect = undefined
    const operations = entries.map(({ entry: { id } }) => this.#records.deleting(id))
    const bytes = entries.reduce((sum, { size }) => sum - size, 0)
    return this.#change({
      operations: [...operations, ...also],
      count: -entries.length,
      bytes,
      adds: undefined,
      size: 0,
      done: deferred(),
    })
  }

  /** Deletes what failed additions may have left. @throws MqttError ERR_STORE */
  async clean(): Promise<void> {
    while (!this.#failed.isEmpty) await this.remove([])
  }

  /**
   * The next entries after this number, and how far this has read. Damaged records are set aside.
   * Entries whose addition is pending are not returned, because a store may show them and still
   * refuse the write.
   * @throws MqttError ERR_STORE
   */
  async read(after: number, limit: number): Promise<Page> {
    const entries: StoredEntry[] = []
    let last = after
    let seen = 0
    const [unsafe = Number.POSITIVE_INFINITY] = this.#adding
    for await (const { id, size, entry, stays } of this.#records.rows(after, limit)) {
      if (id >= unsafe || this.#adding.has(id)) break
      if (entry === undefined) this.#handleDamaged(id, size, stays)
      else if (!this.#failed.has(id)) entries.push({ entry, size })
      last = id
      seen += 1
    }
    return { entries, last, more: seen >= limit }
  }

  /** All entries after this number, read on demand. @throws MqttError ERR_STORE */
  async *entries(after = 0): AsyncIterableIterator<StoredEntry> {
    for (let at = after; ; ) {
      const { entries, last, more } = await this.read(at, pageSize)
      yield* entries
      if (!more) return
      at = last
    }
  }

  /**
   * This entry was taken for publishing. Entries are taken in the order of their numbers;
   * repetitions do not count.
   */
  handleTaken({ entry: { id }, size }: StoredEntry): void {
    if (id <= this.#taken) return
    this.#taken = id
    this.#handOver(1, size)
  }

  /** This entry was deleted and will not be read. */
  handlePassedOver({ size }: StoredEntry): void {
    this.#handOver(1, size)
  }

  /**
   * Call before the last entries are read. Returns a function to call when all of them were taken:
   * entries that were counted but not found no longer exist.
   */
  settling(): () => void {
    const next = this.#writing === undefined ? this.#next : undefined
    return () => {
      if (next !== this.#next) return
      if (this.#unread === 0 && this.#unreadBytes === 0) return
      this.#add(-this.#unread, -this.#unreadBytes)
      this.#handOver(this.#unread, this.#unreadBytes)
      this.#handleRoom()
    }
  }

  /**
   * The queue is closed: pending changes no longer update the counts, which another queue may be
   * using by then.
   */
  stop(): Promise<void> {
    this.#stopped = true
    return this.idle()
  }

  /** Waits for pending changes. */
  async idle(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  async #recounted(): Promise<readonly [count: number, bytes: number]> {
    let [count, bytes] = [0, 0]
    for await (const { size } of this.entries()) {
      count += 1
      bytes += size
    }
    // Damaged records were set aside and are not counted.
    this.#unread = 0
    this.#unreadBytes = 0
    return [count, bytes]
  }

  #add(count: number, bytes: number): void {
    this.count = Math.max(0, this.count + count)
    // A damaged record may have had another length.
    this.#bytes = this.count === 0 ? 0 : this.#bytes + bytes
  }

  #handOver(count: number, bytes: number): void {
    this.#unread -= count
    this.#unreadBytes -= bytes
  }

  // Stops counting the entry, unless it was read before it was damaged.
  #handleDamaged(id: number, size: number, stays: boolean): void {
    const known = this.#staying.delete(id)
    if (stays && (known || id > this.#taken)) this.#staying.set(id, size)
    if (known || id <= this.#taken) return
    this.#add(-1, -size)
    this.#handOver(1, size)
    this.#handleRoom()
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
      if (isClosed(error)) {
        for (const change of group) this.#fail(change, withOutcome(error, 'not-sent'))
        continue
      }
      // Changes that free space must not fail together with additions.
      const removals = group.filter(({ adds }) => adds === undefined)
      for (const { adds } of group) if (adds !== undefined) this.#failed.add(adds)
      const alone = removals.length < group.length ? await this.#commit(removals) : error
      // A full store accepts only deletions; the counts are corrected by the next batch, or when
      // everything was read.
      const bare =
        alone === undefined
          ? []
          : removals.filter(({ operations }) => operations.every(({ type }) => type === 'delete'))
      const done = new Set(
        alone === undefined
          ? removals
          : bare.length > 0 && (await this.#commit(bare, false)) === undefined
            ? bare
            : [],
      )
      for (const change of group) {
        if (change.adds !== undefined)
          this.#fail(
            change,
            withOutcome(error, (await this.#mayBeThere(change.adds)) ? 'unknown' : 'not-sent'),
          )
        else if (!done.has(change)) {
          for (const { key } of change.operations) this.#doubtful.add(key)
          this.#fail(change, error)
        }
      }
    }
    // Reset in the same turn, so that the next call starts a new run.
    this.#writing = undefined
  }

  async #mayBeThere(id: number): Promise<boolean> {
    return this.#failed.has(id) && (await this.#records.has(id))
  }

  #fail(change: Change, error: MqttError): void {
    this.#claim(change, -1)
    this.#adding.delete(change.adds ?? 0)
    change.done.reject(error)
  }

  // Number of changes that fit one batch.
  #fitting(): number {
    let bytes = 0
    const end = this.#changes.findIndex((change, index) => {
      bytes += Math.max(0, change.bytes)
      return index > 0 && (index >= mostChanges || bytes > mostBatchBytes)
    })
    return end < 0 ? this.#changes.length : end
  }

  async #commit(group: readonly Change[], counted = true): Promise<MqttError | undefined> {
    const count = group.reduce((sum, change) => sum + change.count, 0)
    const bytes = group.reduce((sum, change) => sum + change.bytes, 0)
    const failed = this.#failed.first(mostChanges)
    const undoing = failed.flatMap((id) => [
      this.#records.deleting(id),
      ...(this.#undo.get(id) ?? []),
    ])
    const operations = group.flatMap((change) => change.operations)
    const doubtful = new Set(this.#doubtful)
    for (const { key } of operations) doubtful.delete(key)
    // In doubt, the next process counts the entries.
    const isKnown = doubtful.size === 0
    const stayingBytes = [...this.#staying.values()].reduce((sum, each) => sum + each, 0)
    const all = isKnown ? this.count + count + this.#staying.size : Number.NaN
    const size = isKnown ? this.bytes + bytes + stayingBytes : Number.NaN
    const counts = counted
      ? [
          this.#records.counting({
            count: all,
            bytes: size,
            next: this.#next,
            suspect: this.#suspect,
          }),
        ]
      : []
    try {
      await this.#records.write([...undoing, ...operations, ...counts])
    } catch (error) {
      return error as MqttError
    }
    this.#failed.forget(failed.length)
    for (const id of failed) this.#undo.delete(id)
    for (const { key } of operations) this.#doubtful.delete(key)
    // Damaged records may have been found meanwhile.
    this.#add(count, bytes)
    for (const change of group) {
      this.#claim(change, -1)
      this.#adding.delete(change.adds ?? 0)
      change.done.resolve()
      if (change.adds === undefined) continue
      this.#handOver(-1, -change.size)
      this.#undo.delete(change.adds)
    }
    return undefined
  }
}
