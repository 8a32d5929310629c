/**
 * The messages of one consumer that were handed out and are not done with, and the turns that end that.
 *
 * Under automatic acks a turn runs from handing a message out to asking for the next one; under `'manual'` to `ack()`; a handler says when it is done.
 * It must never acknowledge a message that was not handed out.
 */
import type { AckMode } from '../options/index.js'
import type { DeliveredMessage } from './message.js'
import type { ConsumerHost } from './ports.js'
import type { Readers } from './readers.js'
import type { ReceiveBuffer } from './receive-buffer.js'

/** Messages in hand that are not looked through. */
const leastSweep = 64

/** What the application has in hand. */
export class Outstanding {
  messages: DeliveredMessage[] = []
  #sweepAt = leastSweep
  readonly #host: ConsumerHost
  readonly #ack: AckMode
  readonly #buffer: ReceiveBuffer
  readonly #readers: Readers

  constructor(host: ConsumerHost, ack: AckMode, buffer: ReceiveBuffer, readers: Readers) {
    this.#host = host
    this.#ack = ack
    this.#buffer = buffer
    this.#readers = readers
  }

  /** True while a turn runs that `disconnect()` waits for: a loop body, a handler, or a message whose acknowledgement is still owed. */
  get busy(): boolean {
    const { handler, iterating } = this.#readers
    const ends = handler !== undefined || (iterating && this.#ack !== 'manual')
    return ends ? this.messages.length > 0 : this.messages.some((message) => !message.settled)
  }

  /** Hands out the next message that waits. */
  next(): DeliveredMessage | undefined {
    const host = this.#host
    const message = this.#buffer.shift()
    if (message !== undefined) this.handOut(message)
    // A turn ended before, or it may have been the last that `disconnect()` waits for.
    host.handleTurnEnd()
    return message
  }

  /** Hands one out. */
  handOut(message: DeliveredMessage): DeliveredMessage {
    const { counters } = this.#host
    const ack = this.#ack
    if (counters !== undefined) counters.delivered += 1
    if (ack === 'on-receive') message.settle(0)
    // What the application has settled is forgotten, not at each message, or many would cost a walk each. Handlers give back what they have.
    if (
      ack === 'manual' &&
      this.messages.length >= this.#sweepAt &&
      this.#readers.handler === undefined
    ) {
      this.messages = this.messages.filter(({ settled }) => !settled)
      this.#sweepAt = Math.max(leastSweep, this.messages.length * 2)
    }
    this.messages.push(message)
    this.#host.hooks?.deliver(message, this.#host)
    return message
  }

  /** The reader asks for more, or leaves. Under 'manual' the application ends turns with `ack()`; borrowed messages end with the turn in every mode. */
  endTurn(): void {
    if (this.#ack === 'manual') return
    const { messages } = this
    if (messages.length === 0) return
    // One is what nearly every turn has.
    if (messages.length === 1) this.#endOne(messages.pop() as DeliveredMessage)
    else for (const message of messages.splice(0)) this.#endOne(message)
  }

  #endOne(message: DeliveredMessage): void {
    if (this.#ack === 'auto') message.settle(0)
    message.release()
  }

  /** A handler is done with one. */
  release(message: DeliveredMessage): void {
    const { messages } = this
    // What came last goes fastest.
    if (messages.at(-1) === message) messages.pop()
    else if (messages.includes(message)) messages.splice(messages.indexOf(message), 1)
    message.release()
    this.#buffer.messages.free?.(message)
    this.#host.handleTurnEnd()
  }
}
