/**
 * What finds control packets in a stream of bytes, as its users see it: one interface for the scanner in TypeScript and the one in WebAssembly.
 *
 * A source exposes one frame at a time, where it lies. Both accept and refuse the same bytes with the same errors.
 */
import type { ProtocolVersion } from './packets.js'
import type { PublishView } from './publish.js'
import type { TopicTable } from './topic-table.js'

/** Memory that reads go into: an array, and the same bytes for access by words. */
export interface ReadWindow {
  /** Where reads go. */
  readonly bytes: Uint8Array
  /** The same bytes. */
  readonly data: DataView
}

/** How to read what a server sends on one connection. */
export interface FrameOptions {
  /** Decides what the first byte may be. */
  readonly protocolVersion: ProtocolVersion
  /** Largest frame accepted in bytes, fixed header included (section 3.1.2.11.4). */
  readonly maximumPacketSize: number
  /** Most bytes of a packet other than PUBLISH, by packet type, where that is less than `maximumPacketSize`. */
  readonly sizeLimit?: (type: number) => number
  /** Payloads of large packets may lie apart from the packet: for those who read them by a view. Default false. */
  readonly splits?: boolean
  /**
   * A PUBLISH over `maximumPacketSize` is read past: its frame is exposed without the payload, once that has come in. One with more than
   * `maximumPacketSize` before its payload is an error, as every other packet of that size. Default false.
   */
  readonly skips?: boolean
  /** Gives memory for such a payload, which is written to its end before anybody sees it. Default: zeroed memory. */
  readonly allocate?: ((size: number) => Uint8Array) | undefined
}

/** Reads what servers send, for all connections of a thread. */
export interface FrameScanner {
  /** Where reads go: what lies there is scanned in place. Each read must be consumed, or kept, before the next begins. */
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
  /** Where what `bytes` holds of the stream ends. */
  readonly limit: number
  /** Bytes of the packet; more than there are from `start` to `end` when its payload was read past. */
  readonly size: number
  /** The payload where it does not lie in `bytes`: all of it, or the first 64 bytes of one that was read past. */
  readonly apart: Uint8Array | undefined
  // valid for the connection
  /** Largest frame accepted, fixed header included (section 3.1.2.11.4). */
  maximumPacketSize: number
  /** Decides what the first byte may be. */
  protocolVersion: ProtocolVersion
  /** Bytes of an incomplete frame that came in; after `next` returned false. */
  readonly pending: number
  /** Bytes of memory that it takes. */
  readonly cost: number
  /** Bytes of the chunk that were not looked at. */
  readonly unread: number
  /**
   * Sets the chunk to read: the first `length` bytes of it, which `data` shows too where it is at hand. The frames of the one before must have
   * been taken, and `next` have returned false.
   */
  push(chunk: Uint8Array, length?: number, data?: DataView): void
  /**
   * True: a complete frame is current. False: no complete frame is left, the rest was copied, and the chunk belongs to its owner again.
   *
   * @throws WireError when the header is malformed, not for this direction, or announces more than `maximumPacketSize`
   */
  next(): boolean
  /**
   * Where the next bytes of the stream may be put, instead of pushing them: set while the payload of a large packet comes in, and after `next` has
   * returned false.
   */
  readonly room: Uint8Array | undefined
  /** So many bytes were put into `room`; `next` goes on with them. */
  fill(length: number): void
  /** Reads the current frame, a PUBLISH. @throws WireError as {@link PublishView.read} */
  read(view: PublishView, topics: TopicTable): void
  /** Copies what of the chunk was not looked at, once: it belongs to its owner again, and `next` goes on whenever that is. */
  keep(): void
  /** Forgets everything: nothing is read any more. */
  clear(): void
}
