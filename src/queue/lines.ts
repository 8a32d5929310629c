/**
 * Entries that were read from the store and wait to be published: a line for each topic, in the order of their numbers.
 *
 * A line gives its next entry while none before it waits for another try, and, where order asks for it, none of it is being sent. Lines take turns. It
 * knows no time: the caller that holds an entry back says when it may go on. The caller that adds keeps a bound.
 */
import { Ring } from '../common/ring.js'
import type { StoredEntry } from './entry-log.js'

/** One topic. */
interface Line {
  /** In order. */
  readonly waiting: StoredEntry[]
  inFlight: number
  /** An entry of it waits for another try. */
  held: boolean
  /** It is among those that take turns. */
  ready: boolean
}

/** Entries by topic. */
export class Lines {
  /** Entries that wait, and their bytes. */
  length = 0
  bytes = 0
  readonly #lines = new Map<string, Line>()
  readonly #turns = new Ring<Line>()
  /** Several of one topic may be under way: their publisher keeps their order. */
  readonly #several: boolean

  constructor(several: boolean) {
    this.#several = several
  }

  /** Adds an entry: behind those of its topic, or before those that came later, when it comes back. */
  add(stored: StoredEntry): void {
    const { topic, id } = stored.entry
    const line = this.#lines.get(topic) ?? { waiting: [], inFlight: 0, held: false, ready: false }
    this.#lines.set(topic, line)
    const at = line.waiting.findLastIndex(({ entry }) => entry.id < id)
    line.waiting.splice(at + 1, 0, stored)
    this.#count(stored, 1)
    this.#offer(line)
  }

  /** True when `take` would give an entry. */
  get ready(): boolean {
    for (let line = this.#turns.peek(); line !== undefined; line = this.#turns.peek()) {
      if (this.#mayGo(line)) return true
      this.#turns.shift()
      line.ready = false
    }
    return false
  }

  /** The next entry to be published, which is under way from now on; undefined without one. */
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

  /** An entry is not under way any more. */
  handleDone({ entry: { topic } }: StoredEntry): void {
    const line = this.#lines.get(topic)
    if (line === undefined) return
    line.inFlight -= 1
    this.#offer(line)
    this.#forget(topic, line)
  }

  /** An entry comes back, and holds up its topic until `release`. */
  hold(stored: StoredEntry): void {
    const line = this.#lines.get(stored.entry.topic) as Line
    line.held = true
    this.add(stored)
    this.handleDone(stored)
  }

  /** A topic goes on. */
  release(topic: string): void {
    const line = this.#lines.get(topic)
    if (line === undefined) return
    line.held = false
    this.#offer(line)
    this.#forget(topic, line)
  }

  /** The oldest entry that waits. */
  get oldest(): StoredEntry | undefined {
    return this.oldestOf(() => true)
  }

  /** The oldest entry of those that are wanted. */
  oldestOf(wanted: (stored: StoredEntry) => boolean): StoredEntry | undefined {
    let oldest: StoredEntry | undefined
    for (const { waiting } of this.#lines.values()) {
      const first = waiting.find(wanted)
      if (first !== undefined && !(first.entry.id > (oldest?.entry.id ?? Number.POSITIVE_INFINITY)))
        oldest = first
    }
    return oldest
  }

  /** Takes an entry out that is given up. False where it does not wait. */
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

  /** Takes out everything that waits. */
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
