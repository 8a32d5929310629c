/**
 * Publishes that wait to be sent: QoS 0 in one queue, QoS 1 and 2 in another, each in the order of the calls, with what they take.
 *
 * A QoS 2 publish may wait for something that QoS 1 does not need. It is put aside then, and QoS 1 publishes overtake it. A QoS 1 publish to the same
 * topic is put aside too, and so is everything behind it: each topic keeps its order, and so does each QoS. The backlog refuses nothing: its limits
 * are checked before an item is pushed.
 */

import { Queue } from '../../common/queue.js'
import { SparseMap } from '../../common/sparse.js'
import type { OutboundConfig } from '../options/check-options.js'
import type { QueuedPublish } from './queued-publish.js'

/** What waits. */
export class Backlog {
  /** Bytes of everything here. */
  bytes = 0
  readonly immediate = new Queue<QueuedPublish>()
  readonly ordered = new Queue<QueuedPublish>()
  /** All of it is older than what `ordered` has. */
  readonly #aside = new Queue<QueuedPublish>()
  /** How many of these each topic has. */
  readonly #topics = new SparseMap<string, number>()
  /** How many of them are QoS 1: nothing overtakes those. */
  #barriers = 0

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
    const { first } = this.#aside
    if (first !== undefined && (exact || first.options.qos === 1)) return first
    for (
      let item = this.ordered.first;
      item !== undefined && this.#standsAside(item, exact);
      item = this.ordered.first
    ) {
      this.ordered.remove(item)
      this.#push(item, true)
    }
    return this.ordered.first
  }

  /** Does something wait that goes before this one? */
  precedes(item: QueuedPublish, exact: boolean): boolean {
    if (item.options.qos === 0) return this.immediate.length > 0
    return this.next(exact) !== undefined || this.#standsAside(item, exact)
  }

  #standsAside({ topic, options }: QueuedPublish, exact: boolean): boolean {
    return this.#barriers > 0 || (options.qos === 2 && !exact) || this.#topics.has(topic)
  }

  /** Would one more be too many, with `bytes` of other messages? The limits count `share` times. */
  exceeds(
    { maxQueuedMessages, maxQueuedBytes }: OutboundConfig,
    bytes: number,
    share = 1,
  ): boolean {
    return this.size + 1 > maxQueuedMessages * share || this.bytes + bytes > maxQueuedBytes * share
  }

  push(item: QueuedPublish): void {
    this.#push(item, false)
    this.bytes += item.size
  }

  /** Puts an item before all others of its kind. */
  unshift(item: QueuedPublish): void {
    this.#push(item, this.#aside.length > 0, true)
    this.bytes += item.size
  }

  #push(item: QueuedPublish, aside: boolean, first = false): void {
    item.aside = aside
    if (aside) this.#count(item, 1)
    const queue = this.#queueOf(item)
    if (first) queue.unshift(item)
    else queue.push(item)
  }

  #count({ topic, options }: QueuedPublish, change: 1 | -1): void {
    const others = (this.#topics.get(topic) ?? 0) + change
    if (others > 0) this.#topics.set(topic, others)
    else this.#topics.delete(topic)
    if (options.qos === 1) this.#barriers += change
  }

  #queueOf({ options, aside }: QueuedPublish): Queue<QueuedPublish> {
    return options.qos === 0 ? this.immediate : aside ? this.#aside : this.ordered
  }

  /** Takes an item out; its time to live is over with that. */
  remove(item: QueuedPublish): void {
    this.#queueOf(item).remove(item)
    if (item.aside) this.#count(item, -1)
    this.bytes -= item.size
    item.cancel?.()
    item.cancel = undefined
  }

  /** The items that are wanted, QoS 0 first. */
  select(wanted: (item: QueuedPublish) => boolean): QueuedPublish[] {
    const items: QueuedPublish[] = []
    for (const queue of [this.immediate, this.#aside, this.ordered]) {
      for (let item = queue.first; item !== undefined; item = item.following)
        if (wanted(item)) items.push(item)
    }
    return items
  }
}
