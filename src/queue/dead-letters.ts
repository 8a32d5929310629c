/**
 * Dead letters in a store: entries that no retry can deliver, with the reason.
 *
 * At most `mostLetters` are kept; the oldest are deleted first. A letter gets the number of its
 * entry or, if that is taken, the next number after the last letter. Queues with the same name may
 * share a store of letters; they never replace each other's letters.
 */
import { MqttError } from '../errors.js'
import { openRecord, sealRecord, setAside } from '../store/base/record.js'
import type { Store, StoreEntry, StoreOperation } from '../store/base/store.js'
import { decodeEntry, encodeEntry, type QueueEntry } from './entry.js'
import { storeError } from './entry-records.js'
import type { DeadLetterBox, KeptLetter } from './types.js'

const mostLetters = 10_000
const digits = 16
/** Keys read or deleted at once. */
const chunkSize = 1000
/**
 * Most numbers remembered for letters that may not be written yet; more than queues have under way.
 */
const mostGiven = 4096

/** The letters of one name in one store, shared by all queues of this process that use it. */
interface Shelf {
  /** Their number, once known. */
  count: number | undefined
  /** Keys of the oldest letters read so far, which are deleted next; and the last key read. */
  oldest: string[]
  read: string | undefined
  /** Assigned numbers and their owners. */
  readonly given: Map<number, string>
  /**
   * Letters whose entries are not deleted yet, by owner: if the store fails, they may be written
   * again.
   */
  readonly unsettled: Map<string, number>
  /** Letters are kept, and boxes replayed, one after the other. */
  keeping: Promise<unknown>
  replaying: Promise<unknown>
}

const shelves = new WeakMap<Store, Map<string, Shelf>>()
let boxes = 0

/** Queues an entry, with other changes in the same batch and the changes that undo those. */
export type Requeue = (
  entry: QueueEntry,
  also: readonly StoreOperation[],
  undo: readonly StoreOperation[],
) => Promise<unknown>

/** The dead letters of one queue. */
export class DeadLetters implements DeadLetterBox {
  readonly #store: Store
  readonly #prefix: string
  readonly #shelf: Shelf
  readonly #queue: Requeue
  readonly #reportDamaged: (key: string) => void
  /** Letters and entries are in one store, so a letter is moved in one batch. */
  readonly #shared: boolean
  readonly #box = ++boxes

  constructor(
    store: Store,
    shared: boolean,
    name: string,
    queue: Requeue,
    reportDamaged: (key: string) => void,
  ) {
    this.#store = store
    this.#shared = shared
    this.#prefix = `q/${name}/d/`
    this.#queue = queue
    this.#reportDamaged = reportDamaged
    const all = shelves.get(store) ?? new Map<string, Shelf>()
    shelves.set(store, all)
    const none = Promise.resolve()
    const shelf = all.get(this.#prefix) ?? {
      count: undefined,
      oldest: [],
      read: undefined,
      given: new Map(),
      unsettled: new Map(),
      keeping: none,
      replaying: none,
    }
    all.set(this.#prefix, shelf)
    this.#shelf = shelf
  }

  /** Returns the changes that keep a letter. @throws MqttError ERR_STORE */
  keep(entry: QueueEntry, error: MqttError, at: number): Promise<readonly StoreOperation[]> {
    const kept = this.#shelf.keeping.then(() => this.#keep(entry, error, at))
    this.#shelf.keeping = kept.catch(() => undefined)
    return kept
  }

  /** The entry with this number was deleted. */
  settle(id: number): void {
    this.#shelf.unsettled.delete(this.#ownerOf(id))
  }

  /** The queue is closed: letters that were not written do not exist. */
  forget(): void {
    for (const owner of this.#shelf.unsettled.keys())
      if (owner.startsWith(this.#ownerOf(''))) this.#shelf.unsettled.delete(owner)
    this.#shelf.count = undefined
    this.#shelf.oldest = []
    this.#shelf.read = undefined
  }

  async *entries(): AsyncIterableIterator<KeptLetter> {
    for await (const [key, value] of this.#rows()) {
      const letter = await this.#open(key, value)
      if (letter !== undefined) yield letter
    }
  }

  async replay(ids?: readonly number[]): Promise<number> {
    if (
      ids !== undefined &&
      !(Array.isArray(ids) && ids.every((id) => Number.isSafeInteger(id) && id >= 1))
    )
      throw new MqttError('ERR_INVALID_OPTION', 'ids must be an array of numbers of letters', {
        option: 'ids',
      })
    const replayed = this.#shelf.replaying.then(() => this.#replay(ids))
    this.#shelf.replaying = replayed.catch(() => undefined)
    return replayed
  }

  async clear(): Promise<number> {
    let count = 0
    for (
      let keys = await this.#keys(chunkSize);
      keys.length > 0;
      keys = await this.#keys(chunkSize)
    ) {
      await this.#delete(keys)
      count += keys.length
    }
    return count
  }

  async #keep(entry: QueueEntry, error: MqttError, at: number): Promise<readonly StoreOperation[]> {
    const record = encodeEntry(entry)
    const why = new TextEncoder().encode(JSON.stringify([error.code, error.reasonCode ?? null, at]))
    const body = new Uint8Array(2 + why.length + record.length)
    new DataView(body.buffer).setUint16(0, why.length)
    body.set(why, 2)
    body.set(record, 2 + why.length)
    const { number, isNew } = await this.#numberFor(entry, record)
    this.#shelf.unsettled.set(this.#ownerOf(entry.id), number)
    const removals = isNew ? await this.#makeRoom() : []
    return [...removals, { type: 'put', key: this.#keyOf(number), value: sealRecord(body) }]
  }

  // The number for a letter; an earlier attempt may already have stored it.
  async #numberFor(
    entry: QueueEntry,
    record: Uint8Array,
  ): Promise<{ readonly number: number; readonly isNew: boolean }> {
    const { given } = this.#shelf
    const whose = this.#ownerOf(entry.id)
    for (const [number, owner] of given) if (owner === whose) return { number, isNew: false }
    const found = await this.#get(this.#keyOf(entry.id))
    const isSame = found !== undefined && hasEntry(found, record)
    const isFree = found === undefined && !given.has(entry.id) && (await this.#isLater(entry.id))
    const number = isSame || isFree ? entry.id : Math.max(await this.#last(), ...given.keys()) + 1
    given.set(number, whose)
    if (given.size > mostGiven) given.delete(given.keys().next().value as number)
    return { number, isNew: !isSame }
  }

  // When the oldest letters are being deleted, a new one must not become the oldest.
  async #isLater(number: number): Promise<boolean> {
    if ((await this.#count()) < mostLetters) return true
    const [oldest] = await this.#keys(1)
    return oldest === undefined || number > numberOf(oldest)
  }

  async #count(): Promise<number> {
    this.#shelf.count ??= (await this.#keys(Number.POSITIVE_INFINITY)).length
    return this.#shelf.count
  }

  async #makeRoom(): Promise<readonly StoreOperation[]> {
    const shelf = this.#shelf
    shelf.count = await this.#count()
    const removals: StoreOperation[] = []
    while (shelf.count >= mostLetters && removals.length < chunkSize) {
      if (shelf.oldest.length === 0) shelf.oldest = await this.#keys(chunkSize, shelf.read)
      const key = shelf.oldest.shift()
      if (key === undefined) break
      shelf.read = key
      removals.push({ type: 'delete', key })
      shelf.count -= 1
    }
    shelf.count += 1
    return removals
  }

  // Letters added meanwhile are left to another call.
  async #replay(ids: readonly number[] | undefined): Promise<number> {
    let count = 0
    const wanted = ids && new Set(ids)
    const all = await this.#keys(Number.POSITIVE_INFINITY)
    const unsettled = new Set(this.#shelf.unsettled.values())
    for (const key of all) {
      if (wanted?.has(numberOf(key)) === false || unsettled.has(numberOf(key))) continue
      const value = await this.#get(key)
      const letter = value && (await this.#open(key, value))
      if (value === undefined || letter === undefined) continue
      if (this.#shared) {
        await this.#queue(letter.entry, [{ type: 'delete', key }], [{ type: 'put', key, value }])
        this.#handleDeleted([key])
      } else {
        await this.#queue(letter.entry, [], [])
        await this.#delete([key])
      }
      count += 1
    }
    return count
  }

  async #open(key: string, value: Uint8Array): Promise<KeptLetter | undefined> {
    const letter = letterOf(numberOf(key), openRecord(value))
    if (letter !== undefined) return letter
    if (await setAside(this.#store, key, value, this.#reportDamaged)) this.#handleDeleted([key])
    return undefined
  }

  #ownerOf(id: number | ''): string {
    return `${this.#box}/${id}`
  }

  #keyOf(number: number): string {
    return this.#prefix + String(number).padStart(digits, '0')
  }

  async *#rows(
    limit?: number,
    after = this.#prefix,
    reverse = false,
  ): AsyncIterableIterator<StoreEntry> {
    try {
      yield* this.#store.entries({ gt: after, lt: `${this.#prefix.slice(0, -1)}0`, limit, reverse })
    } catch (error) {
      throw storeError(error)
    }
  }

  async #keys(limit: number, after?: string): Promise<string[]> {
    const keys: string[] = []
    for await (const [key] of this.#rows(limit, after)) keys.push(key)
    return keys
  }

  async #last(): Promise<number> {
    for await (const [key] of this.#rows(1, undefined, true)) return numberOf(key)
    return 0
  }

  async #get(key: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#store.get(key)
    } catch (error) {
      throw storeError(error)
    }
  }

  async #delete(keys: readonly string[]): Promise<void> {
    try {
      await this.#store.batch(keys.map((key) => ({ type: 'delete', key })))
    } catch (error) {
      throw storeError(error)
    }
    this.#handleDeleted(keys)
  }

  #handleDeleted(keys: readonly string[]): void {
    const shelf = this.#shelf
    const gone = new Set(keys)
    shelf.oldest = shelf.oldest.filter((key) => !gone.has(key))
    for (const key of keys) shelf.given.delete(numberOf(key))
    if (shelf.count !== undefined) shelf.count = Math.max(0, shelf.count - keys.length)
  }
}

function numberOf(key: string): number {
  return Number(key.slice(-digits))
}

function entryIn(body: Uint8Array): number {
  return 2 + new DataView(body.buffer, body.byteOffset, body.length).getUint16(0)
}

// True for a letter of this entry.
function hasEntry(letter: Uint8Array, record: Uint8Array): boolean {
  const body = openRecord(letter)
  const bytes = body && body.length > 2 ? body.subarray(entryIn(body)) : undefined
  return bytes?.length === record.length && record.every((byte, at) => bytes[at] === byte)
}

function letterOf(id: number, body: Uint8Array | undefined): KeptLetter | undefined {
  try {
    if (body === undefined) return undefined
    const end = entryIn(body)
    const [code, reasonCode, at] = JSON.parse(new TextDecoder().decode(body.subarray(2, end)))
    const entry = decodeEntry(id, body.subarray(end))
    return (
      entry && { entry, code: String(code), reasonCode: reasonCode ?? undefined, at: Number(at) }
    )
  } catch {
    return undefined
  }
}
