/**
 * Maps and sets that take memory only while they are not empty: a quiet client has a dozen of them,
 * all empty.
 *
 * They have the commonly used methods of Map and Set, and the same order. An iteration meets
 * elements added meanwhile, except after the last element was removed.
 */

const none = new Map<never, never>()

/** A Map that is mostly empty. */
export class SparseMap<K, V> {
  #map: Map<K, V> | undefined

  get size(): number {
    return this.#map?.size ?? 0
  }

  get(key: K): V | undefined {
    return this.#map?.get(key)
  }

  has(key: K): boolean {
    return this.#map?.has(key) === true
  }

  set(key: K, value: V): void {
    this.#map ??= new Map()
    this.#map.set(key, value)
  }

  delete(key: K): boolean {
    const deleted = this.#map?.delete(key) === true
    if (this.#map?.size === 0) this.#map = undefined
    return deleted
  }

  clear(): void {
    // Ends iterations in progress.
    this.#map?.clear()
    this.#map = undefined
  }

  keys(): IterableIterator<K> {
    return (this.#map ?? none).keys()
  }

  values(): IterableIterator<V> {
    return (this.#map ?? none).values()
  }
}

/** A Set that is mostly empty. */
export class SparseSet<T> extends SparseMap<T, true> {
  add(value: T): void {
    this.set(value, true)
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.keys()
  }
}
