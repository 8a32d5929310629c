/**
 * `mqwire/store/level` in browsers and workers: a store in IndexedDB, with a Web Lock that keeps other tabs out.
 *
 * A database of its own for each name, of version 1, so that no opening can be blocked by an older one. It gives way when the database is deleted,
 * and fails from then on. It must never take a lock from its owner.
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
/** Bytes of one page of a range, what each entry costs beside its value included. */
const pageBytes = 65_536
const overhead = 64

/** See `level.ts`. The database and the lock are called `mqwire:` and the location. */
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

/** Opens the database under its lock, which is held until the database is closed. */
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
      // Another owner took the lock: two must not write.
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
  /** Fulfils when it was closed, by whomever. */
  readonly closed: Promise<void>
  /** Closes it; what is under way comes to its end. */
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
    // Who deletes the database does not wait for us.
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
      // A view would be stored with all of the memory that it is a view of.
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
    // IndexedDB refuses a range that holds nothing.
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

  /** Runs a transaction; what `work` gives says what came of it. */
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

/** A value that is not bytes was put there by other code: a damaged record. */
function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0)
}
