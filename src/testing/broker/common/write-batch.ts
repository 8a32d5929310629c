/**
 * Batches small packets to one client: packets sent while a client's bytes are processed are
 * written together afterwards.
 *
 * The order to each client is kept. No timer is involved: the end of the outermost batch writes
 * everything.
 */

/** Something that holds packets back while a batch runs. */
export interface Writing {
  flush(): void
}

/** See the file's comment. */
export class WriteBatch {
  #depth = 0
  #waiting: Writing[] = []

  /** Whether packets may wait for the end of the batch. */
  get isOpen(): boolean {
    return this.#depth > 0
  }

  begin(): void {
    this.#depth++
  }

  end(): void {
    if (--this.#depth > 0 || this.#waiting.length === 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const writing of waiting) writing.flush()
  }

  /** Registers a writer to be flushed at the end of the batch. */
  add(writing: Writing): void {
    this.#waiting.push(writing)
  }
}
