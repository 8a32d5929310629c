/**
 * The beginning of a packet whose rest has not come in, put together in memory of its own.
 *
 * It grows with the bytes received, never with the bytes announced alone. The payload of a large PUBLISH goes into an array of exactly its size as
 * soon as it is known where it begins: the rest can be read straight into that, and whoever gets the message need not copy it again.
 */
import { PUBLISH } from './constants.js'
import { nothing, uint16 } from './fields.js'
import type { ProtocolVersion } from './packets.js'

const smallestCarry = 64
/** A buffer that is no larger is used again. */
const largestKept = 8192
/** Bytes that are made room for, for each that came in. */
const growth = 16
/** Packets from this size on have their payload apart. */
const largePacket = 16_384

/** One incomplete frame at a time. */
export class Carry {
  /** The frame, or where the payload is apart, what stands before it. */
  bytes: Uint8Array = nothing
  /** Bytes of the frame that are here. */
  held = 0
  /** Size of the frame, 0 until its fixed header is complete. */
  size = 0
  /** The payload, where it is apart: valid until the next frame is begun. */
  apart: Uint8Array | undefined
  #head = 0
  readonly #splits: boolean
  readonly #allocate: (size: number) => Uint8Array

  /** @param splits the payload of a large PUBLISH goes apart, into what `allocate` gives */
  constructor(splits: boolean, allocate: (size: number) => Uint8Array = (size) => new Uint8Array(size)) {
    this.#splits = splits
    this.#allocate = allocate
  }

  /** Takes `count` bytes from `at` on. `header` is the size of the frame's fixed header, once `size` is known. */
  take(chunk: Uint8Array, at: number, count: number, header: number, version: ProtocolVersion): void {
    if (this.held === 0) {
      this.release()
      if (this.#splits && this.size >= largePacket && count * growth >= this.size) this.#split(chunk, at, count, at + header, version)
    }
    if (this.apart !== undefined) this.#append(chunk, at, count, this.apart)
    else {
      this.#reserve(this.held + count)
      this.bytes.set(chunk.subarray(at, at + count), this.held)
    }
    this.held += count
  }

  /** Where the rest of a large payload may be put, to be told by `fill`; never an empty array. */
  get room(): Uint8Array | undefined {
    const { apart, held } = this
    return apart !== undefined && held > 0 && held < this.size ? apart.subarray(held - this.#head) : undefined
  }

  /** So many bytes were put there. */
  fill(count: number): void {
    this.held += count
  }

  /** The frame is complete and handed out: the next one may begin. */
  finish(): void {
    this.held = 0
    this.size = 0
  }

  /** A frame that was handed out was read: what was large is not kept for the next. */
  release(): void {
    if (this.held > 0) return
    if (this.bytes.length > largestKept) this.bytes = nothing
    this.apart = undefined
  }

  clear(): void {
    this.finish()
    this.bytes = nothing
    this.apart = undefined
  }

  // What stands before the payload has been taken already.
  #append(chunk: Uint8Array, at: number, count: number, apart: Uint8Array): void {
    const skipped = Math.max(0, this.#head - this.held)
    apart.set(chunk.subarray(at + skipped, at + count), this.held + skipped - this.#head)
  }

  // Where it is a PUBLISH whose payload has begun. What is wrong with it comes to light when it is read.
  #split(chunk: Uint8Array, at: number, count: number, body: number, version: ProtocolVersion): void {
    const end = at + count
    const first = chunk[at] as number
    let head = body + 2 + uint16(chunk, body) + ((first & 6) > 0 ? 2 : 0)
    let length = 0
    for (let shift = 0, byte = version === 5 ? 0x80 : 0; byte > 127; shift += 7) {
      if (head >= end || shift > 21) return
      byte = chunk[head++] as number
      length |= (byte & 127) << shift
    }
    head += length
    if (first >> 4 !== PUBLISH || head >= end) return
    this.bytes = new Uint8Array(chunk.subarray(at, head))
    this.#head = head - at
    this.apart = this.#allocate(this.size - this.#head)
  }

  #reserve(needed: number): void {
    if (needed <= this.bytes.length) return
    const more = Math.min(this.size, Math.max(this.bytes.length * 2, needed * growth))
    const grown = new Uint8Array(Math.max(needed, smallestCarry, more))
    grown.set(this.bytes.subarray(0, this.held))
    this.bytes = grown
  }
}
