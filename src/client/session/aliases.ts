/**
 * Topic aliases of one connection, in both directions (section 3.3.2.3.4).
 *
 * Memory is bounded by each side's Topic Alias Maximum times the longest topic. Aliases must not
 * outlive their connection [MQTT-3.3.2-7].
 */

import { type Linked, Queue } from '../../common/queue.js'
import { SparseMap } from '../../common/sparse.js'

/**
 * Most aliases assigned here, even if the server accepts more: each one keeps a topic in memory.
 */
const mostAliases = 256

/**
 * Incoming aliases: a topic record for each, which also caches what others know about the topic.
 */
export class InboundAliases<T extends { readonly name: string }> {
  /** Memory of the topics, two bytes for each UTF-16 unit. */
  bytes = 0
  readonly #topics: (T | undefined)[] = []
  #maximum: number

  constructor(maximum = 0) {
    this.#maximum = maximum
  }

  /** A connection begins: CONNECT announces this maximum. */
  start(maximum: number): void {
    this.#topics.length = 0
    this.bytes = 0
    this.#maximum = maximum
  }

  /**
   * Resolves the alias of a PUBLISH. A `topic` redefines the alias [MQTT-3.3.2-12]. Returns the
   * topic, or the reason code with which the connection must end, also when all topics take more
   * than `mostBytes`.
   */
  resolve(alias: number, topic: T | undefined, mostBytes: number): T | number {
    // Outside the announced range [MQTT-3.3.2-8] [MQTT-3.3.2-9].
    if (alias < 1 || alias > this.#maximum) return 0x94
    const before = this.#topics[alias]
    // Without a topic, the alias must have been defined.
    if (topic === undefined) return before ?? 0x82
    while (this.#topics.length < alias) this.#topics.push(undefined)
    this.#topics[alias] = topic
    this.bytes += (topic.name.length - (before?.name.length ?? 0)) * 2
    return this.bytes <= mostBytes ? topic : 0x97
  }
}

/** A topic with its alias, linked in the order of use. */
interface Alias extends Linked<Alias> {
  readonly topic: string
  readonly alias: number
}

/**
 * Aliases assigned to topics of QoS 0 messages; a new topic replaces the least recently used one.
 */
export class OutboundAliases {
  readonly #aliases = new SparseMap<string, Alias>()
  /** In the order of use; undefined until the first. */
  #used: Queue<Alias> | undefined
  #free: number[] | undefined
  #maximum = 0

  /** A connection is up: the server accepts this many [MQTT-3.2.2-17]. */
  start(maximum: number): void {
    this.#aliases.clear()
    this.#used = undefined
    this.#free = undefined
    this.#maximum = Math.min(maximum, mostAliases)
  }

  /** The alias of a topic; negative when this packet must define it, 0 for none. */
  use(topic: string): number {
    if (this.#maximum === 0) return 0
    const known = this.#aliases.get(topic)
    if (known === undefined) return -this.#learn(topic)
    const used = this.#used
    if (known !== used?.last) {
      used?.remove(known)
      used?.push(known)
    }
    return known.alias
  }

  /** The packet that defined this alias was not sent. */
  forget(topic: string): void {
    const known = this.#aliases.get(topic)
    if (known === undefined) return
    this.#free ??= []
    this.#free.push(this.#remove(known))
  }

  #learn(topic: string): number {
    this.#used ??= new Queue()
    let alias = this.#free?.pop() ?? this.#aliases.size + 1
    if (alias > this.#maximum) alias = this.#remove(this.#used.first as Alias)
    const made: Alias = { topic, alias, previous: undefined, following: undefined }
    this.#aliases.set(topic, made)
    this.#used.push(made)
    return alias
  }

  #remove(known: Alias): number {
    this.#aliases.delete(known.topic)
    this.#used?.remove(known)
    return known.alias
  }
}
