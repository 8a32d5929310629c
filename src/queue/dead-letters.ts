/**
 * Dead letters that are kept in a store: those that no retry can deliver, with why.
 *
 * At most `mostLetters` are kept; the oldest make room.
 */
import type { MqttError } from '../errors.js'
import { openRecord, quarantine, sealRecord } from '../store/base/record.js'
import type { Store, StoreOperation } from '../store/base/store.js'
import { decodeEntry, encodeEntry, type QueueEntry } from './entry.js'
import { storeError } from './entry-records.js'
import type { DeadLetterBox, KeptLetter } from './types.js'

const mostLetters = 10_000
const digits = 16
/** Keys that are deleted at once. */
const chunkSize = 1000

/** The dead letters of one queue. */
export class DeadLetters implements DeadLetterBox {
  readonly #store: Store
  readonly #prefix: string
  readonly #queue: (entry: QueueEntry) => Promise<unknown>
  readonly #told: (key: string) => void
  /** How many there are, once it is known. */
  #count: number | undefined

  constructor(store: Store, name: string, queue: (entry: QueueEntry) => Promise<unknown>, told: (key: string) => void) {
    this.#store = store
    this.#prefix = `q/${name}/d/`
    this.#queue = queue
    this.#told = told
  }

  /** What is to be written to keep a letter. @throws MqttError ERR_STORE */
  async keep(entry: QueueEntry, error: MqttError, at: number): Promise<readonly StoreOperation[]> {
    const [count, oldest] = await this.#survey()
    const removals = count < mostLetters || oldest === undefined ? [] : [{ type: 'delete' as const, key: oldest }]
    this.#count = count + 1 - removals.length
    const why = new TextEncoder().encode(JSON.stringify([error.code, error.reasonCode ?? null, at]))
    const record = encodeEntry(entry)
    const body = new Uint8Array(2 + why.length + record.length)
    new DataView(body.buffer).setUint16(0, why.length)
    body.set(why, 2)
    body.set(record, 2 + why.length)
    return [...removals, { type: 'put', key: this.#prefix + String(entry.id).padStart(digits, '0'), value: sealRecord(body) }]
  }

  async *entries(): AsyncIterableIterator<KeptLetter> {
    try {
      for await (const [key, value] of this.#store.entries(this.#range)) {
        const letter = letterOf(Number(key.slice(-digits)), openRecord(value))
        if (letter !== undefined) yield letter
        else {
          await quarantine(this.#store, key, value, 'damaged')
          this.#told(key)
        }
      }
    } catch (error) {
      throw storeError(error)
    }
  }

  async replay(ids?: readonly number[]): Promise<number> {
    let count = 0
    for await (const { entry } of this.entries()) {
      if (ids !== undefined && !ids.includes(entry.id)) continue
      await this.#queue(entry)
      await this.#delete([this.#prefix + String(entry.id).padStart(digits, '0')])
      count += 1
    }
    return count
  }

  async clear(): Promise<number> {
    let count = 0
    for (let keys = await this.#keys(chunkSize); keys.length > 0; keys = await this.#keys(chunkSize)) {
      await this.#delete(keys)
      count += keys.length
    }
    return count
  }

  get #range(): { readonly gt: string; readonly lt: string } {
    return { gt: this.#prefix, lt: `${this.#prefix.slice(0, -1)}0` }
  }

  async #survey(): Promise<readonly [count: number, oldest: string | undefined]> {
    const [oldest] = await this.#keys(1)
    this.#count ??= (await this.#keys(mostLetters)).length
    return [this.#count, oldest]
  }

  async #keys(limit: number): Promise<string[]> {
    const keys: string[] = []
    try {
      for await (const [key] of this.#store.entries({ ...this.#range, limit })) keys.push(key)
    } catch (error) {
      throw storeError(error)
    }
    return keys
  }

  async #delete(keys: readonly string[]): Promise<void> {
    try {
      await this.#store.batch(keys.map((key) => ({ type: 'delete', key })))
    } catch (error) {
      throw storeError(error)
    }
    if (this.#count !== undefined) this.#count = Math.max(0, this.#count - keys.length)
  }
}

function letterOf(id: number, body: Uint8Array | undefined): KeptLetter | undefined {
  try {
    if (body === undefined) return undefined
    const end = 2 + new DataView(body.buffer, body.byteOffset, body.length).getUint16(0)
    const [code, reasonCode, at] = JSON.parse(new TextDecoder().decode(body.subarray(2, end)))
    const entry = decodeEntry(id, body.subarray(end))
    return entry && { entry, code: String(code), reasonCode: reasonCode ?? undefined, at: Number(at) }
  } catch {
    return undefined
  }
}
