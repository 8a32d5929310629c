/**
 * Lets callers wait until something has changed.
 */
export class Changes {
  #waiting: (() => void)[] = []

  /** Resolves at the next change. */
  get next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** Something has changed. */
  notify(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
