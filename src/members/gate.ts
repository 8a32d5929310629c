/**
 * Holds calls back until the first connection is up or has failed, and lets them go in their order.
 */
import type { PublishOptions } from '../client/api/index.js'
import { aborted, deferred, onAbort, rejected } from '../client/common/abort.js'
import { MqttError } from '../errors.js'
import { attempt } from './failure.js'

/** Calls that wait at most. */
const mostWaiting = 10_000

/** Calls that wait. */
export class Gate {
  readonly #waiting = new Set<() => void>()

  /** Calls when it opens. @throws MqttError ERR_QUEUE_FULL, ERR_ABORTED, and what the call rejects with */
  run<R>(call: () => Promise<R>, signal: AbortSignal | undefined): Promise<R> {
    if (this.#waiting.size >= mostWaiting) return rejected(new MqttError('ERR_QUEUE_FULL', 'as many wait for the first connection already'))
    const { promise, resolve, reject } = deferred<R>()
    const go = (): void => {
      stop()
      attempt(call).then(resolve, reject)
    }
    this.#waiting.add(go)
    const stop = onAbort(signal, () => {
      if (this.#waiting.delete(go)) reject(aborted(signal))
    })
    return promise
  }

  /** Lets all go, in the order of their calls. */
  open(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const go of all) go()
  }
}

/** The signal of a call, if it is one; what is none, the client refuses. */
export function signalOf(options: PublishOptions | undefined): AbortSignal | undefined {
  const signal: unknown = options?.signal
  return typeof signal === 'object' && signal !== null && 'addEventListener' in signal ? (signal as AbortSignal) : undefined
}
