/**
 * Publishes many messages in order, without waiting for each.
 */
import type { Client, PublishOptions, Receipt } from 'mqwire'

/** Messages that may be on their way. */
const mostPending = 1000

/** The publishes of one command. */
export class Sending {
  readonly #client: Client
  #pending = 0
  #error: unknown
  #wake: (() => void) | undefined
  /** Messages that are published according to their QoS. */
  acknowledged = 0
  /** The receipt of the latest one. */
  last: Receipt | undefined

  constructor(client: Client) {
    this.#client = client
  }

  /** Publishes one, and waits while there are too many. @throws the error of an earlier one */
  async send(topic: string, payload: string | Uint8Array, options: PublishOptions): Promise<void> {
    while (this.#pending >= mostPending && this.#error === undefined) await this.#change()
    if (this.#error !== undefined) throw this.#error
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
    while (this.#pending > 0 && this.#error === undefined) await this.#change()
    if (this.#error !== undefined) throw this.#error
  }

  #end(error: unknown): void {
    this.#pending -= 1
    this.#error ??= error
    this.#wake?.()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
