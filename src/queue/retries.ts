/**
 * How often entries were tried, and when each is tried again. It holds timers only, and none once it is stopped.
 */
import { MqttError } from '../errors.js'
import type { StoredEntry } from './entry-log.js'
import type { QueueConfig } from './options.js'

/** Entries that failed, and will be tried again. */
export class Retries {
  readonly #backoff: QueueConfig['backoff']
  readonly #tries = new Map<number, number>()
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()

  constructor(backoff: QueueConfig['backoff']) {
    this.#backoff = backoff
  }

  /** Calls `again` after the delay that the backoff gives for this failure. */
  schedule({ entry: { id } }: StoredEntry, error: unknown, again: () => void): void {
    const tries = (this.#tries.get(id) ?? 0) + 1
    this.#tries.set(id, tries)
    const delay = this.#backoff(tries, MqttError.is(error) ? error : undefined)
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer)
        again()
      },
      Number.isFinite(delay) ? delay : 0,
    )
    this.#timers.add(timer)
  }

  /** An entry is done with. */
  forget(id: number): void {
    this.#tries.delete(id)
  }

  /** Nothing is tried again. */
  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
