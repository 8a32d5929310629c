/**
 * Reports the outcome of entries to everything that depends on it: waiting calls, listeners, dead
 * letters, the status. Every promise settles once, and a failing callback does not affect the
 * queue.
 */
import type { Receipt } from '../client/options/index.js'
import { type Deferred, deferred } from '../common/abort.js'
import type { Emitter } from '../common/emitter.js'
import { MqttError } from '../errors.js'
import type { StoreOperation } from '../store/base/store.js'
import type { DeadLetters } from './dead-letters.js'
import type { DrainOwner } from './drain.js'
import type { StoredEntry } from './entry-log.js'
import type { QueueConfig } from './options.js'
import type { Progress } from './progress.js'
import type { QueueEvents } from './types.js'

/** Shortest time between two `error` events of a failing store, in milliseconds. */
const interval = 1000

/** Outcomes of the entries of one queue. */
export class Outcomes implements DrainOwner {
  readonly #config: QueueConfig
  readonly #events: Emitter<QueueEvents>
  readonly #letters: DeadLetters | undefined
  readonly #progress: Progress
  readonly #handleRoom: () => void
  #reportedAt = Number.NEGATIVE_INFINITY
  /** Callers waiting for the delivery of an entry. */
  readonly #waiting = new Map<number, Deferred<Receipt>>()

  /** @param handleRoom called when an entry was deleted */
  constructor(
    config: QueueConfig,
    events: Emitter<QueueEvents>,
    letters: DeadLetters | undefined,
    progress: Progress,
    handleRoom: () => void,
  ) {
    this.#config = config
    this.#events = events
    this.#letters = letters
    this.#progress = progress
    this.#handleRoom = handleRoom
  }

  /** A promise for the outcome of an entry. */
  of(id: number): Promise<Receipt> {
    const delivered = deferred<Receipt>()
    this.#waiting.set(id, delivered)
    return delivered.promise
  }

  /** Rejects all waiting callers. */
  close(reasonOf: (id: number) => MqttError): void {
    for (const [id, delivered] of this.#waiting) delivered.reject(reasonOf(id))
    this.#waiting.clear()
  }

  handleDelivered({ entry: { id } }: StoredEntry, receipt: Receipt): void {
    this.#waiting.get(id)?.resolve(receipt)
    this.#waiting.delete(id)
    this.#progress.handleDelivered()
    this.#handleRoom()
  }

  handleLost({ entry: { id, topic } }: StoredEntry, error: MqttError): void {
    this.#letters?.settle(id)
    this.#waiting.get(id)?.reject(error)
    this.#waiting.delete(id)
    this.#progress.handleLost()
    this.#events.emit('drop', { id, topic, error })
    this.#handleRoom()
  }

  async handleDead({ entry }: StoredEntry, error: MqttError): Promise<readonly StoreOperation[]> {
    const operations = (await this.#letters?.keep(entry, error, Date.now())) ?? []
    const { deadLetterStore, store, onDeadLetter } = this.#config
    // In another store, the letter is stored before the entry is deleted here.
    const elsewhere = deadLetterStore !== undefined && deadLetterStore !== store
    if (elsewhere) await deadLetterStore.batch(operations)
    const letter = { entry, error }
    this.#events.emit('deadletter', letter)
    try {
      // The callback may be an async function.
      Promise.resolve(onDeadLetter?.(letter)).catch((thrown: unknown) => this.handleError(thrown))
    } catch (thrown) {
      this.handleError(thrown)
    }
    return elsewhere ? [] : operations
  }

  handleProgress(): void {
    this.#progress.handleChange()
  }

  /**
   * Emits at most one `error` event a second while the store fails, however many operations fail.
   */
  handleError(error: unknown): void {
    if (MqttError.is(error) && error.code === 'ERR_STORE') {
      const now = Date.now()
      if (Math.abs(now - this.#reportedAt) < interval) return
      this.#reportedAt = now
    }
    this.#events.emit('error', { error })
  }
}
