/**
 * A cache of Topic Names seen on a connection, looked up by their bytes: a repeated topic needs no
 * validation, decoding or search for subscriptions.
 *
 * Bounded in entries and bytes; names without space are not added. After many of those the table
 * starts over, so that neither old topics nor a peer that never repeats a topic fill it for ever.
 * Only validated names may be added.
 */
import { nothing } from './fields.js'
import { decodeUtf8 } from './utf8.js'

/** Most topics, and bytes of topics, in the table. */
const mostTopics = 16_384
const mostTopicBytes = 1_048_576
/** Longer names are not added. */
const longestTopic = 1024
/** Slots probed for one name, so that names chosen to collide cost no more. */
const mostProbes = 8
/** Number of topics without space after which the table starts over. */
const mostMisses = 16_384
const firstSlots = 16
/** Recently seen names are recognised among this many. */
const mostRecent = 16_384
/** Slots for each topic, at least: with fewer, some names find no free slot within `mostProbes`. */
const roominess = 4
const wordSize = 4
const leastTopicBytes = 256
/**
 * Approximate bytes of an entry with its string; and of a topic including slots and name, to size a
 * table by its budget.
 */
const entryBytes = 128
const bytesPerTopic = 256

/** A Topic Name with data of the table's owner. */
export interface TopicRecord {
  /** The Topic Name. */
  readonly name: string
  /** State of the owner's subscriptions for which `route` is valid; -1: none. */
  version: number
  /** Data of the owner: where messages on this topic go. */
  route: unknown
}

/**
 * Hashes of names that were seen once, of all tables. A name is added when it is seen again, so that
 * names which never repeat cost no table. Each hash has two places; with one, two names that come in
 * turns would replace each other for ever.
 */
let recent: Int32Array | undefined
let turn = 0

/** True when a name with this hash was seen lately; remembers it. */
function isSeenAgain(hash: number): boolean {
  recent ??= new Int32Array(mostRecent)
  const one = hash & (mostRecent - 1)
  const other = (hash >>> 14) & (mostRecent - 1)
  if (recent[one] === hash || recent[other] === hash) return true
  turn ^= 1
  recent[turn === 0 ? one : other] = hash
  return false
}

const noData = /* @__PURE__ */ new DataView(nothing.buffer)

/** A record and the place of its bytes in a table. */
class Entry implements TopicRecord {
  readonly name: string
  version = -1
  route: unknown = undefined
  readonly hash: number
  start = 0
  readonly size: number

  constructor(name: string, hash: number, size: number) {
    this.name = name
    this.hash = hash
    this.size = size
  }
}

/** A record outside any table. */
export function topicRecord(name: string): TopicRecord {
  return new Entry(name, 0, 0)
}

/** Interned Topic Names. */
export class TopicTable {
  readonly #mostTopics: number
  readonly #mostBytes: number
  /** Places by hash. */
  #slots: (Entry | undefined)[] = []
  #size = 0
  #bytes = nothing
  #data = noData
  #used = 0
  #misses = 0
  // results of the last `find`
  #hash = 0
  #free = -1

  /** @param budget approximate bytes that it may take, if less than the fixed limits */
  constructor(budget = Number.POSITIVE_INFINITY) {
    this.#mostTopics = Math.min(mostTopics, Math.floor(budget / bytesPerTopic))
    this.#mostBytes = Math.min(mostTopicBytes, Math.floor(budget / 2))
  }

  /** How many topics are remembered. */
  get size(): number {
    return this.#size
  }

  /** Bytes of the table, including its objects. */
  get bytes(): number {
    return this.#bytes.length + this.#slots.length * 8 + this.#size * entryBytes
  }

  /**
   * The record of the name in `bytes[start..end)`, if known. `data` is a DataView of the same
   * bytes.
   */
  find(data: DataView, start: number, end: number): TopicRecord | undefined {
    const size = end - start
    const hash =
      size < wordSize ? hashOfShort(data, start, end) : hashOf(data, start, end - wordSize, size)
    const slots = this.#slots
    const mask = slots.length - 1
    let place = hash & mask
    this.#hash = hash
    for (let probe = 0; probe < mostProbes; probe++) {
      const entry = slots[place]
      if (entry === undefined) {
        this.#free = place
        return undefined
      }
      if (
        entry.hash === hash &&
        entry.size === size &&
        isSame(this.#data, entry.start, data, start, size)
      )
        return entry
      place = (place + 1) & mask
    }
    this.#free = -1
    return undefined
  }

  /**
   * Returns a record for the valid name that the last `find` did not know, and adds it when it was
   * seen before and there is space.
   */
  add(bytes: Uint8Array, start: number, end: number): TopicRecord {
    const size = end - start
    const entry = new Entry(decodeUtf8(bytes, start, end), this.#hash, size)
    if (size > longestTopic || !isSeenAgain(this.#hash)) return entry
    if (this.#size * roominess >= this.#slots.length && this.#size < this.#mostTopics) this.#grow()
    if (this.#size >= this.#mostTopics || this.#used + size > this.#mostBytes || this.#free < 0) {
      this.#misses += 1
      if (this.#misses >= mostMisses) this.clear()
      return entry
    }
    this.#reserve(size)
    this.#bytes.set(bytes.subarray(start, end), this.#used)
    entry.start = this.#used
    this.#used += size
    this.#slots[this.#free] = entry
    this.#size += 1
    return entry
  }

  /** Forgets everything. */
  clear(): void {
    this.#slots = []
    this.#size = 0
    this.#bytes = nothing
    this.#used = 0
    this.#misses = 0
  }

  /** Doubles the slots and finds one for the name of the last `find`. */
  #grow(): void {
    const old = this.#slots
    const slots = new Array<Entry | undefined>(Math.max(firstSlots, old.length * 2)).fill(undefined)
    this.#slots = slots
    for (const entry of old) {
      if (entry === undefined) continue
      const at = freeSlot(slots, entry.hash)
      // A name without a slot is dropped.
      if (at < 0) this.#size -= 1
      else slots[at] = entry
    }
    this.#free = freeSlot(slots, this.#hash)
  }

  #reserve(size: number): void {
    const needed = this.#used + size
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.min(this.#mostBytes, Math.max(leastTopicBytes, needed * 2)))
    grown.set(this.#bytes)
    this.#bytes = grown
    this.#data = new DataView(grown.buffer)
  }
}

function freeSlot(slots: readonly (Entry | undefined)[], hash: number): number {
  for (let probe = 0; probe < mostProbes; probe++) {
    const at = (hash + probe) & (slots.length - 1)
    if (slots[at] === undefined) return at
  }
  return -1
}

// If the size is not a multiple of four, the last word overlaps the one before.
function isSame(own: DataView, mine: number, data: DataView, start: number, size: number): boolean {
  if (size < wordSize) {
    for (let at = 0; at < size; at++)
      if (data.getUint8(start + at) !== own.getUint8(mine + at)) return false
    return true
  }
  const last = size - wordSize
  for (let at = 0; at < last; at += wordSize)
    if (data.getInt32(start + at, true) !== own.getInt32(mine + at, true)) return false
  return data.getInt32(start + last, true) === own.getInt32(mine + last, true)
}

// Over every word, because names often differ in only a few bytes.
function hashOf(data: DataView, start: number, last: number, size: number): number {
  let hash = size
  for (let at = start; at < last; at += wordSize) hash = mixed(hash, data.getInt32(at, true))
  hash = mixed(hash, data.getInt32(last, true))
  // Mixes the upper bits into the lower ones, which select the slot: the last bytes, in which names
  // usually differ, are the upper bits.
  return hash ^ (hash >>> 20)
}

function hashOfShort(data: DataView, start: number, end: number): number {
  let hash = 0
  for (let at = start; at < end; at++) hash = mixed(hash, data.getUint8(at))
  return hash
}

function mixed(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x9e3779b1)
  return product ^ (product >>> 15)
}
