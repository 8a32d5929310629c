/**
 * The retained messages that one SUBSCRIBE asked for, on their way to one session (sections 3.3.1.3 and 3.8.4).
 *
 * It copies nothing: it walks through the store and stops where the store ended at SUBSCRIBE. What was replaced, cleared or expired meanwhile is
 * passed over: the subscription has brought the new message already. It sends nothing and knows no bounds: its owner takes one after the other.
 */
import type { SubscriptionRequest } from '../../../wire/packets.js'
import { matches } from '../../../wire/topics.js'
import type { Delivery } from './message-queue.js'
import type { RetainedEntry, RetainedStore } from './retained.js'

/** What the cursor needs of its subscription, as it was at SUBSCRIBE. */
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
  /** The number of the last entry that was there at SUBSCRIBE. */
  #last: number
  /** The number of the entry that was looked at last. */
  #position = 0
  /** Found and not taken, the next one first. */
  #found: Found[] = []
  /** Topics that went before their turn. */
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

  /** Takes what {@link peek} gave. */
  take(): void {
    this.#found.shift()
  }

  /** There is nothing to come any more. */
  stop(): void {
    this.#last = 0
    this.#found = []
  }

  /** Makes the message of a topic the next one, if it is still to come at this QoS [MQTT-4.6.0-5]; false when it is not. */
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

  /** RETAIN is set whatever the subscription says. */
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
