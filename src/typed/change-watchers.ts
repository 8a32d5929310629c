/**
 * The watchers of a table of latest values: listeners that are called once a turn, and readers that get every topic that changed.
 *
 * It must never let a listener that throws harm another, nor a reader that is slow hold many more topics than there are.
 */

/** Topics that a slow reader gets although they came and went meanwhile. */
const mostGone = 1000

/** Listeners and readers of one table. */
export class ChangeWatchers {
  readonly #listeners = new Set<() => void>()
  readonly #readers = new Set<UnreadTopics>()
  readonly #report: (error: unknown) => void
  #notifying = false

  /** @param report called with errors of listeners */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** Adds a listener; gives the function that takes it away. */
  listen(listener: () => void): () => void {
    const entry = (): void => listener()
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** Adds a reader, to be given to `leave`. */
  read(): UnreadTopics {
    const reader = new UnreadTopics()
    this.#readers.add(reader)
    return reader
  }

  leave(reader: UnreadTopics): void {
    this.#readers.delete(reader)
    reader.end()
  }

  /** A topic has a value that it did not have. @param isNew true when it had none */
  handlePut(topic: string, isNew: boolean): void {
    for (const reader of this.#readers) reader.add(topic, isNew)
    this.handleChange()
  }

  /** A topic is gone. @param count how many are there now */
  handleRemoved(topic: string, count: number): void {
    for (const reader of this.#readers) reader.remove(topic, count)
    this.handleChange()
  }

  /** Ends every wait for a change with the reason. */
  end(error: unknown): void {
    for (const reader of this.#readers) reader.end(error)
    if (error !== undefined) this.handleChange()
  }

  /** Something else than a topic has changed. */
  handleChange(): void {
    if (this.#notifying || this.#listeners.size === 0) return
    this.#notifying = true
    setTimeout(() => this.#notify(), 0)
  }

  #notify(): void {
    this.#notifying = false
    for (const listener of [...this.#listeners]) {
      try {
        if (this.#listeners.has(listener)) listener()
      } catch (error) {
        this.#report(error)
      }
    }
  }
}

/** Topics that changed and that one reader has not seen. */
export class UnreadTopics {
  /**
   * Topics with pending changes; true if the reader has never seen the topic, so that its removal
   * need not be shown.
   */
  readonly #topics = new Map<string, boolean>()
  /** A walk that goes on where it was: from the start it would pass over all that was taken out. */
  #walk: Iterator<string> | undefined
  #wakes: (() => void)[] = []
  #over = false
  #error: unknown

  add(topic: string, isNew: boolean): void {
    if (!this.#topics.has(topic)) this.#topics.set(topic, isNew)
    this.#wake()
  }

  /** A topic has gone; so many are there. Topics that come and go must not grow a reader that is behind. */
  remove(topic: string, count: number): void {
    if (this.#topics.get(topic) === true && this.#topics.size > count + mostGone)
      this.#topics.delete(topic)
    else this.add(topic, false)
  }

  end(error?: unknown): void {
    this.#over = true
    this.#error = error
    this.#wake()
  }

  async next(): Promise<string | undefined> {
    while (this.#topics.size === 0) {
      if (this.#over) return this.#last()
      await new Promise<void>((resolve) => this.#wakes.push(resolve))
    }
    this.#walk ??= this.#topics.keys()
    const topic = this.#walk.next().value as string
    this.#topics.delete(topic)
    if (this.#topics.size === 0) this.#walk = undefined
    return topic
  }

  // The final error is thrown only once.
  #last(): undefined {
    const error = this.#error
    this.#error = undefined
    if (error !== undefined) throw error
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake()
  }
}
