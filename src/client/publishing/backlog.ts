/**
 * Publishes that wait to be sent: QoS 0 in one queue, QoS 1 and 2 in another, each in the order of the calls, with what they take.
 *
 * It never refuses: whoever pushes asks first.
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

  get size(): number {
    return this.immediate.length + this.ordered.length
  }

  /** What an overflow drops first: never what was sent once. */
  get oldest(): QueuedPublish | undefined {
    let item = this.immediate.first ?? this.ordered.first
    while (item?.again === true) item = item.following
    return item
  }

  /** Would one more be too many, with `bytes` of other messages? The limits count `share` times. */
  exceeds({ maxQueuedMessages, maxQueuedBytes }: OutboundConfig, bytes: number, share = 1): boolean {
    return this.size + 1 > maxQueuedMessages * share || this.bytes + bytes > maxQueuedBytes * share
  }

  queueOf({ options }: QueuedPublish): Queue<QueuedPublish> {
    return options.qos === 0 ? this.immediate : this.ordered
  }

  push(item: QueuedPublish): void {
    this.queueOf(item).push(item)
    this.bytes += item.size
  }

  /** Puts an item before all others of its queue. */
  unshift(item: QueuedPublish): void {
    this.queueOf(item).unshift(item)
    this.bytes += item.size
  }

  /** Takes an item out; its time to live is over with that. */
  remove(item: QueuedPublish): void {
    this.queueOf(item).remove(item)
    this.bytes -= item.size
    item.cancel?.()
    item.cancel = undefined
  }

  /** The items that are wanted, QoS 0 first. */
  select(wanted: (item: QueuedPublish) => boolean): QueuedPublish[] {
    const items: QueuedPublish[] = []
    for (const queue of [this.immediate, this.ordered]) {
      for (let item = queue.first; item !== undefined; item = item.following) if (wanted(item)) items.push(item)
    }
    return items
  }
}
