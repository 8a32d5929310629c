/**
 * Publishes many messages in order, without waiting for each.
 */
import type { Client, PublishOptions, Receipt } from 'mqwire'

/** Messages that may be on their way. */
const mostPending = 1000

/** The publishes of one command. */
export class Sending {
  readonly #client: Client
  readonly #signal: AbortSignal
  #pending = 0
  #error: unknown
  #wake: (() => void) | undefined
  /** Messages that are published according to their QoS. */
  acknowledged = 0
  /** The receipt of the latest one. */
  last: Receipt | undefined

  constructor(client: Client, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake?.())
  }

  /** Publishes one, and waits while there are too many. @throws the error of an earlier one, and what the signal says */
  async send(topic: string, payload: string | Uint8Array, options: PublishOptions): Promise<void> {
    await this.#until(mostPending)
    this.#pending += 1
    // At QoS 0, a message counts when it is written.
    this.#client.publish(topic, payload, { flush: true, ...options }).then(
      (receipt) => {
        this.acknowledged += 1
        this.last = receipt
        this.#end(undefined)
      },
      (error: unknown) => this.#end(error),
    )
  }

  /** Waits for all of them. @throws the error of the first that failed */
  async done(): Promise<void> {
    await this.#until(1)
  }

  #end(error: unknown): void {
    this.#pending -= 1
    this.#error ??= error
    this.#wake?.()
  }

  /** Waits until fewer than this are on their way. */
  async #until(count: number): Promise<void> {
    while (this.#pending >= count && this.#error === undefined && !this.#signal.aborted)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    this.#signal.throwIfAborted()
    if (this.#error !== undefined) throw this.#error
  }
}
