/**
 * Finds control packets in a stream of bytes: the fixed header of section 2.1, and nothing behind it.
 *
 * A packet that lies whole in a chunk is exposed where it lies. Only the beginning of one whose rest has not arrived is copied, into a buffer
 * that grows with the bytes received and never with the bytes announced. What the header alone shows to be wrong is thrown at once; after that
 * the framer is finished.
 */
import type { Sender } from './constants.js'
import { AUTH, CONNACK, CONNECT, DISCONNECT, PINGREQ, PINGRESP, PUBLISH, PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE } from './constants.js'
import { malformed, protocolError, WireError } from './error.js'
import { INCOMPLETE, nothing, variableByteInteger, variableByteIntegerSize } from './fields.js'
import type { ProtocolVersion } from './packets.js'

/** Packet types that never come from a server, or a client, by sender [section 2.1.2]. */
const forbidden = {
  server: (1 << CONNECT) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE) | (1 << PINGREQ),
  client: (1 << CONNACK) | (1 << SUBACK) | (1 << UNSUBACK) | (1 << PINGRESP),
}

const withFlags2 = (1 << PUBREL) | (1 << SUBSCRIBE) | (1 << UNSUBSCRIBE)

const smallestCarry = 64
/** Type, flags and direction, as the first byte shows them [MQTT-2.1.3-1] [MQTT-3.3.1-2] [MQTT-3.3.1-4]. */
function checkFirstByte(byte: number, version: ProtocolVersion, from: Sender): void {
  const type = byte >> 4
  const flags = byte & 15
  if (type === PUBLISH) {
    // DUP at QoS 0: 3.1.1 forbids it to senders only; clients that set it are in use.
    if ((flags & 6) === 6 || ((flags & 14) === 8 && version === 5)) throw malformed('QoS 3 or DUP at QoS 0', 0)
  } else if (type === 0 || (type === AUTH && version === 4) || flags !== ((withFlags2 >> type) & 1) * 2) {
    throw malformed('bad packet type or flags', 0)
  } else if ((forbidden[from] >> type) & 1 || (type === DISCONNECT && version === 4 && from === 'server')) {
    throw protocolError(`packet type ${type} from a ${from}`, 0)
  }
}

/** The incremental frame finder. Call `push`, then `next` until it returns false. */
export class Framer {
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
  /** Decides what the first byte may be. */
  protocolVersion: ProtocolVersion

  readonly #from: Sender
  readonly #sizeLimit: ((type: number) => number) | undefined
  #chunk: Uint8Array = nothing
  #position = 0
  /** The chunk is ours. */
  #kept = false
  /** The beginning of an incomplete frame, `#held` bytes of it. */
  #carry: Uint8Array = nothing
  #held = 0
  /** Size of the carried frame, 0 until its header is complete. */
  #size = 0

  /** @param options.sizeLimit most bytes of a packet other than PUBLISH, by packet type, where that is less than `maximumPacketSize` */
  constructor(options: { from: Sender; protocolVersion: ProtocolVersion; maximumPacketSize: number; sizeLimit?: (type: number) => number }) {
    this.#from = options.from
    this.#sizeLimit = options.sizeLimit
    this.protocolVersion = options.protocolVersion
    this.maximumPacketSize = options.maximumPacketSize
  }

  /** Bytes of an incomplete frame that are held; after `next` returned false. */
  get pending(): number {
    return this.#held
  }

  /** Bytes of the chunk that were not looked at. */
  get unread(): number {
    return this.#chunk.length - this.#position
  }

  /** Sets the chunk to read. The frames of the one before must have been taken, and `next` have returned false. */
  push(chunk: Uint8Array): void {
    this.#chunk = chunk
    this.#position = 0
    this.#kept = false
  }

  /**
   * True: a complete frame is current. False: there is none left, the rest was copied, and the chunk belongs to its owner again.
   *
   * @throws WireError when the header is malformed, not for this direction, or announces more than `maximumPacketSize`
   */
  next(): boolean {
    if (this.#held > 0) return this.#nextCarried()
    const chunk = this.#chunk
    const start = this.#position
    if (start < chunk.length) {
      const size = this.#measure(chunk, start, chunk.length)
      const end = start + size
      if (size > 0 && end <= chunk.length) {
        this.bytes = chunk
        this.start = start
        this.end = end
        this.#position = end
        return true
      }
      this.#size = size
      // The frame will be exposed from the start of the carry buffer.
      this.body -= start
      this.#hold(chunk.length - start)
    }
    return this.#idle()
  }

  /** Copies what of the chunk was not looked at, once: it belongs to its owner again, and `next` goes on whenever that is. */
  keep(): void {
    if (!this.#kept) {
      this.#chunk = this.#chunk.slice(this.#position)
      this.#position = 0
      this.#kept = true
    }
    this.bytes = nothing
  }

  /** Size of the frame at `start`, 0 while its header is incomplete; sets `body`. */
  #measure(bytes: Uint8Array, start: number, end: number): number {
    checkFirstByte(bytes[start] as number, this.protocolVersion, this.#from)
    const length = variableByteInteger(bytes, start + 1, end, start)
    if (length === INCOMPLETE) return 0
    const header = 1 + variableByteIntegerSize(length)
    if (header + length > this.#mostOf((bytes[start] as number) >> 4)) throw new WireError('too-large', 'packet exceeds the maximum packet size', 1)
    this.body = start + header
    return header + length
  }

  #mostOf(type: number): number {
    if (type === PUBLISH || this.#sizeLimit === undefined) return this.maximumPacketSize
    return Math.min(this.maximumPacketSize, this.#sizeLimit(type))
  }

  #nextCarried(): boolean {
    while (this.#size === 0) {
      if (this.#position === this.#chunk.length) return this.#idle()
      this.#hold(1)
      this.#size = this.#measure(this.#carry, 0, this.#held)
    }
    this.#hold(Math.min(this.#size - this.#held, this.#chunk.length - this.#position))
    if (this.#held < this.#size) return this.#idle()
    this.bytes = this.#carry
    this.start = 0
    this.end = this.#size
    this.#carry = nothing
    this.#held = 0
    this.#size = 0
    return true
  }

  /** Forgets everything: nothing is read any more. */
  clear(): void {
    this.#carry = nothing
    this.#held = 0
    this.#size = 0
    this.#idle()
  }

  /** Moves `count` bytes of the chunk into the carry buffer. */
  #hold(count: number): void {
    const needed = this.#held + count
    if (needed > this.#carry.length) {
      const grown = new Uint8Array(Math.max(needed, smallestCarry, Math.min(this.#size, this.#carry.length * 2)))
      grown.set(this.#carry)
      this.#carry = grown
    }
    this.#carry.set(this.#chunk.subarray(this.#position, this.#position + count), this.#held)
    this.#position += count
    this.#held = needed
  }

  /** Lets go of the chunk and of the frame exposed last. */
  #idle(): false {
    this.#chunk = nothing
    this.#position = 0
    this.bytes = nothing
    return false
  }
}
