/**
 * Reports incoming messages that were dropped unread: at most once a second, with a count. Messages
 * that were too large are reported one by one.
 */

import { tally } from '../../common/counters.js'
import { quoted } from '../../common/schema.js'
import type { QoS } from '../../wire/packets.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { CancelTimer } from '../platform.js'
import type { DeliveredMessage } from './message.js'
import type { DeliverHost } from './ports.js'

/** Shortest time between two reports, in milliseconds. */
const dropInterval = 1000

/** Dropped messages of one client. */
export class DropReport {
  readonly #host: DeliverHost<unknown>
  #count = 0
  #topic = ''
  #timer: CancelTimer | undefined
  /** A too large message on this connection has been logged. */
  #logged = false

  constructor(host: DeliverHost<unknown>) {
    this.#host = host
  }

  /** Counts a dropped message. */
  add(topic: string): void {
    tally(this.#host, 'dropped')
    this.#count += 1
    this.#topic = topic
    // While the client ends, they are counted and reported once, at its end.
    if (this.#timer === undefined && !this.#host.states.stopping) this.#emit()
  }

  /** A connection is up. */
  handleConnected(): void {
    this.#logged = false
  }

  /** A message of `size` bytes exceeded an option whose value is `limit`. */
  handleTooLarge(
    topic: string,
    qos: QoS,
    size: number,
    limit: number,
    option: 'maximumPacketSize' | 'memoryBudget',
  ): void {
    const { events } = this.#host
    tally(this.#host, 'dropped')
    tally(this.#host, 'tooLarge')
    if (!this.#logged)
      this.#host.log(
        'warn',
        `a message of ${size} bytes on ${quoted(topic)} was dropped: ${option} is ${limit}`,
      )
    this.#logged = true
    events.emit('drop', {
      direction: 'in',
      topic,
      count: 1,
      error: undefined,
      reason: 'too-large',
      qos,
      size,
    })
  }

  /** A consumer dropped a message unread. */
  handleDrop({ onDrop }: ConsumerConfig, message: DeliveredMessage): void {
    this.add(message.topic)
    try {
      onDrop?.(message)
    } catch (error) {
      this.#host.report('MQWIRE_HANDLER_FAILED', 'onDrop threw', error)
    }
  }

  /** The client has ended: emits what is not reported yet. */
  stop(): void {
    this.#timer?.()
    this.#emit()
  }

  #emit(): void {
    const count = this.#count
    this.#timer = undefined
    if (count === 0) return
    this.#count = 0
    if (!this.#host.states.ended)
      this.#timer = this.#host.platform.setTimer(() => this.#emit(), dropInterval)
    this.#host.events.emit('drop', { direction: 'in', topic: this.#topic, count, error: undefined })
  }
}
