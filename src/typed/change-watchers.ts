/**
 * Watchers of a table of latest values: listeners, called once per turn of the event loop, and
 * readers, which get every changed topic.
 *
 * A listener that throws must never affect another. A slow reader must never hold many more topics
 * than the table has.
 */

/**
 * Most topics beyond those in the table that a slow reader holds, although they were added and
 * removed unseen.
 */
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

  /** Number of listeners and readers. */
  get size(): number {
    return this.#listeners.size + this.#readers.size
  }

  /** Adds a listener; returns a function that removes it. */
  listen(listener: () => void): () => void {
    const entry = (): void => listener()
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** Adds a reader; `leave` removes it. */
  read(): UnreadTopics {
    const reader = new UnreadTopics()
    this.#readers.add(reader)
    return reader
  }

  leave(reader: UnreadTopics): void {
    this.#readers.delete(reader)
    reader.end()
  }

  /** A topic has a new value. @param isNew true when it had none before */
  handlePut(topic: string, isNew: boolean): void {
    for (const reader of this.#readers) reader.add(topic, isNew)
    this.handleChange()
  }

  /** A topic was removed. @param count the number of topics left */
  handleRemoved(topic: string, count: number): void {
    for (const reader of this.#readers) reader.remove(topic, count)
    this.handleChange()
  }

  /** Ends all readers with the error. */
  end(error: unknown): void {
    for (const reader of this.#readers) reader.end(error)
    if (error !== undefined) this.handleChange()
  }

  /** Schedules the listeners. Called directly for changes other than of a topic. */
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
  /** The iterator is kept, because a new one would have to skip all deleted entries. */
  #walk: Iterator<string> | undefined
  #wakes: (() => void)[] = []
  #over = false
  #error: unknown

  add(topic: string, isNew: boolean): void {
    if (!this.#topics.has(topic)) this.#topics.set(topic, isNew)
    this.#wake()
  }

  /**
   * A topic was removed; `count` are left. Topics added and removed unseen must not pile up in a
   * slow reader.
   */
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
