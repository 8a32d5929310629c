/**
 * Topic aliases, for one connection: those that the server sets up, and those that we give (section 3.3.2.3.4).
 *
 * Memory is bounded by the Topic Alias Maximum of each side times the longest topic. They must never outlive their connection [MQTT-3.3.2-7].
 */

import { type Linked, Queue } from '../../common/queue.js'
import { SparseMap } from '../../common/sparse.js'

/** Aliases of ours are no more than this, whatever the server would take: each costs a topic of memory. */
const mostAliases = 256

/** Topics by alias: a record of each, in which others keep what they know about the topic. */
export class InboundAliases<T extends { readonly name: string }> {
  /** Bytes that the topics take, two for each UTF-16 unit. */
  bytes = 0
  readonly #topics: (T | undefined)[] = []
  #maximum: number

  constructor(maximum = 0) {
    this.#maximum = maximum
  }

  /** A connection begins: CONNECT announces this many. */
  start(maximum: number): void {
    this.#topics.length = 0
    this.bytes = 0
    this.#maximum = maximum
  }

  /**
   * The topic of a PUBLISH with an alias; `topic` when it names one too, which the alias stands for from then on [MQTT-3.3.2-12]. In place of it the
   * reason code for which the connection has to end, as it has to when all topics of aliases take more than `mostBytes`.
   */
  resolve(alias: number, topic: T | undefined, mostBytes: number): T | number {
    // The range that we announced [MQTT-3.3.2-8] [MQTT-3.3.2-9].
    if (alias < 1 || alias > this.#maximum) return 0x94
    const before = this.#topics[alias]
    // It was never defined.
    if (topic === undefined) return before ?? 0x82
    while (this.#topics.length < alias) this.#topics.push(undefined)
    this.#topics[alias] = topic
    this.bytes += (topic.name.length - (before?.name.length ?? 0)) * 2
    return this.bytes <= mostBytes ? topic : 0x97
  }
}

/** A topic with an alias, in the order of use. */
interface Alias extends Linked<Alias> {
  readonly topic: string
  readonly alias: number
}

/** Aliases that we give to the topics of QoS 0 messages; the one unused for longest makes room for a new topic. */
export class OutboundAliases {
  readonly #aliases = new SparseMap<string, Alias>()
  #used = new Queue<Alias>()
  readonly #free: number[] = []
  #maximum = 0

  /** A connection is up: the server takes this many [MQTT-3.2.2-17]. */
  start(maximum: number): void {
    this.#aliases.clear()
    this.#used = new Queue()
    this.#free.length = 0
    this.#maximum = Math.min(maximum, mostAliases)
  }

  /** The alias of a topic; negative when the server has yet to learn it, 0: no alias. */
  use(topic: string): number {
    if (this.#maximum === 0) return 0
    const known = this.#aliases.get(topic)
    if (known === undefined) return -this.#learn(topic)
    if (known !== this.#used.last) {
      this.#used.remove(known)
      this.#used.push(known)
    }
    return known.alias
  }

  /** The packet that was to teach the server this topic did not leave. */
  forget(topic: string): void {
    const known = this.#aliases.get(topic)
    if (known !== undefined) this.#free.push(this.#remove(known))
  }

  #learn(topic: string): number {
    let alias = this.#free.pop() ?? this.#aliases.size + 1
    if (alias > this.#maximum) alias = this.#remove(this.#used.first as Alias)
    const made: Alias = { topic, alias, previous: undefined, following: undefined }
    this.#aliases.set(topic, made)
    this.#used.push(made)
    return alias
  }

  #remove(known: Alias): number {
    this.#aliases.delete(known.topic)
    this.#used.remove(known)
    return known.alias
  }
}
