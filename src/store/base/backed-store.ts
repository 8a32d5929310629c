/**
 * A store over a backend: argument checks, the order of batches, and the common errors of all
 * stores.
 *
 * Waiting batches are written together, so that one sync makes all of them durable. A write
 * contains only whole batches, in the order of the calls. Bytes of a settled batch are not kept,
 * and at most one page of a range is held.
 */
import { MqttError, textOf } from '../../errors.js'
import type { Backend } from './backend.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './store.js'

/** Most bytes of one write, unless a single batch is larger. */
const mostBytes = 1_048_576
/** Cost of an operation besides its value. */
const overhead = 64

const longestKey = 1024

interface Waiting {
  readonly operations: readonly StoreOperation[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const closedMessage = 'store closed'

/**
 * True for the error of a closed store, which writes nothing more: no change that failed with it is
 * stored.
 */
export function isClosed(error: MqttError): boolean {
  return error.code === 'ERR_STORE' && error.message.includes(closedMessage)
}

/** Wraps the error of a store; typed errors stay unchanged. */
export function storeError(cause: unknown): MqttError {
  return MqttError.is(cause)
    ? cause
    : new MqttError('ERR_STORE', `store: ${textOf(cause)}`, { cause })
}

/** A store over a backend. */
export class BackedStore implements Store {
  readonly #backend: Backend
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(backend: Backend) {
    this.#backend = backend
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#attempt(() => this.#backend.get(checkedKey(key)))
  }

  batch(operations: readonly StoreOperation[]): Promise<void> {
    return this.#attempt(() => {
      for (const each of operations) checkOperation(each)
      return new Promise((resolve, reject) => {
        this.#waiting.push({ operations: [...operations], resolve, reject })
        this.#writing ??= this.#writeAll()
      })
    })
  }

  async *entries({
    gt,
    gte,
    lt,
    lte,
    reverse,
    limit = Number.POSITIVE_INFINITY,
  }: StoreRange = {}): AsyncGenerator<StoreEntry, void, undefined> {
    // Of two bounds, the narrower one applies.
    let lower: StoreRange = gt === undefined || (gte as string) > gt ? { gte } : { gt }
    let upper: StoreRange = lt === undefined || (lte as string) < lt ? { lte } : { lt }
    // Returning nothing or everything would hide the caller's mistake.
    if (!(limit >= 1 && (limit === Number.POSITIVE_INFINITY || Number.isInteger(limit))))
      throw new MqttError(
        'ERR_STORE',
        `store: limit must be a whole number of 1 or more, not ${textOf(limit)}`,
      )
    let left = limit
    while (left > 0) {
      const page = await this.#attempt(() =>
        this.#backend.page({ ...lower, ...upper, reverse, limit: left }),
      )
      const last = page.at(-1)?.[0]
      if (last === undefined) return
      for (const entry of page) yield entry
      left -= page.length
      if (reverse) upper = { lt: last }
      else lower = { gt: last }
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    await this.#writing
    try {
      await this.#backend.close()
    } catch (error) {
      throw storeError(error)
    }
  }

  async #attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      if (this.#closing !== undefined)
        throw new MqttError('ERR_STORE', `${closedMessage}: close it after its clients and queues`)
      return await work()
    } catch (error) {
      throw storeError(error)
    }
  }

  async #writeAll(): Promise<void> {
    // Collects all batches of this turn.
    await undefined
    while (this.#waiting.length > 0) {
      const batches = this.#waiting
      this.#waiting = []
      for (let from = 0; from < batches.length; ) {
        const end = endOfWrite(batches, from)
        await this.#write(batches.slice(from, end))
        from = end
      }
    }
    this.#writing = undefined
  }

  async #write(batches: readonly Waiting[]): Promise<void> {
    try {
      await this.#backend.write(batches.flatMap(({ operations }) => operations))
      for (const { resolve } of batches) resolve()
    } catch (error) {
      if (batches.length === 1) batches[0]?.reject(error)
      // Retries them one by one, so that one that is too large does not fail the others. Repeating
      // a write has no further effect.
      else for (const each of batches) await this.#write([each])
    }
  }
}

/** Index of the first batch that does not fit into this write. */
function endOfWrite(batches: readonly Waiting[], from: number): number {
  let bytes = 0
  let at = from
  while (at < batches.length) {
    for (const each of (batches[at] as Waiting).operations)
      bytes += overhead + (each.type === 'put' ? each.value.length : 0)
    if (bytes > mostBytes && at > from) break
    at++
  }
  return at
}

function checkOperation(each: StoreOperation): void {
  checkedKey(each.key)
  if (each.type === 'put') {
    // Also accepts a Uint8Array of another realm.
    if (Object.prototype.toString.call(each.value) !== '[object Uint8Array]')
      throw new MqttError('ERR_STORE', 'store: a value must be a Uint8Array')
  } else if (each.type !== 'delete')
    throw new MqttError('ERR_STORE', "store: an operation must be of the type 'put' or 'delete'")
}

function checkedKey(key: string): string {
  let fits = typeof key === 'string' && key.length > 0 && key.length <= longestKey
  for (let at = 0; fits && at < key.length; at++) fits = key.charCodeAt(at) < 128
  if (fits) return key
  throw new MqttError('ERR_STORE', 'store: a key must be ASCII text of 1 to 1,024 characters')
}
