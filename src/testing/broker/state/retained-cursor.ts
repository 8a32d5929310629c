/**
 * Iterates over the retained messages that one SUBSCRIBE requested (sections 3.3.1.3 and 3.8.4).
 *
 * It reads the store without copying it, up to the entry that was last at SUBSCRIBE. Entries
 * replaced, cleared or expired meanwhile are skipped: the subscription has delivered the
 * replacement already. The owner takes and sends the messages one by one.
 */
import type { SubscriptionRequest } from '../../../wire/packets.js'
import { matches } from '../../../wire/topics.js'
import type { Delivery } from './message-queue.js'
import type { RetainedEntry, RetainedStore } from './retained.js'

/** The data of the subscription that the cursor needs, as it was at SUBSCRIBE. */
export interface RetainedRequest
  extends Readonly<Pick<SubscriptionRequest, 'filter' | 'qos' | 'noLocal'>> {
  readonly identifier: number | undefined
  readonly clientId: string
}

interface Found {
  readonly entry: RetainedEntry
  readonly delivery: Delivery
}

/** See the file's comment. */
export class RetainedCursor {
  readonly filter: string
  readonly #store: RetainedStore
  readonly #request: RetainedRequest
  readonly #entries: Iterator<RetainedEntry>
  /** The number of the last entry in the store at SUBSCRIBE. */
  #last: number
  /** The number of the entry examined last. */
  #position = 0
  /** Messages found and not taken, the next one first. */
  #found: Found[] = []
  /** Topics delivered ahead of their position. */
  readonly #early = new Set<string>()

  constructor(store: RetainedStore, request: RetainedRequest) {
    this.filter = request.filter
    this.#store = store
    this.#request = request
    this.#entries = store.entries(request.filter)
    this.#last = store.last
  }

  /** The next message; undefined at the end. */
  peek(): Delivery | undefined {
    for (;;) {
      const [first] = this.#found
      if (first === undefined) {
        if (!this.#find()) return undefined
      } else if (this.#store.holds(first.entry)) return first.delivery
      else this.#found.shift()
    }
  }

  /** Removes the message that {@link peek} returned. */
  take(): void {
    this.#found.shift()
  }

  /** Ends the iteration. */
  stop(): void {
    this.#last = 0
    this.#found = []
  }

  /**
   * Makes the message of a topic the next one [MQTT-4.6.0-5]; false unless it is still to be
   * delivered, at this QoS.
   */
  bring(topic: string, qos: number): boolean {
    const entry = this.#store.entry(topic)
    if (entry === undefined || entry.number > this.#last || this.#early.has(topic)) return false
    const at = this.#found.findIndex((found) => found.entry === entry)
    if (at < 0 && (entry.number <= this.#position || !this.#wants(entry))) return false
    const found = at < 0 ? this.#foundOf(entry) : (this.#found[at] as Found)
    if (found.delivery.qos !== qos) return false
    if (at < 0) this.#early.add(topic)
    else this.#found.splice(at, 1)
    this.#found.unshift(found)
    return true
  }

  #find(): boolean {
    for (
      let next = this.#entries.next();
      next.done !== true && next.value.number <= this.#last;
      next = this.#entries.next()
    ) {
      const entry = next.value
      this.#position = entry.number
      if (this.#early.delete(entry.message.topic) || !this.#wants(entry)) continue
      this.#found.push(this.#foundOf(entry))
      return true
    }
    return false
  }

  // [MQTT-3.8.3-3]
  #wants({ message }: RetainedEntry): boolean {
    const { filter, noLocal, clientId } = this.#request
    return matches(filter, message.topic) && !(noLocal && message.from === clientId)
  }

  /** RETAIN is set whether or not the subscription has Retain As Published. */
  #foundOf(entry: RetainedEntry): Found {
    const { qos, identifier } = this.#request
    const { message } = entry
    const identifiers = identifier === undefined ? [] : [identifier]
    return {
      entry,
      delivery: {
        message,
        qos: message.qos < qos ? message.qos : qos,
        retain: true,
        identifiers,
        group: undefined,
      },
    }
  }
}
