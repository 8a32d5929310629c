/**
 * What one connection has on its way out: bytes that were handed to the transport and have not left, who waits for them, and the large payload of
 * which more is to follow, slice by slice: nothing else is handed over before its last byte.
 *
 * The memory of that payload is its caller's. It must never be read after `source` was set to something else.
 */
import { Ring } from '../../common/ring.js'
import type { MqttError } from '../../errors.js'

/** Called with what kept the bytes from leaving, if anything did. */
export type WrittenCallback = (error?: unknown) => void

/** Bytes that were handed over, and those that are about to be. */
export class OutgoingBytes {
  /** Bytes that have left since the connection began. */
  left = 0
  /** The large payload, if any. A copy may take its place. */
  source: Uint8Array | undefined
  /** Bytes that were handed over since the connection began. */
  protected handed = 0
  /** Writes that have not left. */
  protected writes = 0
  /** Bytes of large payloads in them: these are few at a time, and the peer did not ask for them. */
  protected exempt = 0
  /** The transport asks for patience. */
  protected blocked = false
  /** Too much is under way. */
  protected full = false
  /** Bytes of the large payload that were handed over, and those that the head of its packet names. */
  #at = 0
  #size = 0
  /** Why nothing more leaves. */
  #gone: MqttError | undefined
  readonly #waiting = new Ring<{ readonly at: number; readonly callback: WrittenCallback }>()

  /** Bytes that have not left. */
  protected get underWay(): number {
    return this.handed - this.left
  }

  /** Bytes of the large payload that are still to be handed over. */
  protected get rest(): number {
    return this.source === undefined ? 0 : this.#size - this.#at
  }

  /** Goes on with a payload of which so many bytes were handed over. */
  protected follow(payload: Uint8Array, at: number): void {
    this.source = payload
    this.#at = at
    this.#size = payload.length
  }

  /** The next slice of the payload, in its memory; undefined when that has another length by now. */
  protected nextSlice(source: Uint8Array): Uint8Array | undefined {
    if (source.length !== this.#size) return undefined
    const slice = source.subarray(this.#at, this.#at + sliceBuffer)
    this.#at += slice.length
    if (this.#at === this.#size) this.source = undefined
    return slice
  }

  /** So many bytes have left, or failed to. */
  protected advance(length: number, error: unknown): void {
    this.left += length
    for (
      let next = this.#waiting.peek();
      next !== undefined && next.at <= this.left;
      next = this.#waiting.peek()
    ) {
      this.#waiting.shift()
      next.callback(error)
    }
  }

  /** Calls back when so many bytes have left, `soon` where they have, or never will. */
  protected wait(
    at: number,
    callback: WrittenCallback,
    soon: (callback: () => void) => void,
  ): void {
    if (this.#gone !== undefined) callback(this.#gone)
    else if (at === this.left) soon(callback)
    else this.#waiting.push({ at, callback })
  }

  /** Nothing more leaves: no caller waits any longer for what was handed over and has not left. */
  abandon(error: MqttError): void {
    this.#gone = error
    for (const { callback } of this.#waiting.drain()) callback(error)
  }
}

/** Bytes of a small buffer: an acknowledgement, a lone publish. */
export const smallBuffer = 2048
/** Bytes of a large one: what is handed to the transport at most in one write, unless a single packet is larger. */
export const largeBuffer = 64 * 1024
/** Bytes of the largest: what is handed over at most of one packet. */
export const sliceBuffer = 128 * 1024

/** Free buffers that are kept, of each size. */
const mostSmall = 1024
const mostLarge = 32
const mostSlices = 8

const small: Uint8Array[] = []
const large: Uint8Array[] = []
const slices: Uint8Array[] = []

/** A buffer of at least `size` bytes, with any content. One that fits neither size is made for the purpose. */
export function takeBuffer(size: number): Uint8Array {
  if (size > sliceBuffer) return new Uint8Array(size)
  if (size > largeBuffer) return slices.pop() ?? new Uint8Array(sliceBuffer)
  return size > smallBuffer
    ? (large.pop() ?? new Uint8Array(largeBuffer))
    : (small.pop() ?? new Uint8Array(smallBuffer))
}

/** Takes a buffer back; one of another size, and one too many, are let go. */
export function giveBuffer(bytes: Uint8Array): void {
  if (bytes.length === largeBuffer) {
    if (large.length < mostLarge) large.push(bytes)
  } else if (bytes.length === sliceBuffer) {
    if (slices.length < mostSlices) slices.push(bytes)
  } else if (bytes.length === smallBuffer && small.length < mostSmall) small.push(bytes)
}

/** A buffer of at least `size` bytes in place of one that was taken before. */
export function swapBuffer(size: number, old: Uint8Array): Uint8Array {
  giveBuffer(old)
  return takeBuffer(size)
}
