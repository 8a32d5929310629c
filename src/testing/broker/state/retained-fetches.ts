/**
 * The retained messages on their way to one session, a cursor for each SUBSCRIBE that asked for some, in the order of the SUBSCRIBEs.
 *
 * It sends nothing: it gives the cursor whose message is next. The number of cursors is bounded.
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

  /** Adds one. One of the same filter makes room where there are too many. */
  add(cursor: RetainedCursor): void {
    if (this.#cursors.length >= this.#most)
      this.#cursors.splice(Math.max(0, this.#indexOf(cursor.filter)), 1)
    this.#cursors.push(cursor)
  }

  /** Nothing more comes for a filter [MQTT-3.10.4-2]. */
  stop(filter: string): void {
    for (const cursor of this.#cursors) if (cursor.filter === filter) cursor.stop()
  }

  /** The first cursor that has a message left. */
  next(): RetainedCursor | undefined {
    while (this.#cursors[0] !== undefined && this.#cursors[0].peek() === undefined)
      this.#cursors.shift()
    return this.#cursors[0]
  }

  /** The cursor that still has to bring the message of a topic at this QoS, which is its next one from now on [MQTT-4.6.0-5]. */
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
