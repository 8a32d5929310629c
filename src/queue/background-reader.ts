/**
 * Reads entries ahead while those that were read leave.
 *
 * Reading may write: a damaged record is put aside. So closing the queue waits for `done`.
 */
import type { Lookahead } from './lookahead.js'
import type { Removals } from './removals.js'

/** Reads ahead in the background. */
export class BackgroundReader {
  readonly #ahead: Lookahead
  readonly #removals: Removals
  readonly #handleError: (error: unknown) => void
  #reading: Promise<void> | undefined

  constructor(ahead: Lookahead, removals: Removals, handleError: (error: unknown) => void) {
    this.#ahead = ahead
    this.#removals = removals
    this.#handleError = handleError
  }

  /** Fulfils when nothing is being read. */
  get done(): Promise<void> {
    return this.#reading ?? Promise.resolve()
  }

  /** Reads as far as there is room, unless it does so already. */
  readOn(): void {
    if (this.#ahead.wanting) this.#reading ??= this.#read()
  }

  async #read(): Promise<void> {
    try {
      await this.#ahead.fill()
    } catch (error) {
      this.#handleError(error)
      await this.#removals.pause()
    }
    this.#reading = undefined
    this.#ahead.handleRead()
  }
}
