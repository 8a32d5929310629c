/**
 * The beginning of a packet whose rest has not arrived, collected in its own memory.
 *
 * The memory grows with the bytes received, never with the bytes announced alone. The payload of a
 * large PUBLISH goes into an array of exactly its size once its start is known: the rest can be
 * read straight into that array, and the message needs no second copy. Of a skipped PUBLISH, only
 * the part before its payload and the first bytes of the payload are kept.
 */
import { PUBLISH } from './constants.js'
import { tooLarge } from './error.js'
import { nothing, uint16 } from './fields.js'
import type { ProtocolVersion } from './packets.js'

const smallestCarry = 64
/** A buffer up to this size is reused. */
const largestKept = 8192
/** Bytes reserved for each byte received. */
const growth = 16
/** From this packet size on, the payload gets an array of its own. */
const largePacket = 16_384
/** Bytes kept of a skipped payload, to recognise the message. */
export const samplePayload = 64

/** One incomplete frame at a time. */
export class Carry {
  /** The frame, or only the part before the payload when that is apart or skipped. */
  bytes: Uint8Array = nothing
  /** Bytes of the frame received so far. */
  held = 0
  /** Size of the frame; 0 until its fixed header is complete. Set it when the frame is begun. */
  size = 0
  /** The payload when it is apart; valid until the next frame is begun. */
  apart: Uint8Array | undefined
  /**
   * Most bytes kept of a PUBLISH whose payload is skipped; 0 for a frame that is kept whole. Set it
   * before the frame is begun.
   */
  most = 0
  /** Where the part before the payload ends in `bytes`, once known. */
  head = 0
  /** Bytes kept of a frame whose payload is skipped. */
  #kept = 0
  readonly #splits: boolean
  readonly #allocate: (size: number) => Uint8Array

  /** @param splits put the payload of a large PUBLISH into an array from `allocate` */
  constructor(
    splits: boolean,
    allocate: (size: number) => Uint8Array = (size) => new Uint8Array(size),
  ) {
    this.#splits = splits
    this.#allocate = allocate
  }

  /**
   * Takes `count` bytes from `at`. `header` is the size of the frame's fixed header, once `size` is
   * known.
   */
  take(
    chunk: Uint8Array,
    at: number,
    count: number,
    header: number,
    version: ProtocolVersion,
  ): void {
    if (this.most > 0) {
      this.#pass(chunk, at, count, header, version)
      this.held += count
      return
    }
    if (this.held === 0) this.release()
    const total = this.held + count
    const isDue = this.#splits && this.size >= largePacket && total * growth >= this.size
    if (isDue && this.held === 0) this.apart = this.#split(chunk, at, at + count, header, version)
    if (this.apart !== undefined) this.#append(chunk, at, count, this.apart)
    else {
      this.#reserve(total)
      this.bytes.set(chunk.subarray(at, at + count), this.held)
      // The payload of a packet that is far larger than its first bytes gets its array later.
      const { bytes } = this
      if (isDue && this.held > 0 && total < this.size) {
        this.apart = this.#split(bytes, 0, total, header, version)
        this.apart?.set(bytes.subarray(this.head, total))
      }
    }
    this.held = total
  }

  /** Bytes of memory that the frame takes. */
  get cost(): number {
    return this.most > 0 ? this.#kept : this.held
  }

  /**
   * Where the rest of a large payload may be read into, to be announced with `fill`; never an empty
   * array.
   */
  get room(): Uint8Array | undefined {
    const { apart, held } = this
    return apart !== undefined && held > 0 && held < this.size
      ? apart.subarray(held - this.head)
      : undefined
  }

  /** This many bytes were read into `room`. */
  fill(count: number): void {
    this.held += count
  }

  /** The frame is complete and exposed: the next one may begin. */
  finish(): void {
    if (this.most > 0) this.apart = this.bytes.subarray(this.head, this.#kept)
    this.held = 0
    this.most = 0
    this.#kept = 0
  }

  /** The exposed frame was read: a large buffer is not kept. */
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

  // The part before the payload was already taken.
  #append(chunk: Uint8Array, at: number, count: number, apart: Uint8Array): void {
    const skipped = Math.max(0, this.head - this.held)
    apart.set(chunk.subarray(at + skipped, at + count), this.held + skipped - this.head)
  }

  // Keeps only the first bytes of the payload, to recognise the message. The memory never exceeds
  // what was received.
  #pass(
    chunk: Uint8Array,
    at: number,
    count: number,
    header: number,
    version: ProtocolVersion,
  ): void {
    if (this.held === 0) this.release()
    this.#kept ||= this.held
    for (let from = at; ; ) {
      const head = headSize(this.bytes, 0, header, this.#kept, version)
      // With this much before the payload, the message could not be shown anyway.
      if (head > this.most) throw tooLarge()
      const known = head <= this.#kept
      const taken = Math.min(
        at + count - from,
        (known ? Math.min(this.size, head + samplePayload) : head) - this.#kept,
      )
      if (known) this.head = head
      if (taken <= 0) return
      this.#reserve(this.#kept + taken, this.#kept)
      this.bytes.set(chunk.subarray(from, from + taken), this.#kept)
      this.#kept += taken
      from += taken
    }
  }

  // Splits a PUBLISH of which `bytes[start..end)` has come, once its payload has begun, and returns
  // the array for the payload. Errors in the packet are found when it is read.
  #split(
    bytes: Uint8Array,
    start: number,
    end: number,
    header: number,
    version: ProtocolVersion,
  ): Uint8Array | undefined {
    const head = headSize(bytes, start, start + header, end, version)
    if ((bytes[start] as number) >> 4 !== PUBLISH || head >= end - start) return undefined
    this.bytes = new Uint8Array(bytes.subarray(start, start + head))
    this.head = head
    return this.#allocate(this.size - head)
  }

  #reserve(needed: number, held = this.held): void {
    if (needed <= this.bytes.length) return
    // What is to be split needs no memory for its payload here.
    const ahead = this.#splits && this.size >= largePacket ? 2 : growth
    const more = Math.min(
      this.most || this.size,
      this.size,
      Math.max(this.bytes.length * 2, needed * ahead),
    )
    const grown = new Uint8Array(Math.max(needed, smallestCarry, more))
    grown.set(this.bytes.subarray(0, held))
    this.bytes = grown
  }
}

/**
 * Bytes before the payload of the PUBLISH at `start`, whose fixed header ends at `body`. When the
 * bytes up to `end` do not show all of it, returns more than there are. A malformed Property Length
 * counts as far as it goes.
 */
export function headSize(
  bytes: Uint8Array,
  start: number,
  body: number,
  end: number,
  version: ProtocolVersion,
): number {
  if (end < body + 2) return body + 2 - start
  let head = body + 2 + uint16(bytes, body) + (((bytes[start] as number) & 6) > 0 ? 2 : 0)
  let length = 0
  for (let shift = 0, byte = version === 5 ? 0x80 : 0; byte > 127 && shift <= 21; shift += 7) {
    if (head >= end) return head + 1 - start
    byte = bytes[head++] as number
    length |= (byte & 127) << shift
  }
  return head + length - start
}
