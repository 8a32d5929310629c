/**
 * Walks incoming bytes packet by packet, a slice at a time: a peer that floods us must not keep timers, pings and the application waiting.
 *
 * After `sliceLength` packets, or `sliceTime` of work, the rest waits for the next turn of the event loop, and the transport is asked for patience
 * meanwhile. What waits where a transport knows no patience is walked at once above `mostWaiting`: bounded memory comes before fairness. It must
 * never lose a byte, nor read behind a packet that is still to be judged.
 */

import { SparseSet } from '../../common/sparse.js'
import type { Transport } from '../../transport/transport.js'
import { PUBLISH } from '../../wire/constants.js'
import { WireError } from '../../wire/error.js'
import { Framer } from '../../wire/framer.js'
import type { FrameOptions, FrameScanner, FrameSource } from '../../wire/frames.js'
import { Writer } from '../../wire/writer.js'
import type { ConnectionHost } from './ports.js'

/** Packets, and milliseconds of work, after which others have their turn: whichever is reached first. */
export const sliceLength = 10_000
const sliceTime = 5
/** The clock is read once in so many packets. */
const clockStride = 64
/** Bytes that wait for the next turn at most. */
const mostWaiting = 1_048_576

/** Incoming bytes of one connection. */
export abstract class StreamReader {
  /** Takes over with the first read that begins with a PUBLISH: a quiet connection never needs it. */
  protected scanner: FrameScanner | undefined
  protected framer: FrameSource
  readonly #host: ConnectionHost
  readonly #transport: Transport
  /** How packets are found. */
  readonly #options: FrameOptions
  /** What came in while the framer's chunk was not walked to its end; undefined while it is. */
  #waiting: Writer | undefined
  /** What keeps it from reading on: a packet that is still to be judged, or has to be stored, or has no room. */
  readonly #holders = new SparseSet<object>()
  #over = false
  // since the last turn that we waited for
  #packets = 0
  #busy = 0

  constructor(host: ConnectionHost, transport: Transport, options: FrameOptions) {
    this.#host = host
    this.#transport = transport
    this.#options = options
    this.framer = new Framer({ from: 'server', ...options })
  }

  /** The framer has a packet. @throws WireError when it is malformed */
  protected abstract handleFrame(now: number): void

  /** A slice is over. `complete`: it had a packet. `fault`: the packet behind it was malformed. */
  protected abstract handleSlice(complete: boolean, fault: WireError | undefined, now: number): void

  /** Where the rest of a large payload may be read into. */
  get room(): Uint8Array | undefined {
    return this.#waiting === undefined ? this.framer.room : undefined
  }

  /** Bytes that are held. */
  get held(): number {
    const { cost, unread } = this.framer
    return cost + (this.#waiting === undefined ? 0 : unread + this.#waiting.length)
  }

  /**
   * Takes the first `length` of these bytes, which belong to their owner again afterwards. False when what is held behind a packet that is still to be
   * judged gets too much.
   */
  take(
    bytes: Uint8Array | undefined,
    length: number,
    data: DataView | undefined,
    now: number,
  ): boolean {
    if (bytes === undefined) this.framer.fill(length)
    if (this.#waiting === undefined) {
      if (bytes !== undefined) {
        if (
          this.scanner !== undefined &&
          this.framer.pending === 0 &&
          (bytes[0] ?? 0) >> 4 === PUBLISH
        )
          this.#upgrade(this.scanner)
        this.framer.push(bytes, length, data)
      }
      // A read costs as much as a packet, even when it completes none.
      this.#packets += 1
      this.#walk(true, now)
      return true
    }
    if (bytes === undefined) return true
    if (this.#held && this.held + length > this.#host.options.memoryBudget) return false
    this.#waiting.raw(length === bytes.length ? bytes : bytes.subarray(0, length))
    if (!this.#held && this.#waiting.length > mostWaiting) this.#continue(false)
    return true
  }

  #upgrade(scanner: FrameScanner): void {
    this.framer = scanner.frames(this.#options)
    this.scanner = undefined
  }

  /** True where the transport waits while nothing is read. */
  get pausable(): boolean {
    return this.#transport.pause !== undefined
  }

  /** To be called for the current packet: nothing behind it is read before `release` by all that hold it. */
  hold(holder: object = this): void {
    this.#holders.add(holder)
  }

  /** The packet counts: reading goes on behind it, unless something else holds it. */
  release(holder: object = this): void {
    this.#holders.delete(holder)
    if (!this.#held && this.#waiting !== undefined) this.#continue(true)
  }

  get #held(): boolean {
    return this.#holders.size > 0
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
  #walk(sliced: boolean, began = this.#host.platform.now()): boolean {
    const { platform, session } = this.#host
    const { framer } = this
    const first = this.#packets
    let packets = first
    let tired = false
    let fault: WireError | undefined
    try {
      while (session.state !== 'closed' && !this.#held && !this.#over) {
        tired = sliced && this.#isTired(packets, began)
        if (tired || !framer.next()) break
        packets += 1
        this.handleFrame(began)
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      fault = error
    }
    this.#packets = packets
    this.#busy += platform.now() - began
    const stops =
      !this.#over && session.state !== 'closed' && fault === undefined && (tired || this.#held)
    if (stops) this.#stop()
    this.handleSlice(packets > first, fault, began)
    return !stops
  }

  #isTired(packets: number, began: number): boolean {
    if (packets >= sliceLength) return true
    return (
      packets % clockStride === clockStride - 1 &&
      this.#busy + this.#host.platform.now() - began >= sliceTime
    )
  }

  #stop(): void {
    this.framer.keep()
    if (this.#waiting === undefined) {
      this.#waiting = new Writer(0)
      this.#transport.pause?.()
    }
    if (this.#held) return
    this.#host.platform.nextTurn(() => {
      this.#packets = 0
      this.#busy = 0
      if (!this.#held && this.#waiting !== undefined) this.#continue(true)
    })
  }
}
