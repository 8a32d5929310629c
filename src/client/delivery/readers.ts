/**
 * Calls that wait for the next message of one consumer: each ends with a message, its time, its signal, or the end.
 */
import { MqttError } from '../../errors.js'
import type { Message, NextOptions } from '../api/index.js'
import { aborted, type Deferred, deferred, onAbort } from '../common/abort.js'
import { Ring } from '../common/ring.js'
import type { Platform } from '../platform/platform.js'

/** Who waits to read. */
export class Readers {
  readonly #platform: Platform
  readonly #waiters = new Ring<Deferred<Message | undefined>>()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  get length(): number {
    return this.#waiters.length
  }

  /** The one that has waited longest waits no more. */
  shift(): Deferred<Message | undefined> | undefined {
    return this.#waiters.shift()
  }

  wait({ signal, timeout }: NextOptions): Promise<Message | undefined> {
    const waiter = deferred<Message | undefined>()
    const give = (error: MqttError): void => this.#waiters.take((other) => other === waiter)?.reject(error)
    const stop = onAbort(signal, () => give(aborted(signal)))
    const late = (): void => give(new MqttError('ERR_TIMEOUT', `no message in ${timeout} ms`))
    const cancel = timeout === undefined ? undefined : this.#platform.setTimer(late, timeout)
    this.#waiters.push(waiter)
    if (signal === undefined && cancel === undefined) return waiter.promise
    return waiter.promise.finally(() => {
      stop()
      cancel?.()
    })
  }

  /** No message will come: with an error, or in order. */
  end(error: MqttError | undefined): void {
    for (const waiter of this.#waiters.drain()) {
      if (error === undefined) waiter.resolve(undefined)
      else waiter.reject(error)
    }
  }
}
