/**
 * A store in memory, for tests and for programs that need no durability. Bytes are copied in and
 * out.
 */
import type { Backend } from './base/backend.js'
import { SortedMap } from './base/sorted-map.js'
import type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
import { KeepingStore } from './session-store.js'

const pageLength = 64

/** A store that lives as long as the process. Everything is gone after `close()`. */
export function memoryStore(): Store {
  return new KeepingStore(new MemoryBackend())
}

class MemoryBackend implements Backend {
  readonly #values = new SortedMap<Uint8Array>()

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#values.get(key)?.slice()
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    for (const each of operations) {
      if (each.type === 'put') this.#values.set(each.key, new Uint8Array(each.value))
      else this.#values.delete(each.key)
    }
  }

  async page({ limit = Number.POSITIVE_INFINITY, ...range }: StoreRange): Promise<StoreEntry[]> {
    const entries: StoreEntry[] = []
    for (const [key, value] of this.#values.within(range)) {
      entries.push([key, value.slice()])
      if (entries.length >= Math.min(limit, pageLength)) break
    }
    return entries
  }

  async close(): Promise<void> {
    this.#values.clear()
  }
}
