/**
 * Tells of publishes that failed, with `drop` events, after the call in which they did.
 *
 * A listener may publish again, and fail again: events come in turns of the event loop of their own, and above a number of them at most once a
 * second, counted together.
 */

import { MqttError } from '../../errors.js'
import type { ClientEvents } from '../api/index.js'
import { tally } from '../common/counters.js'
import type { PublishingHost } from './ports.js'

/** Events that one turn tells one by one; what fails beyond that is counted with the last of them. */
const mostTold = 256
/** Milliseconds until the next ones, after so many. */
const pause = 1000

/** Failed publishes of one client. */
export class Failures {
  readonly #host: PublishingHost
  #events: ClientEvents['drop'][] = []
  #queued = false
  #over = false

  constructor(host: PublishingHost) {
    this.#host = host
  }

  /** A publish failed. */
  add(topic: string, error: unknown): void {
    if (!MqttError.is(error) || error.code === 'ERR_ABORTED') return
    tally(this.#host, 'publishesDropped')
    if (this.#over) return
    const events = this.#events
    const count = events.length < mostTold ? 1 : (events.pop()?.count ?? 0) + 1
    events.push({ direction: 'out', topic, count, error })
    if (!this.#queued && !this.#host.states.ended) this.#queue(0)
  }

  /** The client is over: all that is not told is told now, and nothing after that. */
  end(): void {
    this.#tell()
    this.#over = true
  }

  #tell(): void {
    const events = this.#events
    this.#events = []
    for (const event of events) this.#host.events.emit('drop', event)
  }

  #queue(delay: number): void {
    const { platform } = this.#host
    const tell = (): void => {
      const delay = this.#events.length < mostTold ? 0 : pause
      this.#tell()
      this.#queued = false
      if (this.#events.length > 0) this.#queue(delay)
    }
    this.#queued = true
    if (delay > 0) platform.setTimer(tell, delay)
    else platform.nextTurn(tell)
  }
}
