/**
 * Walks incoming bytes packet by packet, a slice at a time: a peer that floods us must not keep timers, pings and the application waiting.
 *
 * After `sliceLength` packets, or `sliceTime` of work, the rest waits for the next turn of the event loop, and the transport is asked for patience
 * meanwhile. What waits where a transport knows no patience is walked at once above `mostWaiting`: bounded memory comes before fairness. It must
 * never lose a byte, nor read behind a packet that is still to be judged.
 */
import type { Transport } from '../../transport/transport.js'
import { WireError } from '../../wire/error.js'
import { Framer } from '../../wire/framer.js'
import type { FrameOptions, FrameSource } from '../../wire/frames.js'
import type { ProtocolVersion } from '../../wire/packets.js'
import { Writer } from '../../wire/writer.js'
import type { Platform } from '../platform/platform.js'
import { clockStride, mostWaiting, sliceLength, sliceTime } from './bounds.js'
import { sizeLimit } from './control.js'

/** Whom the packets are for. */
export interface FrameHandler {
  /** False once nothing more is to be read. */
  readonly reading: boolean
  /** A slice begins. */
  handleSliceStart(): void
  /** The framer has a packet. @throws WireError when it is malformed */
  handleFrame(now: number): void
  /** A slice is over. `complete`: it had a packet. `fault`: the packet behind it was malformed. */
  handleSlice(complete: boolean, fault: WireError | undefined, now: number): void
}

/** How packets of a server are found. */
export function frameOptions({ allocate }: Platform, protocolVersion: ProtocolVersion, maximumPacketSize: number): FrameOptions {
  return { protocolVersion, maximumPacketSize, sizeLimit, splits: true, allocate }
}

/** Incoming bytes of one connection. */
export class StreamReader {
  framer: FrameSource
  /** Takes over as soon as a packet ends where a read does. */
  better: FrameSource | undefined
  readonly #platform: Platform
  readonly #transport: Transport
  readonly #handler: FrameHandler
  /** What came in while the framer's chunk was not walked to its end; undefined while it is. */
  #waiting: Writer | undefined
  /** A packet is still to be judged: nothing behind it is read. */
  #held = false
  #over = false
  // since the last turn that we waited for
  #packets = 0
  #busy = 0

  constructor(platform: Platform, transport: Transport, handler: FrameHandler, protocolVersion: ProtocolVersion, maximumPacketSize: number) {
    this.#platform = platform
    this.#transport = transport
    this.#handler = handler
    this.framer = new Framer({ from: 'server', ...frameOptions(platform, protocolVersion, maximumPacketSize) })
  }

  /** Where the rest of a large payload may be read into. */
  get room(): Uint8Array | undefined {
    return this.#waiting === undefined ? this.framer.room : undefined
  }

  /** Bytes that are held. */
  get held(): number {
    return this.framer.pending + (this.#waiting === undefined ? 0 : this.framer.unread + this.#waiting.length)
  }

  /**
   * Takes the first `length` of these bytes, which belong to their owner again afterwards. False when they are more than `room` for a packet that is
   * still to be judged.
   */
  take(bytes: Uint8Array | undefined, length: number, data: DataView | undefined, now: number, room: () => number): boolean {
    if (bytes === undefined) this.framer.fill(length)
    if (this.#waiting === undefined) {
      if (this.better !== undefined && this.framer.pending === 0) this.#upgrade(this.better)
      if (bytes !== undefined) this.framer.push(bytes, length, data)
      // A read costs as much as a packet, even when it completes none.
      this.#packets += 1
      this.#walk(true, now)
      return true
    }
    if (bytes === undefined) return true
    if (this.#held && length > room()) return false
    this.#waiting.raw(length === bytes.length ? bytes : bytes.subarray(0, length))
    if (!this.#held && this.#waiting.length > mostWaiting) this.#continue(false)
    return true
  }

  #upgrade(better: FrameSource): void {
    this.framer = better
    this.better = undefined
  }

  /** To be called for the current packet: nothing behind it is read before `release`. */
  hold(): void {
    this.#held = true
  }

  /** The packet counts: reading goes on behind it. */
  release(): void {
    this.#held = false
    if (this.#waiting !== undefined) this.#continue(true)
  }

  /** The stream is over: what waits for its turn is walked at once. */
  finish(): void {
    if (this.#waiting !== undefined && !this.#held) this.#continue(false)
  }

  /** Nothing is read any more. */
  stop(): void {
    this.#over = true
    if (this.#waiting !== undefined) this.#transport.resume?.()
    this.#waiting = undefined
    this.framer.clear()
  }

  // The chunk of the framer, then what came in meanwhile.
  #continue(sliced: boolean): void {
    for (;;) {
      if (this.#over || !this.#walk(sliced)) return
      const bytes = this.#waiting?.take()
      this.#waiting?.reset()
      if (bytes === undefined || bytes.length === 0) break
      this.framer.push(bytes)
    }
    if (this.#over) return
    this.#waiting = undefined
    this.#transport.resume?.()
  }

  /** True when the chunk was walked to its end. */
  #walk(sliced: boolean, began = this.#platform.now()): boolean {
    const handler = this.#handler
    const { framer } = this
    const first = this.#packets
    let packets = first
    let tired = false
    let fault: WireError | undefined
    handler.handleSliceStart()
    try {
      while (handler.reading && !this.#held && !this.#over) {
        tired = sliced && this.#isTired(packets, began)
        if (tired || !framer.next()) break
        packets += 1
        handler.handleFrame(began)
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      fault = error
    }
    this.#packets = packets
    this.#busy += this.#platform.now() - began
    const stops = !this.#over && handler.reading && fault === undefined && (tired || this.#held)
    if (stops) this.#stop()
    handler.handleSlice(packets > first, fault, began)
    return !stops
  }

  #isTired(packets: number, began: number): boolean {
    if (packets >= sliceLength) return true
    return packets % clockStride === clockStride - 1 && this.#busy + this.#platform.now() - began >= sliceTime
  }

  #stop(): void {
    this.framer.keep()
    if (this.#waiting === undefined) {
      this.#waiting = new Writer(0)
      this.#transport.pause?.()
    }
    if (this.#held) return
    this.#platform.nextTurn(() => {
      this.#packets = 0
      this.#busy = 0
      if (!this.#held && this.#waiting !== undefined) this.#continue(true)
    })
  }
}
