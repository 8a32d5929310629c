/**
 * Topic aliases that the server sets up, for one connection (section 3.3.2.3.4).
 *
 * Memory is bounded by our Topic Alias Maximum times the longest topic. It must never outlive its connection [MQTT-3.3.2-7].
 */

/** Topics by alias. */
export class InboundAliases {
  readonly #topics: (string | undefined)[] = []
  readonly #maximum: number

  constructor(maximum: number) {
    this.#maximum = maximum
  }

  /** True when the alias lies in the range that we announced [MQTT-3.3.2-9]. */
  accepts(alias: number): boolean {
    return alias > 0 && alias <= this.#maximum
  }

  /** Remembers a topic under an alias; the newest wins. */
  define(alias: number, topic: string): void {
    while (this.#topics.length <= alias) this.#topics.push(undefined)
    this.#topics[alias] = topic
  }

  /** The topic of an alias, or undefined when the server never defined it. */
  topic(alias: number): string | undefined {
    return this.#topics[alias]
  }

  clear(): void {
    this.#topics.length = 0
  }
}
