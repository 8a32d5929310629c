/**
 * Retained messages (section 3.3.1.3): the last one of each topic, until it is replaced, cleared or expired. Bounded by count and bytes.
 */
import { hasWildcard, matches } from '../../wire/topics.js'
import { type BrokerMessage, isExpired } from './message.js'
import type { BrokerSettings } from './options.js'

/** See the file's comment. */
export class RetainedStore {
  readonly #settings: BrokerSettings
  readonly #messages = new Map<string, BrokerMessage>()
  #bytes = 0

  constructor(settings: BrokerSettings) {
    this.#settings = settings
  }

  /** Whether the message can be kept. */
  hasRoom(message: BrokerMessage): boolean {
    if (message.payload.length === 0 || this.#fits(message)) return true
    this.#purge()
    return this.#fits(message)
  }

  /** Keeps a retained message, or clears its topic when it is empty [MQTT-3.3.1-5] [MQTT-3.3.1-6] [MQTT-3.3.1-7]. */
  set(message: BrokerMessage): void {
    this.#remove(message.topic)
    if (message.payload.length === 0) return
    this.#messages.set(message.topic, message)
    this.#bytes += message.size
  }

  /** What is retained on topics that the filter matches. */
  matching(filter: string): BrokerMessage[] {
    this.#purge()
    const only = hasWildcard(filter) ? undefined : this.#messages.get(filter)
    if (!hasWildcard(filter)) return only === undefined ? [] : [only]
    return [...this.#messages.values()].filter((message) => matches(filter, message.topic))
  }

  /** By topic, a copy. */
  view(): ReadonlyMap<string, BrokerMessage> {
    this.#purge()
    return new Map(this.#messages)
  }

  clear(): void {
    this.#messages.clear()
    this.#bytes = 0
  }

  #fits(message: BrokerMessage): boolean {
    const known = this.#messages.get(message.topic)
    if (known === undefined && this.#messages.size >= this.#settings.maxRetained) return false
    return this.#bytes - (known === undefined ? 0 : known.size) + message.size <= this.#settings.maxRetainedBytes
  }

  #remove(topic: string): void {
    const known = this.#messages.get(topic)
    if (known === undefined) return
    this.#messages.delete(topic)
    this.#bytes -= known.size
  }

  #purge(): void {
    const now = this.#settings.clock.now()
    for (const message of this.#messages.values()) if (isExpired(message, now)) this.#remove(message.topic)
  }
}
