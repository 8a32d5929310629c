/**
 * A stream whose other end has stopped: it takes a number of bytes, confirms none of the rest, and never ends in order.
 *
 * What "comes in" is what the test feeds. Only `destroy` ends it.
 */
import type { Sink, Transport } from '../../../src/transport/transport.js'

/** A transport towards a peer that does nothing. */
export class StalledTransport implements Transport {
  /** What the client wrote. */
  readonly written: number[] = []
  /** What `destroy` was called with, once it was. */
  destroyed: { readonly cause: unknown } | undefined
  #sink: Sink | undefined
  #room: number
  readonly #unwritten: ((error?: unknown) => void)[] = []

  /** After so many bytes `write` says that it has had enough. */
  constructor(room = Number.POSITIVE_INFINITY) {
    this.#room = room
  }

  open(sink: Sink): void {
    this.#sink = sink
  }

  /** Lets bytes come in, from hexadecimal text. */
  feed(hex: string): void {
    this.#sink?.chunk(Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex')))
  }

  /** Takes bytes again. */
  drain(): void {
    for (const written of this.#unwritten.splice(0)) written()
    this.#room = Number.POSITIVE_INFINITY
    this.#sink?.drain()
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    // One at a time: as arguments of one call they are too many for the stack of a worker.
    for (const byte of bytes) this.written.push(byte)
    if (written !== undefined) this.#unwritten.push(written)
    return this.written.length <= this.#room
  }

  close(): void {
    // The peer never ends its side, so nothing follows.
  }

  destroy(cause?: unknown): void {
    if (this.destroyed !== undefined) return
    this.destroyed = { cause }
    queueMicrotask(() => {
      for (const written of this.#unwritten.splice(0))
        written(cause ?? new Error('the stream was cut'))
      this.#sink?.closed(cause)
    })
  }
}

/** A CONNACK without properties. */
export const plainConnack = '20 03 00 00 00'
