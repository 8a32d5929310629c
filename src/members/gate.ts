/**
 * Holds calls back until the first connection is up or has failed, and lets them go in their order.
 */
import { deferred, rejected, tolerant } from '../client/common/abort.js'
import { MqttError } from '../errors.js'
import type { Patience } from './asked.js'
import { attempt } from './failure.js'

/** Calls that wait at most. */
const mostWaiting = 10_000

/** Calls that wait. */
export class Gate {
  readonly #waiting = new Set<() => void>()

  /** Calls when it opens. @throws MqttError ERR_QUEUE_FULL, ERR_ABORTED, ERR_EXPIRED, and what the call rejects with */
  run<R>(call: () => Promise<R>, patience: Patience): Promise<R> {
    if (this.#waiting.size >= mostWaiting) return rejected(new MqttError('ERR_QUEUE_FULL', 'as many wait for the first connection already'))
    const { promise, resolve, reject } = deferred<R>()
    const go = (): void => {
      stop()
      attempt(call).then(resolve, reject)
    }
    this.#waiting.add(go)
    const stop = patience.watch((error) => {
      if (this.#waiting.delete(go)) reject(error)
    })
    return tolerant(promise)
  }

  /** Lets all go, in the order of their calls. */
  open(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const go of all) go()
  }
}
