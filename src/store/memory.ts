/**
 * The store in memory: for tests, and for programs that take a store and need none.
 *
 * Keys lie in order in short lists, so that a change costs the same with ten entries or a million. Bytes are copied on their way in and out.
 */
import type { Backend } from './base/backend.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
import { KeepingStore } from './session-store.js'

/** Keys in one list, at most. */
const mostKeys = 512
const pageLength = 64

/** A store that lives as long as the process. Nothing of it is left after `close()`. */
export function memoryStore(): Store {
  return new KeepingStore(new MemoryBackend())
}

class MemoryBackend implements Backend {
  readonly #values = new Map<string, Uint8Array>()
  readonly #keys = new OrderedKeys()

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#values.get(key)?.slice()
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    for (const each of operations) {
      const isThere = this.#values.has(each.key)
      if (each.type === 'put') {
        this.#values.set(each.key, new Uint8Array(each.value))
        if (!isThere) this.#keys.add(each.key)
      } else if (isThere) {
        this.#values.delete(each.key)
        this.#keys.delete(each.key)
      }
    }
  }

  async page({ limit = Number.POSITIVE_INFINITY, ...range }: StoreRange): Promise<StoreEntry[]> {
    const entries: StoreEntry[] = []
    for (const key of this.#keys.within(range)) {
      entries.push([key, (this.#values.get(key) as Uint8Array).slice()])
      if (entries.length >= Math.min(limit, pageLength)) break
    }
    return entries
  }

  async close(): Promise<void> {
    this.#values.clear()
    this.#keys.clear()
  }
}

/** Distinct texts in order: lists that follow each other, none of them empty. */
class OrderedKeys {
  #lists: string[][] = []

  add(key: string): void {
    const at = this.#listOf(key)
    const list = this.#lists[at]
    if (list === undefined) this.#lists.push([key])
    else {
      list.splice(countBefore(list, key), 0, key)
      if (list.length > mostKeys) this.#lists.splice(at + 1, 0, list.splice(mostKeys / 2))
    }
  }

  /** The key has to be there. */
  delete(key: string): void {
    const at = this.#listOf(key)
    const list = this.#lists[at] as string[]
    list.splice(countBefore(list, key), 1)
    if (list.length === 0) this.#lists.splice(at, 1)
  }

  clear(): void {
    this.#lists = []
  }

  /** Nothing may change before the last one was asked for. */
  *within({ gt, gte = '', lt, lte, reverse }: StoreRange): Generator<string, void, undefined> {
    const isAbove = (key: string): boolean => (gt === undefined ? key >= gte : key > gt)
    const isBelow = (key: string): boolean => (lt === undefined ? lte === undefined || key <= lte : key < lt)
    const [begins, ends, step] = reverse ? [isBelow, isAbove, -1] : [isAbove, isBelow, 1]
    const bound = reverse ? (lt ?? lte) : (gt ?? gte)
    let at = bound === undefined ? this.#lists.length - 1 : this.#listOf(bound)
    for (let list = this.#lists[at]; list !== undefined; at += step, list = this.#lists[at]) {
      const start = bound === undefined ? list.length : countBefore(list, bound)
      // One step back: what is begun with may be the bound itself, or the key before it.
      for (const key of reverse ? list.slice(0, start + 1).reverse() : list.slice(start)) {
        if (!begins(key)) continue
        if (!ends(key)) return
        yield key
      }
    }
  }

  /** The last list that begins with the key or one before it, or else the first. */
  #listOf(key: string): number {
    let [low, high] = [0, this.#lists.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#lists[middle]?.[0] as string) <= key) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** How many keys of a list in order are less than this one. */
function countBefore(list: readonly string[], key: string): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
