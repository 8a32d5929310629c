/**
 * Counts the attempts of entries and schedules retries. It has only timers, and none once it is
 * stopped.
 */
import { longestTimer } from '../common/schema.js'
import { MqttError } from '../errors.js'
import type { StoredEntry } from './entry-log.js'
import type { QueueConfig } from './options.js'

/** Delay in milliseconds when the backoff returns none. */
const fallback = 30_000

/** Entries that failed and will be retried. */
export class Retries {
  readonly #backoff: QueueConfig['backoff']
  readonly #handleError: (error: unknown) => void
  readonly #tries = new Map<number, number>()
  readonly #refusals = new Map<number, number>()
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()
  #stopped = false

  constructor(backoff: QueueConfig['backoff'], handleError: (error: unknown) => void) {
    this.#backoff = backoff
    this.#handleError = handleError
  }

  /** Calls `again` after the delay that the backoff gives for this failure. */
  schedule({ entry: { id } }: StoredEntry, error: unknown, again: () => void): void {
    if (this.#stopped) return
    const tries = (this.#tries.get(id) ?? 0) + 1
    this.#tries.set(id, tries)
    const delay = this.#delay(tries, error)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      again()
    }, delay)
    this.#timers.add(timer)
  }

  // A failing backoff must neither stop the entry nor retry it at once.
  #delay(tries: number, error: unknown): number {
    try {
      const delay = this.#backoff(tries, MqttError.is(error) ? error : undefined)
      if (delay >= 0) return Math.min(delay, longestTimer)
    } catch (thrown) {
      this.#handleError(thrown)
    }
    return fallback
  }

  /** Counts a refusal of an entry; returns the number. */
  refusal(id: number): number {
    const count = (this.#refusals.get(id) ?? 0) + 1
    this.#refusals.set(id, count)
    return count
  }

  /** An entry is finished. */
  forget(id: number): void {
    this.#tries.delete(id)
    this.#refusals.delete(id)
  }

  /** Cancels all retries. */
  stop(): void {
    this.#stopped = true
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
