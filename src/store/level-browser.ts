/**
 * `mqwire/store/level` in browsers and workers: a store in IndexedDB, with a Web Lock that keeps other tabs out.
 *
 * A database of its own for each name, of version 1, so that no opening can be blocked by an older one. It gives way when somebody deletes the database,
 * and fails from then on. It must never take a lock from its owner.
 *
 * @module
 */
import { MqttError } from '../errors.js'
import { BackedStore, storeError } from './backed-store.js'
import type { Backend } from './backend.js'
import { aborted, checkOptions, type LevelStoreOptions, locked } from './options.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './store.js'

export type { LevelStoreOptions } from './options.js'

const records = 'records'
/** Bytes of one page of a range, what each entry costs beside its value included. */
const pageBytes = 65_536
const overhead = 64

/** See `level.ts`. The database and the lock are called `mqwire:` and the location. */
export async function levelStore(location: string, options: LevelStoreOptions = {}): Promise<Store> {
  checkOptions(location, options)
  const { durability = 'sync', persist } = options
  const { indexedDB, navigator, IDBTransaction } = globalThis as Partial<typeof globalThis>
  assertThere(indexedDB, 'location', 'IndexedDB')
  assertThere(navigator?.locks, 'lock', 'Web Locks')
  if (durability === 'sync') assertThere(IDBTransaction && 'durability' in IDBTransaction.prototype, 'durability', "'sync'")
  if (persist) {
    assertThere(navigator?.storage?.persist, 'persist', 'it')
    await navigator?.storage.persist()
  }
  try {
    const release = await lockOf(`mqwire:${location}`, location, options)
    try {
      return new BackedStore(new DatabaseBackend(await openDatabase(`mqwire:${location}`), durability, release))
    } catch (error) {
      release()
      throw error
    }
  } catch (error) {
    throw storeError(error)
  }
}

function assertThere(feature: unknown, option: string, what: string): void {
  if (!feature) throw new MqttError('ERR_UNSUPPORTED_OPTION', `unsupported option: ${option}; this browser has not ${what} here`, { option })
}

/** Gives what lets go of the lock. */
function lockOf(name: string, location: string, { lock, signal }: LevelStoreOptions): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const hold = (free: Lock | null): Promise<void> | undefined => {
      if (free !== null) return new Promise((release) => resolve(release))
      reject(locked(location))
      return undefined
    }
    navigator.locks
      .request(name, lock === 'wait' ? ({ signal } as LockOptions) : { ifAvailable: true }, hold)
      .catch((error) => reject(signal?.aborted ? aborted(signal) : error))
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
  readonly #database: IDBDatabase
  readonly #durability: IDBTransactionDurability
  readonly #release: () => void

  constructor(database: IDBDatabase, durability: 'sync' | 'os', release: () => void) {
    this.#database = database
    this.#durability = durability === 'sync' ? 'strict' : 'relaxed'
    this.#release = release
    const giveWay = (): void => void this.close()
    database.onversionchange = giveWay
    database.onclose = giveWay
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
      for (const each of operations) each.type === 'put' ? store.put(new Uint8Array(each.value), each.key) : store.delete(each.key)
      return () => undefined
    })
  }

  async page({ gt, gte = '', lt, lte, reverse, limit = Number.POSITIVE_INFINITY }: StoreRange): Promise<StoreEntry[]> {
    const entries: StoreEntry[] = []
    const [lower, upper] = [gt ?? gte, lt ?? lte]
    const isEmpty = upper !== undefined && (lower > upper || (lower === upper && (gt ?? lt) !== undefined))
    // IndexedDB refuses a range that holds nothing.
    if (isEmpty) return entries
    const above = gt !== undefined
    const range = upper === undefined ? IDBKeyRange.lowerBound(lower, above) : IDBKeyRange.bound(lower, upper, above, lt !== undefined)
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

  async close(): Promise<void> {
    this.#database.close()
    this.#release()
  }

  /** Runs a transaction; what `work` gives says what came of it. */
  #run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const transaction = this.#database.transaction(records, mode, { durability: this.#durability })
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

/** What is no bytes was put there by somebody else: a damaged record. */
function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0)
}
