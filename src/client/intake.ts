/**
 * Walks incoming bytes packet by packet, a slice at a time: a peer that floods us must not keep timers, pings and the application waiting.
 *
 * After `sliceLength` packets, or `sliceTime` of work, the rest waits for the next turn of the event loop, and the transport is asked for patience
 * meanwhile. What waits where a transport knows no patience is walked at once above `mostWaiting`: bounded memory comes before fairness. It must
 * never lose a byte, nor read behind a packet that is still to be judged.
 */
import type { Transport } from '../transport/transport.js'
import { WireError } from '../wire/error.js'
import { Framer } from '../wire/framer.js'
import type { ProtocolVersion } from '../wire/packets.js'
import { Writer } from '../wire/writer.js'
import { sizeLimit } from './control.js'
import type { Platform } from './platform.js'

/** Packets, and milliseconds of work, after which others have their turn. */
const sliceLength = 1000
const sliceTime = 5
/** The clock is read once in so many packets. */
const clockStride = 16
/** Bytes that wait for the next turn at most. */
const mostWaiting = 1024 * 1024

const windowSize = 64 * 1024
let sharedWindow: Uint8Array | undefined

/** Where reads go: one per thread is enough, because every read is consumed before the next begins. */
export function readWindow(): Uint8Array {
  sharedWindow ??= new Uint8Array(windowSize)
  return sharedWindow
}

/** Whom the packets are for. */
export interface Eater {
  /** False once nothing more is to be read. */
  readonly reading: boolean
  /** The framer has a packet. @throws WireError when it is malformed */
  handleFrame(now: number): void
  /** A slice is over. `complete`: it had a packet. `fault`: the packet behind it was malformed. */
  handleSlice(complete: boolean, fault: WireError | undefined, now: number): void
}

/** Incoming bytes of one connection. */
export class Intake {
  readonly framer: Framer
  readonly #platform: Platform
  readonly #transport: Transport
  readonly #eater: Eater
  /** What came in while the framer's chunk was not walked to its end; undefined while it is. */
  #waiting: Writer | undefined
  /** A packet is still to be judged: nothing behind it is read. */
  #held = false
  #over = false
  // since the last turn that we waited for
  #packets = 0
  #busy = 0

  constructor(platform: Platform, transport: Transport, eater: Eater, protocolVersion: ProtocolVersion, maximumPacketSize: number) {
    this.#platform = platform
    this.#transport = transport
    this.#eater = eater
    this.framer = new Framer({ from: 'server', protocolVersion, maximumPacketSize, sizeLimit })
  }

  /** Bytes that are held. */
  get held(): number {
    return this.framer.pending + (this.#waiting === undefined ? 0 : this.framer.unread + this.#waiting.length)
  }

  /** Takes bytes, which belong to their owner again afterwards. False when they are more than `room` for a packet that is still to be judged. */
  take(bytes: Uint8Array, room: number): boolean {
    if (this.#waiting === undefined) {
      this.framer.push(bytes)
      // A read costs as much as a packet, even when it completes none.
      this.#packets += 1
      this.#walk(true)
      return true
    }
    if (this.#held && bytes.length > room) return false
    this.#waiting.raw(bytes)
    if (!this.#held && this.#waiting.length > mostWaiting) this.#continue(false)
    return true
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
  #walk(sliced: boolean): boolean {
    const eater = this.#eater
    const began = this.#platform.now()
    const { framer } = this
    const first = this.#packets
    let packets = first
    let tired = false
    let fault: WireError | undefined
    try {
      while (eater.reading && !this.#held && !this.#over) {
        tired = sliced && this.#isTired(packets, began)
        if (tired || !framer.next()) break
        packets += 1
        eater.handleFrame(began)
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      fault = error
    }
    this.#packets = packets
    this.#busy += this.#platform.now() - began
    const stops = !this.#over && eater.reading && fault === undefined && (tired || this.#held)
    if (stops) this.#stop()
    eater.handleSlice(packets > first, fault, began)
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
