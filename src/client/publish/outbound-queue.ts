/**
 * The outbound queue: which publishes may wait, which are dropped at the limits, how fast they
 * leave, and who waits for room.
 *
 * QoS 0 waits in one queue, QoS 1 and 2 in another, each in the order of the calls.
 *
 * A QoS 2 publish may have to wait for a condition that does not hold up QoS 1. It is then set
 * aside so that QoS 1 publishes can overtake it. A QoS 1 publish to the same topic is set aside as
 * well, and so is everything behind that one. Order is therefore kept per topic and per QoS.
 * `Admission` checks the limits before an item is pushed; `Backlog` itself refuses nothing.
 */

import { aborted, type Deferred, deferred, onAbort, rejected } from '../../common/abort.js'
import { closedError } from '../../common/outcome.js'
import { Queue } from '../../common/queue.js'
import { longestTimer, optionError } from '../../common/schema.js'
import { SparseMap } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Sending } from '../options/check-calls.js'
import type { OutboundConfig } from '../options/check-options.js'
import type { RateOptions } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { PublishHost } from './ports.js'
import {
  assertSendable,
  expiryOption,
  notConnected,
  offlinePolicy,
  type QueuedPublish,
  sizeOfMessage,
} from './queued-publish.js'
import type { Settlement } from './settlement.js'

/** Publishes that wait to be sent. */
export class Backlog {
  /** Bytes of all waiting publishes. */
  bytes = 0
  readonly immediate = new Queue<QueuedPublish>()
  readonly ordered = new Queue<QueuedPublish>()
  /**
   * Publishes that were set aside: QoS 2, and what must not overtake them. All are older than those
   * in `ordered`.
   */
  readonly #aside = new Queue<QueuedPublish>()
  /** Number of publishes set aside, by topic. */
  readonly #topics = new SparseMap<string, number>()
  /**
   * Number of QoS 1 publishes set aside. While there is one, everything behind it is set aside too.
   */
  #barriers = 0

  get size(): number {
    return this.immediate.length + this.#aside.length + this.ordered.length
  }

  /**
   * The publish that `'drop-oldest'` drops next: QoS 0 first. Publishes that were already sent once
   * are never dropped.
   */
  get oldest(): QueuedPublish | undefined {
    for (const queue of [this.immediate, this.#aside, this.ordered]) {
      let item = queue.first
      while (item?.again === true) item = item.following
      if (item !== undefined) return item
    }
    return undefined
  }

  /** The next publish at QoS 1 or 2. @param exact true when a QoS 2 publish may be sent now */
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

  /** True when another publish must be sent before this one. */
  precedes(item: QueuedPublish, exact: boolean): boolean {
    if (item.options.qos === 0) return this.immediate.length > 0
    return this.next(exact) !== undefined || this.#standsAside(item, exact)
  }

  #standsAside({ topic, options }: QueuedPublish, exact: boolean): boolean {
    return this.#barriers > 0 || (options.qos === 2 && !exact) || this.#topics.has(topic)
  }

  /**
   * True when one more publish would exceed the limits. `bytes` is its size plus what is already
   * sent; `share` multiplies the limits.
   */
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

  /** Puts an item at the head of its queue. */
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

  /** Removes an item and stops its expiry timer. */
  remove(item: QueuedPublish): void {
    this.#queueOf(item).remove(item)
    if (item.aside) this.#count(item, -1)
    this.bytes -= item.size
    item.cancel?.()
    item.cancel = undefined
  }

  /** All matching items, QoS 0 first. */
  select(wanted: (item: QueuedPublish) => boolean): QueuedPublish[] {
    const items: QueuedPublish[] = []
    for (const queue of [this.immediate, this.#aside, this.ordered]) {
      for (let item = queue.first; item !== undefined; item = item.following)
        if (wanted(item)) items.push(item)
    }
    return items
  }
}

/**
 * Admits publishes that cannot be sent at once, within the limits. Drops them by the overflow
 * policy, and when they expire.
 *
 * A publish that is not admitted rejects with the reason.
 */
export class Admission {
  /** Set when the client ends: the error for all later publishes. */
  ended: MqttError | undefined
  readonly #host: PublishHost
  readonly #backlog: Backlog
  readonly #settlement: Settlement

  constructor(host: PublishHost, backlog: Backlog, settlement: Settlement) {
    this.#host = host
    this.#backlog = backlog
    this.#settlement = settlement
  }

  /** Queues a publish, or rejects it with the reason. */
  enqueue(item: QueuedPublish): void {
    const { signal } = item.options
    try {
      assertSendable(item.topic, item.payload.length, item.options, this.#host)
      if (
        this.#host.connections.connection === undefined &&
        offlinePolicy(item, this.#host.options.outbound) === 'reject'
      )
        throw notConnected(this.#host)
      if (this.ended !== undefined) throw this.ended
      this.#makeRoom(item)
    } catch (error) {
      return this.#settlement.report(item, error)
    }
    this.#backlog.push(item)
    if (signal !== undefined) item.stop = onAbort(signal, () => this.abort(item))
    this.#age(item)
  }

  // Drops the item when its time to live or its message expiry interval passes before it is sent.
  #age(item: QueuedPublish): void {
    const { options, platform } = this.#host
    const { ttl = options.outbound.ttl ?? Number.POSITIVE_INFINITY, properties } = item.options
    const expiry = (properties?.messageExpiryInterval ?? Number.POSITIVE_INFINITY) * 1000
    const left = Math.min(ttl, expiry)
    if (left > longestTimer) return
    item.cancel = platform.setTimer(
      () => this.#drop(item, optionError('ERR_EXPIRED', ttl <= expiry ? 'ttl' : expiryOption)),
      left,
    )
  }

  // With overflow 'wait', the limits are doubled: the second half is for callers that wait.
  #makeRoom(item: QueuedPublish): void {
    const { maxQueuedMessages, maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.options.overflow ?? usual
    const drops =
      overflow === 'drop-oldest' && this.#settlement.sentBytes + item.size <= maxQueuedBytes
    const waits = overflow === 'wait'
    // Under 'wait', a message larger than the whole limit counts as the limit, so that it can wait
    // too.
    const counted = (size: number): number => (waits ? Math.min(size, maxQueuedBytes) : size)
    const bytes = counted(this.#settlement.sentBytes) + counted(item.size)
    while (this.#backlog.exceeds(this.#host.options.outbound, bytes, waits ? 2 : 1)) {
      const oldest = drops ? this.#backlog.oldest : undefined
      const why = `${this.#backlog.size} messages wait (outbound.maxQueuedMessages ${maxQueuedMessages}), ${this.#backlog.bytes + this.#settlement.sentBytes} bytes (outbound.maxQueuedBytes ${maxQueuedBytes})`
      const error = overflow.startsWith('drop')
        ? optionError(
            'ERR_DROPPED',
            'outbound',
            `dropped by outbound.overflow '${overflow}': ${why}`,
          )
        : optionError(
            'ERR_QUEUE_FULL',
            'outbound',
            `queue full: ${why}; await client.writable between publishes`,
          )
      if (oldest === undefined) throw error
      this.#drop(oldest, error)
    }
  }

  /** Rejects and removes waiting publishes. */
  giveUp(error: MqttError, wanted: (item: QueuedPublish) => boolean = () => true): void {
    for (const item of this.#backlog.select(wanted)) this.#drop(item, error)
  }

  /** The caller aborted. A publish that was already sent completes without its caller. */
  abort(item: QueuedPublish): void {
    const { signal } = item.options
    if (item.sent) return this.#settlement.report(item, aborted(signal, 'unknown'))
    this.#drop(item, aborted(signal, item.again ? 'unknown' : 'not-sent'))
  }

  #drop(item: QueuedPublish, error: MqttError): void {
    this.#backlog.remove(item)
    this.#settlement.fail(item, error)
  }
}

/**
 * Number of times that `writable` resolves immediately before it waits for a turn of the event
 * loop.
 */
const grantsInTurn = 64

/**
 * Callers of `writable`, waiting for room in the queue.
 *
 * A loop over `writable` lets timers and I/O run, whatever else it does.
 */
export class WritableGate {
  readonly #host: PublishHost
  readonly #isThere: (post: boolean) => boolean
  #waiting: Deferred<void> | undefined
  /** True when `post` has refused a message since room was last announced. */
  #refused = false
  #grants = 0

  /**
   * @param isThere true when there is room; with `post` true, room for a message that is sent at
   * once or not at all
   */
  constructor(host: PublishHost, isThere: (post: boolean) => boolean) {
    this.#host = host
    this.#isThere = isThere
  }

  /** Resolves when there is room; rejects once the client is stopping. */
  get promise(): Promise<void> {
    if (this.#host.states.stopping) return rejected(closedError(this.#host.states))
    const there = this.#isThere(this.#refused)
    if (there && !this.#refused && ++this.#grants % grantsInTurn > 0) return Promise.resolve()
    this.#waiting ??= deferred()
    if (there) this.#host.platform.nextTurn(() => this.notify())
    return this.#waiting.promise
  }

  /** True when a caller waits. */
  get awaited(): boolean {
    return this.#waiting !== undefined
  }

  /** `post` refused a message. */
  handleRefusal(): void {
    this.#refused = true
  }

  /** Room may have become available. */
  notify(): void {
    if (!this.#isThere(this.#refused)) return
    this.#refused = false
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /**
   * `outbound.rate` allows another message. If it is the turn of QoS 0 and `post` was refused, its
   * callers go first, then the queue.
   */
  lead(theirs: boolean): void {
    const flush = (): void => this.#host.flush()
    if (!theirs || !this.#refused) return flush()
    this.notify()
    this.#host.platform.nextTurn(flush)
  }

  /** The client ends: waiting callers are rejected. */
  close(): void {
    this.#waiting?.reject(closedError(this.#host.states))
    this.#waiting = undefined
  }
}

/**
 * After a pause, this many milliseconds' worth of messages may leave at once, because timers can be
 * that late.
 */
const slack = 50

/** One limit: each unit occupies a fixed time. */
class Lane {
  readonly #cost: number
  /** When the time of everything sent so far is used up. */
  #due = 0

  constructor(amount: number, per: number) {
    this.#cost = per / amount
  }

  /** Milliseconds until the next message may leave; 0 or less: now. */
  wait(now: number): number {
    return this.#due - now - Math.max(0, slack - this.#cost)
  }

  spend(units: number, now: number): void {
    this.#due = Math.max(this.#due, now) + units * this.#cost
  }
}

/**
 * Limits how fast publishes leave, in messages and in bytes per period. The flow is even; after a
 * pause, up to 50 ms' worth leaves at once.
 *
 * Only PUBLISH counts. A message larger than the allowance is sent whole, and the next one waits
 * for longer.
 */
export class RateLimit {
  /** Whose turn it is when both wait: true for QoS 1 and 2, false for QoS 0. */
  ordered: boolean | undefined
  readonly #messages: Lane
  readonly #bytes: Lane
  readonly #platform: Platform
  readonly #flush: () => void
  /** Cancels the timer for the next message. */
  stop: (() => void) | undefined

  /** @param flush called when the next message may leave, after `open` was false */
  constructor(
    {
      messages = Number.POSITIVE_INFINITY,
      bytes = Number.POSITIVE_INFINITY,
      per = 1000,
    }: RateOptions,
    platform: Platform,
    flush: () => void,
  ) {
    this.#messages = new Lane(messages, per)
    this.#bytes = new Lane(bytes, per)
    this.#platform = platform
    this.#flush = flush
  }

  /** True when a message may leave now. Otherwise a timer calls `flush`. */
  get open(): boolean {
    const now = this.#platform.now()
    const wait = Math.max(this.#messages.wait(now), this.#bytes.wait(now))
    if (wait <= 0) return true
    this.stop ??= this.#platform.setTimer(
      () => {
        this.stop = undefined
        this.#flush()
      },
      Math.min(longestTimer, Math.ceil(wait)),
    )
    return false
  }

  /** True when it is the other kind's turn and one of that kind waits. */
  yields(ordered: boolean, backlog: Backlog, output: PacketWriter): boolean {
    const yields =
      this.ordered === !ordered && (ordered ? backlog.immediate : backlog.ordered).length > 0
    // The other kind may be held up by something else, so the flush decides.
    if (yields) output.queueFlush()
    return yields
  }

  /** Counts a message that is sent. */
  spend(topic: string, payload: Uint8Array, how: Sending): void {
    const now = this.#platform.now()
    this.#messages.spend(1, now)
    this.#bytes.spend(sizeOfMessage(topic, payload, how, 5), now)
    this.ordered = how.qos === 0
  }
}
