/**
 * Results of the scanner for the window: rows, read one by one, and topics by id.
 */
import type { ReadWindow } from '../wire/frames.js'
import type { TopicRecord, TopicTable } from '../wire/topic-table.js'
import { FIRST, HAS_PROPERTIES, type Memory, ROW, START } from './memory.js'

// Records by topic id are stored in pages, because one connection has few of the topics of a
// thread.
const pageBits = 6
const pageMask = (1 << pageBits) - 1

/** The rows of the latest scan. */
export class Rows {
  /** Rows of `ROW` numbers each. */
  readonly table: Int32Array
  /** Indexes of the remaining rows in the table; none before the first scan. */
  next = 0
  last = 0
  /** End of the scanned bytes. */
  limit = 0
  /** Where the scan stopped, and whether because the table was full. */
  stopped = 0
  more = false
  readonly #memory: Memory

  constructor(memory: Memory) {
    this.#memory = memory
    this.table = memory.table
  }

  /** The first byte of the window that has not been returned. */
  get position(): number {
    return this.next < this.last ? (this.table[this.next + START] as number) : this.stopped
  }

  /** True when the first packet of the scan has properties. */
  get rich(): boolean {
    return ((this.table[FIRST] as number) & HAS_PROPERTIES) > 0
  }

  /** Scans the window from `from` to the limit. */
  scan(from: number, version5: boolean, maximum: number): void {
    const memory = this.#memory
    const rows = memory.scan(from, this.limit, version5, maximum)
    this.next = 0
    this.last = rows * ROW
    this.stopped = memory.stopped
    this.more = memory.isFull(rows)
  }

  /** Discards the rows. */
  clear(): void {
    this.next = 0
    this.last = 0
  }
}

/** A connection's records of topics, by the scanner's ids. */
export class TopicRecords {
  readonly #window: ReadWindow
  #topics: TopicTable | undefined
  #records: (TopicRecord | undefined)[][] = []
  #generation = 0

  constructor({ window }: Memory) {
    this.#window = window
  }

  /** The ids restart with each generation. */
  renew(generation: number): void {
    if (generation === this.#generation) return
    this.#generation = generation
    this.#records = []
  }

  /**
   * The record of this id; undefined for a negative id, and for one that this connection has not
   * used since the ids restarted.
   */
  get(id: number, topics: TopicTable): TopicRecord | undefined {
    return id < 0 || topics !== this.#topics
      ? undefined
      : this.#records[id >> pageBits]?.[id & pageMask]
  }

  /** Adds the topic at this place in the window. An id of 0 or above finds it from now on. */
  add(id: number, start: number, end: number, topics: TopicTable): TopicRecord {
    const { bytes, data } = this.#window
    const record = topics.find(data, start, end) ?? topics.add(bytes, start, end)
    if (topics !== this.#topics) this.#records = []
    this.#topics = topics
    if (id >= 0) {
      const page = this.#records[id >> pageBits] ?? []
      page[id & pageMask] = record
      this.#records[id >> pageBits] = page
    }
    return record
  }
}
