/**
 * Notices when a server takes our messages and acknowledges none of them any more, and says so with a `stalled` event.
 *
 * It may assume that it is told of every message sent and of every acknowledgement. It must never cost more than a comparison for one.
 */

import type { CancelTimer } from '../platform/platform.js'
import type { PublishingHost } from './ports.js'

/** Milliseconds without a single acknowledgement. */
const stallAge = 10_000

/** Progress of one client's outgoing messages at QoS 1 and 2. */
export class AckWatch {
  readonly #host: PublishingHost
  #cancel: CancelTimer | undefined
  /** Acknowledgements; and how many there were when it was looked last, with slices of large payloads. */
  #count = 0
  #seen = 0
  #since = 0
  #told = false

  constructor(host: PublishingHost) {
    this.#host = host
  }

  /** A message was sent, again or for the first time. */
  handleSent(): void {
    if (this.#cancel === undefined && !this.#told) this.#begin()
  }

  /** An acknowledgement came in. */
  handleProgress(): void {
    this.#count += 1
    if (this.#host.publishQueue.inFlight === 0) return this.stop()
    if (!this.#told) return
    this.#told = false
    this.#begin()
  }

  /** Nothing is to be expected: all is acknowledged, or the connection is over. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#told = false
  }

  // Told once; the next time after there was progress.
  #begin(): void {
    const { platform } = this.#host
    this.#seen = this.#progress
    this.#since = platform.now()
    this.#cancel = platform.setTimer(() => this.#check(), stallAge)
  }

  // What has not left whole cannot be acknowledged.
  get #progress(): number {
    return this.#count + (this.#host.links.connection?.writer.slices ?? 0)
  }

  #check(): void {
    this.#cancel = undefined
    const { inFlight } = this.#host.publishQueue
    if (inFlight === 0) return
    if (this.#progress !== this.#seen || this.#host.links.connection?.writer.midway) return this.#begin()
    const age = this.#host.platform.now() - this.#since
    this.#told = true
    this.#host.log('warn', `the server acknowledges nothing since ${Math.round(age)} ms`)
    this.#host.events.emit('stalled', { direction: 'out', subscription: undefined, age, inFlight })
  }
}
