/**
 * Who waits until everything has been sent, or acknowledged.
 *
 * It may assume that it hears of each publish that is over. It must never leave a call waiting for a client that is over.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import { withOutcome } from '../../common/outcome.js'
import { MqttError } from '../../errors.js'
import type { Backlog } from './backlog.js'
import type { PublishHost } from './ports.js'

/** Waits for the publishes of one client. */
export class Draining {
  readonly #host: PublishHost
  readonly #backlog: Backlog
  #idle: Deferred<void> | undefined

  constructor(host: PublishHost, backlog: Backlog) {
    this.#host = host
    this.#backlog = backlog
  }

  /** Fulfils when nothing is queued at QoS 0 and everything sent so far has left. */
  async flushed(): Promise<void> {
    const { connection } = this.#host.links
    if (connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    await this.#backlog.immediate.last?.promise.catch(() => undefined)
    const { promise, resolve, reject } = deferred<void>()
    connection.writer.onWritten((error) =>
      error === undefined ? resolve() : reject(withOutcome(error, 'unknown')),
    )
    await promise
  }

  /** Fulfils when nothing is queued or in flight, and what was sent has left. */
  async drained(): Promise<void> {
    while (this.open > 0 && !this.#host.states.ended) {
      this.#idle ??= deferred()
      await this.#idle.promise
    }
    if (this.#host.links.connection !== undefined) await this.flushed().catch(() => undefined)
  }

  /** A publish is over, or the client is. */
  tell(over: boolean): void {
    if (this.#idle === undefined || (!over && this.open > 0)) return
    this.#idle.resolve()
    this.#idle = undefined
  }

  /** Publishes that are on their way, those that a hook has in hand among them. */
  get open(): number {
    return (
      this.#backlog.size + this.#host.publishQueue.inFlight + (this.#host.hooks?.publishing ?? 0)
    )
  }
}
