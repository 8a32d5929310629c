/**
 * The queue of a handler that keeps an order by key: messages with one key come out one at a time, in the order of arrival; keys do not wait for
 * each other.
 *
 * It does for a consumer what a `Ring` does, and costs each message the same however many wait. It must never give out a message while another with
 * its key is handled: `free` says when that is over.
 */
import { type Linked, Queue } from '../../common/queue.js'
import { Ring } from '../../common/ring.js'
import type { DeliveredMessage } from './message.js'

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

/** Messages in lanes. */
export class Lanes implements MessageQueue {
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
