/**
 * The byte stream of one connection: output is gathered in shared buffers and given to the
 * transport in one write per flush; large payloads go in slices.
 *
 * It knows no packets; `PacketWriter` does. It holds no buffer while there is nothing to write,
 * never throws into the transport, and writes nothing after `stop`.
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

/**
 * With this many bytes under way, user data waits: a transport may accept everything and report
 * only later what has left.
 */
const mostUnderWay = 1024 * 1024

/** The connection as its writer sees it. */
export interface WriterOwner {
  /** Ends the connection with this error. */
  giveUp(error: MqttError): void
  /** A deadline of the session may be earlier now. */
  arm(): void
}

/** Writes the stream of one connection. */
export abstract class StreamWriter extends OutgoingBytes {
  /** Gathers the next write. */
  protected readonly writer = new Writer(0, true, swapBuffer)
  /** Bytes of large payloads in the writer. */
  protected exemptHere = 0
  protected stopped = false
  readonly #host: ConnectionHost
  readonly #transport: Transport
  protected readonly owner: WriterOwner
  /** The writer holds a single packet, so it can still be taken back. */
  #alone = false
  /**
   * Set once DISCONNECT is queued, which nothing may follow [MQTT-3.14.4-1]; called when everything
   * was handed over.
   */
  #silent: (() => void) | undefined

  constructor(transport: Transport, host: ConnectionHost, owner: WriterOwner) {
    super()
    this.#transport = transport
    this.#host = host
    this.owner = owner
  }

  /**
   * Gives the queued output to the transport in one write. Small writes, which are relatively
   * expensive, wait while many are under way.
   */
  abstract flush(): void

  /** Schedules one flush for the end of this turn, behind its synchronous code. */
  abstract queueFlush(): void

  /**
   * False while the transport asks to wait. User data then waits; acknowledgements and pings do
   * not.
   */
  get writable(): boolean {
    return !this.blocked && !this.full && !this.stopped && this.source === undefined
  }

  /** Bytes that have not left, not counting large payloads. */
  get piled(): number {
    return this.underWay - this.exempt + this.writer.length - this.exemptHere
  }

  /** Stream position at the end of everything written so far. */
  get end(): number {
    return this.handed + this.writer.length + this.rest
  }

  /** Calls back when everything queued so far has left, or failed. */
  onWritten(callback: WrittenCallback): void {
    this.wait(this.end, callback, this.#host.platform.microtask)
    this.queueFlush()
  }

  /** The transport accepts bytes again. */
  handleDrain(): void {
    this.blocked = false
    this.#goOn()
  }

  /**
   * Allows only what is queued to be written, including the rest of a payload; calls back when that
   * is handed over.
   */
  silence(done: () => void): void {
    this.#silent = done
    if (this.source === undefined) done()
  }

  /** Writes nothing more. */
  stop(): void {
    this.stopped = true
    this.source = undefined
    this.#reset()
  }

  // True after `stop`, or when DISCONNECT was queued.
  protected get isMute(): boolean {
    return this.stopped || this.#silent !== undefined
  }

  /**
   * Starts a large payload whose packet head was written. The first slice is written with the head:
   * if the transport throws then, nothing was sent, and the caller can handle the error.
   */
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

  // Writes slices as the transport accepts them. They are copies, so the transport never holds the
  // caller's memory.
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
    // While a payload is unfinished no PINGREQ can be sent, so the blocked timeout watches the
    // peer.
    if (this.source !== undefined) this.#hold()
  }

  // The transport accepts more: first the payload in progress, then what waited behind it.
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

  // An empty writer returns its buffer to the pool.
  #reset(): void {
    if (this.writer.bytes !== nothing) giveBuffer(this.writer.bytes)
    this.writer.bytes = nothing
    this.writer.length = 0
    this.exemptHere = 0
  }

  // Writes bytes whatever the transport says: acknowledgements, pings and DISCONNECT must leave. A
  // peer that lets them pile up is disconnected.
  #hand(bytes: Uint8Array, exempt: number, buffer: Uint8Array): void {
    // The connection was given up during a flush.
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
      // A callback that is called twice must not return the buffer twice.
      if (written) return
      written = true
      // After an error the transport may still use the buffer, so it is not reused.
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

  // Nothing leaves until the transport drains: starts the timeout for a peer that does not read.
  #hold(): void {
    const { platform, session } = this.#host
    session.keepAlive.blocked(true, platform.now())
    this.owner.arm()
  }
}

/**
 * After a connection that failed, this many acknowledgements are sent per millisecond, for this
 * many milliseconds. If the link breaks again, everything sent at once is lost at once, and a
 * server that resends everything reads nothing meanwhile: some acknowledgements have to get
 * through.
 */
const carefulAcks = 8
const carefulTime = 100

/** Slows acknowledgements down for a while after a connection that failed. */
export class Pace {
  /** True while acknowledgements are limited. */
  careful = false
  #since = -1
  #acked = 0

  /** Number of acknowledgements that may be sent now; unlimited once the time is over. */
  room(now: number): number {
    if (this.#since < 0) this.#since = now
    const passed = now - this.#since
    if (passed >= carefulTime) this.careful = false
    return this.careful
      ? carefulAcks * (1 + Math.floor(passed)) - this.#acked
      : Number.POSITIVE_INFINITY
  }

  /** Counts acknowledgements that were sent. */
  handleSent(count: number): void {
    this.#acked += count
  }
}

/**
 * Number of microtasks without new output after which a turn counts as over; more than a loop over
 * buffered messages takes between two of them.
 */
const quietHops = 8

/**
 * The end of a turn of the event loop, when gathered output is sent: one callback for all requests.
 */
export class TurnEnd {
  readonly #later: (callback: () => void) => void
  readonly #hops: number
  readonly #owner: { handleTurnEnd(): void }
  /**
   * Hops until the callback; below 0 when a scheduled one was cancelled, 0 when none is scheduled.
   */
  #left = 0
  /** One of the requests is not patient. */
  #soon = false

  constructor({ turnEnd, microtask }: Platform, owner: { handleTurnEnd(): void }) {
    this.#later = turnEnd ?? microtask
    this.#hops = turnEnd === undefined ? quietHops : 1
    this.#owner = owner
  }

  /**
   * Requests the callback at the end of this turn. On platforms that do not signal the end: after a
   * microtask or, if `patient`, after several without a request.
   * True when no request was pending.
   */
  ask(patient: boolean): boolean {
    // An earlier callback serves this request, too.
    if (this.#soon) return false
    const left = this.#left
    this.#soon = !patient
    this.#left = patient ? this.#hops : left === 0 ? 1 : 2
    if (left === 0) this.#later(this.#look)
    return left <= 0
  }

  /** Cancels all requests. */
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
    if (due) this.#owner.handleTurnEnd()
  }
}
