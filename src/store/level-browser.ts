/**
 * `mqwire/store/level` in browsers and workers: a store in IndexedDB, with a Web Lock that excludes
 * other tabs.
 *
 * Each name has its own database of version 1, so that no older connection can block opening. If
 * the database is deleted, the store closes and fails from then on. A lock is never stolen from its
 * owner.
 *
 * @module
 */
import { MqttError } from '../errors.js'
import { storeError } from './base/backed-store.js'
import type { Backend } from './base/backend.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
import { aborted, checkOptions, type LevelStoreOptions, locked } from './options.js'
import { KeepingStore } from './session-store.js'

export type { LevelStoreOptions } from './options.js'

const records = 'records'
/** Bytes of one page of a range, and cost of an entry besides its value. */
const pageBytes = 65_536
const overhead = 64

/** See `level.ts`. Database and lock are named `mqwire:` plus the location. */
export async function levelStore(
  location: string,
  options: LevelStoreOptions = {},
): Promise<Store> {
  checkOptions(location, options)
  const { durability, persist } = options
  const { indexedDB, navigator, IDBTransaction } = globalThis as Partial<typeof globalThis>
  assertThere(indexedDB, 'location', 'IndexedDB')
  assertThere(navigator?.locks, 'lock', 'Web Locks')
  if (durability !== 'os')
    assertThere(IDBTransaction && 'durability' in IDBTransaction.prototype, 'durability', "'sync'")
  if (persist) {
    assertThere(navigator?.storage?.persist, 'persist', 'navigator.storage')
    await navigator?.storage.persist()
  }
  return whileLocked(`mqwire:${location}`, location, options)
}

function assertThere(feature: unknown, option: string, what: string): void {
  if (!feature)
    throw new MqttError(
      'ERR_UNSUPPORTED_OPTION',
      `unsupported option: ${option}; ${what} is not there in this browser`,
      { option },
    )
}

/** Opens the database while holding its lock until the database is closed. */
function whileLocked(
  name: string,
  location: string,
  { lock, signal, durability }: LevelStoreOptions,
): Promise<Store> {
  return new Promise((resolve, reject) => {
    let backend: DatabaseBackend | undefined
    const hold = async (free: Lock | null): Promise<void> => {
      if (free === null) throw locked(location)
      backend = new DatabaseBackend(
        await openDatabase(name),
        durability === 'os' ? 'relaxed' : 'strict',
      )
      resolve(new KeepingStore(backend))
      await backend.closed
    }
    const options = lock === 'wait' ? ({ signal } as LockOptions) : { ifAvailable: true }
    navigator.locks.request(name, options, hold).catch((error) => {
      // Another owner has stolen the lock; two must not write.
      backend?.close()
      reject(signal?.aborted ? aborted(signal) : storeError(error))
    })
  })
}

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(records)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

class DatabaseBackend implements Backend {
  /** Resolves when the database was closed by anyone. */
  readonly closed: Promise<void>
  /** Closes the database; pending transactions complete. */
  readonly close: () => Promise<void>
  readonly #database: IDBDatabase
  readonly #durability: IDBTransactionDurability

  constructor(database: IDBDatabase, durability: IDBTransactionDurability) {
    this.#database = database
    this.#durability = durability
    let release: () => void
    this.closed = new Promise((resolve) => {
      release = resolve
    })
    this.close = async () => {
      database.close()
      release()
    }
    // Deleting the database must not be blocked by this connection.
    database.onversionchange = this.close
    database.onclose = this.close
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#run('readonly', (store) => {
      const request = store.get(key)
      return () => (request.result === undefined ? undefined : bytesOf(request.result))
    })
  }

  write(operations: readonly StoreOperation[]): Promise<void> {
    return this.#run('readwrite', (store) => {
      // Storing a view would store its whole buffer.
      for (const each of operations)
        each.type === 'put'
          ? store.put(new Uint8Array(each.value), each.key)
          : store.delete(each.key)
      return () => undefined
    })
  }

  async page({
    gt,
    gte = '',
    lt,
    lte,
    reverse,
    limit = Number.POSITIVE_INFINITY,
  }: StoreRange): Promise<StoreEntry[]> {
    const entries: StoreEntry[] = []
    const [lower, upper] = [gt ?? gte, lt ?? lte]
    const isEmpty =
      upper !== undefined && (lower > upper || (lower === upper && (gt ?? lt) !== undefined))
    // IndexedDB refuses empty ranges.
    if (isEmpty) return entries
    const above = gt !== undefined
    const range =
      upper === undefined
        ? IDBKeyRange.lowerBound(lower, above)
        : IDBKeyRange.bound(lower, upper, above, lt !== undefined)
    let room = pageBytes
    return this.#run('readonly', (store) => {
      const request = store.openCursor(range, reverse ? 'prev' : 'next')
      request.onsuccess = () => {
        const cursor = request.result
        if (cursor === null) return
        const value = bytesOf(cursor.value)
        room -= value.length + overhead
        if (entries.push([cursor.key as string, value]) < limit && room > 0) cursor.continue()
      }
      return () => entries
    })
  }

  /** Runs a transaction; `work` returns a function that gives its result. */
  #run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const transaction = this.#database.transaction(records, mode, {
        durability: this.#durability,
      })
      transaction.onabort = () => reject(transaction.error)
      try {
        const result = work(transaction.objectStore(records))
        transaction.oncomplete = () => resolve(result())
      } catch (error) {
        reject(error)
        transaction.abort()
      }
    })
  }
}

/** A value other than bytes was stored by other code: a damaged record. */
function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0)
}
