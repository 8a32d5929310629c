/**
 * Keys and records of one queue in its store: entries by number, and one record with counts.
 *
 * Every failure of the store becomes `ERR_STORE`. A record of a later version never counts as
 * damaged.
 */
import { MqttError } from '../errors.js'
import {
  headLength,
  isOfLaterVersion,
  openRecord,
  seal,
  sealRecord,
  setAside,
} from '../store/base/record.js'
import type { Store, StoreOperation } from '../store/base/store.js'
import { decodeEntry, encodeEntry, type QueueEntry } from './entry.js'

/** Digits of a number in a key: enough for the largest safe integer. */
const digits = 16

/** An entry on which connections ended, and how often. */
export interface Suspect {
  readonly id: number
  readonly strikes: number
}

/** Number of entries, their bytes, the next number, and the latest suspect. */
export interface Counts {
  readonly count: number
  readonly bytes: number
  readonly next: number
  readonly suspect: Suspect | undefined
}

/** The content of one number. */
export interface Row {
  readonly id: number
  /** Bytes of the record. */
  readonly size: number
  /** Undefined when the record was damaged; it is then set aside. */
  readonly entry: QueueEntry | undefined
  /** It was damaged and could not be moved. */
  readonly stays: boolean
}

/** The record of an entry. */
export function recordOf(entry: Omit<QueueEntry, 'id'>): Uint8Array {
  return seal(encodeEntry(entry, headLength))
}

/** Records of one queue. */
export class EntryRecords {
  readonly #store: Store
  readonly #prefix: string
  readonly #reportDamaged: (key: string) => void

  /** @param reportDamaged called with the key of each damaged record */
  constructor(store: Store, name: string, reportDamaged: (key: string) => void) {
    this.#store = store
    this.#prefix = `q/${name}/`
    this.#reportDamaged = reportDamaged
  }

  get #countsKey(): string {
    return `${this.#prefix}m`
  }

  putting(id: number, value: Uint8Array): StoreOperation {
    return { type: 'put', key: this.#keyOf(id), value }
  }

  deleting(id: number): StoreOperation {
    return { type: 'delete', key: this.#keyOf(id) }
  }

  counting({ count, bytes, next, suspect }: Counts): StoreOperation {
    const numbers = [
      count,
      bytes,
      next,
      ...(suspect === undefined ? [] : [suspect.id, suspect.strikes]),
    ]
    const body = new Uint8Array(numbers.length * 8)
    const view = new DataView(body.buffer)
    for (const [index, value] of numbers.entries()) view.setFloat64(index * 8, value)
    return { type: 'put', key: this.#countsKey, value: sealRecord(body) }
  }

  /** @throws MqttError ERR_STORE */
  async write(operations: readonly StoreOperation[]): Promise<void> {
    try {
      await this.#store.batch(operations)
    } catch (error) {
      throw storeError(error)
    }
  }

  /** False only if the store says that this number does not exist. */
  async has(id: number): Promise<boolean> {
    try {
      return (await this.#store.get(this.#keyOf(id))) !== undefined
    } catch {
      return true
    }
  }

  /** Undefined when the record is missing or damaged. @throws MqttError ERR_STORE */
  async readCounts(): Promise<Counts | undefined> {
    try {
      const value = await this.#store.get(this.#countsKey)
      if (value === undefined) return undefined
      assertKnown(value)
      const body = openRecord(value)
      if (body?.length === 24 || body?.length === 40) {
        const view = new DataView(body.buffer, body.byteOffset)
        const suspect =
          body.length === 24 ? undefined : { id: view.getFloat64(24), strikes: view.getFloat64(32) }
        return {
          count: view.getFloat64(0),
          bytes: view.getFloat64(8),
          next: view.getFloat64(16),
          suspect,
        }
      }
      await this.#putAside(this.#countsKey, value)
      return undefined
    } catch (error) {
      throw storeError(error)
    }
  }

  /**
   * All records after this number, including damaged ones, in order.
   * @throws MqttError ERR_STORE
   */
  async *rows(after: number, limit: number): AsyncIterableIterator<Row> {
    try {
      for await (const [key, value] of this.#store.entries({
        gt: this.#keyOf(after),
        lt: this.#end,
        limit,
      })) {
        const id = Number(key.slice(-digits))
        const body = openRecord(value)
        if (body === undefined) assertKnown(value)
        const entry = body && decodeEntry(id, body)
        const stays = entry === undefined && !(await this.#putAside(key, value))
        yield { id, size: value.length, entry, stays }
      }
    } catch (error) {
      throw storeError(error)
    }
  }

  /** The highest stored number; 0 when nothing is stored. @throws MqttError ERR_STORE */
  async lastId(): Promise<number> {
    try {
      for await (const [key] of this.#store.entries({
        gt: this.#keyOf(0),
        lt: this.#end,
        limit: 1,
        reverse: true,
      }))
        return Number(key.slice(-digits))
      return 0
    } catch (error) {
      throw storeError(error)
    }
  }

  // Upper bound of all numbers.
  get #end(): string {
    return `${this.#prefix}e0`
  }

  #keyOf(id: number): string {
    return `${this.#prefix}e/${String(id).padStart(digits, '0')}`
  }

  #putAside(key: string, value: Uint8Array): Promise<boolean> {
    return setAside(this.#store, key, value, this.#reportDamaged)
  }
}

// A record of a later version is not damaged and stays unchanged.
function assertKnown(record: Uint8Array): void {
  if (isOfLaterVersion(record))
    throw new MqttError('ERR_STORE', 'the queue was written by a later version of this package')
}

/** Converts any error of a store to `ERR_STORE`. */
export function storeError(error: unknown): MqttError {
  return MqttError.is(error) && error.code === 'ERR_STORE'
    ? error
    : new MqttError('ERR_STORE', undefined, { cause: error })
}
