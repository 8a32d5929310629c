/**
 * A transport over a `MessagePort`, between a page and its workers or between Node's threads.
 *
 * Both ends must use this module: bytes go one way, counts of consumed bytes come back, and ends
 * are messages, because ports report closing late or never. A message of any other shape cuts the
 * stream. Written arrays are copied, never detached.
 *
 * @module
 */

import { refuse, SinkHolder } from './sink-holder.js'
import type { Sink, Transport } from './transport.js'

/**
 * The part of a `MessagePort` that is used; browsers, Deno, Bun and `node:worker_threads` have it.
 */
export interface Port {
  /** Sends to the other end. */
  postMessage(message: unknown, transfer: ArrayBuffer[]): void
  /** Adds a listener for `message`, `messageerror` or `close`. */
  addEventListener(type: string, listener: (event: { data?: unknown }) => void): void
  /** Removes a listener. */
  removeEventListener(type: string, listener: (event: { data?: unknown }) => void): void
  /** Starts delivery of queued messages. */
  start(): void
  /** Closes the port. */
  close(): void
}

/** With more unconsumed bytes than this, `write()` returns false. */
const highWaterMark = 128 * 1024

/** Creates a transport over one end of a `MessageChannel`. Other code must not use the port. */
export function messagePortTransport(port: Port): Transport {
  return new MessagePortTransport(port)
}

interface Pending {
  readonly length: number
  readonly written: ((error?: unknown) => void) | undefined
}

class MessagePortTransport implements Transport {
  readonly #port: Port
  readonly #holder = new SinkHolder()
  // Writes that are not reported as consumed, in order.
  #pending: Pending[] = []
  #outstanding = 0
  #full = false
  #ended = false
  #peerEnded = false

  constructor(port: Port) {
    this.#port = port
    port.addEventListener('message', this.#onMessage)
    port.addEventListener('messageerror', this.#onError)
    port.addEventListener('close', this.#onClose)
  }

  // Until it is started, the port itself queues what comes in.
  open(sink: Sink): void {
    this.#holder.open(sink, () => this.#port.start())
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ended) return refuse(written)
    // Not `slice()`, which does not copy a Buffer.
    const copy = new Uint8Array(bytes)
    this.#pending.push({ length: copy.length, written })
    this.#outstanding += copy.length
    this.#port.postMessage(copy, [copy.buffer])
    if (this.#outstanding > highWaterMark) this.#full = true
    return !this.#full
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    this.#port.postMessage('end', [])
    this.#port.start()
  }

  destroy(cause?: unknown): void {
    if (this.#holder.over) return
    this.#holder.drop()
    this.#port.postMessage('cut', [])
    this.#over(cause)
  }

  readonly #onMessage = ({ data }: { data?: unknown }) => {
    if (data instanceof Uint8Array) this.#consume(data)
    else if (typeof data === 'number') this.#acknowledged(data)
    else if (data === 'end') this.#peerEnd()
    else if (data === 'cut') this.#lost('The peer cut the stream')
    else this.destroy(new Error('The port carried a message that is not part of a stream'))
  }

  readonly #onError = () =>
    this.destroy(new Error('The port carried a message that cannot be read'))

  readonly #onClose = () => this.#lost('The port was closed')

  #consume(bytes: Uint8Array): void {
    if (!this.#holder.chunk(bytes)) this.destroy(new Error('More came in than can be kept'))
    else if (!this.#holder.over) this.#port.postMessage(bytes.length, [])
  }

  // One count per message, in order.
  #acknowledged(length: number): void {
    const first = this.#pending.shift()
    if (first?.length !== length) {
      this.destroy(new Error('The peer confirmed bytes that were not sent'))
      return
    }
    this.#outstanding -= length
    first.written?.()
    if (this.#full && this.#outstanding <= highWaterMark / 2) {
      this.#full = false
      this.#holder.live?.drain()
    }
    this.#finish()
  }

  #peerEnd(): void {
    this.#peerEnded = true
    this.close()
    this.#finish()
  }

  #finish(): void {
    if (this.#peerEnded && this.#pending.length === 0) this.#over(undefined)
  }

  #lost(message: string): void {
    if (this.#holder.over) return
    this.#holder.drop()
    this.#over(new Error(message))
  }

  #over(cause: unknown): void {
    if (this.#holder.over) return
    this.#ended = true
    this.#port.removeEventListener('message', this.#onMessage)
    this.#port.removeEventListener('messageerror', this.#onError)
    this.#port.removeEventListener('close', this.#onClose)
    this.#port.close()
    for (const { written } of this.#pending.splice(0)) refuse(written)
    this.#holder.end(cause)
  }
}
