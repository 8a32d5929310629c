/**
 * The messages that wait for one consumer, counted against its own limits and the client's memory
 * budget; and the policies that drop them. `ReceiveBuffer` itself never drops or settles a message.
 */

import { type Linked, Queue } from '../../common/queue.js'
import { Ring } from '../../common/ring.js'
import { SparseSet } from '../../common/sparse.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { Platform } from '../platform.js'
import { noTicket } from '../session/receive-window.js'
import type { DeliveredMessage } from './message.js'
import type { ConsumerHost, Holdings, Sweepable } from './ports.js'
import { isOwed } from './shared-outcome.js'

/** The buffer of one consumer. */
export class ReceiveBuffer {
  readonly messages: MessageQueue
  readonly #config: ConsumerConfig
  readonly #shared: Pick<Holdings, 'budget' | 'unmoved'>
  /** Number of the newest messages that still lie in shared memory. */
  #unmoved = 0
  #bytes = 0
  /** Messages that need no acknowledgement. */
  #spare = 0

  constructor(
    config: ConsumerConfig,
    shared: Pick<Holdings, 'budget' | 'unmoved'>,
    keyOf: ((message: DeliveredMessage) => unknown) | undefined,
  ) {
    this.#config = config
    this.#shared = shared
    this.messages = keyOf === undefined ? new Ring() : new KeyedQueue(keyOf)
  }

  /** True when a message waits that needs no acknowledgement. */
  get hasSpare(): boolean {
    return this.#spare > 0
  }

  /** True when the buffer is over its limits. A single message always fits, whatever its size. */
  get exceeds(): boolean {
    const { buffer, bufferBytes } = this.#config
    const { length } = this.messages
    return length > buffer || (length > 1 && this.#bytes > bufferBytes)
  }

  /** True when one more message of this size fits the limits. */
  fits(size: number): boolean {
    const { buffer, bufferBytes } = this.#config
    const { length } = this.messages
    return length === 0 || (length < buffer && this.#bytes + size <= bufferBytes)
  }

  push(message: DeliveredMessage): void {
    if (this.#unmoved === 0) this.#shared.unmoved.add(this)
    this.#unmoved += 1
    this.messages.push(message)
    this.#count(message.size, message)
  }

  shift(): DeliveredMessage | undefined {
    const message = this.messages.shift()
    if (message !== undefined) this.#count(-message.size, message)
    return message
  }

  /** Removes the oldest matching message. */
  remove(wanted: (message: DeliveredMessage) => boolean): DeliveredMessage | undefined {
    const message = this.messages.take(wanted)
    if (message !== undefined) this.#count(-message.size, message)
    return message
  }

  /** Removes all messages, in the order of arrival. */
  drain(): DeliveredMessage[] {
    this.#shared.budget.add(-this.#bytes)
    this.#bytes = 0
    this.#spare = 0
    return this.messages.drain()
  }

  /**
   * Copies messages out of memory that they alone would keep alive; out of read windows only with
   * `must`.
   */
  moveOut(must: boolean): void {
    this.messages.youngest(must ? this.messages.length : this.#unmoved, (message) =>
      message.moveOut(must),
    )
    this.#unmoved = 0
  }

  #count(change: number, { ticket }: DeliveredMessage): void {
    this.#bytes += change
    this.#shared.budget.add(change)
    if (ticket === noTicket) this.#spare += change < 0 ? -1 : 1
  }
}

/** What a consumer stores its messages in. */
export interface MessageQueue
  extends Pick<
    Ring<DeliveredMessage>,
    'length' | 'push' | 'shift' | 'take' | 'find' | 'drain' | 'youngest'
  > {
  /** A message that `shift` returned is done. */
  free?(message: DeliveredMessage): void
}

/** The messages of one key. The first one is being handled or ready. */
interface Lane {
  readonly key: unknown
  readonly messages: Ring<DeliveredMessage>
}

/** A message with its lane, in the list of all that wait. */
interface Place extends Linked<Place> {
  readonly message: DeliveredMessage
  readonly lane: Lane
}

/**
 * The queue of a handler with `order` by key: messages of one key come out one at a time, in the
 * order of arrival; keys do not wait for each other.
 *
 * A message is never given out while another of its key is being handled; `free` ends that. The
 * cost of `push` and `shift` does not grow with the length.
 */
export class KeyedQueue implements MessageQueue {
  readonly #keyOf: (message: DeliveredMessage) => unknown
  /** Waiting messages, in the order of arrival. */
  readonly #queue = new Queue<Place>()
  readonly #lanes = new Map<unknown, Lane>()
  /** Places of messages that wait or are being handled. */
  readonly #places = new Map<DeliveredMessage, Place>()
  readonly #ready = new Ring<DeliveredMessage>()

  constructor(keyOf: (message: DeliveredMessage) => unknown) {
    this.#keyOf = keyOf
  }

  get length(): number {
    return this.#queue.length
  }

  push(message: DeliveredMessage): void {
    const key = this.#keyOf(message)
    const lane = this.#lanes.get(key) ?? { key, messages: new Ring() }
    const place = { message, lane, previous: undefined, following: undefined }
    this.#lanes.set(key, lane)
    this.#places.set(message, place)
    this.#queue.push(place)
    lane.messages.push(message)
    if (lane.messages.length === 1) this.#ready.push(message)
  }

  /** The next message whose key is free. */
  shift(): DeliveredMessage | undefined {
    const message = this.#ready.shift()
    if (message !== undefined) this.#queue.remove(this.#places.get(message) as Place)
    return message
  }

  free(message: DeliveredMessage): void {
    const lane = this.#places.get(message)?.lane
    if (lane === undefined) return
    this.#places.delete(message)
    lane.messages.shift()
    const next = lane.messages.peek()
    if (next === undefined) this.#lanes.delete(lane.key)
    else this.#ready.push(next)
  }

  take(fits: (message: DeliveredMessage) => boolean): DeliveredMessage | undefined {
    const message = this.find(fits)
    if (message === undefined) return undefined
    const place = this.#places.get(message) as Place
    const same = (other: DeliveredMessage): boolean => other === message
    this.#queue.remove(place)
    if (this.#ready.take(same) !== undefined) this.free(message)
    else {
      place.lane.messages.take(same)
      this.#places.delete(message)
    }
    return message
  }

  find(fits: (message: DeliveredMessage) => boolean): DeliveredMessage | undefined {
    let place = this.#queue.first
    while (place !== undefined && !fits(place.message)) place = place.following
    return place?.message
  }

  drain(): DeliveredMessage[] {
    const all: DeliveredMessage[] = []
    for (let next = this.take(() => true); next !== undefined; next = this.take(() => true))
      all.push(next)
    return all
  }

  youngest(count: number, visit: (message: DeliveredMessage) => void): void {
    let place = this.#queue.last
    for (let left = count; left > 0 && place !== undefined; left--) {
      visit(place.message)
      place = place.previous
    }
  }
}

/** A consumer, as its overflow policy sees it. */
export interface Dropping {
  readonly config: ConsumerConfig
  readonly buffer: ReceiveBuffer
  /** Holds the count of dropped messages. */
  readonly subscription: { dropped: number }
  /** True once the client has begun to end. */
  readonly closing: boolean
  /** True when nothing more comes in. */
  readonly ended: boolean
  /** True while messages are taken in and handed out. */
  readonly open: boolean
}

/**
 * Decides which messages are dropped when a consumer's limits are exceeded.
 *
 * It acts only after the consumer has had a turn since the buffer filled: a burst within one read
 * is not the consumer's fault.
 */
export class OverflowPolicy {
  readonly #host: ConsumerHost
  readonly #consumer: Dropping
  #filledAt = -1

  constructor(host: ConsumerHost, consumer: Dropping) {
    this.#host = host
    this.#consumer = consumer
  }

  /** True when a message may wait; otherwise it was dropped. */
  makeRoom(message: DeliveredMessage): boolean {
    if (this.#consumer.buffer.fits(message.size)) this.#filledAt = -1
    else if (this.#filledAt < 0) this.#filledAt = this.#host.turns.readerTurn()
    if (this.#filledAt < 0 || this.#filledAt === this.#host.turns.readerTurns) return true
    const { overflow } = this.#consumer.config
    if (overflow === 'drop-newest') return this.drop(message)
    // Backpressure: Receive Maximum limits messages that need an acknowledgement, so only the
    // others can exceed the limits.
    const any = overflow === 'drop-oldest'
    if (!any && !message.settled) return true
    while (!this.#consumer.ended && !this.#consumer.buffer.fits(message.size))
      if (
        (!any && !this.#consumer.buffer.hasSpare) ||
        !this.dropOldest((waiting) => any || waiting.settled)
      )
        return this.drop(message)
    return true
  }

  /**
   * Called after the reader had a turn: drops the excess, even if nothing more comes in. False when
   * there is nothing left to watch.
   */
  relieve(): boolean {
    const consumer = this.#consumer
    const { buffer, overflow } = consumer.config
    const { receiveWindow } = this.#host.session
    const { messages } = consumer.buffer
    let youngest: DeliveredMessage | undefined
    while (consumer.open && consumer.buffer.exceeds) {
      if (overflow === 'drop-newest')
        messages.youngest(1, (message) => {
          youngest = message
        })
      this.dropOldest((message) => (youngest ?? message) === message)
    }
    // The buffer is as full as it or Receive Maximum allows, and its oldest message blocks the
    // server. Dropping any other message would free nothing.
    const { oldestTicket } = receiveWindow
    const blocks = (): boolean =>
      receiveWindow.full &&
      messages.length >= Math.min(buffer, receiveWindow.open) &&
      messages.find(isOwed)?.ticket === oldestTicket
    while (consumer.open && overflow === 'drop-oldest' && blocks()) {
      // The last message stays readable: it is dropped when another one comes.
      if (messages.length === 1) messages.find(isOwed)?.settle(0)
      else this.dropOldest(() => true)
    }
    return consumer.open && messages.length > 0
  }

  /** Drops the oldest matching message; false when no message matches. */
  dropOldest(wanted: (message: DeliveredMessage) => boolean): boolean {
    const oldest = this.#consumer.buffer.remove(wanted)
    if (oldest === undefined) return false
    this.drop(oldest)
    return true
  }

  /** Drops a message unread and counts it. */
  drop(message: DeliveredMessage): false {
    const consumer = this.#consumer
    // While the client ends, it stays unacknowledged: the session redelivers it, so it is not lost.
    if (!consumer.closing) message.settle(0)
    if (message.settled || this.#host.states.sessionEnds) {
      consumer.subscription.dropped += 1
      this.#host.router.drops.handleDrop(consumer.config, message)
    }
    message.release()
    return false
  }
}

/** Runs the overflow policies of all buffers that are not empty. */
export class OverflowSweep {
  readonly #platform: Platform
  readonly #policies = new SparseSet<Sweepable>()
  #queued = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** A consumer has something to read. */
  add(policy: Sweepable): void {
    this.#policies.add(policy)
    this.queue()
  }

  /** Runs all policies after the current turn. */
  queue(): void {
    if (this.#queued || this.#policies.size === 0) return
    this.#queued = true
    this.#platform.nextTurn(() => {
      this.#queued = false
      for (const policy of this.#policies) if (!policy.relieve()) this.#policies.delete(policy)
    })
  }
}

/** Counts the turns in which the consumers of one client could run. */
export class ReaderTurns {
  /** Rises when consumers had a turn since the last call of `readerTurn`. */
  readerTurns = 0
  readonly #platform: Platform
  #counting = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /**
   * Returns `readerTurns`, and makes it rise once consumers could run, which is after all reads of
   * this turn.
   */
  readerTurn(): number {
    if (!this.#counting) {
      this.#counting = true
      this.#platform.microtask(() => {
        this.#counting = false
        this.readerTurns += 1
      })
    }
    return this.readerTurns
  }
}
