/**
 * The messages that wait to be read from one consumer, with what they take of its limits and of the budget of the client.
 *
 * It never drops or settles anything by itself.
 */
import { Ring } from '../../common/ring.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import { noTicket } from '../session/receive-window.js'
import { Lanes, type MessageQueue } from './lanes.js'
import type { DeliveredMessage } from './message.js'
import type { Holdings } from './ports.js'

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
    this.messages = keyOf === undefined ? new Ring() : new Lanes(keyOf)
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
