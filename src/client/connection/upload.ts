/**
 * The large payload in the middle of being handed over, slice by slice: nothing else is handed over before its last byte.
 *
 * The memory is its caller's. It must never be read after `source` was set to something else.
 */
import { sliceBuffer } from '../memory/write-buffers.js'

/** One large payload at a time. */
export class Upload {
  /** Undefined when there is none. A copy may take its place. */
  source: Uint8Array | undefined
  /** Bytes of it that were handed over, and those that the head of its packet names. */
  #at = 0
  #size = 0

  /** Bytes of it that are still to be handed over. */
  get rest(): number {
    return this.source === undefined ? 0 : this.#size - this.#at
  }

  /** Goes on with a payload of which so many bytes were handed over. */
  begin(payload: Uint8Array, at: number): void {
    this.source = payload
    this.#at = at
    this.#size = payload.length
  }

  /** The next slice of it, in its memory; undefined when that has another length by now. */
  next(source: Uint8Array): Uint8Array | undefined {
    if (source.length !== this.#size) return undefined
    const slice = source.subarray(this.#at, this.#at + sliceBuffer)
    this.#at += slice.length
    if (this.#at === this.#size) this.source = undefined
    return slice
  }
}
