/**
 * One thing to wait for: that something has changed. It must never leave a waiter behind.
 */
export class Changes {
  #waiting: (() => void)[] = []

  /** Fulfils with the next change. */
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
