/**
 * Emits `drop` events for publishes that failed, after the call in which they did. Without a listener it reports the first of a turn with the
 * count of the others.
 *
 * A listener may publish again, and fail again: events come in turns of the event loop of their own, and above a number of them at most once a
 * second, counted together.
 */

import { tally } from '../../common/counters.js'
import { quoted } from '../../common/schema.js'
import { isProgramFault, MqttError } from '../../errors.js'
import type { ClientEvents } from '../options/index.js'
import type { PublishHost } from './ports.js'

/** Events that one turn emits one by one; failures beyond that are counted with the last of them. */
const mostTold = 256
/** Milliseconds until the next ones, after so many. */
const pause = 1000

/** Failed publishes of one client. */
export class Failures {
  /** The client ends because the program wants it to: what fails now is its own doing. */
  quiet = false
  readonly #host: PublishHost
  #events: ClientEvents['drop'][] = []
  /** Those of them that were not the program's own doing: the first, and how many. */
  #unheard: { readonly topic: string; readonly error: MqttError; count: number } | undefined
  #queued = false
  /** Undefined until the client is over; then what silences reports. */
  #over: { readonly heard: boolean } | undefined

  constructor(host: PublishHost) {
    this.#host = host
  }

  /** A publish failed. `kept`: its caller has it still. */
  add(topic: string, error: unknown, kept = false): void {
    if (!MqttError.is(error) || error.code === 'ERR_ABORTED') return
    tally(this.#host, 'publishesDropped')
    // What rejects loudly, and what the program ended itself, need no report.
    if (!this.quiet && !kept && !isProgramFault(error)) {
      this.#unheard ??= { topic, error, count: 0 }
      this.#unheard.count += 1
    }
    if (this.#over !== undefined) return this.#report()
    const events = this.#events
    const count = events.length < mostTold ? 1 : (events.pop()?.count ?? 0) + 1
    events.push({ direction: 'out', topic, count, error })
    if (!this.#queued && !this.#host.states.ended) this.#queue(0)
  }

  /** The client is over: events that are due are emitted now; after that there are only reports. */
  end(): void {
    const heard = this.#host.events.has('drop')
    this.#tell()
    this.quiet = false
    this.#over = { heard }
  }

  #tell(): void {
    const events = this.#events
    this.#events = []
    for (const event of events) this.#host.events.emit('drop', event)
    this.#report()
  }

  #report(): void {
    const unheard = this.#unheard
    this.#unheard = undefined
    if (unheard === undefined || this.#over?.heard) return
    const { topic, error, count } = unheard
    this.#host.report(
      'MQWIRE_PUBLISH_REFUSED',
      () => `publish to ${quoted(topic)} failed`,
      error,
      'drop',
      count,
    )
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
