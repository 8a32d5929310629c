/**
 * `mqwire/store/level` in Node: a store in a folder, kept by LevelDB through the optional peer
 * `classic-level`.
 *
 * The folder must contain nothing else. LevelDB's lock excludes other processes, and is released
 * with its process, however that ends. A log of which a write failed is never continued: what comes
 * behind the gap would be lost at the next start.
 *
 * LevelDB writes its logs again when it opens, and its tables when it merges them. If the disk has
 * no space for that, LevelDB does not open, or accepts no write. A separate file, the reserve,
 * holds that space, and is deleted when the disk is full. Deletions and the small records of
 * sessions then succeed; changes that take space are refused until there is space for the reserve
 * again.
 *
 * @module
 */
import { appendFile, readdir, stat, statfs, truncate, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClassicLevel } from 'classic-level'
import { MqttError } from '../errors.js'
import { storeError } from './base/backed-store.js'
import type { Backend } from './base/backend.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
import {
  bytesOf,
  isFull,
  isLight,
  isUrgent,
  mostReserved,
  preparedFolder,
  reserveStep,
  whenFree,
} from './folder.js'
import { checkOptions, type LevelStoreOptions } from './options.js'
import { KeepingStore } from './session-store.js'

export type { LevelStoreOptions } from './options.js'

/** Most entries and bytes of one page. */
const page = { entries: 1000, bytes: 65_536 }

/**
 * Without compression, a flipped bit damages one record instead of a block. Open files are
 * memory-mapped, 2 MiB each: with LevelDB's default of 1,000, reading through a store would take
 * two gigabytes.
 */
const settings = { valueEncoding: 'view', compression: false, maxOpenFiles: 100 } as const

/**
 * With free space of this many times what the write and the reserve take, the write does not wait
 * for the reserve.
 */
const ample = 4
/**
 * Bytes that LevelDB buffers before writing a table (its default); less on a small disk, because
 * the table takes the same space.
 */
const mostBuffered = 4_194_304
/** Milliseconds between compactions that search for space left by deletions. */
const compactionInterval = 1000

type Level = ClassicLevel<string, Uint8Array>

/**
 * Opens the store at a location: in Node a folder, which is created if missing and must contain
 * nothing else; in browsers the name of a database.
 *
 * @throws MqttError ERR_STORE_LOCKED, ERR_ABORTED, ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION;
 * ERR_STORE when it cannot be opened, or `classic-level` is not installed
 */
export async function levelStore(
  location: string,
  options: LevelStoreOptions = {},
): Promise<Store> {
  checkOptions(location, options)
  try {
    const { ClassicLevel: Level } = await peer()
    // The real path, because LevelDB's lock within a process compares names.
    const folder = await preparedFolder(location, 'CURRENT')
    const { blocks, bsize } = await statfs(folder)
    const writeBufferSize = Math.max(65_536, Math.min(mostBuffered, (blocks * bsize) / 16))
    const level: Level = new Level(folder, { ...settings, writeBufferSize })
    const backend = new LevelBackend(
      level,
      folder,
      options.durability !== 'os',
      2 * writeBufferSize,
    )
    await whenFree(() => backend.open(), 'LEVEL_LOCKED', location, options)
    return new KeepingStore(backend)
  } catch (error) {
    throw storeError(error)
  }
}

async function peer(): Promise<typeof import('classic-level')> {
  try {
    return await import('classic-level')
  } catch (cause) {
    throw new MqttError(
      'ERR_STORE',
      'levelStore needs the package classic-level: npm install classic-level',
      { cause },
    )
  }
}

class LevelBackend implements Backend {
  readonly #level: Level
  readonly #folder: string
  readonly #reserve: string
  readonly #sync: boolean
  readonly #margin: number
  #broken = false
  /** It is broken because the disk is full; it can still be read. */
  #full: unknown
  #mending: Promise<void> | undefined
  /** The reserve is growing while writes continue. */
  #growing: Promise<void> | undefined
  /** Bytes of the reserve; undefined until checked. */
  #reserved: number | undefined
  /** Bytes of LevelDB's files at the last check, plus what was written since. */
  #stored = Number.POSITIVE_INFINITY
  /** Something was deleted whose space LevelDB may still hold; and when it was last compacted. */
  #deleted = false
  #compacted = Number.NEGATIVE_INFINITY

  /** @param margin bytes that must remain free when the reserve grows */
  constructor(level: Level, folder: string, sync: boolean, margin: number) {
    this.#margin = margin
    this.#level = level
    this.#folder = folder
    this.#reserve = join(folder, 'reserve')
    this.#sync = sync
  }

  async open(): Promise<void> {
    try {
      await this.#open()
    } catch (error) {
      if (!isFull(error) || !(await this.#giveUpReserve())) throw error
      await this.#open()
    }
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    await this.#readable()
    const value = await this.#level.get(key)
    return value && plain(value)
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    const bytes = bytesOf(operations)
    const isReserved = isUrgent(operations) || (await this.#keepReserve(bytes))
    await this.#whole()
    try {
      await (isLight(operations) ? this.#writeChained(operations) : this.#writeWhole(operations))
    } catch (error) {
      this.#broken = true
      if (isFull(error)) await this.#handleFull(error)
      throw error
    }
    this.#stored += bytes
    this.#deleted ||= operations.some(({ type }) => type === 'delete')
    // Twice as much, so that the files are not checked for each step.
    if (!isReserved) this.#growing ??= this.#grow(2 * bytes)
  }

  async page({
    limit = page.entries,
    reverse = false,
    ...bounds
  }: StoreRange): Promise<StoreEntry[]> {
    await this.#readable()
    // An undefined bound would count as a bound.
    const given = Object.fromEntries(Object.entries(bounds).filter(([, key]) => key !== undefined))
    const size = Math.min(limit, page.entries)
    const iterator = this.#level.iterator({
      ...given,
      reverse,
      limit: size,
      highWaterMarkBytes: page.bytes,
    })
    try {
      return (await iterator.nextv(size)).map(([key, value]): StoreEntry => [key, plain(value)])
    } finally {
      await iterator.close()
    }
  }

  async close(): Promise<void> {
    await this.#growing
    await this.#level.close()
  }

  // Takes a quarter of the CPU time of an array batch. Its memory is freed only by the garbage
  // collector, which does not see its size, so it is used only for light batches.
  #writeChained(operations: readonly StoreOperation[]): Promise<void> {
    const batch = this.#level.batch()
    for (const each of operations) {
      if (each.type === 'put') batch.put(each.key, each.value)
      else batch.del(each.key)
    }
    return batch.write({ sync: this.#sync })
  }

  #writeWhole(operations: readonly StoreOperation[]): Promise<void> {
    const changes = operations.map((each) =>
      each.type === 'put' ? each : { type: 'del' as const, key: each.key },
    )
    return this.#level.batch(changes, { sync: this.#sync })
  }

  // An open store can be read, even with a full disk.
  async #readable(): Promise<void> {
    if (this.#full === undefined || this.#level.status !== 'open') await this.#whole()
  }

  // Reopening reads the log up to the gap and starts another one.
  async #whole(): Promise<void> {
    if (!this.#broken) return
    this.#mending ??= this.#mend()
    await this.#mending
  }

  async #mend(): Promise<void> {
    try {
      // If it could not be reopened, it could not be read either.
      if (
        this.#full !== undefined &&
        (await this.#free()) < (await this.#logged()) + reserveStep / 4
      )
        throw this.#full
      await this.#level.close()
      await this.open()
      this.#broken = false
      this.#full = undefined
    } finally {
      this.#mending = undefined
    }
  }

  async #open(): Promise<void> {
    try {
      await this.#level.open()
    } catch (error) {
      // The wrapped error is LevelDB's own.
      throw (error as Error).cause ?? error
    }
  }

  async #handleFull(error: unknown): Promise<void> {
    this.#full = error
    await this.#giveUpReserve()
  }

  async #free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#folder)
    return bavail * bsize
  }

  async #giveUpReserve(): Promise<boolean> {
    await this.#growing
    this.#reserved = 0
    return unlink(this.#reserve).then(
      () => true,
      () => false,
    )
  }

  // Called before `bytes` are written that may be refused. False: the disk has enough space, and
  // the reserve may grow after the write.
  async #keepReserve(bytes: number): Promise<boolean> {
    if (this.#suffices(bytes)) return true
    if (
      this.#full === undefined &&
      (await this.#free()) > ample * (bytes + this.#margin + mostReserved)
    )
      return false
    await this.#growing
    if (await this.#isReserved(bytes)) return true
    try {
      await this.#growReserve(this.#wanted(bytes))
    } catch (error) {
      if (!this.#deleted || performance.now() - this.#compacted < compactionInterval) throw error
      await this.#whole()
      this.#compacted = performance.now()
      this.#deleted = false
      await this.#level.compactRange('', '\u007f')
      if (!(await this.#isReserved(bytes))) await this.#growReserve(this.#wanted(bytes))
    }
    return true
  }

  // A failure here is handled by a later write.
  async #grow(bytes: number): Promise<void> {
    try {
      if (!(await this.#isReserved(bytes)))
        await this.#growReserve(Math.min(2 * this.#wanted(bytes), reserveStep + mostReserved))
    } catch {
      this.#reserved = undefined
    } finally {
      this.#growing = undefined
    }
  }

  #suffices(bytes: number): boolean {
    return this.#reserved !== undefined && this.#reserved >= this.#wanted(bytes)
  }

  #wanted(bytes: number): number {
    return reserveStep + Math.min(this.#stored + bytes, mostReserved)
  }

  // Bytes that LevelDB writes again when it opens: its logs, but not its tables.
  async #logged(): Promise<number> {
    return (await this.#files()).reduce(
      (sum, [name, size]) => (name.endsWith('.log') ? sum + size : sum),
      0,
    )
  }

  async #files(): Promise<(readonly [name: string, size: number])[]> {
    const names = await readdir(this.#folder)
    return Promise.all(
      names.map((name) =>
        stat(join(this.#folder, name)).then(
          ({ size }) => [name, size] as const,
          () => ['', 0] as const,
        ),
      ),
    )
  }

  async #isReserved(bytes: number): Promise<boolean> {
    if (this.#suffices(bytes)) return true
    const sizes = await this.#files()
    this.#reserved = sizes.find(([name]) => name === 'reserve')?.[1] ?? 0
    this.#stored = sizes.reduce((sum, [, size]) => sum + size, -this.#reserved)
    return this.#suffices(bytes)
  }

  async #growReserve(wanted: number): Promise<void> {
    const before = this.#reserved ?? 0
    const step = Math.ceil((wanted - before) / reserveStep) * reserveStep
    // The remaining space is LevelDB's: taking it even for a moment could make a write fail.
    if ((await this.#free()) < step + this.#margin)
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    try {
      await appendFile(this.#reserve, new Uint8Array(step), { mode: 0o600 })
      this.#reserved = before + step
    } catch (error) {
      await truncate(this.#reserve, before).catch(() => undefined)
      throw error
    }
  }
}

/** A plain view instead of a Buffer, whose `slice` does not copy. */
function plain({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length)
}
