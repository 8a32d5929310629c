/**
 * The messages of one consumer that were handed out and are not done with.
 */
import { leastSweep } from './bounds.js'
import type { DeliveredMessage } from './message.js'

/** What the application has in hand. */
export class Hands {
  messages: DeliveredMessage[] = []
  #sweepAt = leastSweep

  /** Hands one out. `sweeps`: what the application has settled may be forgotten. */
  add(message: DeliveredMessage, sweeps: boolean): void {
    // Not at each message, or many that wait would cost a walk each.
    if (sweeps && this.messages.length >= this.#sweepAt) {
      this.messages = this.messages.filter(({ settled }) => !settled)
      this.#sweepAt = Math.max(leastSweep, this.messages.length * 2)
    }
    this.messages.push(message)
  }

  /** One is done with. */
  remove(message: DeliveredMessage): void {
    const { messages } = this
    const index = messages.length === 1 && messages[0] === message ? 0 : messages.indexOf(message)
    // What came last goes fastest.
    if (index >= 0 && index === messages.length - 1) messages.pop()
    else if (index >= 0) messages.splice(index, 1)
  }
}
