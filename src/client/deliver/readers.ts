/**
 * Who reads one consumer: a handler, a loop, or calls that wait for the next message. Each call ends with a message, its time, its signal, or the end.
 */

import { aborted, type Deferred, deferred, onAbort } from '../../common/abort.js'
import { Ring } from '../../common/ring.js'
import { MqttError } from '../../errors.js'
import type { Message, NextOptions } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { MessageHandler } from './ports.js'

/** The readers of a consumer. */
export class Readers {
  /** Of `listen`. */
  handler: MessageHandler | undefined
  /** A loop runs. */
  iterating = false
  readonly #platform: Platform
  /** Calls that wait. */
  readonly calls = new Ring<Deferred<Message | undefined>>()
  /** No message will come. */
  #over: { readonly error: MqttError | undefined } | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** True when a read is pending, so that what is buffered will be read. */
  get attended(): boolean {
    return this.iterating || this.calls.length > 0 || this.handler !== undefined
  }

  /** A call waits for a message that is not there. @throws MqttError what ended the reading */
  wait({ signal, timeout }: NextOptions): Promise<Message | undefined> {
    if (this.#over?.error !== undefined) throw this.#over.error
    if (this.#over !== undefined) return Promise.resolve(undefined)
    const call = deferred<Message | undefined>()
    const give = (error: MqttError): void =>
      this.calls.take((other) => other === call)?.reject(error)
    const stop = onAbort(signal, () => give(aborted(signal)))
    const late = (): void => give(new MqttError('ERR_TIMEOUT', `no message in ${timeout} ms`))
    const cancel = timeout === undefined ? undefined : this.#platform.setTimer(late, timeout)
    this.calls.push(call)
    if (signal === undefined && cancel === undefined) return call.promise
    return call.promise.finally(() => {
      stop()
      cancel?.()
    })
  }

  /** No message will come any more: with an error, or in order. What was said first holds. */
  end(error: MqttError | undefined): void {
    this.#over ??= { error }
    for (const call of this.calls.drain()) {
      if (error === undefined) call.resolve(undefined)
      else call.reject(error)
    }
  }
}
