/**
 * How much may wait outside of the clients: as many messages and bytes as one client may have queued.
 */
import type { ClientOptions } from '../client/options/index.js'
import { optionError } from '../common/schema.js'
import type { MqttError } from '../errors.js'

/** Counts what waits. */
export class WaitingRoom {
  readonly #messages: number
  readonly #bytes: number
  #waiting = 0
  #waitingBytes = 0

  /** @param options those of the clients, which check them */
  constructor({ outbound }: ClientOptions = {}) {
    this.#messages = outbound?.maxQueuedMessages ?? 10_000
    this.#bytes = outbound?.maxQueuedBytes ?? 16 * 1024 * 1024
  }

  /** Messages that wait. */
  get size(): number {
    return this.#waiting
  }

  /** One more, of so many bytes. @throws MqttError ERR_QUEUE_FULL, or ERR_DROPPED under an overflow policy that drops */
  enter(bytes: number, overflow?: string): void {
    const error = this.refusal(bytes, overflow)
    if (error !== undefined) throw error
    this.#waiting += 1
    this.#waitingBytes += bytes
  }

  /** Why there is no room for one more; undefined where there is. */
  refusal(bytes: number, overflow = ''): MqttError | undefined {
    // One that is larger than the limit may wait alone, as in a client.
    if (
      this.#waiting + 1 <= this.#messages &&
      (this.#waiting === 0 || this.#waitingBytes + bytes <= this.#bytes)
    )
      return undefined
    const why = `${this.#waiting} messages wait (outbound.maxQueuedMessages ${this.#messages}), ${this.#waitingBytes} bytes (outbound.maxQueuedBytes ${this.#bytes})`
    return overflow.startsWith('drop')
      ? optionError('ERR_DROPPED', 'outbound', `dropped by outbound.overflow '${overflow}': ${why}`)
      : optionError(
          'ERR_QUEUE_FULL',
          'outbound',
          `queue full: ${why}; await writable between publishes`,
        )
  }

  /** It waits no more. */
  leave(bytes: number): void {
    this.#waiting -= 1
    this.#waitingBytes -= bytes
  }
}
