/**
 * A transport over a Node stream socket, for tcp, tls and unix: dialling, accepting, reading in
 * place, writing.
 *
 * With `onread`, a Node socket reads into the array that it requested after its last read, and
 * keeps that array until the next. The sink is never called before `open()` or after the end, and
 * late errors of a socket never escape.
 */

import type { AddressInfo, OnReadOpts, Server, Socket } from 'node:net'
// Not the global one: where tests replace that, reading goes on.
import { setTimeout as later } from 'node:timers'
import { fewest, lull, ReadPace } from './read-pace.js'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Accept, Listener, Sink, Transport } from './transport.js'

/** Milliseconds to wait for the peer once one direction has ended. */
const lingerTime = 5_000

/** Bytes that a socket accepts before `write()` returns false: two flushes of the client. */
export const highWaterMark = 128 * 1024

// Used for the first read of every socket. It can be shared, because a read and its callback are
// one synchronous step and data is copied out.
let firstBuffer: Uint8Array | undefined

const now = (): number => performance.now()

/** The property of a socket that leads to its transport. */
const owner = Symbol('transport')

type OwnedSocket = Socket & { [owner]: SocketTransport }

// The same functions for all sockets, which saves memory where there are thousands.
const listeners = {
  error(this: OwnedSocket, error: unknown): void {
    this[owner].handleError(error)
  },
  drain(this: OwnedSocket): void {
    this[owner].holder.live?.drain()
  },
  half(this: OwnedSocket): void {
    this[owner].handleHalf()
  },
  close(this: OwnedSocket): void {
    this[owner].handleClose()
  },
  data(this: OwnedSocket, bytes: Uint8Array): void {
    this[owner].holder.chunk(bytes)
  },
}

/** Creates the socket with this `onread` option of `net.connect` and `tls.connect`. */
export type MakeSocket = (onread: OnReadOpts) => Socket

/** A transport over a connected or connecting socket. */
export class SocketTransport implements Transport {
  /** For the dialling code only. */
  readonly socket: Socket
  /** For the socket's listeners. */
  readonly holder = new SinkHolder()
  readonly #first: Uint8Array
  #pace: ReadPace | undefined
  #reads = 0
  #ended = false
  #cut = false
  #cause: unknown
  #linger: ReturnType<typeof setTimeout> | undefined

  constructor(make: MakeSocket) {
    firstBuffer ??= new Uint8Array(4096)
    this.#first = firstBuffer
    const socket = make({
      buffer: () => this.holder.live?.buffer() ?? this.#first,
      callback: (length, array) => this.#received(length, array),
    })
    this.socket = socket
    ;(socket as OwnedSocket)[owner] = this
    socket.on('error', listeners.error).on('drain', listeners.drain)
    socket.on('end', listeners.half).on('finish', listeners.half).on('close', listeners.close)
  }

  /** For the socket's listeners. */
  handleError(error: unknown): void {
    if (!this.#cut) this.#cause ??= error
  }

  /** For the socket's listeners. */
  handleClose(): void {
    clearTimeout(this.#linger)
    this.holder.end(this.#cause)
  }

  open(sink: Sink): void {
    this.holder.open(sink, () => {
      // Accepted sockets emit 'data', because a server cannot be given `onread`; others read in
      // place.
      this.socket.on('data', listeners.data)
      this.socket.resume()
    })
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ended || this.socket.destroyed) return refuse(written)
    // Node reports a pending write as successful when the socket is destroyed.
    const done =
      written &&
      ((error?: Error | null) =>
        written(error ?? (this.socket.destroyed ? new Error('The stream was cut') : undefined)))
    return this.socket.write(bytes, done)
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    // Resumed so that the peer's end is noticed.
    if (this.holder.live) this.socket.resume()
    this.socket.end()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  destroy(cause?: unknown): void {
    if (this.#cut || this.holder.over) return
    this.#ended = true
    this.#cut = true
    this.#cause = cause
    this.holder.drop()
    // 'close' follows, even if an error has already destroyed the socket.
    this.socket.destroy()
  }

  #received(length: number, array: Uint8Array): boolean {
    if (this.#cut) return false
    const sink = this.holder.live
    if (sink && array !== this.#first) sink.read(length)
    else this.holder.chunk(sink ? array.subarray(0, length) : array.slice(0, length))
    if (this.holder.live === undefined) return false
    // A quiet socket needs none.
    if (this.#pace === undefined) {
      this.#reads += 1
      if (this.#reads < fewest) return true
      this.#pace = new ReadPace()
    }
    if (!this.#pace.waits(length, now)) return true
    later(() => this.#readOn(), lull)
    return false
  }

  // A read has waited. While the client pauses, it goes on waiting.
  #readOn(): void {
    if (this.holder.live !== undefined && !this.socket.isPaused()) this.socket.resume()
  }

  /** One direction has ended: the other gets a limited time to follow. */
  handleHalf(): void {
    if (this.#linger || this.socket.destroyed) return
    this.#linger = setTimeout(() => this.socket.destroy(), lingerTime)
    this.#linger.unref()
  }
}

/**
 * Waits until the socket is connected. Rejects with the socket's error or the signal's reason; the
 * socket is then destroyed.
 */
export function dialSocket(
  make: MakeSocket,
  ready: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<Transport> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const transport = new SocketTransport(make)
    const { socket } = transport
    const settle = () => {
      signal.removeEventListener('abort', abort)
      socket.off(ready, up).off('error', fail).off('close', fail)
    }
    const up = () => {
      settle()
      resolve(transport)
    }
    const fail = (error: unknown) => {
      settle()
      socket.destroy()
      reject(
        error instanceof Error ? error : new Error('The socket closed before it was connected'),
      )
    }
    const abort = () => {
      settle()
      socket.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort)
    socket.on(ready, up).on('error', fail).on('close', fail)
  })
}

/** Host of a URL for sockets: an IPv6 address without brackets. */
export function hostOf(url: URL): string {
  const name = decodeURIComponent(url.hostname)
  return name.startsWith('[') ? name.slice(1, -1) : name
}

/** `host:port` of a listening server, as in a URL. */
export function authorityOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  return `${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** `host:port` of the other end of a socket, as in a URL; undefined when it has no address. */
export function remoteOf({ remoteAddress, remotePort, remoteFamily }: Socket): string | undefined {
  if (remoteAddress === undefined) return undefined
  return `${remoteFamily === 'IPv6' ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`
}

/**
 * Starts a server and passes each of its sockets to `accept`. `event` is emitted when a socket is
 * ready for use.
 */
export function listenSocket(
  server: Server,
  event: 'connection' | 'secureConnection',
  where: { host: string; port: number } | { path: string },
  url: () => string,
  accept: Accept,
): Promise<Listener> {
  const open = new Set<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  server.on(event, (socket: Socket) => accept(new SocketTransport(() => socket), remoteOf(socket)))
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      // A failed accept (no descriptors left) must not end the process; the next one may succeed.
      server.on('error', () => {})
      resolve({ url: url(), close: () => closeServer(server, open) })
    })
  })
}

function closeServer(server: Server, open: Set<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    for (const socket of open) socket.destroy()
  })
}
