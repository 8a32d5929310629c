/**
 * The interface of frame finders, implemented in TypeScript and in WebAssembly.
 *
 * A source exposes one frame at a time, in place. Both implementations accept and refuse the same
 * bytes with the same errors.
 */
import type { ProtocolVersion } from './packets.js'
import type { PublishView } from './publish.js'
import type { TopicTable } from './topic-table.js'

/** Memory that transports read into: an array, and a DataView of it. */
export interface ReadWindow {
  /** The array to read into. */
  readonly bytes: Uint8Array
  /** The same bytes. */
  readonly data: DataView
}

/** Options for the packets of one connection. */
export interface FrameOptions {
  /** Determines which first bytes are valid. */
  readonly protocolVersion: ProtocolVersion
  /** Largest frame accepted in bytes, including the fixed header (section 3.1.2.11.4). */
  readonly maximumPacketSize: number
  /**
   * Most bytes of a packet other than PUBLISH, by packet type, if less than `maximumPacketSize`.
   */
  readonly sizeLimit?: (type: number) => number
  /**
   * Payloads of large packets may be put apart from the packet, for users of `PublishView`. Default
   * false.
   */
  readonly splits?: boolean
  /**
   * Skip the payload of a PUBLISH above `maximumPacketSize`: its frame is exposed without the
   * payload once that has been received. If the part before the payload exceeds
   * `maximumPacketSize`, or the packet is not a PUBLISH, it is an error. Default false.
   */
  readonly skips?: boolean
  /**
   * Allocates memory for such a payload, which is filled completely before it is exposed. Default:
   * zeroed memory.
   */
  readonly allocate?: ((size: number) => Uint8Array) | undefined
}

/** Finds the packets of servers, for all connections of a thread. */
export interface FrameScanner {
  /**
   * Memory to read into, scanned in place. Each read must be consumed, or kept, before the next one
   * begins.
   */
  readonly window: ReadWindow
  /** The frames of a new connection. */
  frames(options: FrameOptions): FrameSource
}

/** A cursor over the frames of one direction of one connection. */
export interface FrameSource {
  // valid while a frame is current: until the next call of `next` or `push`
  /** Holds the current frame. */
  readonly bytes: Uint8Array
  /** Where the frame begins in `bytes`. */
  readonly start: number
  /** Where its fixed header ends. */
  readonly body: number
  /** Where the frame ends. */
  readonly end: number
  /** Where the received bytes end in `bytes`. */
  readonly limit: number
  /** Bytes of the packet; more than `end - start` when its payload was skipped. */
  readonly size: number
  /** The payload when it is not in `bytes`: all of it, or the first 64 bytes of a skipped one. */
  readonly apart: Uint8Array | undefined
  // valid for the connection
  /** Largest frame accepted, fixed header included (section 3.1.2.11.4). */
  maximumPacketSize: number
  /** Determines which first bytes are valid. */
  protocolVersion: ProtocolVersion
  /** Bytes received of an incomplete frame; valid after `next` returned false. */
  readonly pending: number
  /** Bytes of memory in use. */
  readonly cost: number
  /** Bytes of the chunk that were not read yet. */
  readonly unread: number
  /**
   * Sets the chunk to read: its first `length` bytes; `data` is a DataView of it, if available. All
   * frames of the previous chunk must have been read until `next` returned false.
   */
  push(chunk: Uint8Array, length?: number, data?: DataView): void
  /**
   * True: a complete frame is current. False: no complete frame is left, the rest was copied, and
   * the caller may reuse the chunk.
   *
   * @throws WireError when the header is malformed, not for this direction, or announces more than
   * `maximumPacketSize`
   */
  next(): boolean
  /**
   * Where the next bytes of the stream may be read into, instead of pushing them: set after `next`
   * returned false while the payload of a large packet is being received.
   */
  readonly room: Uint8Array | undefined
  /** This many bytes were read into `room`; `next` continues with them. */
  fill(length: number): void
  /** Reads the current frame, a PUBLISH. @throws WireError as {@link PublishView.read} */
  read(view: PublishView, topics: TopicTable): void
  /**
   * Copies the unread part of the chunk once: the caller may reuse its memory, and `next` can be
   * called at any later time.
   */
  keep(): void
  /** Discards everything; nothing is read any more. */
  clear(): void
}
