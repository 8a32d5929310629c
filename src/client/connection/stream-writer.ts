/**
 * The bytes that one connection writes: gathered in the thread's output buffers and handed to the transport in one write per flush, a large payload
 * slice by slice.
 *
 * It knows no packets: `PacketWriter` does. It holds no buffer while there is nothing to write, and never throws into the transport; after `stop` it
 * hands nothing over any more.
 */
import type { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import { nothing } from '../../wire/fields.js'
import { Writer } from '../../wire/writer.js'
import type { Platform } from '../platform.js'
import { broken } from '../session/refusal.js'
import {
  giveBuffer,
  OutgoingBytes,
  sliceBuffer,
  swapBuffer,
  takeBuffer,
  type WrittenCallback,
} from './outgoing-bytes.js'
import type { ConnectionHost } from './ports.js'

/** Bytes under way above which user data waits: a transport may take all that comes, and report only after this turn what has left. */
const mostUnderWay = 1024 * 1024

/** The connection, as its writer sees it. */
export interface WriterOwner {
  /** Ends the connection because of this. */
  giveUp(error: MqttError): void
  /** A deadline of the session may have come nearer. */
  arm(): void
}

/** Writes a stream. */
export abstract class StreamWriter extends OutgoingBytes {
  /** What is to be handed over next. */
  protected readonly writer = new Writer(0, true, swapBuffer)
  /** Bytes of large payloads in it. */
  protected exemptHere = 0
  protected stopped = false
  readonly #host: ConnectionHost
  readonly #transport: Transport
  protected readonly owner: WriterOwner
  /** What is handed over may be taken back: no packet but one is in it. */
  #alone = false
  /** Nothing follows what is queued, for DISCONNECT is the last of it [MQTT-3.14.4-1]; called when all of it was handed over. */
  #silent: (() => void) | undefined

  constructor(transport: Transport, host: ConnectionHost, owner: WriterOwner) {
    super()
    this.#transport = transport
    this.#host = host
    this.owner = owner
  }

  /** Hands what is queued to the transport in one write; small ones, which cost far more than their bytes, wait where many are under way. */
  abstract flush(): void

  /** Writes what is queued before this turn's synchronous code has ended, once. */
  abstract queueFlush(): void

  /** False while the transport asks for patience: user data waits, acknowledgements and pings do not. */
  get writable(): boolean {
    return !this.blocked && !this.full && !this.stopped && this.source === undefined
  }

  /** Bytes that have not left, but for those of large payloads. */
  get piled(): number {
    return this.underWay - this.exempt + this.writer.length - this.exemptHere
  }

  /** Where what was written so far ends: bytes since the connection began. */
  get end(): number {
    return this.handed + this.writer.length + this.rest
  }

  /** Calls back when everything that was queued so far has left, or never will. */
  onWritten(callback: WrittenCallback): void {
    this.wait(this.end, callback, this.#host.platform.microtask)
    this.queueFlush()
  }

  /** The transport takes bytes again. */
  handleDrain(): void {
    this.blocked = false
    this.#goOn()
  }

  /** Hands over nothing but what is queued, which is a payload at most; calls back when that is done. */
  silence(done: () => void): void {
    this.#silent = done
    if (this.source === undefined) done()
  }

  /** Hands nothing over any more. */
  stop(): void {
    this.stopped = true
    this.source = undefined
    this.#reset()
  }

  // The end, or DISCONNECT, was the last word.
  protected get isMute(): boolean {
    return this.stopped || this.#silent !== undefined
  }

  /** Its head is written. The first slice leaves with it: a transport that takes neither has taken nothing, and that is the caller's matter. */
  protected begin(payload: Uint8Array): void {
    const first = payload.subarray(0, Math.max(0, sliceBuffer - this.writer.length))
    this.writer.raw(first)
    this.exemptHere = first.length
    this.#alone = true
    this.handWriter()
    this.#alone = false
    if (this.stopped || first.length === payload.length) return
    this.follow(payload, first.length)
    this.#feed()
  }

  protected handWriter(): void {
    const { bytes, length } = this.writer
    if (this.source !== undefined) return
    if (length === 0) return this.#reset()
    const { exemptHere } = this
    this.writer.bytes = nothing
    this.writer.length = 0
    this.exemptHere = 0
    const { platform, session } = this.#host
    session.keepAlive.sentAt = platform.now()
    this.#hand(bytes.subarray(0, length), exemptHere, bytes)
  }

  // Hands over slices as the transport takes them. They are copies: it never holds memory that the caller gets back.
  #feed(): void {
    for (
      let { source } = this;
      source !== undefined && !this.blocked && !this.full;
      { source } = this
    ) {
      const slice = this.nextSlice(source)
      if (slice === undefined)
        return this.owner.giveUp(broken('ERR_CONNECTION_LOST', 'length changed'))
      const buffer = takeBuffer(slice.length)
      buffer.set(slice)
      this.#hand(buffer.subarray(0, slice.length), slice.length, buffer)
    }
    // No PINGREQ finds out now whether the peer is there.
    if (this.source !== undefined) this.#hold()
  }

  // The transport takes more: first of what was begun, then what had to wait for its end.
  #goOn(): void {
    if (this.stopped || this.blocked) return
    const { platform, session } = this.#host
    const begun = this.source !== undefined
    this.#feed()
    if (this.writable) session.keepAlive.blocked(false, platform.now())
    if (this.source === undefined) {
      if (!begun || this.#silent === undefined) this.flush()
      else {
        this.handWriter()
        this.#silent()
      }
    }
    this.#host.flush()
  }

  // A buffer in which nothing was left standing is not held.
  #reset(): void {
    if (this.writer.bytes !== nothing) giveBuffer(this.writer.bytes)
    this.writer.bytes = nothing
    this.writer.length = 0
    this.exemptHere = 0
  }

  // Acks, pings and DISCONNECT go out whatever the transport says; a peer that makes us pile them up loses the connection.
  #hand(bytes: Uint8Array, exempt: number, buffer: Uint8Array): void {
    // Given up while it was flushed.
    if (this.stopped) return
    const { counters, platform, session } = this.#host
    const { length } = bytes
    this.writes += 1
    this.handed += length
    this.exempt += exempt
    if (counters !== undefined) counters.bytesSent += length
    if (this.underWay >= mostUnderWay) this.full = true
    let written = false
    const done = (error?: unknown): void => {
      // A buffer that is given back twice would be written by two.
      if (written) return
      written = true
      // What did not leave may still be on its way somewhere: that memory is let go.
      if (error === undefined) giveBuffer(buffer)
      if (error === undefined && !this.writable) session.keepAlive.took(platform.now())
      this.writes -= 1
      this.exempt -= exempt
      this.advance(length, error)
      if (!this.full || this.underWay > mostUnderWay / 2) return
      this.full = false
      this.#goOn()
    }
    try {
      if (this.#transport.write(bytes, done) || this.blocked) return
    } catch (cause) {
      done(cause)
      const error = broken('ERR_CONNECTION_LOST', 'transport threw', cause)
      if (!this.#alone) return this.owner.giveUp(error)
      this.#alone = false
      throw error
    }
    this.blocked = true
    this.#hold()
  }

  // Nothing more leaves until the transport says so: a peer that never lets it is given up.
  #hold(): void {
    const { platform, session } = this.#host
    session.keepAlive.blocked(true, platform.now())
    this.owner.arm()
  }
}

/**
 * Where the connection before did not hold, so many acknowledgements leave in a millisecond, for so many milliseconds. What leaves in one go over a
 * link that breaks again is lost in one go, and a server that sends everything again reads nothing meanwhile: some have to get through.
 */
const carefulAcks = 8
const carefulTime = 100

/**
 * A careful start after a connection that did not hold: acknowledgements leave a few at a time, for a while.
 */
export class Pace {
  /** True while they are counted. */
  careful = false
  #since = -1
  #acked = 0

  /** How many may leave now. A timer that comes late lets all of them go. */
  room(now: number): number {
    if (this.#since < 0) this.#since = now
    const passed = now - this.#since
    if (passed >= carefulTime) this.careful = false
    return this.careful
      ? carefulAcks * (1 + Math.floor(passed)) - this.#acked
      : Number.POSITIVE_INFINITY
  }

  /** So many have left. */
  handleSent(count: number): void {
    this.#acked += count
  }
}

/** Microtasks without news after which a turn counts as over: a loop over messages that are there needs fewer from one to the next. */
const quietHops = 8

/**
 * The end of a turn of the event loop, when what was gathered in it leaves together: one call back for all who asked.
 */
export class TurnEnd {
  readonly #later: (callback: () => void) => void
  readonly #hops: number
  readonly #callback: () => void
  /** Hops until the callback; below 0 when one is under way that no caller needs, 0 when none is under way. */
  #left = 0
  /** A caller is not patient. */
  #soon = false

  constructor({ turnEnd, microtask }: Platform, callback: () => void) {
    this.#later = turnEnd ?? microtask
    this.#hops = turnEnd === undefined ? quietHops : 1
    this.#callback = callback
  }

  /**
   * Asks for the callback before this turn has ended. Where its end is not signalled: after a microtask, or, if `patient`, once several had no news.
   * True when no callback was waiting for it.
   */
  ask(patient: boolean): boolean {
    // What is due sooner serves as well.
    if (this.#soon) return false
    const left = this.#left
    this.#soon = !patient
    this.#left = patient ? this.#hops : left === 0 ? 1 : 2
    if (left === 0) this.#later(this.#look)
    return left <= 0
  }

  /** No caller waits any more. */
  cancel(): void {
    if (this.#left > 0) this.#left = -1
    this.#soon = false
  }

  readonly #look = (): void => {
    if (this.#left > 1) {
      this.#left -= 1
      return this.#later(this.#look)
    }
    const due = this.#left > 0
    this.#left = 0
    this.#soon = false
    if (due) this.#callback()
  }
}
