/**
 * WebSocket over the platform's `WebSocket` class: browsers, workers, Deno, Bun, Node 22 and later.
 *
 * Tolerates two deviations from the standard: an error event without a close event, and messages in
 * another form than requested (React Native for Windows has Blobs, others have Node Buffers). The
 * class cannot be paused, and shows only in `bufferedAmount` what has left, which is polled only
 * while it is high. Must not import a Node builtin.
 *
 * @module
 */

import { MqttError } from '../errors.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Dial, Sink, Target, Transport } from './transport.js'
import {
  closeCause,
  earlyError,
  highWaterMark,
  messageSize,
  protocolError,
  serverMessageLimit,
  sizeError,
  textError,
  unsupportedSetting,
} from './websocket-rules.js'

type Written = (error?: unknown) => void

/**
 * Dials `ws:` and `wss:` targets. Rejects when the handshake fails or the server selects no
 * sub-protocol, with `ERR_UNSUPPORTED_OPTION` for settings that this class does not support, and
 * with `ERR_INVALID_BROKER_URL` for `ws:` from an https page.
 */
export const dialWebSocket: Dial = async (target, { signal, maximumPacketSize }) => {
  signal.throwIfAborted()
  checkTarget(target)
  const socket = new WebSocket(target.url.href, [...target.protocols])
  socket.binaryType = 'arraybuffer'
  return new Promise((resolve, reject) => {
    const forget = () => signal.removeEventListener('abort', abort)
    const transport = new WebSocketTransport(
      socket,
      serverMessageLimit(maximumPacketSize),
      (cause) => {
        forget()
        reject(cause)
      },
    )
    const abort = () => transport.destroy(signal.reason)
    signal.addEventListener('abort', abort)
    socket.onopen = () => {
      const error = protocolError(socket.protocol, target.protocols)
      if (error) return transport.destroy(error)
      forget()
      resolve(transport)
    }
  })
}

function checkTarget(target: Target): void {
  const { url } = target
  const option = unsupportedSetting(target)
  if (option !== undefined) throw new MqttError('ERR_UNSUPPORTED_OPTION', undefined, { option })
  const { location, origin } = globalThis
  const secure = location?.protocol === 'https:' || origin?.startsWith('https:')
  // Pages may connect to their own machine without TLS.
  if (secure && url.protocol === 'ws:' && !/^(localhost|127\..*|\[::1])$/.test(url.hostname)) {
    throw new MqttError('ERR_INVALID_BROKER_URL', 'ws: from an https page is blocked; use wss:')
  }
}

// Browsers hide from pages why a handshake failed.
const dialHint = ({ protocol }: WebSocket): string =>
  protocol ? '' : ': host, port, path, TLS, sub-protocol?'

class WebSocketTransport implements Transport {
  readonly #socket: WebSocket
  readonly #holder = new SinkHolder()
  /** Called at the end; used only while dialling. */
  readonly #onEnd: (cause: unknown) => void
  #ended = false
  #full = false
  #waiting: Written[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #limit: number
  /**
   * Resolves when all Blobs so far, and the messages behind them, are read; undefined while there
   * is no Blob.
   */
  #reading: Promise<void> | undefined
  /** Bytes of those messages. */
  #unread = 0

  constructor(socket: WebSocket, limit: number, onEnd: (cause: unknown) => void) {
    this.#socket = socket
    this.#limit = limit
    this.#onEnd = onEnd
    socket.onmessage = ({ data }) => this.#receive(data)
    socket.onclose = ({ code, reason }) => {
      this.#ended = true
      const cause = closeCause(code, reason, dialHint(socket))
      this.#whenRead(() => {
        if (!cause && socket.bufferedAmount === 0) this.#report()
        this.#end(cause)
      })
    }
    // A close event with the code usually follows, but not on all platforms.
    socket.onerror = (event) => {
      const cause =
        (event as ErrorEvent).error ?? new Error(`The WebSocket failed${dialHint(socket)}`)
      setTimeout(() => this.#whenRead(() => this.#end(cause)))
    }
  }

  open(sink: Sink): void {
    this.#holder.open(sink)
  }

  write(bytes: Uint8Array, written?: Written): boolean {
    if (this.#ended) return refuse(written)
    try {
      for (let at = 0; at < bytes.length; at += messageSize)
        this.#socket.send(bytes.subarray(at, at + messageSize) as Uint8Array<ArrayBuffer>)
    } catch (error) {
      this.destroy(error)
      return refuse(written)
    }
    if (written && this.#waiting.push(written) === 1)
      queueMicrotask(() => this.#full || this.#report())
    if (!this.#full && this.#socket.bufferedAmount > highWaterMark) {
      this.#full = true
      this.#poll(1)
    }
    return !this.#full
  }

  close(): void {
    this.#ended = true
    this.#socket.close(1000)
  }

  destroy(cause?: unknown): void {
    if (this.#holder.over) return
    this.#holder.drop()
    this.#end(cause)
    this.#socket.close(1000)
  }

  #receive(data: unknown): void {
    const { byteLength, size = byteLength } = Object(data) as { byteLength?: number; size?: number }
    if (typeof size !== 'number') return this.destroy(textError())
    this.#unread += size
    // The limit applies to everything that waits.
    if (this.#unread > this.#limit)
      return this.destroy(size > this.#limit ? sizeError(this.#limit, size) : earlyError())
    if (byteLength !== undefined && this.#reading === undefined)
      return this.#take(data as ArrayBuffer)
    // Throws where Blobs lack this method.
    const bytes = async (): Promise<ArrayBuffer> =>
      byteLength === undefined ? (data as Blob).arrayBuffer() : (data as ArrayBuffer)
    const read = Promise.all([bytes(), this.#reading]).then(
      ([buffer]) => {
        if (this.#reading === read) this.#reading = undefined
        this.#take(buffer)
      },
      (error) => this.destroy(error),
    )
    this.#reading = read
  }

  // Data received before is delivered first.
  #whenRead(done: () => void): void {
    if (this.#reading === undefined) done()
    else void this.#reading.then(done)
  }

  #take(data: ArrayBuffer | ArrayBufferView): void {
    this.#unread -= data.byteLength
    const bytes = ArrayBuffer.isView(data)
      ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      : new Uint8Array(data)
    if (!this.#holder.chunk(bytes)) this.destroy(earlyError())
  }

  #end(cause: unknown): void {
    this.#ended = true
    clearTimeout(this.#timer)
    this.#holder.end(cause)
    const error = cause ?? new Error('The WebSocket closed')
    if (this.#waiting.length > 0) queueMicrotask(() => this.#report(error))
    this.#onEnd(error)
  }

  // Polls less and less often while nothing leaves, and quickly while something does. `drain()`
  // comes before everything has left.
  #poll(delay: number, before = Number.POSITIVE_INFINITY): void {
    this.#timer = setTimeout(() => {
      const amount = this.#socket.bufferedAmount
      if (amount > highWaterMark / 2)
        return this.#poll(amount < before ? 4 : Math.min(delay * 2, 64), amount)
      this.#full = false
      this.#report()
      this.#holder.live?.drain()
    }, delay)
  }

  #report(error?: unknown): void {
    for (const written of this.#waiting.splice(0)) written(error)
  }
}
