/**
 * Topic Names that a connection has seen, found again by their bytes: a repeated topic costs no check, no decoding and no search for who wants it.
 *
 * Bounded in entries and bytes; what finds no room is not remembered. When many topics found no room, the table starts over, so that neither an old
 * population nor a peer that never repeats itself keeps the place. It must only be given names that were validated.
 */
import { nothing } from './fields.js'
import { decodeUtf8 } from './utf8.js'

/** Most topics, and bytes of topics, that are remembered. */
const mostTopics = 4096
const mostTopicBytes = 262_144
/** Longer names are not remembered. */
const longestTopic = 1024
/** Places that are looked at for one name: names chosen to collide cost no more. */
const mostProbes = 8
/** Topics without room after which the table starts over. */
const mostMisses = 4096
const firstSlots = 16
/** Places for each topic, at least: with fewer some names find none among those that are looked at. */
const roominess = 4
const wordSize = 4
const leastTopicBytes = 256
/** Bytes of an entry and its string, about; and with its places and name, of a table that may take so many. */
const entryBytes = 128
const bytesPerTopic = 256

/** A Topic Name, and what its owner knows about it. */
export interface TopicRecord {
  /** The Topic Name. */
  readonly name: string
  /** For which state of the owner's subscriptions `route` holds; -1 for none. */
  version: number
  /** Who gets messages on this topic: a matter of the owner. */
  route: unknown
}

const noData = /* @__PURE__ */ new DataView(nothing.buffer)

/** A record, and where a table holds its bytes. */
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

/** A record that no table holds. */
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
  // of the last `find`
  #hash = 0
  #free = -1

  /** @param budget bytes that it may take, about; what the fixed limits make of it where that is less */
  constructor(budget = Number.POSITIVE_INFINITY) {
    this.#mostTopics = Math.min(mostTopics, Math.floor(budget / bytesPerTopic))
    this.#mostBytes = Math.min(mostTopicBytes, Math.floor(budget / 2))
  }

  /** How many topics are remembered. */
  get size(): number {
    return this.#size
  }

  /** Bytes that they take, with the objects around them. */
  get bytes(): number {
    return this.#bytes.length + this.#slots.length * 8 + this.#size * entryBytes
  }

  /** The record of the name in `bytes[start..end)`, where it is known. `data` shows the same bytes. */
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

  /** Remembers the valid name that `find` was asked about last and did not know, if there is room; gives its record. */
  add(bytes: Uint8Array, start: number, end: number): TopicRecord {
    const size = end - start
    const entry = new Entry(decodeUtf8(bytes, start, end), this.#hash, size)
    if (size > longestTopic) return entry
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

  /** Doubles the places, and finds the one of the name asked about. */
  #grow(): void {
    const old = this.#slots
    const slots = new Array<Entry | undefined>(Math.max(firstSlots, old.length * 2)).fill(undefined)
    this.#slots = slots
    for (const entry of old) {
      if (entry === undefined) continue
      const at = freeSlot(slots, entry.hash)
      // One without a place is unknown from now on.
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

// The last word overlaps the one before, where the size is no multiple of four.
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

// Over every word: names that differ in few bytes are the usual case.
function hashOf(data: DataView, start: number, last: number, size: number): number {
  let hash = size
  for (let at = start; at < last; at += wordSize) hash = mixed(hash, data.getInt32(at, true))
  hash = mixed(hash, data.getInt32(last, true))
  // The last bytes differ between most names, and are its upper bits: places are chosen by the lower ones.
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
