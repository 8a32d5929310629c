/**
 * Retained messages (section 3.3.1.3): the last one of each topic, until it is replaced, cleared or
 * expired. Bounded by count and bytes.
 */
import { hasWildcard } from '../../../wire/topics.js'
import { type BrokerMessage, isExpired } from '../common/message.js'
import type { BrokerSettings } from '../common/options.js'

/** A retained message and its number; entries are ordered by number. */
export interface RetainedEntry {
  readonly message: BrokerMessage
  readonly number: number
}

/** See the file's comment. */
export class RetainedStore {
  readonly #settings: BrokerSettings
  readonly #messages = new Map<string, RetainedEntry>()
  #bytes = 0
  #number = 0

  constructor(settings: BrokerSettings) {
    this.#settings = settings
  }

  /** Whether the message can be stored. */
  hasRoom(message: BrokerMessage): boolean {
    if (message.payload.length === 0 || this.#fits(message)) return true
    this.#purge()
    return this.#fits(message)
  }

  /**
   * Stores a retained message, or clears its topic when it is empty [MQTT-3.3.1-5] [MQTT-3.3.1-6]
   * [MQTT-3.3.1-7].
   */
  set(message: BrokerMessage): void {
    this.#remove(message.topic)
    if (message.payload.length === 0) return
    this.#messages.set(message.topic, { message, number: ++this.#number })
    this.#bytes += message.size
  }

  /** The number of the newest entry. */
  get last(): number {
    return this.#number
  }

  /** The entry of a topic. */
  entry(topic: string): RetainedEntry | undefined {
    return this.#messages.get(topic)
  }

  /** Whether the entry was neither replaced nor cleared, and has not expired. */
  holds(entry: RetainedEntry): boolean {
    return (
      this.#messages.get(entry.message.topic) === entry &&
      !isExpired(entry.message, this.#settings.clock.now())
    )
  }

  /**
   * Entries, oldest first, that include all matches of the filter. Entries added during the
   * iteration come last.
   */
  entries(filter: string): Iterator<RetainedEntry> {
    this.#purge()
    const only = this.#messages.get(filter)
    if (hasWildcard(filter)) return this.#messages.values()
    return (only === undefined ? [] : [only]).values()
  }

  /** By topic, a copy. */
  view(): ReadonlyMap<string, BrokerMessage> {
    this.#purge()
    return new Map([...this.#messages].map(([topic, { message }]) => [topic, message]))
  }

  clear(): void {
    this.#messages.clear()
    this.#bytes = 0
  }

  #fits(message: BrokerMessage): boolean {
    const known = this.#messages.get(message.topic)
    if (known === undefined && this.#messages.size >= this.#settings.maxRetained) return false
    return (
      this.#bytes - (known === undefined ? 0 : known.message.size) + message.size <=
      this.#settings.maxRetainedBytes
    )
  }

  #remove(topic: string): void {
    const known = this.#messages.get(topic)
    if (known === undefined) return
    this.#messages.delete(topic)
    this.#bytes -= known.message.size
  }

  #purge(): void {
    const now = this.#settings.clock.now()
    for (const { message } of this.#messages.values())
      if (isExpired(message, now)) this.#remove(message.topic)
  }
}
