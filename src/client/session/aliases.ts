/**
 * Topic aliases, for one connection: those that the server sets up, and those that we give (section 3.3.2.3.4).
 *
 * Memory is bounded by the Topic Alias Maximum of each side times the longest topic. They must never outlive their connection [MQTT-3.3.2-7].
 */

import { SparseMap } from '../common/sparse.js'
import { mostAliases } from './numbers.js'

/** Topics by alias. */
export class InboundAliases {
  /** Bytes that the topics take, two for each UTF-16 unit. */
  bytes = 0
  readonly #topics: (string | undefined)[] = []
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

  /** True when the alias lies in the range that we announced [MQTT-3.3.2-9]. */
  accepts(alias: number): boolean {
    return alias > 0 && alias <= this.#maximum
  }

  /** Remembers a topic under an alias; the newest wins. */
  define(alias: number, topic: string): void {
    while (this.#topics.length <= alias) this.#topics.push(undefined)
    this.bytes += (topic.length - (this.#topics[alias]?.length ?? 0)) * 2
    this.#topics[alias] = topic
  }

  /** The topic of an alias, or undefined when the server never defined it. */
  topic(alias: number): string | undefined {
    return this.#topics[alias]
  }
}

/** A topic with an alias, in the order of use. */
interface Alias {
  readonly topic: string
  readonly alias: number
  older: Alias | undefined
  younger: Alias | undefined
}

/** Aliases that we give to the topics of QoS 0 messages; the one unused for longest makes room for a new topic. */
export class OutboundAliases {
  readonly #aliases = new SparseMap<string, Alias>()
  readonly #free: number[] = []
  #oldest: Alias | undefined
  #youngest: Alias | undefined
  #maximum = 0

  /** A connection is up: the server takes this many [MQTT-3.2.2-17]. */
  start(maximum: number): void {
    this.#aliases.clear()
    this.#free.length = 0
    this.#oldest = undefined
    this.#youngest = undefined
    this.#maximum = Math.min(maximum, mostAliases)
  }

  /** The alias of a topic; negative when the server has yet to learn it, 0 when there is none. */
  use(topic: string): number {
    if (this.#maximum === 0) return 0
    const known = this.#aliases.get(topic)
    if (known === undefined) return -this.#learn(topic)
    if (known !== this.#youngest) {
      this.#unlink(known)
      this.#append(known)
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
    if (alias > this.#maximum) alias = this.#remove(this.#oldest as Alias)
    const made: Alias = { topic, alias, older: undefined, younger: undefined }
    this.#aliases.set(topic, made)
    this.#append(made)
    return alias
  }

  #remove(known: Alias): number {
    this.#aliases.delete(known.topic)
    this.#unlink(known)
    return known.alias
  }

  #append(known: Alias): void {
    known.older = this.#youngest
    known.younger = undefined
    if (this.#youngest === undefined) this.#oldest = known
    else this.#youngest.younger = known
    this.#youngest = known
  }

  #unlink({ older, younger }: Alias): void {
    if (older === undefined) this.#oldest = younger
    else older.younger = younger
    if (younger === undefined) this.#youngest = older
    else younger.older = older
  }
}
