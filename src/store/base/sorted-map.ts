/**
 * A map with sorted keys. Pure.
 *
 * Keys are in short lists, so that changes cost about the same with ten entries or a million.
 */
import type { StoreRange } from './store.js'

/** Most keys in one list. */
const mostKeys = 512

/** Keys and their values at the same index. Never empty. */
interface List<V> {
  readonly keys: string[]
  readonly values: V[]
}

/** A map with sorted keys. */
export class SortedMap<V> {
  #lists: List<V>[] = []

  get(key: string): V | undefined {
    const list = this.#lists[this.#listOf(key)]
    if (list === undefined) return undefined
    const at = countBefore(list.keys, key)
    return list.keys[at] === key ? list.values[at] : undefined
  }

  /** Returns the previous value. */
  set(key: string, value: V): V | undefined {
    const place = this.#listOf(key)
    const list = this.#lists[place]
    if (list === undefined) {
      this.#lists.push({ keys: [key], values: [value] })
      return undefined
    }
    const { keys, values } = list
    const at = countBefore(keys, key)
    if (keys[at] === key) {
      const before = values[at]
      values[at] = value
      return before
    }
    keys.splice(at, 0, key)
    values.splice(at, 0, value)
    if (keys.length > mostKeys)
      this.#lists.splice(place + 1, 0, {
        keys: keys.splice(mostKeys / 2),
        values: values.splice(mostKeys / 2),
      })
    return undefined
  }

  /** Returns the previous value. */
  delete(key: string): V | undefined {
    const place = this.#listOf(key)
    const list = this.#lists[place]
    if (list === undefined) return undefined
    const at = countBefore(list.keys, key)
    if (list.keys[at] !== key) return undefined
    list.keys.splice(at, 1)
    const [before] = list.values.splice(at, 1)
    if (list.keys.length === 0) this.#lists.splice(place, 1)
    return before
  }

  clear(): void {
    this.#lists = []
  }

  /** The entries of a range. The map must not change during the iteration. */
  *within({
    gt,
    gte = '',
    lt,
    lte,
    reverse,
  }: StoreRange): Generator<readonly [key: string, value: V], void, undefined> {
    const isAbove = (key: string): boolean => (gt === undefined ? key >= gte : key > gt)
    const isBelow = (key: string): boolean =>
      lt === undefined ? lte === undefined || key <= lte : key < lt
    const [begins, ends, step] = reverse ? [isBelow, isAbove, -1] : [isAbove, isBelow, 1]
    const bound = reverse ? (lt ?? lte) : (gt ?? gte)
    let place = bound === undefined ? this.#lists.length - 1 : this.#listOf(bound)
    for (
      let list = this.#lists[place];
      list !== undefined;
      place += step, list = this.#lists[place]
    ) {
      const { keys, values } = list
      const start = bound === undefined ? keys.length : countBefore(keys, bound)
      // When going down, the search may point behind the bound, or at it.
      for (
        let at = reverse ? Math.min(start, keys.length - 1) : start;
        at >= 0 && at < keys.length;
        at += step
      ) {
        const key = keys[at] as string
        if (!begins(key)) continue
        if (!ends(key)) return
        yield [key, values[at] as V]
      }
    }
  }

  /** Index of the last list whose first key is at most this key; otherwise the first list. */
  #listOf(key: string): number {
    let [low, high] = [0, this.#lists.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#lists[middle]?.keys[0] as string) <= key) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** Number of keys in a sorted list that are less than this one. */
function countBefore(list: readonly string[], key: string): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
