/**
 * Consumers that may drop what is too much for them, once they had a turn: also when nothing further comes in.
 */
import { SparseSet } from '../common/sparse.js'
import type { Consumer } from './consumer.js'
import type { DeliveryHost } from './ports.js'

/** Looks after full buffers. */
export class Relief {
  readonly #host: DeliveryHost<Consumer>
  readonly #crowded = new SparseSet<Consumer>()
  #queued = false

  constructor(host: DeliveryHost<Consumer>) {
    this.#host = host
  }

  /** This consumer has more to read. */
  add(consumer: Consumer): void {
    this.#crowded.add(consumer)
    this.queue()
  }

  /** Looks at all of them when the turn has ended. */
  queue(): void {
    if (this.#queued || this.#crowded.size === 0) return
    this.#queued = true
    this.#host.platform.nextTurn(() => {
      this.#queued = false
      for (const consumer of this.#crowded) if (!consumer.relieve()) this.#crowded.delete(consumer)
    })
  }
}
