/**
 * Publishes that wait to be sent: QoS 0 in one queue, QoS 1 and 2 in another, each in the order of the calls, with what they take.
 *
 * QoS 2 may have to wait for something that QoS 1 has no need of. It stands aside then, and QoS 1 goes past it: each QoS keeps its order. It never
 * refuses: whoever pushes asks first.
 */

import { Queue } from '../common/queue.js'
import type { OutboundConfig } from '../parsing/options.js'
import type { QueuedPublish } from './queued-publish.js'

/** What waits. */
export class Backlog {
  /** Bytes of everything here. */
  bytes = 0
  readonly immediate = new Queue<QueuedPublish>()
  readonly ordered = new Queue<QueuedPublish>()
  /** QoS 2, older than all of it in `ordered`. */
  readonly #aside = new Queue<QueuedPublish>()

  get size(): number {
    return this.immediate.length + this.#aside.length + this.ordered.length
  }

  /** What an overflow drops first: never what was sent once. */
  get oldest(): QueuedPublish | undefined {
    for (const queue of [this.immediate, this.#aside, this.ordered]) {
      let item = queue.first
      while (item?.again === true) item = item.following
      if (item !== undefined) return item
    }
    return undefined
  }

  /** The next at QoS 1 or 2. `exact`: may one at QoS 2 leave? */
  next(exact: boolean): QueuedPublish | undefined {
    if (exact && this.#aside.first !== undefined) return this.#aside.first
    for (let item = this.ordered.first; item?.options.qos === 2 && !exact; item = this.ordered.first) {
      this.ordered.remove(item)
      item.aside = true
      this.#aside.push(item)
    }
    return this.ordered.first
  }

  /** Does something wait that goes before this one? */
  precedes({ options: { qos } }: QueuedPublish, exact: boolean): boolean {
    return qos === 0 ? this.immediate.length > 0 : this.next(exact) !== undefined || (qos === 2 && !exact)
  }

  /** Would one more be too many, with `bytes` of other messages? The limits count `share` times. */
  exceeds({ maxQueuedMessages, maxQueuedBytes }: OutboundConfig, bytes: number, share = 1): boolean {
    return this.size + 1 > maxQueuedMessages * share || this.bytes + bytes > maxQueuedBytes * share
  }

  push(item: QueuedPublish): void {
    this.#queueOf(item).push(item)
    this.bytes += item.size
  }

  /** Puts an item before all others of its QoS. */
  unshift(item: QueuedPublish): void {
    item.aside = item.options.qos === 2 && this.#aside.length > 0
    this.#queueOf(item).unshift(item)
    this.bytes += item.size
  }

  #queueOf({ options, aside }: QueuedPublish): Queue<QueuedPublish> {
    return options.qos === 0 ? this.immediate : aside ? this.#aside : this.ordered
  }

  /** Takes an item out; its time to live is over with that. */
  remove(item: QueuedPublish): void {
    this.#queueOf(item).remove(item)
    this.bytes -= item.size
    item.cancel?.()
    item.cancel = undefined
  }

  /** The items that are wanted, QoS 0 first. */
  select(wanted: (item: QueuedPublish) => boolean): QueuedPublish[] {
    const items: QueuedPublish[] = []
    for (const queue of [this.immediate, this.#aside, this.ordered]) {
      for (let item = queue.first; item !== undefined; item = item.following) if (wanted(item)) items.push(item)
    }
    return items
  }
}
