/**
 * Reads entries from the store before they are published, in order, at most `mostAhead` of them.
 *
 * `handleAdded` must be called for each entry added to the store. No entry is read twice, so a
 * caller that takes an entry and does not delete it must give it back.
 */
import { deferred } from '../common/abort.js'
import type { Changes } from './changes.js'
import type { EntryLog, StoredEntry } from './entry-log.js'
import type { Lines } from './lines.js'

/** Most entries, and bytes, read ahead. */
const mostAhead = 1024
const mostBytesAhead = 4 * 1024 * 1024
/** Entries that `clear` deletes at once. */
const mostCleared = 1024

/** Entries between the store and those under way. */
export class Lookahead {
  readonly #lines: Lines
  readonly #log: EntryLog
  readonly #batchSize: number
  readonly #changes: Changes
  /** True for a waiting entry whose publish is in flight since an earlier process. */
  readonly #isKept: (stored: StoredEntry) => boolean
  /** The last entry read, and whether the store has no later one. */
  #read = 0
  #complete = false
  #filling: Promise<void> | undefined
  /** A `clear` or `remove` is running, and the end of the last one requested. */
  #clearing = false
  #cleared: Promise<void> = Promise.resolve()

  constructor(
    lines: Lines,
    log: EntryLog,
    batchSize: number,
    changes: Changes,
    isKept: (stored: StoredEntry) => boolean,
  ) {
    this.#lines = lines
    this.#log = log
    this.#batchSize = batchSize
    this.#changes = changes
    this.#isKept = isKept
  }

  /** True while there may be more to read and there is space. */
  get wanting(): boolean {
    return !this.#clearing && !this.#complete && this.#hasRoom
  }

  /** Reads as much as there is space for. @throws MqttError ERR_STORE */
  fill(): Promise<void> {
    this.#filling ??= this.#load()
    return this.#filling
  }

  /** Reading has stopped: waiting callers check again. */
  handleRead(): void {
    this.#changes.notify()
  }

  /** An entry was stored. */
  handleAdded(stored: StoredEntry): void {
    // It was read meanwhile.
    if (stored.entry.id <= this.#read) return this.#changes.notify()
    if (this.#complete && this.#hasRoom && !this.#clearing && this.#filling === undefined) {
      this.#log.handleTaken(stored)
      this.#lines.add(stored)
      this.#read = stored.entry.id
    } else this.#complete = false
    this.#changes.notify()
  }

  /**
   * Removes and returns the oldest entry that is not under way, for the caller to delete; undefined
   * if all are under way.
   * @throws MqttError ERR_STORE
   */
  async takeOldest(): Promise<StoredEntry | undefined> {
    if (this.#lines.length === 0) await this.fill()
    const oldest = this.#lines.oldestOf((stored) => !this.#isKept(stored))
    if (oldest !== undefined) this.#lines.remove(oldest)
    return oldest
  }

  /** A removed entry was not deleted after all. */
  giveBack(stored: StoredEntry): void {
    this.#lines.add(stored)
    this.#changes.notify()
  }

  /**
   * Deletes all entries up to this number that are not under way; returns how many.
   * @throws MqttError ERR_STORE
   */
  clear(last: number, gone: (stored: StoredEntry) => void): Promise<number> {
    return this.#alone(() => this.#clear(last, gone))
  }

  async #clear(last: number, gone: (stored: StoredEntry) => void): Promise<number> {
    let count = 0
    const chunk: StoredEntry[] = []
    const take = (stored: StoredEntry): void =>
      void (this.#isKept(stored) ? this.#lines.add(stored) : chunk.push(stored))
    const drop = async (): Promise<void> => {
      if (chunk.length > 0) await this.#log.remove(chunk)
      count += chunk.length
      for (const stored of chunk.splice(0)) gone(stored)
    }
    try {
      this.#lines.clear().forEach(take)
      await drop()
      // Pending additions may have lower numbers than `last`; they are read later.
      for await (const stored of this.#log.entries(this.#read)) {
        if (stored.entry.id > last) break
        this.#log.handleTaken(stored)
        this.#read = stored.entry.id
        take(stored)
        if (chunk.length >= mostCleared) await drop()
      }
      await drop()
      return count
    } catch (error) {
      // They are not read again, so they must be put back.
      for (const stored of chunk) this.#lines.add(stored)
      throw error
    }
  }

  /**
   * Deletes and returns the entry with this number, unless it is under way.
   * @throws MqttError ERR_STORE
   */
  remove(id: number): Promise<StoredEntry | undefined> {
    return this.#alone(() => this.#remove(id))
  }

  async #remove(id: number): Promise<StoredEntry | undefined> {
    const waiting = this.#lines.oldestOf(({ entry }) => entry.id === id)
    const stored =
      waiting ?? (id > this.#read ? (await this.#log.read(id - 1, 1)).entries[0] : undefined)
    if (stored === undefined || stored.entry.id !== id || this.#isKept(stored)) return undefined
    if (waiting !== undefined) this.#lines.remove(waiting)
    await this.#log.remove([stored]).catch((error) => {
      if (waiting !== undefined) this.#lines.add(waiting)
      throw error
    })
    if (waiting === undefined) this.#log.handlePassedOver(stored)
    return stored
  }

  // One at a time, in the order of the calls, because two could delete and count the same entry.
  // Nothing is read or published meanwhile.
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#cleared
    const { promise, resolve } = deferred<void>()
    this.#cleared = promise
    await before
    this.#clearing = true
    try {
      await this.#filling
      return await work()
    } finally {
      this.#clearing = false
      this.#complete = false
      resolve()
      this.#changes.notify()
    }
  }

  get #hasRoom(): boolean {
    return this.#lines.length < mostAhead && this.#lines.bytes < mostBytesAhead
  }

  async #load(): Promise<void> {
    // Deferred, so that all callers share it from the first step.
    await undefined
    try {
      while (this.wanting) await this.#readOn()
    } finally {
      this.#filling = undefined
    }
  }

  async #readOn(): Promise<void> {
    // Entries added meanwhile may or may not be seen.
    this.#complete = true
    try {
      const settle = this.#log.settling()
      const { entries, last, more } = await this.#log.read(this.#read, this.#batchSize)
      for (const stored of entries) {
        this.#log.handleTaken(stored)
        this.#lines.add(stored)
      }
      this.#read = last
      if (more) this.#complete = false
      else settle()
      this.#changes.notify()
    } catch (error) {
      this.#complete = false
      throw error
    }
  }
}
