/**
 * Entries read from the store that wait to be published: a line for each topic, ordered by number.
 *
 * A line gives its next entry while no earlier one waits for a retry and, if order requires it,
 * none is being sent. Lines take turns. The caller decides when a held line continues, and limits
 * what is added.
 */
import { Ring } from '../common/ring.js'
import type { StoredEntry } from './entry-log.js'

/** The line of one topic. */
interface Line {
  /** Waiting entries, in order. */
  readonly waiting: StoredEntry[]
  inFlight: number
  /** An entry of this line waits for a retry. */
  held: boolean
  /** The line is among those that take turns. */
  ready: boolean
}

/** Entries by topic. */
export class Lines {
  /** Number and bytes of waiting entries. */
  length = 0
  bytes = 0
  readonly #lines = new Map<string, Line>()
  readonly #turns = new Ring<Line>()
  /** Several entries of a topic may be under way, because the publisher keeps their order. */
  readonly #several: boolean

  constructor(several: boolean) {
    this.#several = several
  }

  /**
   * Adds an entry after the others of its topic; one that comes back is inserted before later ones.
   */
  add(stored: StoredEntry): void {
    const { topic, id } = stored.entry
    const line = this.#lines.get(topic) ?? { waiting: [], inFlight: 0, held: false, ready: false }
    this.#lines.set(topic, line)
    const at = line.waiting.findLastIndex(({ entry }) => entry.id < id)
    line.waiting.splice(at + 1, 0, stored)
    this.#count(stored, 1)
    this.#offer(line)
  }

  /** True when `take` would return an entry. */
  get ready(): boolean {
    for (let line = this.#turns.peek(); line !== undefined; line = this.#turns.peek()) {
      if (this.#mayGo(line)) return true
      this.#turns.shift()
      line.ready = false
    }
    return false
  }

  /**
   * Returns the next entry to publish, which then counts as under way; undefined if no entry is ready.
   */
  take(): StoredEntry | undefined {
    if (!this.ready) return undefined
    const line = this.#turns.shift() as Line
    line.ready = false
    const stored = line.waiting.shift() as StoredEntry
    line.inFlight += 1
    this.#count(stored, -1)
    this.#offer(line)
    return stored
  }

  /** An entry is no longer under way. */
  handleDone({ entry: { topic } }: StoredEntry): void {
    const line = this.#lines.get(topic)
    if (line === undefined) return
    line.inFlight -= 1
    this.#offer(line)
    this.#forget(topic, line)
  }

  /** An entry comes back and holds up its topic until `release`. */
  hold(stored: StoredEntry): void {
    const line = this.#lines.get(stored.entry.topic) as Line
    line.held = true
    this.add(stored)
    this.handleDone(stored)
  }

  /** A topic continues. */
  release(topic: string): void {
    const line = this.#lines.get(topic)
    if (line === undefined) return
    line.held = false
    this.#offer(line)
    this.#forget(topic, line)
  }

  /** The oldest waiting entry. */
  get oldest(): StoredEntry | undefined {
    return this.oldestOf(() => true)
  }

  /** The oldest matching entry. */
  oldestOf(wanted: (stored: StoredEntry) => boolean): StoredEntry | undefined {
    let oldest: StoredEntry | undefined
    for (const { waiting } of this.#lines.values()) {
      const first = waiting.find(wanted)
      if (first !== undefined && !(first.entry.id > (oldest?.entry.id ?? Number.POSITIVE_INFINITY)))
        oldest = first
    }
    return oldest
  }

  /** Removes an entry that is given up. False when it is not waiting. */
  remove(stored: StoredEntry): boolean {
    const { topic } = stored.entry
    const line = this.#lines.get(topic)
    const at = line?.waiting.indexOf(stored) ?? -1
    if (line === undefined || at < 0) return false
    line.waiting.splice(at, 1)
    this.#count(stored, -1)
    this.#forget(topic, line)
    return true
  }

  /** Removes and returns all waiting entries. */
  clear(): StoredEntry[] {
    const all = [...this.#lines.values()].flatMap(({ waiting }) => waiting.splice(0))
    for (const stored of all) this.#count(stored, -1)
    for (const [topic, line] of [...this.#lines]) this.#forget(topic, line)
    return all
  }

  #count({ size }: StoredEntry, by: 1 | -1): void {
    this.length += by
    this.bytes += by * size
  }

  #mayGo({ waiting, held, inFlight }: Line): boolean {
    return waiting.length > 0 && !held && (this.#several || inFlight === 0)
  }

  #offer(line: Line): void {
    if (line.ready || !this.#mayGo(line)) return
    line.ready = true
    this.#turns.push(line)
  }

  #forget(topic: string, { waiting, inFlight, held }: Line): void {
    if (waiting.length === 0 && inFlight === 0 && !held) this.#lines.delete(topic)
  }
}
