/**
 * Topic aliases, for one connection: those that the server sets up, and those that we give (section 3.3.2.3.4).
 *
 * Memory is bounded by the Topic Alias Maximum of each side times the longest topic. They must never outlive their connection [MQTT-3.3.2-7].
 */

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

/** Aliases of ours are no more than this, whatever the server would take: each costs a topic of memory. */
const mostAliases = 256

/** Aliases that we give to the topics of QoS 0 messages; the one unused for longest makes room for a new topic. */
export class OutboundAliases {
  readonly #aliases = new Map<string, number>()
  readonly #free: number[] = []
  #maximum = 0

  /** A connection is up: the server takes this many [MQTT-3.2.2-17]. */
  start(maximum: number): void {
    this.#aliases.clear()
    this.#free.length = 0
    this.#maximum = Math.min(maximum, mostAliases)
  }

  /** The alias of a topic; negative when the server has yet to learn it, 0 when there is none. */
  use(topic: string): number {
    if (this.#maximum === 0) return 0
    const known = this.#aliases.get(topic)
    if (known !== undefined) {
      // The youngest stands last.
      this.#aliases.delete(topic)
      this.#aliases.set(topic, known)
      return known
    }
    return -this.#learn(topic)
  }

  /** The packet that was to teach the server this topic did not leave. */
  forget(topic: string): void {
    const alias = this.#aliases.get(topic)
    this.#aliases.delete(topic)
    if (alias !== undefined) this.#free.push(alias)
  }

  #learn(topic: string): number {
    let alias = this.#free.pop() ?? this.#aliases.size + 1
    if (alias > this.#maximum) {
      const [oldest, freed] = this.#aliases.entries().next().value as [string, number]
      this.#aliases.delete(oldest)
      alias = freed
    }
    this.#aliases.set(topic, alias)
    return alias
  }
}
