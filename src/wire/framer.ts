/**
 * Finds control packets in a stream of bytes: reads the fixed header of section 2.1, and nothing
 * behind it.
 *
 * A packet that is complete in a chunk is exposed in place. Only the beginning of an incomplete
 * packet is copied, into a buffer that grows with the bytes received, never with the bytes
 * announced alone. An error that the header alone shows is thrown at once; after that, the framer
 * must not be used.
 */
import { Carry } from './carry.js'
import type { Sender } from './constants.js'
import {
  AUTH,
  CONNACK,
  CONNECT,
  DISCONNECT,
  MAXIMUM_PACKET_SIZE,
  PINGREQ,
  PINGRESP,
  PUBLISH,
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  UNSUBACK,
  UNSUBSCRIBE,
} from './constants.js'
import { malformed, protocolError, tooLarge } from './error.js'
import { INCOMPLETE, nothing, variableByteInteger, variableByteIntegerSize } from './fields.js'
import type { FrameOptions, FrameSource } from './frames.js'
import type { ProtocolVersion } from './packets.js'
import type { PublishView } from './publish.js'
import type { TopicTable } from './topic-table.js'

/** Packet types that never come from a server, or a client, by sender [section 2.1.2]. */
const forbidden = {
  server: (1 << CONNECT) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE) | (1 << PINGREQ),
  client: (1 << CONNACK) | (1 << SUBACK) | (1 << UNSUBACK) | (1 << PINGRESP),
}

/** Recognised first bytes of other protocols on the wrong port. */
export const speaksHttp = 'bad packet type or flags: is it HTTP?'
export const speaksTls = 'bad packet type or flags: is it TLS?'

const withFlags2 = (1 << PUBREL) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE)

/**
 * Checks packet type, flags and direction in the first byte [MQTT-2.1.3-1] [MQTT-3.3.1-2]
 * [MQTT-3.3.1-4].
 */
function checkFirstByte(byte: number, version: ProtocolVersion, from: Sender): void {
  const type = byte >> 4
  const flags = byte & 15
  if (type === PUBLISH) {
    // DUP at QoS 0: 3.1.1 forbids it only to senders, and some clients set it.
    if ((flags & 6) === 6 || ((flags & 14) === 8 && version === 5))
      throw malformed('QoS 3 or DUP at QoS 0', 0)
  } else if (
    type === 0 ||
    (type === AUTH && version === 4) ||
    flags !== ((withFlags2 >> type) & 1) * 2
  ) {
    // 0x48 is 'H' of HTTP, 0x15 a TLS alert.
    throw malformed(
      byte === 0x48 ? speaksHttp : byte === 0x15 ? speaksTls : 'bad packet type or flags',
      0,
    )
  } else if (
    (forbidden[from] >> type) & 1 ||
    (type === DISCONNECT && version === 4 && from === 'server')
  ) {
    throw protocolError(`packet type ${type} from a ${from}`, 0)
  }
}

/** The incremental frame finder. Call `push`, then `next` until it returns false. */
export class Framer implements FrameSource {
  // valid while a frame is current: until the next call of `next` or `push`
  /** Holds the current frame. */
  bytes: Uint8Array = nothing
  /** Where the frame begins in `bytes`. */
  start = 0
  /** Where the fixed header ends. */
  body = 0
  /** Where the frame ends. */
  end = 0

  // valid for the connection
  /** Largest frame accepted, fixed header included (section 3.1.2.11.4). */
  maximumPacketSize: number
  /** Determines which first bytes are valid. */
  protocolVersion: ProtocolVersion
  /** The sender. */
  readonly from: Sender

  readonly #sizeLimit: ((type: number) => number) | undefined
  readonly #skips: boolean
  /** Size of a carried frame that was exposed without its payload. */
  #passed = 0
  #chunk: Uint8Array = nothing
  /** A DataView of the chunk, created on first use. */
  #data: DataView | undefined
  #position = 0
  #limit = 0
  /** True when the chunk is a copy of our own. */
  #kept = false
  /** The beginning of an incomplete frame. */
  readonly #carry: Carry

  constructor(options: FrameOptions & { readonly from: Sender }) {
    this.#carry = new Carry(options.splits === true, options.allocate)
    this.from = options.from
    this.#sizeLimit = options.sizeLimit
    this.#skips = options.skips === true
    this.protocolVersion = options.protocolVersion
    this.maximumPacketSize = options.maximumPacketSize
  }

  /** Bytes received of an incomplete frame; valid after `next` returned false. */
  get pending(): number {
    return this.#carry.held
  }

  /** Bytes of memory in use. */
  get cost(): number {
    return this.#carry.cost
  }

  /** Bytes of the packet. */
  get size(): number {
    return this.#passed > 0 && this.bytes === this.#carry.bytes
      ? this.#passed
      : this.end - this.start
  }

  /** The payload when it is not in `bytes`. */
  get apart(): Uint8Array | undefined {
    return this.bytes === this.#carry.bytes ? this.#carry.apart : undefined
  }

  /** Where the received bytes end in `bytes`. */
  get limit(): number {
    return this.bytes === this.#chunk ? this.#limit : this.end
  }

  /** Bytes of the chunk that were not read yet. */
  get unread(): number {
    return this.#limit - this.#position
  }

  /** @param start the first byte to read */
  push(chunk: Uint8Array, length = chunk.length, data?: DataView, start = 0): void {
    this.#chunk = chunk
    this.#data = data
    this.#position = start
    this.#limit = length
    this.#kept = false
  }

  next(): boolean {
    if (this.#carry.held > 0) return this.#nextCarried()
    const chunk = this.#chunk
    const start = this.#position
    const limit = this.#limit
    // The usual case: a PUBLISH of less than 16 KiB that is complete in the chunk.
    if (limit - start > 2) {
      const first = chunk[start] as number
      let length = chunk[start + 1] as number
      let body = start + 2
      if (length > 127) {
        const high = chunk[body++] as number
        length = high > 0 && high < 128 ? (length & 127) | (high << 7) : INCOMPLETE
      }
      const end = body + length
      if (
        end <= limit &&
        first >> 4 === PUBLISH &&
        (first & 6) !== 6 &&
        (first & 14) !== 8 &&
        end - start <= this.maximumPacketSize
      ) {
        this.bytes = chunk
        this.start = start
        this.body = body
        this.end = end
        this.#position = end
        return true
      }
    }
    return this.#nextSlowly(chunk, start, limit)
  }

  #nextSlowly(chunk: Uint8Array, start: number, limit: number): boolean {
    if (start < limit) {
      const size = this.measure(chunk, start, limit)
      const end = start + size
      const passes = this.#mayPass(size)
      if (size > 0 && end <= limit && !passes) {
        this.bytes = chunk
        this.start = start
        this.end = end
        this.#position = end
        return true
      }
      // The frame will be exposed at the start of the carry.
      this.body -= start
      this.#carry.size = size
      if (passes) return this.#nextCarried()
      this.#hold(limit - start)
    }
    return this.#idle()
  }

  // True when the payload is to be skipped; `measure` has made sure that it is a PUBLISH.
  #mayPass(size: number): boolean {
    const passes = size > this.maximumPacketSize
    if (passes) this.#carry.most = this.maximumPacketSize
    return passes
  }

  read(view: PublishView, topics: TopicTable): void {
    const { bytes } = this
    const inside = bytes === this.#chunk
    // A carried frame is not in the chunk.
    const data =
      inside && this.#data !== undefined
        ? this.#data
        : new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    if (inside) this.#data = data
    view.read(bytes, this.start, this.body, this.end, this.protocolVersion, this.from, data, topics)
    view.apart = inside || this.#passed > 0 ? undefined : this.#carry.apart
  }

  keep(): void {
    if (!this.#kept) {
      this.#chunk = new Uint8Array(this.#chunk.subarray(this.#position, this.#limit))
      this.#data = undefined
      this.#limit = this.#chunk.length
      this.#position = 0
      this.#kept = true
    }
    this.bytes = nothing
  }

  /**
   * Size of the frame at `start`, 0 while its header is incomplete; sets `body`. @throws WireError
   * as `next`
   */
  measure(bytes: Uint8Array, start: number, end: number): number {
    checkFirstByte(bytes[start] as number, this.protocolVersion, this.from)
    const length = variableByteInteger(bytes, start + 1, end, start)
    if (length === INCOMPLETE) return 0
    const header = 1 + variableByteIntegerSize(length)
    if (header + length > this.#mostOf((bytes[start] as number) >> 4)) throw tooLarge()
    this.body = start + header
    return header + length
  }

  #mostOf(type: number): number {
    if (type === PUBLISH && this.#skips) return MAXIMUM_PACKET_SIZE
    if (type === PUBLISH || this.#sizeLimit === undefined) return this.maximumPacketSize
    return Math.min(this.maximumPacketSize, this.#sizeLimit(type))
  }

  get room(): Uint8Array | undefined {
    return this.#position === this.#limit ? this.#carry.room : undefined
  }

  fill(length: number): void {
    this.#carry.fill(length)
  }

  #nextCarried(): boolean {
    const carry = this.#carry
    while (carry.size === 0) {
      if (this.#position === this.#limit) return this.#idle()
      this.#hold(1)
      carry.size = this.measure(carry.bytes, 0, carry.held)
      this.#mayPass(carry.size)
    }
    if (this.#position < this.#limit)
      this.#hold(Math.min(carry.size - carry.held, this.#limit - this.#position))
    if (carry.held < carry.size) return this.#idle()
    this.bytes = carry.bytes
    this.start = 0
    this.#passed = carry.most > 0 ? carry.size : 0
    this.end = this.#passed > 0 ? carry.head : carry.size
    carry.finish()
    return true
  }

  /** Discards everything; nothing is read any more. */
  clear(): void {
    this.#carry.clear()
    this.#idle()
  }

  /** Moves `count` bytes of the chunk into the carry. */
  #hold(count: number): void {
    this.#carry.take(this.#chunk, this.#position, count, this.body, this.protocolVersion)
    this.#position += count
  }

  /** Releases the chunk and the frame exposed last. */
  #idle(): false {
    this.#chunk = nothing
    this.#data = undefined
    this.#position = 0
    this.#limit = 0
    this.bytes = nothing
    this.#carry.release()
    return false
  }
}
