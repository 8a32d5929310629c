/**
 * The frames of one connection, found and checked by the WebAssembly scanner if a call is worth it,
 * otherwise by the Framer.
 *
 * The scanner fills a table with accepted frames, which this class returns row by row. The parser
 * in TypeScript handles the same bytes for everything else: incomplete frames, frames too large for
 * the window, packets other than PUBLISH, and errors. Only that parser may report errors, never
 * this file. Settings hold for a chunk: received data never changes them.
 */
import { nothing } from '../wire/fields.js'
import { Framer } from '../wire/framer.js'
import type { FrameOptions } from '../wire/frames.js'
import type { QoS } from '../wire/packets.js'
import type { PublishView } from '../wire/publish.js'
import type { TopicTable } from '../wire/topic-table.js'
import {
  ALIAS,
  ALIAS_ONLY,
  BODY,
  END,
  FIRST,
  HAS_PROPERTIES,
  type Memory,
  OTHER,
  PACKET_ID,
  PAYLOAD,
  PROPERTIES,
  READ_SIZE,
  ROW,
  START,
  SUBSCRIPTION_IDENTIFIER,
  TOPIC,
  TOPIC_END,
  UNREAD,
  USER_PROPERTIES,
} from './memory.js'
import { Rows, TopicRecords } from './rows.js'

/**
 * When a call of the scanner is worth it: the number of frames that a chunk must have, estimated
 * from the size of its first frame.
 */
export interface Worth {
  /** For a chunk in the window: with properties (`rich`), and without (`plain`). */
  readonly rich: number
  readonly plain: number
  /**
   * For a chunk that must be copied into the window. Copying costs less than parsing in TypeScript,
   * at any size of the chunk.
   */
  readonly copied: number
  /** Largest frame, in bytes, for which a chunk is copied. */
  readonly largestCopied: number
}

// Measured on Node 20: a call costs as much as the parser needs for two packets without properties,
// and the scanner saves a sixth of that per packet. For a packet with five user properties it saves
// half.
const usually: Worth = { rich: 2, plain: 16, copied: 1, largestCopied: 512 }

/**
 * Finds the packets of a server on one connection. After an error nothing more is read, and `clear`
 * releases the window.
 */
export class WasmFrames extends Framer {
  // valid while a frame is current
  /** The row of the current frame if the scanner accepted it; otherwise -1. */
  #row = -1

  // valid for the connection
  readonly #memory: Memory
  readonly #rows: Rows
  readonly #records: TopicRecords
  readonly #worth: Worth
  /** The last packet had properties. */
  #rich = false

  // valid for the chunk
  #chunk: Uint8Array = nothing
  #length = 0
  /** The chunk is a copy owned by this object. */
  #kept = false
  /** The chunk was read into the window. */
  #inPlace = false
  /** The Framer reads the rest of the chunk. */
  #plainly = false
  /**
   * The chunk is in the window, up to the limit of the rows. Otherwise the Framer has it, and there
   * are no rows.
   */
  #inside = false

  constructor(memory: Memory, options: FrameOptions, worth = usually) {
    super({ ...options, from: 'server' })
    this.#memory = memory
    this.#rows = new Rows(memory)
    this.#records = new TopicRecords(memory)
    this.#worth = worth
  }

  override get unread(): number {
    return this.#inside ? this.#rows.limit - this.#rows.position : super.unread
  }

  override get limit(): number {
    return this.#inside ? this.#rows.limit : super.limit
  }

  override push(chunk: Uint8Array, length = chunk.length, data?: DataView): void {
    this.#leave()
    super.push(chunk, length, data)
    this.#chunk = chunk
    this.#length = length
    this.#kept = false
    const { bytes } = this.#memory.window
    this.#inPlace = chunk === bytes || chunk.buffer === bytes.buffer
    if (this.#inPlace) this.#claim()
    // With `data`, the caller wants the chunk read in place, without a copy into the window.
    else this.#plainly = data !== undefined
  }

  override next(): boolean {
    const rows = this.#rows
    const row = rows.next
    if (row === rows.last)
      return this.#plainly ? super.next() || this.#idle() : this.#nextSlowly(row)
    const { table } = rows
    if ((table[row + FIRST] as number) >= UNREAD) return this.#nextSlowly(row)
    this.start = table[row + START] as number
    this.body = table[row + BODY] as number
    this.end = table[row + END] as number
    this.#row = row
    rows.next = row + ROW
    return true
  }

  override read(view: PublishView, topics: TopicTable): void {
    if (this.#row >= 0) return this.#fill(view, this.#row, topics)
    if (this.#inside) {
      return view.read(
        this.bytes,
        this.start,
        this.body,
        this.end,
        this.protocolVersion,
        'server',
        this.#memory.window.data,
        topics,
      )
    }
    super.read(view, topics)
    this.#rich = view.propertiesEnd > view.propertiesStart
  }

  override keep(): void {
    if (this.#kept) return
    const rest = this.#inside
      ? this.bytes.subarray(this.#rows.position, this.#rows.limit)
      : this.#chunk.subarray(this.#length - super.unread, this.#length)
    // Not `slice`, which does not copy for a Buffer.
    this.push(new Uint8Array(rest))
    this.bytes = nothing
    this.#kept = true
  }

  override clear(): void {
    super.clear()
    this.#idle()
  }

  #nextSlowly(row: number): boolean {
    const rows = this.#rows
    if (row === rows.last) return this.#inside ? this.#scanOn() : this.#begin()
    const { table } = rows
    const start = table[row + START] as number
    // A packet other than PUBLISH: the Framer checks its type, sender and size.
    if ((table[row + FIRST] as number) >= OTHER) this.measure(this.bytes, start, rows.limit)
    this.start = start
    this.body = table[row + BODY] as number
    this.end = table[row + END] as number
    this.#row = -1
    rows.next = row + ROW
    return true
  }

  // First the Framer completes a frame that began in an earlier chunk; then the scanner reads the
  // rest, or the Framer continues.
  #begin(): boolean {
    if (this.pending === 0) {
      if (this.#enter()) return this.next()
      this.#plainly = true
    }
    return super.next() || this.#idle()
  }

  /** Moves the rest of the chunk into the window if that is worth it, and runs the scanner. */
  #enter(): boolean {
    const memory = this.#memory
    const chunk = this.#chunk
    const limit = this.#length
    const from = limit - super.unread
    if (
      memory.broken ||
      !isWorth(this.#worth, sizeAt(chunk, from), limit - from, this.#inPlace, this.#rich)
    )
      return false
    if (this.#inPlace) this.#start(chunk.byteOffset + from, chunk.byteOffset + limit)
    else {
      // Frames in the window may still be in use.
      if (limit - from > READ_SIZE || memory.owner !== undefined) return false
      memory.window.bytes.set(
        from === 0 && limit === chunk.length ? chunk : chunk.subarray(from, limit),
      )
      this.#start(0, limit - from)
    }
    return true
  }

  #start(from: number, limit: number): void {
    this.#claim()
    super.push(nothing)
    this.#chunk = nothing
    this.#length = 0
    this.#kept = false
    this.bytes = this.#memory.window.bytes
    this.#inside = true
    this.#rows.limit = limit
    this.#scan(from)
  }

  #scan(from: number): void {
    const rows = this.#rows
    rows.scan(from, this.protocolVersion === 5, this.maximumPacketSize)
    this.#rich = rows.rich
    this.#records.renew(this.#memory.generation)
  }

  // All rows were read: scans on if there are more, otherwise the Framer reads the rest.
  #scanOn(): boolean {
    const { limit, more, stopped } = this.#rows
    if (more) {
      this.#scan(stopped)
      return this.next()
    }
    if (stopped === limit) return this.#idle()
    const { bytes, data } = this.#memory.window
    this.#inside = false
    this.#plainly = true
    this.#row = -1
    this.#chunk = bytes
    this.#length = limit
    super.push(bytes, limit, data, stopped)
    return super.next() || this.#idle()
  }

  /** Fills the view from a row, exactly as the parser in TypeScript would. */
  #fill(view: PublishView, row: number, topics: TopicTable): void {
    const { table } = this.#rows
    const first = table[row + FIRST] as number
    const topicStart = this.body + 2
    const topicEnd = table[row + TOPIC_END] as number
    const payload = table[row + PAYLOAD] as number
    view.bytes = this.bytes
    const topic = table[row + TOPIC] as number
    const records = this.#records
    view.record =
      topic === ALIAS_ONLY
        ? undefined
        : (records.get(topic, topics) ?? records.add(topic, topicStart, topicEnd, topics))
    view.qos = ((first >> 1) & 3) as QoS
    view.dup = (first & 8) > 0
    view.retain = (first & 1) > 0
    view.topicStart = topicStart
    view.topicEnd = topicEnd
    view.packetId = table[row + PACKET_ID] as number
    view.propertiesStart = table[row + PROPERTIES] as number
    view.propertiesEnd = payload
    view.payloadStart = payload
    view.payloadEnd = this.end
    view.apart = undefined
    view.topicAlias = 0
    view.userPropertyCount = 0
    view.subscriptionIdentifierCount = 0
    if (first < HAS_PROPERTIES) return
    view.topicAlias = table[row + ALIAS] as number
    view.userPropertyCount = table[row + USER_PROPERTIES] as number
    const identifier = table[row + SUBSCRIPTION_IDENTIFIER] as number
    if (identifier > 0) {
      view.subscriptionIdentifiers[0] = identifier
      view.subscriptionIdentifierCount = 1
    }
  }

  /** Called when another chunk replaces this one in the window: the rest of this one is lost. */
  evict(): void {
    super.push(nothing)
    this.#idle()
  }

  /** Takes the window. A previous owner reads no more frames, because the bytes change. */
  #claim(): void {
    const memory = this.#memory
    if (memory.owner !== this) memory.owner?.evict()
    memory.owner = this
  }

  #leave(): void {
    if (this.#memory.owner === this) this.#memory.owner = undefined
    this.#inside = false
    this.#plainly = false
    this.#row = -1
    this.#rows.clear()
  }

  #idle(): false {
    this.#leave()
    this.bytes = nothing
    this.#chunk = nothing
    this.#length = 0
    return false
  }
}

/**
 * Whether a call is worth it for `length` bytes, estimated from the size of the first frame.
 * `inPlace`: the bytes are in the window; otherwise they must be copied.
 */
function isWorth(
  { rich, plain, copied, largestCopied }: Worth,
  first: number,
  length: number,
  inPlace: boolean,
  isRich: boolean,
): boolean {
  if (!inPlace) return first <= largestCopied && first * copied <= length
  return first * (isRich ? rich : plain) <= length
}

/** Size of the frame at `at`, from its unchecked header; NaN if the header is incomplete. */
function sizeAt(bytes: Uint8Array, at: number): number {
  const low = bytes[at + 1] as number
  if (low < 128) return 2 + low
  const middle = bytes[at + 2] as number
  if (middle < 128) return 3 + (low & 127) + (middle << 7)
  return 4 + (low & 127) + ((middle & 127) << 7) + ((bytes[at + 3] as number) << 14)
}
