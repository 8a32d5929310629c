/**
 * A map by topic, in the order in which topics were added, with cheap snapshots that share
 * unchanged parts with it.
 *
 * Entries are in the leaves of a tree, each at the place assigned to its topic. A change copies the
 * nodes on the path that a snapshot shares, so the cost of a change with a snapshot grows only
 * logarithmically with the number of topics. A snapshot never changes.
 */

/** Children of a node, as a power of 2. */
const bits = 5
const mask = 2 ** bits - 1
/** Places are compacted when the gaps exceed the number of topics by more than this. */
const mostGaps = 512

type Pair<V> = readonly [topic: string, value: V]
/** An array of nodes; in a leaf, of pairs. */
type Node<V> = (Node<V> | Pair<V> | undefined)[]

/** The readable part: a snapshot. */
class Picture<V> implements ReadonlyMap<string, V> {
  /** Current places of the topics, shared with older snapshots, which look there first. */
  protected readonly places: Map<string, number>
  protected root: Node<V>
  /** Bits of a place that are resolved below the root. */
  protected shift: number
  /** Number of assigned places. */
  protected end: number
  protected count: number
  /** The error that ended the subscription. */
  error: Error | undefined
  /** True until the server has granted or refused the subscription. */
  isPending = true
  /** True while nothing has changed since the snapshot. */
  fresh = true
  #own: Map<string, V> | undefined

  constructor(
    places = new Map<string, number>(),
    root: Node<V> = [],
    shift = 0,
    end = 0,
    count = 0,
  ) {
    this.places = places
    this.root = root
    this.shift = shift
    this.end = end
    this.count = count
  }

  get size(): number {
    return this.count
  }

  get(topic: string): V | undefined {
    const place = this.places.get(topic)
    const pair = place === undefined ? undefined : this.at(place)
    if (pair?.[0] === topic) return pair[1]
    if (this.fresh) return undefined
    // The topic may have had another place at the time of the snapshot.
    this.#own ??= new Map(this)
    return this.#own.get(topic)
  }

  has(topic: string): boolean {
    return this.get(topic) !== undefined
  }

  forEach(
    callback: (value: V, topic: string, map: ReadonlyMap<string, V>) => void,
    self?: unknown,
  ): void {
    for (const [topic, value] of this) callback.call(self, value, topic, this)
  }

  *entries(): Generator<[string, V], undefined, unknown> {
    for (let place = 0; place < this.end; place++) {
      const pair = this.at(place)
      if (pair !== undefined) yield pair as unknown as [string, V]
    }
    return undefined
  }

  *keys(): Generator<string, undefined, unknown> {
    for (const [topic] of this.entries()) yield topic
    return undefined
  }

  *values(): Generator<V, undefined, unknown> {
    for (const [, value] of this.entries()) yield value
    return undefined
  }

  [Symbol.iterator](): Generator<[string, V], undefined, unknown> {
    return this.entries()
  }

  get [Symbol.toStringTag](): string {
    return 'Map'
  }

  protected at(place: number): Pair<V> | undefined {
    if (place >= this.end) return undefined
    let node: Node<V> | undefined = this.root
    for (let shift = this.shift; shift > 0 && node !== undefined; shift -= bits)
      node = node[(place >> shift) & mask] as Node<V> | undefined
    return node?.[place & mask] as Pair<V> | undefined
  }
}

/** The writable part. */
export class TopicRows<V> extends Picture<V> {
  #picture: Picture<V> | undefined
  /** Nodes that no snapshot shares. */
  readonly #mine = new Set<Node<V>>()
  /** No topic has a place below this one. */
  #first = 0

  /** A snapshot: the same object until something changes. */
  protected picture(): Picture<V> {
    if (this.#picture === undefined) {
      this.#picture = new Picture(this.places, this.root, this.shift, this.end, this.count)
      this.#picture.error = this.error
      this.#picture.isPending = this.isPending
      this.#mine.clear()
    }
    return this.#picture
  }

  /** Notes that the server has answered, or the error that ended the subscription. */
  protected settle(error?: Error): void {
    this.error = error
    this.isPending = false
    this.#picture = undefined
  }

  protected put(topic: string, value: V): void {
    let place = this.places.get(topic)
    if (place === undefined) {
      place = this.end++
      this.places.set(topic, place)
      this.count += 1
    }
    this.#write(place, [topic, value])
  }

  protected take(topic: string): boolean {
    const place = this.places.get(topic)
    if (place === undefined) return false
    this.places.delete(topic)
    this.count -= 1
    this.#write(place, undefined)
    if (this.end > 2 * this.count + mostGaps) this.#close()
    return true
  }

  /** The topic that was added first. The map must not be empty. */
  protected oldest(): string {
    for (; ; this.#first++) {
      const pair = this.at(this.#first)
      if (pair !== undefined) return pair[0]
    }
  }

  #write(place: number, pair: Pair<V> | undefined): void {
    if (this.#picture !== undefined) this.#picture.fresh = false
    this.#picture = undefined
    for (; place >> this.shift > mask; this.shift += bits) this.root = [this.root]
    let node = this.#own(this.root)
    this.root = node
    for (let { shift } = this; shift > 0; shift -= bits) {
      const index = (place >> shift) & mask
      const child = this.#own((node[index] as Node<V> | undefined) ?? [])
      node[index] = child
      node = child
    }
    node[place & mask] = pair
  }

  #own(node: Node<V>): Node<V> {
    if (this.#mine.has(node)) return node
    const copy = [...node]
    this.#mine.add(copy)
    return copy
  }

  // Assigns new places without gaps.
  #close(): void {
    const pairs = [...this.entries()]
    this.root = []
    this.shift = 0
    this.#mine.clear()
    this.#first = 0
    this.end = pairs.length
    for (const [place, pair] of pairs.entries()) {
      this.places.set(pair[0], place)
      this.#write(place, pair)
    }
  }
}
