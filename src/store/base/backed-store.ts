/**
 * A store over a backend: the checks, the order of batches, and the errors that all stores share.
 *
 * Batches that wait leave together in one write, so that one sync makes all of them safe. A write holds whole batches only, in the order of the calls.
 * It must never keep bytes of a batch that has settled, nor hold more entries of a range than one page.
 */
import { MqttError, textOf } from '../../errors.js'
import type { Backend } from './backend.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './store.js'

/** Bytes that one write may hold, unless a single batch has more. */
const mostBytes = 1_048_576
/** What an operation costs besides its value. */
const overhead = 64

const longestKey = 1024

interface Waiting {
  readonly operations: readonly StoreOperation[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

const closedMessage = 'store closed'

/** A store that was closed writes nothing more, and nothing of what it was asked for with this error is there. */
export function isClosed(error: MqttError): boolean {
  return error.code === 'ERR_STORE' && error.message.includes(closedMessage)
}

/** The error of a store. One that is typed already stays what it is. */
export function storeError(cause: unknown): MqttError {
  return MqttError.is(cause)
    ? cause
    : new MqttError('ERR_STORE', `store: ${textOf(cause)}`, { cause })
}

/** See the head of this file. */
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
    // Of two bounds the narrower one counts.
    let lower: StoreRange = gt === undefined || (gte as string) > gt ? { gte } : { gt }
    let upper: StoreRange = lt === undefined || (lte as string) < lt ? { lte } : { lt }
    // Stores that give 0 entries, or all, would hide a mistake of the caller.
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
    // What is asked for in this turn comes along.
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
      // One that is too large for the disk must not fail the others. Doing again what may have been done changes nothing.
      else for (const each of batches) await this.#write([each])
    }
  }
}

/** Which batch is the first that does not fit into the write any more. */
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
    // Bytes of another realm are bytes too.
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
