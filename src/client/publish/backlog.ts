/**
 * Publishes that wait to be sent: which are taken in, which are dropped, how fast they may leave, and callers that wait for room.
 *
 * They wait with QoS 0 in one queue, QoS 1 and 2 in another, each in the order of the calls, with what they take.
 *
 * A QoS 2 publish may wait for something that QoS 1 does not need. It is put aside then, and QoS 1 publishes overtake it. A QoS 1 publish to the same
 * topic is put aside too, and so is everything behind it: each topic keeps its order, and so does each QoS. The backlog refuses nothing: its limits
 * are checked before an item is pushed.
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

/**
 * Takes in publishes that cannot leave at once, within the limits; drops by the overflow policy, and when their time is over.
 *
 * A publish that is not taken in rejects with the reason.
 */
export class Admission {
  /** Why nothing is taken in any more. */
  ended: MqttError | undefined
  readonly #host: PublishHost
  readonly #backlog: Backlog
  readonly #settlement: Settlement

  constructor(host: PublishHost, backlog: Backlog, settlement: Settlement) {
    this.#host = host
    this.#backlog = backlog
    this.#settlement = settlement
  }

  /** It waits to be sent, or its caller hears why not. */
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

  // It is dropped when its time to live, or its message expiry interval, is over before it was sent.
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

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: QueuedPublish): void {
    const { maxQueuedMessages, maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.options.overflow ?? usual
    const drops =
      overflow === 'drop-oldest' && this.#settlement.sentBytes + item.size <= maxQueuedBytes
    const waits = overflow === 'wait'
    // One that is larger than the limit waits, and lets others wait, as if it were not.
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

  /** Gives up what waits. */
  giveUp(error: MqttError, wanted: (item: QueuedPublish) => boolean = () => true): void {
    for (const item of this.#backlog.select(wanted)) this.#drop(item, error)
  }

  /** The caller wants it no more: what was sent goes on without him. */
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

/** Times that `writable` is fulfilled at once, before a turn of the event loop passes. */
const grantsInTurn = 64

/**
 * Callers of `writable` that wait for room.
 *
 * A loop over `writable` leaves timers and input their turn, whatever it does in between.
 */
export class WritableGate {
  readonly #host: PublishHost
  readonly #isThere: (post: boolean) => boolean
  #waiting: Deferred<void> | undefined
  /** `post` took nothing since room was last announced. */
  #refused = false
  #grants = 0

  /** @param isThere is there room now, also for `post`, which never queues? */
  constructor(host: PublishHost, isThere: (post: boolean) => boolean) {
    this.#host = host
    this.#isThere = isThere
  }

  /** Fulfils when there is room, rejects when there will be none. */
  get promise(): Promise<void> {
    if (this.#host.states.stopping) return rejected(closedError(this.#host.states))
    const there = this.#isThere(this.#refused)
    if (there && !this.#refused && ++this.#grants % grantsInTurn > 0) return Promise.resolve()
    this.#waiting ??= deferred()
    if (there) this.#host.platform.nextTurn(() => this.notify())
    return this.#waiting.promise
  }

  /** A caller waits for it. */
  get awaited(): boolean {
    return this.#waiting !== undefined
  }

  /** `post` took nothing. */
  handleRefusal(): void {
    this.#refused = true
  }

  /** There may be room again. */
  notify(): void {
    if (!this.#isThere(this.#refused)) return
    this.#refused = false
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /** Another message may leave, at `outbound.rate`. Those who wait to post have the first turn, if it is theirs and they take it. */
  lead(theirs: boolean): void {
    const flush = (): void => this.#host.flush()
    if (!theirs || !this.#refused) return flush()
    this.notify()
    this.#host.platform.nextTurn(flush)
  }

  /** There will be none. */
  close(): void {
    this.#waiting?.reject(closedError(this.#host.states))
    this.#waiting = undefined
  }
}

/** Milliseconds whose messages may leave at once, after a pause: timers are as late as that. */
const slack = 50

/** One limit: each unit takes its time. */
class Lane {
  readonly #cost: number
  /** When all that was sent has had its time. */
  #due = 0

  constructor(amount: number, per: number) {
    this.#cost = per / amount
  }

  /** Milliseconds until the next one may leave. */
  wait(now: number): number {
    return this.#due - now - Math.max(0, slack - this.#cost)
  }

  spend(units: number, now: number): void {
    this.#due = Math.max(this.#due, now) + units * this.#cost
  }
}

/**
 * How fast publishes leave: so many messages, and so many bytes, in a time. Evenly; after a pause, 50 ms of it at once.
 *
 * Only PUBLISH counts; other packets do not wait. What a large message exceeds is waited for afterwards.
 */
export class RateLimit {
  /** Whose turn it is, where both wait: that of QoS 1 and 2, or of QoS 0. */
  ordered: boolean | undefined
  readonly #messages: Lane
  readonly #bytes: Lane
  readonly #platform: Platform
  readonly #flush: () => void
  /** Ends the wait for the next one. */
  stop: (() => void) | undefined

  /** @param flush called when the next message may leave, after an answer that it may not */
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

  /** May a message leave now? */
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

  /** Is it the turn of those of the other kind, and do some wait? */
  yields(ordered: boolean, backlog: Backlog, output: PacketWriter): boolean {
    const yields =
      this.ordered === !ordered && (ordered ? backlog.immediate : backlog.ordered).length > 0
    // They may wait for something else.
    if (yields) output.queueFlush()
    return yields
  }

  /** One leaves. */
  spend(topic: string, payload: Uint8Array, how: Sending): void {
    const now = this.#platform.now()
    this.#messages.spend(1, now)
    this.#bytes.spend(sizeOfMessage(topic, payload, how, 5), now)
    this.ordered = how.qos === 0
  }
}
