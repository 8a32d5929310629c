/**
 * A transport over any Node `Duplex`: an SSH channel, a serial port, an agent's stream, one end of
 * an in-memory pair.
 *
 * The stream may be unusual: it may never emit 'close', throw from any call, or answer a write with
 * data at once. The sink is never called before `open()`, after the end, or inside `write()`, and
 * late errors of the stream never escape.
 *
 * @module
 */

import { checkStream, type DuplexStream, openStream } from './open-stream.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Sink, Transport } from './transport.js'

export type { DuplexStream } from './open-stream.js'

type Written = (error?: unknown) => void

/** Milliseconds for the peer to close its direction once one direction has ended. */
const lingerTime = 5_000

/** Milliseconds for a destroyed stream to emit 'close'. */
const closeTime = 1_000

/**
 * Opens a stream for one attempt to connect. The signal aborts when the attempt is given up; a
 * stream returned later is destroyed.
 */
export type OpenDuplex = (options: {
  readonly signal: AbortSignal
}) => DuplexStream | Promise<DuplexStream>

/** A value for `transport` of an endpoint, which opens a stream for each attempt to connect. */
export type DuplexDial = (
  endpoint: unknown,
  options: { readonly signal: AbortSignal },
) => Promise<Transport>

/**
 * A transport over an open stream; or, for a function that opens one, a value for `transport` of an
 * endpoint.
 *
 * Other code must not read the stream, write to it, or decode it (`setEncoding`). The transport
 * reads it from `open()` on, respects its `highWaterMark` in both directions, ends it when the peer
 * has ended, and finally destroys it. A peer that does not end within 5 seconds is cut off.
 * @param source an open `Duplex` of bytes, also a socket that is still connecting; or a function
 * that returns one, or a promise of one, for each attempt
 * @throws MqttError `ERR_INVALID_OPTION` when it is not a `Duplex`, is one of objects or text, or
 * is already closed; for a function's stream, the attempt rejects with it
 */
export function duplexTransport(source: DuplexStream): Transport
export function duplexTransport(source: OpenDuplex): DuplexDial
export function duplexTransport(source: DuplexStream | OpenDuplex): Transport | DuplexDial {
  if (typeof source !== 'function') return new DuplexTransport(checkStream(source))
  return async (_endpoint, { signal }) =>
    new DuplexTransport(await openStream(async () => source({ signal }), signal))
}

class DuplexTransport implements Transport {
  readonly #stream: DuplexStream
  readonly #holder = new SinkHolder()
  /** Callbacks of writes that the stream has not confirmed, in order. */
  readonly #waiting = new Set<Written>()
  /** Data received during a call to the stream. */
  #held: Uint8Array[] = []
  #inside = false
  #ended = false
  #cut = false
  #readEnd = false
  #cause: unknown
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(stream: DuplexStream) {
    this.#stream = stream
    // Never removed, because an error after the end must not end the process.
    stream.on('error', (error: unknown) => this.#failed(error))
    stream.on('drain', () => this.#drained())
    stream.on('end', () => this.#peerEnded())
    stream.on('finish', () => this.#linger())
    stream.on('close', () => this.#over())
    // A stream that is already flowing would lose data.
    this.pause()
  }

  open(sink: Sink): void {
    this.#holder.open(sink, () => {
      this.#stream.on('data', (bytes: unknown) => this.#received(bytes))
      this.resume()
    })
  }

  write(bytes: Uint8Array, written?: Written): boolean {
    if (this.#ended || this.#stream.destroyed) return refuse(written)
    const done = written && this.#once(written)
    try {
      return this.#within(() => this.#stream.write(bytes, done))
    } catch (error) {
      // The stream may still hold the bytes, so `written` is called only at its end.
      this.destroy(error)
      return false
    }
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    // Resumed so that the peer's end is noticed.
    this.resume()
    this.#guard(() => this.#stream.end())
  }

  pause(): void {
    this.#guard(() => this.#stream.pause())
  }

  resume(): void {
    // Before `open()`, nothing reads.
    if (this.#holder.live) this.#guard(() => this.#stream.resume())
  }

  destroy(cause?: unknown): void {
    if (this.#cut || this.#holder.over) return
    this.#ended = true
    this.#cut = true
    this.#cause = cause
    this.#held = []
    this.#holder.drop()
    this.#end()
  }

  // While `write()` is still running, its caller cannot be waiting for a drain.
  #drained(): void {
    if (this.#inside) queueMicrotask(() => this.#holder.live?.drain())
    else this.#holder.live?.drain()
  }

  #received(bytes: unknown): void {
    if (this.#cut) return
    if (!(bytes instanceof Uint8Array))
      this.destroy(new Error('The stream gave something that is not bytes'))
    else if (this.#inside || this.#held.length > 0) this.#hold(bytes)
    else this.#holder.chunk(bytes)
  }

  // A stream may deliver data inside a call to it, where the sink must not be called. Copied,
  // because the stream may reuse the memory.
  #hold(bytes: Uint8Array): void {
    if (this.#held.push(new Uint8Array(bytes)) === 1) queueMicrotask(() => this.#release())
  }

  #release(): void {
    for (let bytes = this.#held[0]; bytes; bytes = this.#held[0]) {
      this.#holder.chunk(bytes)
      this.#held.shift()
    }
  }

  // A stream that throws is unusable.
  #guard(call: () => unknown): void {
    try {
      this.#within(call)
    } catch (error) {
      this.destroy(error)
    }
  }

  #within<T>(call: () => T): T {
    const outer = this.#inside
    this.#inside = true
    try {
      return call()
    } finally {
      this.#inside = outer
    }
  }

  // Calls `written` exactly once, even if a destroyed stream forgets its callbacks.
  #once(written: Written): (error?: Error | null) => void {
    const finished: Written = (error) => {
      if (!this.#waiting.delete(finished)) return
      if (this.#inside) queueMicrotask(() => written(error))
      else written(error)
    }
    this.#waiting.add(finished)
    // As with sockets, a pending write may be reported as successful when the stream is destroyed.
    return (error) =>
      finished(error ?? (this.#stream.destroyed ? new Error('The stream was cut') : undefined))
  }

  #failed(error: unknown): void {
    if (this.#holder.over) return
    if (!this.#cut) this.#cause ??= error
    this.#ended = true
    this.#end()
  }

  #peerEnded(): void {
    this.#readEnd = true
    // A Duplex stays half-open by default; MQTT ends both directions.
    this.close()
    this.#linger()
  }

  // One direction has ended: the other gets a limited time to follow.
  #linger(): void {
    if (this.#cut || this.#holder.over) return
    if (this.#readEnd && this.#stream.writableFinished) return this.#end()
    this.#timer ??= unreferenced(() => this.#end(), lingerTime)
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#timer = unreferenced(() => this.#over(), closeTime)
    try {
      this.#within(() => this.#stream.destroy())
    } catch {
      // Nothing more can be done about it.
    }
  }

  #over(): void {
    clearTimeout(this.#timer)
    if (this.#holder.over) return
    this.#cause ??= this.#ended ? undefined : new Error('The stream closed before its end')
    this.#ended = true
    for (const written of this.#waiting)
      queueMicrotask(() => written(new Error('The stream was cut')))
    // After data that is held back.
    queueMicrotask(() => this.#holder.end(this.#cause))
  }
}

function unreferenced(callback: () => void, delay: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(callback, delay)
  // Such streams also exist outside Node, where timers are numbers.
  ;(timer as { unref?(): void }).unref?.()
  return timer
}
