/**
 * The wait before the next dial: until its backoff is over, or no longer than a second after the last one that did not wait for that.
 */
import type { CancelTimer, Platform } from '../platform/platform.js'
import { wakeInterval } from './bounds.js'

/** One wait at a time. */
export class RedialTimer {
  readonly #platform: Platform
  readonly #dial: () => void
  #cancel: CancelTimer | undefined
  #dueAt = 0
  #hurriedAt = Number.NEGATIVE_INFINITY

  constructor(platform: Platform, dial: () => void) {
    this.#platform = platform
    this.#dial = dial
  }

  /** True while a dial is to come. */
  get waits(): boolean {
    return this.#cancel !== undefined
  }

  start(delay: number): void {
    this.#cancel?.()
    this.#dueAt = this.#platform.now() + delay
    this.#cancel = this.#platform.setTimer(this.#dial, delay)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Dials now instead of after the delay; but once a second at most, however often it is called. */
  hurry(): void {
    const left = this.spaced(Math.max(0, this.#dueAt - this.#platform.now()))
    if (left > 0) this.start(left)
    else this.#dial()
  }

  /** What is not to wait waits all the same, until a second after the last time. */
  spaced(delay: number): number {
    const now = this.#platform.now()
    const spacing = Math.max(0, this.#hurriedAt + wakeInterval - now)
    const left = Math.min(delay || spacing, spacing)
    this.#hurriedAt = now + left
    return left
  }
}
