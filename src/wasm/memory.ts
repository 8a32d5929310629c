/**
 * The memory shared with the scanner: positions of the read area, the table and its columns, as in
 * scanner.as.
 *
 * One per thread: all its connections read into one read area, because each read is consumed before
 * the next begins. The memory never grows, so views of it stay valid. Calls never throw: after a
 * failed call the scanner is not called again.
 */
import type { ReadWindow } from '../wire/frames.js'

/** Size of the read area in bytes. It begins at address 0, so offsets in it are addresses. */
export const READ_SIZE = 65_536
/** Numbers of a row. */
export const ROW = 12
const mostRows = 256

// Columns of a row.
/** The first byte of the packet, with one of the marks below above it. */
export const FIRST = 0
export const START = 1
export const BODY = 2
/** The topic's id; negative if the topic has no id. */
export const TOPIC = 3
export const TOPIC_END = 4
/** 0 at QoS 0. */
export const PACKET_ID = 5
/** Where the properties begin, after the Property Length. */
export const PROPERTIES = 6
export const PAYLOAD = 7
export const ALIAS = 8
export const USER_PROPERTIES = 9
/** The one subscription identifier, 0 for none. */
export const SUBSCRIPTION_IDENTIFIER = 10
export const END = 11

// Marks in FIRST, each greater than the one before: the columns from ALIAS on are set; a PUBLISH
// whose bounds are known but that was not accepted; a packet of another type.
export const HAS_PROPERTIES = 0x100
export const UNREAD = 0x200
export const OTHER = 0x400
/** In TOPIC: an empty name, replaced by an alias. */
export const ALIAS_ONLY = -2

/** Exports of scanner.as. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly scan: (from: number, to: number, version5: number, maximum: number) => number
}

/** The memory of one instance, and the call into it. */
export class Memory {
  /** The read area. */
  readonly window: ReadWindow
  /** Rows of `ROW` numbers each. */
  readonly table: Int32Array
  /** The owner of a chunk in the read area that was not read to its end. */
  owner: { evict(): void } | undefined
  /** True after a failed call: the scanner is not used any more. */
  broken = false
  readonly #cells: Int32Array
  readonly #scan: Exports['scan']

  constructor(exports: WebAssembly.Exports) {
    const { memory, scan } = exports as unknown as Exports
    const { buffer } = memory
    this.window = {
      bytes: new Uint8Array(buffer, 0, READ_SIZE),
      data: new DataView(buffer, 0, READ_SIZE),
    }
    this.table = new Int32Array(buffer, READ_SIZE, ROW * mostRows)
    this.#cells = new Int32Array(buffer, READ_SIZE + this.table.byteLength, 2)
    this.#scan = scan
  }

  /** Where the last scan stopped. */
  get stopped(): number {
    return this.#cells[0] as number
  }

  /** Changes when the ids of topics restart. */
  get generation(): number {
    return this.#cells[1] as number
  }

  /** Fills rows from the bytes `[from, to)` of the read area; returns their number. */
  scan(from: number, to: number, version5: boolean, maximum: number): number {
    if (!this.broken) {
      try {
        return this.#scan(from, to, version5 ? 1 : 0, Math.min(maximum, READ_SIZE))
      } catch {
        this.broken = true
      }
    }
    this.#cells[0] = from
    return 0
  }

  /** Whether a scan with this number of rows ended because the table was full. */
  isFull(rows: number): boolean {
    return rows === mostRows
  }
}
