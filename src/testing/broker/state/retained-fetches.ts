/**
 * The cursors over retained messages of one session, one for each filter that requested some, in
 * the order of the requests.
 *
 * It sends nothing: it returns the cursor with the next message. The number of cursors is bounded.
 */
import type { RetainedCursor } from './retained-cursor.js'

/** See the file's comment. */
export class RetainedFetches {
  readonly #most: number
  #cursors: RetainedCursor[] = []

  constructor(most: number) {
    this.#most = most
  }

  get isEmpty(): boolean {
    return this.#cursors.length === 0
  }

  /**
   * Adds a cursor. At the limit, it replaces the oldest one of the same filter, or else the oldest
   * one.
   */
  add(cursor: RetainedCursor): void {
    if (this.#cursors.length >= this.#most)
      this.#cursors.splice(Math.max(0, this.#indexOf(cursor.filter)), 1)
    this.#cursors.push(cursor)
  }

  /** Ends the cursors of a filter [MQTT-3.10.4-2]. */
  stop(filter: string): void {
    for (const cursor of this.#cursors) if (cursor.filter === filter) cursor.stop()
  }

  /** The first cursor that has a message left. */
  next(): RetainedCursor | undefined {
    while (this.#cursors[0] !== undefined && this.#cursors[0].peek() === undefined)
      this.#cursors.shift()
    return this.#cursors[0]
  }

  /**
   * The cursor that still has to deliver the message of a topic at this QoS; makes that its next
   * message [MQTT-4.6.0-5].
   */
  bring(topic: string, qos: number): RetainedCursor | undefined {
    for (const cursor of this.#cursors) if (cursor.bring(topic, qos)) return cursor
    return undefined
  }

  clear(): void {
    this.#cursors = []
  }

  #indexOf(filter: string): number {
    return this.#cursors.findIndex((cursor) => cursor.filter === filter)
  }
}
