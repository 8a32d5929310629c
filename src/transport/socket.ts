/**
 * A transport over a Node stream socket, shared by tcp, tls and unix: dialling, accepting, reading in place, writing.
 *
 * It may assume Node's `net` semantics: with `onread` the socket reads into the array that it asked for after its last read, and keeps it until
 * the next. It must never touch the sink before `open()` or after the end, and never let a socket's late error escape.
 */

import type { AddressInfo, OnReadOpts, Server, Socket } from 'node:net'
import { refuse, SinkHolder } from './sink-holder.js'
import type { Accept, Listener, Sink, Transport } from './transport.js'

/** How long a socket may wait for the peer once one direction is over. */
const lingerTime = 5_000

/** Bytes that a socket takes before `write()` returns false: two flushes of the client. */
export const highWaterMark = 128 * 1024

// One array serves every socket's first read: the read and its callback are one synchronous step, and what must stay is copied out.
let firstBuffer: Uint8Array | undefined

/** Makes the socket; gets what `net.connect` and `tls.connect` take as `onread`. */
export type MakeSocket = (onread: OnReadOpts) => Socket

/** A transport over a connected, or connecting, socket. */
export class SocketTransport implements Transport {
  /** For the dialling code only. */
  readonly socket: Socket
  readonly #holder = new SinkHolder()
  readonly #first: Uint8Array
  #ended = false
  #cut = false
  #cause: unknown
  #linger: ReturnType<typeof setTimeout> | undefined

  constructor(make: MakeSocket) {
    firstBuffer ??= new Uint8Array(4096)
    this.#first = firstBuffer
    const socket = make({
      buffer: () => this.#holder.live?.buffer() ?? this.#first,
      callback: (length, array) => this.#received(length, array),
    })
    this.socket = socket
    socket.on('error', (error) => {
      if (!this.#cut) this.#cause ??= error
    })
    socket.on('drain', () => this.#holder.live?.drain())
    socket.on('end', () => this.#wait())
    socket.on('finish', () => this.#wait())
    socket.on('close', () => {
      clearTimeout(this.#linger)
      this.#holder.end(this.#cause)
    })
  }

  open(sink: Sink): void {
    this.#holder.open(sink, () => {
      // Sockets that read in place emit no 'data'; accepted ones do, as a server cannot be given `onread`.
      this.socket.on('data', (bytes: Uint8Array) => this.#holder.chunk(bytes))
      this.socket.resume()
    })
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ended || this.socket.destroyed) return refuse(written)
    // A write that was under way when the socket was destroyed is reported by Node as done.
    const done =
      written &&
      ((error?: Error | null) =>
        written(error ?? (this.socket.destroyed ? new Error('The stream was cut') : undefined)))
    return this.socket.write(bytes, done)
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    // The peer's end is to be seen.
    if (this.#holder.live) this.socket.resume()
    this.socket.end()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  destroy(cause?: unknown): void {
    if (this.#cut || this.#holder.over) return
    this.#ended = true
    this.#cut = true
    this.#cause = cause
    this.#holder.drop()
    // 'close' follows, also where an error has destroyed the socket already.
    this.socket.destroy()
  }

  #received(length: number, array: Uint8Array): boolean {
    if (this.#cut) return false
    const sink = this.#holder.live
    if (sink && array !== this.#first) sink.read(length)
    else this.#holder.chunk(sink ? array.subarray(0, length) : array.slice(0, length))
    return this.#holder.live !== undefined
  }

  // One direction is over: the other gets a moment to follow, not for ever.
  #wait(): void {
    if (this.#linger || this.socket.destroyed) return
    this.#linger = setTimeout(() => this.socket.destroy(), lingerTime)
    this.#linger.unref()
  }
}

/** Waits until the socket is up. Rejects with the socket's error, or with the signal's reason; the socket is gone then. */
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

/** Host of a URL as sockets take it: an IPv6 literal loses its brackets. */
export function hostOf(url: URL): string {
  const name = decodeURIComponent(url.hostname)
  return name.startsWith('[') ? name.slice(1, -1) : name
}

/** `host:port` of a listening server as a URL takes it. */
export function authorityOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  return `${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** `host:port` of the other end of a socket as a URL takes it; undefined where it has no address. */
export function remoteOf({ remoteAddress, remotePort, remoteFamily }: Socket): string | undefined {
  if (remoteAddress === undefined) return undefined
  return `${remoteFamily === 'IPv6' ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`
}

/** Starts a server and gives each of its sockets to `accept`. `event` is the one that brings a socket that is ready for use. */
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
      // An accept that fails (no descriptors left) must not end the process; the next one may succeed.
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
