/**
 * Output of one connection: bytes given to the transport that have not left, callbacks that wait
 * for them, and a large payload that is sent in slices. Nothing else is given to the transport
 * before the last slice. Also the thread's pool of output buffers.
 *
 * The payload's memory belongs to the caller and must not be read after `source` was replaced.
 */
import { Ring } from '../../common/ring.js'
import type { MqttError } from '../../errors.js'

/** Called when the bytes have left, or with the error that prevented it. */
export type WrittenCallback = (error?: unknown) => void

/** Bytes given to the transport, and those about to be. */
export class OutgoingBytes {
  /** Bytes that have left since the connection began. */
  left = 0
  /** The large payload being sent, or a copy of it. */
  source: Uint8Array | undefined
  /** Bytes given to the transport since the connection began. */
  protected handed = 0
  /** Writes that have not left. */
  protected writes = 0
  /**
   * Bytes of large payloads among them. Not counted against the memory budget: they are few at a
   * time and under local control.
   */
  protected exempt = 0
  /** The transport asks to wait. */
  protected blocked = false
  /** Too many bytes are under way. */
  protected full = false
  /** Bytes of the large payload already handed over, and its length in the packet. */
  #at = 0
  #size = 0
  /** Set when nothing more will leave. */
  #gone: MqttError | undefined
  readonly #waiting = new Ring<{ readonly at: number; readonly callback: WrittenCallback }>()

  /** Bytes that have not left. */
  protected get underWay(): number {
    return this.handed - this.left
  }

  /** Bytes of the large payload still to be handed over. */
  protected get rest(): number {
    return this.source === undefined ? 0 : this.#size - this.#at
  }

  /** Continues with a payload of which `at` bytes were handed over. */
  protected follow(payload: Uint8Array, at: number): void {
    this.source = payload
    this.#at = at
    this.#size = payload.length
  }

  /**
   * The next slice, in the payload's own memory; undefined when the payload's length has changed.
   */
  protected nextSlice(source: Uint8Array): Uint8Array | undefined {
    if (source.length !== this.#size) return undefined
    const slice = source.subarray(this.#at, this.#at + sliceBuffer)
    this.#at += slice.length
    if (this.#at === this.#size) this.source = undefined
    return slice
  }

  /** This many bytes have left, or failed to. */
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

  /**
   * Calls back when output up to `at` has left; through `soon` when it already has; at once, with
   * the error, when nothing more will leave.
   */
  protected wait(
    at: number,
    callback: WrittenCallback,
    soon: (callback: () => void) => void,
  ): void {
    if (this.#gone !== undefined) callback(this.#gone)
    else if (at === this.left) soon(callback)
    else this.#waiting.push({ at, callback })
  }

  /** Nothing more will leave: all waiting callbacks fail. */
  abandon(error: MqttError): void {
    this.#gone = error
    for (const { callback } of this.#waiting.drain()) callback(error)
  }
}

/** Bytes of a small buffer, for an acknowledgement or a single publish. */
export const smallBuffer = 2048
/**
 * Bytes of a large buffer: the most given to the transport in one write, except for a larger single
 * packet.
 */
export const largeBuffer = 64 * 1024
/** Bytes of a slice buffer: the most of one packet given to the transport at once. */
export const sliceBuffer = 128 * 1024

/** Most free buffers kept of each size. */
const mostSmall = 1024
const mostLarge = 32
const mostSlices = 8

const small: Uint8Array[] = []
const large: Uint8Array[] = []
const slices: Uint8Array[] = []

/**
 * A buffer of at least `size` bytes with arbitrary content. Above the largest size, a new one is
 * allocated.
 */
export function takeBuffer(size: number): Uint8Array {
  if (size > sliceBuffer) return new Uint8Array(size)
  if (size > largeBuffer) return slices.pop() ?? new Uint8Array(sliceBuffer)
  return size > smallBuffer
    ? (large.pop() ?? new Uint8Array(largeBuffer))
    : (small.pop() ?? new Uint8Array(smallBuffer))
}

/** Returns a buffer to the pool, unless its size is unusual or the pool is full. */
export function giveBuffer(bytes: Uint8Array): void {
  if (bytes.length === largeBuffer) {
    if (large.length < mostLarge) large.push(bytes)
  } else if (bytes.length === sliceBuffer) {
    if (slices.length < mostSlices) slices.push(bytes)
  } else if (bytes.length === smallBuffer && small.length < mostSmall) small.push(bytes)
}

/** Exchanges a buffer for one of at least `size` bytes. */
export function swapBuffer(size: number, old: Uint8Array): Uint8Array {
  giveBuffer(old)
  return takeBuffer(size)
}
