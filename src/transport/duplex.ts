/**
 * A stream over any Node `Duplex`: a channel of SSH, a serial port, what a proxy's agent made, one end of a pair in memory.
 *
 * It may assume little of the stream: one that never emits 'close', throws from any call, or answers a write by data at once is a stream too.
 * It must never touch the sink before `open()`, after the end, or from inside `write()`, and never let a late error of the stream escape.
 *
 * @module
 */

import { checkStream, type DuplexStream, openStream } from './open-stream.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Sink, Transport } from './transport.js'

export type { DuplexStream } from './open-stream.js'

type Written = (error?: unknown) => void

/** How long the peer may take to follow once one direction is over. */
const lingerTime = 5_000

/** How long a stream that was destroyed may take to say so. */
const closeTime = 1_000

/** Opens a stream for one attempt to connect. The signal aborts when the attempt is given up; a stream that comes later is destroyed. */
export type OpenDuplex = (options: {
  readonly signal: AbortSignal
}) => DuplexStream | Promise<DuplexStream>

/** A value for `transport` of an endpoint: it opens a stream for each attempt to connect. */
export type DuplexDial = (
  endpoint: unknown,
  options: { readonly signal: AbortSignal },
) => Promise<Transport>

/**
 * A transport over an open stream, or a value for `transport` of an endpoint, over a function that opens one.
 *
 * The stream is taken over: other code may not read it, write to it, or decode it (`setEncoding`). The transport reads it from `open()` on, honours its
 * `highWaterMark` in both directions, ends it when the peer has ended, and destroys it at last. A peer that follows no end within 5 seconds is cut.
 * @param source an open `Duplex` of bytes, also a socket that is still connecting; or a function that gives one, or a promise of one, for each
 * attempt
 * @throws MqttError `ERR_INVALID_OPTION` for what is no `Duplex`, is one of objects or of text, or is closed already; of a function's stream the
 * attempt rejects with it
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
  /** Writes that the stream has not answered, in order. */
  readonly #waiting = new Set<Written>()
  /** What came in while a call of ours was on the stack. */
  #held: Uint8Array[] = []
  #inside = false
  #ended = false
  #cut = false
  #readEnd = false
  #cause: unknown
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(stream: DuplexStream) {
    this.#stream = stream
    // These stay: an error that comes after the end must not end the process.
    stream.on('error', (error: unknown) => this.#failed(error))
    stream.on('drain', () => this.#drained())
    stream.on('end', () => this.#peerEnded())
    stream.on('finish', () => this.#linger())
    stream.on('close', () => this.#over())
    // What flows already would flow past.
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
      // The stream may hold the bytes at which it threw: `written` is called at its end.
      this.destroy(error)
      return false
    }
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    // The peer's end is to be seen.
    this.resume()
    this.#guard(() => this.#stream.end())
  }

  pause(): void {
    this.#guard(() => this.#stream.pause())
  }

  resume(): void {
    // Before `open()` there is no reader for what would come.
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

  // Before `write()` has answered there is no wait that a drain could end.
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

  // A stream may answer from inside our own call, which the sink need not expect. The memory may be the stream's again by then.
  #hold(bytes: Uint8Array): void {
    if (this.#held.push(new Uint8Array(bytes)) === 1) queueMicrotask(() => this.#release())
  }

  #release(): void {
    for (let bytes = this.#held[0]; bytes; bytes = this.#held[0]) {
      this.#holder.chunk(bytes)
      this.#held.shift()
    }
  }

  // A stream that throws is of no more use.
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

  // Once, and in any case: a stream may forget its callbacks when it is destroyed.
  #once(written: Written): (error?: Error | null) => void {
    const finished: Written = (error) => {
      if (!this.#waiting.delete(finished)) return
      if (this.#inside) queueMicrotask(() => written(error))
      else written(error)
    }
    this.#waiting.add(finished)
    // As for sockets: a write that was under way when the stream was destroyed may be reported as done.
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
    // A Duplex stays open in the other direction by default; for MQTT it is over.
    this.close()
    this.#linger()
  }

  // One direction is over: the other gets a moment to follow, not for ever.
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
    // Behind what is held.
    queueMicrotask(() => this.#holder.end(this.#cause))
  }
}

function unreferenced(callback: () => void, delay: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(callback, delay)
  // Streams of this kind are found outside Node too, where timers are numbers.
  ;(timer as { unref?(): void }).unref?.()
  return timer
}
