/**
 * Processes incoming bytes packet by packet in time slices, so that a flood of input does not delay
 * timers, pings and the application.
 *
 * After `sliceLength` packets or `sliceTime` milliseconds, the rest waits for the next turn of the
 * event loop, and the transport is paused. If it cannot be paused, more than `mostWaiting` bytes
 * are processed at once: bounded memory comes before fairness. No byte is lost, and nothing is read
 * behind a packet that is on hold.
 */

import { SparseSet } from '../../common/sparse.js'
import type { Transport } from '../../transport/transport.js'
import { PUBLISH } from '../../wire/constants.js'
import { WireError } from '../../wire/error.js'
import { Framer } from '../../wire/framer.js'
import type { FrameOptions, FrameScanner, FrameSource } from '../../wire/frames.js'
import { Writer } from '../../wire/writer.js'
import type { ConnectionHost } from './ports.js'

/** A slice ends after this many packets, or milliseconds of work. */
export const sliceLength = 10_000
const sliceTime = 5
/** The clock is read once per this many packets. */
const clockStride = 64
/** Most bytes that may wait for the next turn. */
const mostWaiting = 1_048_576

/** Incoming bytes of one connection. */
export abstract class StreamReader {
  /**
   * Replaces the framer at the first read that begins with a PUBLISH; quiet connections never need
   * it.
   */
  protected scanner: FrameScanner | undefined
  protected framer: FrameSource
  readonly #host: ConnectionHost
  readonly #transport: Transport
  /** Options of the framer. */
  readonly #options: FrameOptions
  /** Bytes received while the framer's chunk is unfinished; undefined otherwise. */
  #waiting: Writer | undefined
  /** Objects that pause reading: a packet is being verified or stored, or memory is short. */
  readonly #holders = new SparseSet<object>()
  #over = false
  // counted since the last turn of the event loop
  #packets = 0
  #busy = 0

  constructor(host: ConnectionHost, transport: Transport, options: FrameOptions) {
    this.#host = host
    this.#transport = transport
    this.#options = options
    this.framer = new Framer({ from: 'server', ...options })
  }

  /** Processes the framer's current packet. @throws WireError when it is malformed */
  protected abstract handleFrame(now: number): void

  /** A slice ended. `complete`: it contained a packet; `fault`: the next packet is malformed. */
  protected abstract handleSlice(complete: boolean, fault: WireError | undefined, now: number): void

  /** Buffer for the rest of a large payload, if the transport can read into it. */
  get room(): Uint8Array | undefined {
    return this.#waiting === undefined ? this.framer.room : undefined
  }

  /** Bytes that are held. */
  get held(): number {
    const { cost, unread } = this.framer
    return cost + (this.#waiting === undefined ? 0 : unread + this.#waiting.length)
  }

  /**
   * Processes the first `length` bytes, whose memory the owner may then reuse. False when too much
   * was received behind a packet that is on hold.
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
      // A read counts as a packet even if it completes none.
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

  /** True when the transport can be paused. */
  get pausable(): boolean {
    return this.#transport.pause !== undefined
  }

  /** Pauses after the current packet until every holder has called `release()`. */
  hold(holder: object = this): void {
    this.#holders.add(holder)
  }

  /** Ends a hold; reading continues unless there are others. */
  release(holder: object = this): void {
    this.#holders.delete(holder)
    if (!this.#held && this.#waiting !== undefined) this.#continue(true)
  }

  get #held(): boolean {
    return this.#holders.size > 0
  }

  /** The stream has ended: processes what waits at once. */
  finish(): void {
    if (this.#waiting !== undefined && !this.#held) this.#continue(false)
  }

  /** Stops reading. */
  stop(): void {
    this.#over = true
    if (this.#waiting !== undefined) this.#transport.resume?.()
    this.#waiting = undefined
    this.framer.clear()
  }

  // Processes the framer's chunk, then what came in meanwhile.
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

  /** Processes the chunk; true when it is finished. */
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
