/**
 * The messages that wait to be read from one consumer, with what they take of its limits and of the budget of the client.
 *
 * It never drops or settles anything by itself.
 */

import { type Linked, Queue } from '../../common/queue.js'
import { Ring } from '../../common/ring.js'
import { SparseSet } from '../../common/sparse.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { Platform } from '../platform.js'
import { noTicket } from '../session/receive-window.js'
import type { DeliveredMessage } from './message.js'
import type { ConsumerHost, Holdings, Sweepable } from './ports.js'
import { isOwed } from './settler.js'

/** A queue with an account. */
export class ReceiveBuffer {
  readonly messages: MessageQueue
  readonly #config: ConsumerConfig
  readonly #shared: Pick<Holdings, 'budget' | 'unmoved'>
  /** How many of the youngest lie in memory that others may share. */
  #unmoved = 0
  #bytes = 0
  /** Messages that are owed no acknowledgement. */
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

  /** False when none waits that is owed no acknowledgement. */
  get hasSpare(): boolean {
    return this.#spare > 0
  }

  /** True when there are more than the limits allow. One always fits, however large. */
  get exceeds(): boolean {
    const { buffer, bufferBytes } = this.#config
    const { length } = this.messages
    return length > buffer || (length > 1 && this.#bytes > bufferBytes)
  }

  /** True when one more of this size is within the limits. */
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

  /** Takes out the oldest that is wanted. */
  remove(wanted: (message: DeliveredMessage) => boolean): DeliveredMessage | undefined {
    const message = this.messages.take(wanted)
    if (message !== undefined) this.#count(-message.size, message)
    return message
  }

  /** Takes out all, in the order of arrival. */
  drain(): DeliveredMessage[] {
    this.#shared.budget.add(-this.#bytes)
    this.#bytes = 0
    this.#spare = 0
    return this.messages.drain()
  }

  /** Messages move out of memory that they may keep alive by themselves; out of read windows only when they must. */
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

/** What a consumer keeps messages in. */
export interface MessageQueue
  extends Pick<
    Ring<DeliveredMessage>,
    'length' | 'push' | 'shift' | 'take' | 'find' | 'drain' | 'youngest'
  > {
  /** A message that `shift` gave is done with. */
  free?(message: DeliveredMessage): void
}

/** Messages with one key. The first is handled, or ready to be. */
interface Lane {
  readonly key: unknown
  readonly messages: Ring<DeliveredMessage>
}

/** Where a message stands. */
interface Place extends Linked<Place> {
  readonly message: DeliveredMessage
  readonly lane: Lane
}

/**
 * The queue of a handler with an order by key: messages of one key come out one at a time, in the order of arrival; keys do not wait for each other.
 *
 * It never gives out a message while another one of its key is handled: `free` ends that. Its cost for a message does not grow with its length.
 */
export class KeyedQueue implements MessageQueue {
  readonly #keyOf: (message: DeliveredMessage) => unknown
  /** Those that wait, in the order of arrival. */
  readonly #queue = new Queue<Place>()
  readonly #lanes = new Map<unknown, Lane>()
  /** Of those that wait or are handled. */
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

  /** The next whose key is free. */
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

/** The consumer, as its policy sees it. */
export interface Dropping {
  readonly config: ConsumerConfig
  readonly buffer: ReceiveBuffer
  /** Where it is counted what was dropped. */
  readonly subscription: { dropped: number }
  /** True from when the client began to end. */
  readonly closing: boolean
  /** True when nothing more comes. */
  readonly ended: boolean
  /** True while it takes messages and hands them out. */
  readonly open: boolean
}

/**
 * What is dropped when more waits than the limits of a consumer allow.
 *
 * It acts only after the consumer had a turn since the buffer filled: a burst within one read is not the consumer's fault.
 */
export class OverflowPolicy {
  readonly #host: ConsumerHost
  readonly #consumer: Dropping
  #filledAt = -1

  constructor(host: ConsumerHost, consumer: Dropping) {
    this.#host = host
    this.#consumer = consumer
  }

  /** True when a message may wait; one that may not is dropped. */
  makeRoom(message: DeliveredMessage): boolean {
    if (this.#consumer.buffer.fits(message.size)) this.#filledAt = -1
    else if (this.#filledAt < 0) this.#filledAt = this.#host.turns.readerTurn()
    if (this.#filledAt < 0 || this.#filledAt === this.#host.turns.readerTurns) return true
    const { overflow } = this.#consumer.config
    if (overflow === 'drop-newest') return this.drop(message)
    // Backpressure: Receive Maximum stops what is owed an acknowledgement, so only the rest can be in excess.
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

  /** The reader had a turn: what is too much goes, also when nothing further can come. False when there is nothing to look after. */
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
    // As much as fits, or all that the server may send: the oldest keeps it from sending. To drop another would free nothing.
    const { oldestTicket } = receiveWindow
    const blocks = (): boolean =>
      receiveWindow.full &&
      messages.length >= Math.min(buffer, receiveWindow.open) &&
      messages.find(isOwed)?.ticket === oldestTicket
    while (consumer.open && overflow === 'drop-oldest' && blocks()) {
      // The last one stays to be read: it goes when another comes.
      if (messages.length === 1) messages.find(isOwed)?.settle(0)
      else this.dropOldest(() => true)
    }
    return consumer.open && messages.length > 0
  }

  /** Drops the oldest that is wanted; false without one. */
  dropOldest(wanted: (message: DeliveredMessage) => boolean): boolean {
    const oldest = this.#consumer.buffer.remove(wanted)
    if (oldest === undefined) return false
    this.drop(oldest)
    return true
  }

  /** Lets a message go unread, and says that it does not fit. */
  drop(message: DeliveredMessage): false {
    const consumer = this.#consumer
    // While the client ends it stays unacknowledged; what the session keeps comes again, and is not lost.
    if (!consumer.closing) message.settle(0)
    if (message.settled || this.#host.states.sessionEnds) {
      consumer.subscription.dropped += 1
      this.#host.router.drops.handleDrop(consumer.config, message)
    }
    message.release()
    return false
  }
}

/** Looks after buffers that are not empty. */
export class OverflowSweep {
  readonly #platform: Platform
  readonly #policies = new SparseSet<Sweepable>()
  #queued = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Its consumer has more to read. */
  add(policy: Sweepable): void {
    this.#policies.add(policy)
    this.queue()
  }

  /** Looks at all of them when the turn has ended. */
  queue(): void {
    if (this.#queued || this.#policies.size === 0) return
    this.#queued = true
    this.#platform.nextTurn(() => {
      this.#queued = false
      for (const policy of this.#policies) if (!policy.relieve()) this.#policies.delete(policy)
    })
  }
}

/** The turns of one client's consumers. */
export class ReaderTurns {
  /** Rises when consumers had a turn since `readerTurn` was called last. */
  readerTurns = 0
  readonly #platform: Platform
  #counting = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Gives `readerTurns`, which rises once consumers have had their turn: they have theirs after all reads of this one. */
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
