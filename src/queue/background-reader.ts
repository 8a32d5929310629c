/**
 * Reads entries ahead while earlier ones are sent. Reading may write, because damaged records are
 * set aside, so closing the queue waits for `done`.
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

  /** Resolves when nothing is being read. */
  get done(): Promise<void> {
    return this.#reading ?? Promise.resolve()
  }

  /** Reads while there is space, unless it is already reading. */
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
