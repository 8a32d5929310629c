/**
 * `mqwire/store/file`: a store in a folder, in Node, without a native module. It is one log of
 * batches with checksums; the place of each value is kept in memory.
 *
 * The log is `mqwire.log`; `file-log.ts` defines its format. A log of which a sync failed is never
 * continued, because its contents are unknown: the live entries are written to a new log. The same
 * happens when most of the log is dead. The new log, `mqwire.new`, is synced before it takes the
 * name.
 *
 * A second file, the reserve, holds space for a full disk, as much as the live entries take.
 * Deletions and the small records of sessions then succeed, and the log can be rewritten without
 * its dead part. If the system limits the length of a file, a deletion for which the log has no
 * space goes into the log that replaces it.
 *
 * @module
 */
import type { Stats } from 'node:fs'
import {
  appendFile,
  type FileHandle,
  open,
  readdir,
  rename,
  stat,
  statfs,
  truncate,
  unlink,
} from 'node:fs/promises'
import { join } from 'node:path'
import { platform } from 'node:process'
import { MqttError } from '../errors.js'
import { storeError } from './base/backed-store.js'
import type { Backend } from './base/backend.js'
import { SortedMap } from './base/sorted-map.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
import { isSame, lockedCode, lockFolder } from './file-lock.js'
import {
  applyFrame,
  encodeFrame,
  headerLength,
  headerOf,
  newSalt,
  type Position,
  readAt,
  recover,
  saltOf,
} from './file-log.js'
import {
  bytesOf,
  isFull,
  isUrgent,
  mostReserved,
  preparedFolder,
  reserveStep,
  whenFree,
} from './folder.js'
import { checkOptions, type FileStoreOptions } from './options.js'
import { KeepingStore } from './session-store.js'

export type { FileStoreOptions } from './options.js'

const logName = 'mqwire.log'
/** Most entries and bytes of one page. */
const mostInPage = { entries: 1000, bytes: 65_536 }
/** Values with at most this many bytes between them are read at once. */
const mostBetween = 4096
/** A log is compacted from this many bytes on, when it is twice as long as its live entries. */
const shortestCompacted = 4_194_304
/** Bytes of a deletion, and of a live entry, besides key and value. */
const deletionLength = 48
const entryLength = 6

/**
 * Opens the store in a folder, which is created if missing and must contain nothing else. For Node;
 * browsers have no files.
 *
 * Keys and the places of their values are in memory: about 100 bytes plus the key for each entry.
 * Values are only on disk. Opening reads the whole log.
 *
 * @throws MqttError ERR_STORE_LOCKED, ERR_ABORTED, ERR_INVALID_OPTION; ERR_STORE when it cannot be
 * opened, or its log is damaged
 */
export async function fileStore(location: string, options: FileStoreOptions = {}): Promise<Store> {
  checkOptions(location, options, 'fileStore')
  try {
    const folder = await preparedFolder(location, logName)
    if ((await readdir(folder)).includes('CURRENT'))
      throw new MqttError('ERR_STORE', `store: ${location} holds a store of levelStore()`)
    const unlock = await whenFree(
      () => withReserve(folder, () => lockFolder(folder)),
      lockedCode,
      location,
      options,
    )
    try {
      const backend = new FileBackend(folder, options.durability !== 'os', unlock)
      await withReserve(folder, () => backend.open(options.repair === true))
      return new KeepingStore(backend)
    } catch (error) {
      await unlock()
      throw error
    }
  } catch (error) {
    throw storeError(error)
  }
}

/** On a full disk, deletes the reserve and tries again. */
async function withReserve<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isFull(error)) throw error
    await unlink(join(folder, 'mqwire.reserve')).catch(() => undefined)
    return work()
  }
}

type Frame = { readonly at: number; readonly bytes: Buffer }
type Entry = readonly [key: string, position: Position]

class FileBackend implements Backend {
  readonly #folder: string
  readonly #path: string
  readonly #reserve: string
  readonly #sync: boolean
  readonly #unlock: () => Promise<void>
  /** Identity of the folder, independent of its name. */
  #place: Stats | undefined
  /** Set by `open`. */
  #log!: FileHandle
  #salt!: Buffer
  #index = new SortedMap<Position>()
  /** End of the last valid frame, and how far the log is certainly on disk. */
  #end = headerLength
  #synced = headerLength
  /** Something was written since it was opened. */
  #changed = false
  /** A sync failed: this log must not be continued. */
  #isSuspect = false
  /** Bytes of a failed batch are behind the end. */
  #isTorn = false
  #compaction: Promise<void> | undefined
  /** Number of dead bytes from which compaction is tried again after a failure. */
  #compactFrom = 0
  /** The disk was full, and the reserve has not been restored since. */
  #isFull = false
  #reserved = 0
  /** Most bytes that the reserve may have. */
  #mostReserved = Number.POSITIVE_INFINITY
  /** The system's limit for the bytes of a file, as far as writes have discovered it. */
  #most = Number.POSITIVE_INFINITY
  /** Bytes of the live entries in a log, and of deleting each of them. */
  #live = 0
  #deletions = 0

  constructor(folder: string, sync: boolean, unlock: () => Promise<void>) {
    this.#folder = folder
    this.#path = join(folder, logName)
    this.#reserve = join(folder, 'mqwire.reserve')
    this.#sync = sync
    this.#unlock = unlock
  }

  async open(repair: boolean): Promise<void> {
    await this.#assertInPlace()
    await unlink(this.#newPath).catch(() => undefined)
    this.#reserved = await sizeOf(this.#reserve)
    const log = await open(this.#path, 'r+').catch((error) => {
      if (error.code !== 'ENOENT') throw error
    })
    try {
      if (log === undefined) return await this.#rewrite()
      this.#log = log
      await this.#recover(repair)
    } catch (error) {
      // Undefined when the first log could not be created.
      await (this.#log as FileHandle | undefined)?.close()
      throw error
    }
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const position = this.#index.get(key)
    if (position === undefined) return undefined
    const [value] = await this.#read([[key, position]])
    return value
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#compaction
    await this.#mend()
    const urgent = isUrgent(operations)
    try {
      // Urgent changes do not wait for the reserve.
      if (!urgent || !this.#isFull) await this.#keepReserve(operations)
    } catch (error) {
      if (!urgent) throw error
    }
    // The remaining space is kept for deletions.
    if (
      this.#isFull &&
      this.#reserved === 0 &&
      hasPut(operations) &&
      (await this.#free()) < this.#deletions + reserveStep / 2
    )
      throw noRoom()
    try {
      if (!urgent) await this.#keepBelowLimit(operations)
      await this.#append(operations)
    } catch (error) {
      if (urgent && isTooLong(error)) return await this.#rewrite(operations)
      if (!isFull(error)) throw error
      this.#isFull = true
      if (!urgent) throw error
      await this.#giveUpReserve()
      await this.#mend()
      await this.#append(operations)
    } finally {
      this.#compactIfDue()
    }
  }

  async page({ limit = mostInPage.entries, ...range }: StoreRange): Promise<StoreEntry[]> {
    const entries: Entry[] = []
    let bytes = 0
    for (const entry of this.#index.within(range)) {
      entries.push(entry)
      bytes += entry[1].length
      if (entries.length >= Math.min(limit, mostInPage.entries) || bytes >= mostInPage.bytes) break
    }
    const values = await this.#read(entries)
    return entries.map(([key], at) => [key, values[at] as Uint8Array])
  }

  async close(): Promise<void> {
    try {
      await this.#compaction
      if (this.#changed && !this.#isSuspect) {
        await this.#syncUp()
        // An empty batch records that everything before it was synced, so that later damage is not
        // mistaken for a torn end. Skipped on a full disk.
        await this.#append([]).catch(() => undefined)
      }
    } finally {
      await this.#log.close().finally(this.#unlock)
    }
  }

  get #newPath(): string {
    return join(this.#folder, 'mqwire.new')
  }

  async #recover(repair: boolean): Promise<void> {
    this.#index.clear()
    this.#live = 0
    this.#deletions = 0
    this.#salt = await saltOf(this.#log)
    const { size } = await this.#log.stat()
    const { end, isRepaired } = await recover(
      this.#log,
      size,
      this.#salt,
      repair,
      (key, position) => this.#apply(key, position),
    )
    if (end < size) await this.#log.truncate(end)
    this.#end = end
    // Syncs what was found, because its writer may have died before syncing it.
    await this.#syncUp()
    if (isRepaired) await this.#rewrite()
  }

  #apply(key: string, position: Position | undefined): void {
    const before = position === undefined ? this.#index.delete(key) : this.#index.set(key, position)
    if (position !== undefined) this.#live += entryLength + key.length + position.length
    if (before !== undefined) this.#live -= entryLength + key.length + before.length
    const more = Number(position !== undefined) - Number(before !== undefined)
    this.#deletions += more * (deletionLength + key.length)
  }

  /** All reads start in this turn, so that closing the log waits for them. */
  async #read(entries: readonly Entry[]): Promise<Uint8Array[]> {
    const order = entries
      .map((_, at) => at)
      .sort((one, other) => placeOf(entries[one]) - placeOf(entries[other]))
    const values: Uint8Array[] = new Array(entries.length)
    const reads: Promise<void>[] = []
    for (let first = 0; first < order.length; ) {
      const from = placeOf(entries[order[first] as number])
      let end = from
      let next = first
      while (next < order.length) {
        const [, { at, length }] = entries[order[next] as number] as Entry
        if (at > end + mostBetween) break
        end = Math.max(end, at + length)
        next++
      }
      const run = order.slice(first, next)
      reads.push(
        readAt(this.#log, from, end - from).then((bytes) => {
          for (const each of run) {
            const [, { at, length }] = entries[each] as Entry
            values[each] = new Uint8Array(bytes.subarray(at - from, at - from + length))
          }
        }),
      )
      first = next
    }
    await Promise.all(reads)
    return values
  }

  async #append(operations: readonly StoreOperation[]): Promise<void> {
    const at = this.#end
    const frame = encodeFrame(operations, this.#salt, at, this.#synced)
    try {
      await writeAt(this.#log, frame, at)
    } catch (error) {
      this.#isTorn = true
      if (isTooLong(error)) this.#most = await sizeOf(this.#path)
      await this.#mend().catch(() => undefined)
      throw error
    }
    if (this.#sync) {
      try {
        await this.#log.datasync()
      } catch (error) {
        this.#isSuspect = true
        // The failed batch may be on disk all the same.
        await this.#log.truncate(at).catch(() => undefined)
        throw error
      }
      this.#synced = at + frame.length
    }
    this.#end = at + frame.length
    this.#changed = true
    applyFrame(frame, at, (key, position) => this.#apply(key, position))
  }

  async #syncUp(): Promise<void> {
    if (this.#synced === this.#end) return
    await this.#log.datasync()
    this.#synced = this.#end
  }

  async #mend(): Promise<void> {
    if (this.#isSuspect) {
      const { end } = await recover(this.#log, this.#end, this.#salt, false, () => undefined)
      if (end < this.#end)
        throw new MqttError('ERR_STORE', `store: the log is damaged at byte ${end}`)
      await this.#rewrite().catch(async (error) => {
        if (!isFull(error) || this.#reserved === 0) throw error
        await this.#giveUpReserve()
        await this.#rewrite()
      })
    }
    if (!this.#isTorn) return
    await this.#log.truncate(this.#end)
    this.#isTorn = false
  }

  #compactIfDue(): void {
    const dead = this.#end - this.#live
    const isDue = this.#isFull
      ? dead > reserveStep
      : this.#end > shortestCompacted && dead > this.#live
    if (!isDue || dead < this.#compactFrom || this.#isSuspect) return
    this.#compaction = this.#rewrite()
      .catch(() => {
        // The current log is still valid. A suspect one is repaired by the next write.
        this.#compactFrom = dead + reserveStep
      })
      .finally(() => {
        this.#compaction = undefined
      })
  }

  /**
   * With a file length limit, changes other than deletions leave some space, so that a few
   * deletions do not each cause a compaction.
   */
  async #keepBelowLimit(operations: readonly StoreOperation[]): Promise<void> {
    const margin = Math.min(reserveStep / 2, this.#most / 4)
    const most = this.#most - margin - bytesOf(operations)
    if (this.#end > most && this.#end - this.#live > margin) await this.#rewrite()
    if (this.#end <= most) return
    // This write fails, or the limit no longer exists.
    await writeAt(this.#log, Buffer.alloc(1), this.#most)
    this.#most = Number.POSITIVE_INFINITY
    this.#isTorn = true
    await this.#mend()
  }

  /** Bytes of a log of the live entries after these changes. */
  #lengthAfter(operations: readonly StoreOperation[]): number {
    let live = this.#live
    for (const each of operations) {
      const before = this.#index.get(each.key)
      if (before !== undefined) live -= entryLength + each.key.length + before.length
      if (each.type === 'put') live += entryLength + each.key.length + each.value.length
    }
    // Overhead of the frames.
    return live + live / 1024 + 256
  }

  /**
   * Writes the live entries to a new log, which replaces this one. `more`: changes to include, for
   * which this log has no space.
   */
  async #rewrite(more: readonly StoreOperation[] = []): Promise<void> {
    if (more.length > 0 && this.#lengthAfter(more) > this.#most)
      throw Object.assign(new Error('EFBIG: file too large'), { code: 'EFBIG' })
    await this.#assertInPlace()
    const [path, salt, index] = [this.#newPath, newSalt(), new SortedMap<Position>()]
    if (this.#isFull && (await this.#free()) < this.#live + reserveStep / 4) throw noRoom()
    const log = await open(path, 'w+', 0o600)
    const changed = new Set(more.map(({ key }) => key))
    let end = headerLength
    let last: Frame
    try {
      await writeAt(log, headerOf(salt), 0)
      for (let after = ''; ; ) {
        const page = await this.page({ gt: after })
        const kept = page
          .filter(([key]) => !changed.has(key))
          .map(([key, value]): StoreOperation => ({ type: 'put', key, value }))
        // The last frame records that everything before it was synced: see `close`.
        last = { at: end, bytes: encodeFrame(page.length === 0 ? more : kept, salt, end, end) }
        await writeAt(log, last.bytes, end)
        applyFrame(last.bytes, end, (key, position) =>
          position === undefined ? index.delete(key) : index.set(key, position),
        )
        end += last.bytes.length
        if (page.length === 0) break
        after = (page.at(-1) as StoreEntry)[0]
      }
      await log.sync()
      await rename(path, this.#path)
    } catch (error) {
      await log.close()
      await unlink(path).catch(() => undefined)
      throw error
    }
    applyFrame(last.bytes, last.at, (key, position) => this.#apply(key, position))
    const before = this.#log as FileHandle | undefined
    this.#log = log
    this.#salt = salt
    this.#index = index
    this.#end = end
    this.#synced = end
    this.#isTorn = false
    this.#compactFrom = 0
    // Until the folder is synced, the previous log may reappear after a crash.
    this.#isSuspect = true
    await before?.close().catch(() => undefined)
    await syncFolder(this.#folder)
    this.#isSuspect = false
  }

  // If the folder was moved, its name may belong to another store, whose log must not be replaced.
  async #assertInPlace(): Promise<void> {
    const now = await stat(this.#folder)
    this.#place ??= now
    if (!isSame(this.#place, now))
      throw new MqttError('ERR_STORE', 'store: another folder has taken the place of this one')
  }

  async #free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#folder)
    return bavail * bsize
  }

  async #giveUpReserve(): Promise<void> {
    this.#isFull = true
    this.#reserved = 0
    await unlink(this.#reserve).catch(() => undefined)
  }

  /** Called before changes that may be refused. */
  async #keepReserve(operations: readonly StoreOperation[]): Promise<void> {
    let [live, deletions] = [this.#live, this.#deletions]
    for (const each of operations) {
      if (each.type === 'delete') continue
      deletions += deletionLength + each.key.length
      live += deletionLength + each.key.length + each.value.length
    }
    // Space for all live entries once more, or at least for deleting all of them.
    const wanted = Math.min(
      reserveStep + Math.max(Math.min(live, mostReserved), deletions),
      this.#mostReserved,
    )
    if (this.#reserved >= wanted) {
      this.#isFull = false
      return
    }
    try {
      await this.#growReserve(wanted)
      this.#isFull = false
    } catch (error) {
      // A file length limit is not a full disk: the log may have space.
      if (isTooLong(error)) this.#mostReserved = this.#reserved
      if (!isFull(error)) return
      this.#isFull = true
      this.#compactIfDue()
      await this.#compaction
      await this.#mend()
      await this.#growReserve(wanted)
      this.#isFull = false
    }
  }

  async #growReserve(wanted: number): Promise<void> {
    const step = Math.ceil((wanted - this.#reserved) / reserveStep) * reserveStep
    if (this.#isFull && (await this.#free()) < step) throw noRoom()
    try {
      await appendFile(this.#reserve, new Uint8Array(step), { mode: 0o600 })
      this.#reserved += step
    } catch (error) {
      await truncate(this.#reserve, this.#reserved).catch(() => undefined)
      throw error
    }
  }
}

const placeOf = (entry: Entry | undefined): number => (entry as Entry)[1].at

const isTooLong = (error: unknown): boolean => (error as { code?: unknown }).code === 'EFBIG'

const hasPut = (operations: readonly StoreOperation[]): boolean =>
  operations.some(({ type }) => type === 'put')

const noRoom = (): Error =>
  Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

async function writeAt(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done)
    done += bytesWritten
  }
}

/** Makes a rename durable. Not available on Windows. */
async function syncFolder(folder: string): Promise<void> {
  if (platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
