/**
 * WebSocket over the `ws` package: dialling with headers and TLS settings, and listening. Node
 * only.
 *
 * Relies on `ws` to check the handshake and to mask in its own memory. Compression is never
 * offered, redirects are never followed. The sink is never called before `open()` or after the end,
 * and late errors never escape.
 *
 * @module
 */

import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import { MqttError, printable } from '../errors.js'
import { openTunnel, secureOver } from './agent.js'
import { checkNames } from './names.js'
import { refuse, SinkHolder } from './sink-holder.js'
import { authorityOf, hostOf, remoteOf } from './socket.js'
import { settingsOf } from './socket-options.js'
import { clientContext, serverContext } from './tls-context.js'
import type { Accept, Dial, Listener, Sink, Target, TlsOptions, Transport } from './transport.js'
import {
  closeCause,
  earlyError,
  highWaterMark,
  messageLimit,
  messageSize,
  partLimit,
  protocolError,
  serverMessageLimit,
  sizeError,
  textError,
} from './websocket-rules.js'

// Options of both sides; the package's type declarations lack some. `closeTimeout` limits the wait
// for the peer in an orderly close.
function common(maxPayload: number) {
  const parts = partLimit(maxPayload)
  return {
    perMessageDeflate: false,
    closeTimeout: 5_000,
    maxPayload,
    maxFragments: parts,
    maxBufferedChunks: parts,
  }
}

// On the dialling side, the client limits the time of closing.
const patient = { closeTimeout: 2_147_483_647 }

/**
 * Dials `ws:` and `wss:` targets. Rejects with `ERR_INVALID_OPTION` before dialling when
 * certificates or keys are unusable, otherwise with the platform's error; also when the response is
 * not 101, has a wrong accept key, or selects no sub-protocol.
 */
export const dialWebSocketNode: Dial = async (target, { signal, maximumPacketSize }) => {
  signal.throwIfAborted()
  const { agent } = target.socket
  const limit = serverMessageLimit(maximumPacketSize)
  const context =
    target.url.protocol === 'wss:' ? clientContext(target.tls, hostOf(target.url)) : undefined
  // The agent only creates the stream. If `ws` used the agent itself, TLS would not be verified in
  // the same way, and late sockets would go to the agent's pool.
  const tunnel = agent && (await openTunnel(target, agent, signal))
  try {
    signal.throwIfAborted()
    const socket = new WebSocket(target.url, [...target.protocols], {
      ...settingsOf(target.socket),
      ...context,
      ...(tunnel && {
        createConnection: () => (context ? secureOver(tunnel, context) : (tunnel as Socket)),
      }),
      ...common(limit),
      ...patient,
      headers: { ...target.headers },
      followRedirects: false,
    })
    return await opened(socket, target, signal, limit)
  } catch (error) {
    tunnel?.destroy()
    throw error
  }
}

// Without user name and query, which may contain a secret.
const placeOf = ({ protocol, host, pathname }: URL): string =>
  printable(`${protocol}//${host}${pathname}`)

function opened(
  socket: WebSocket,
  target: Target,
  signal: AbortSignal,
  limit: number,
): Promise<Transport> {
  const { host, pathname } = target.url
  return new Promise((resolve, reject) => {
    let stream: Socket | undefined
    const settle = () => {
      signal.removeEventListener('abort', abort)
      socket.off('open', up).off('error', fail)
    }
    const fail = (given: unknown) => {
      settle()
      // The error of `ws` does not mention the requested sub-protocols.
      const error =
        given instanceof Error && given.message === 'Server sent no subprotocol'
          ? protocolError('', target.protocols)
          : given
      // Terminating a handshake emits another error.
      socket.on('error', () => {})
      socket.terminate()
      reject(error)
    }
    const abort = () => fail(signal.reason)
    const up = () => {
      const error = protocolError(socket.protocol, target.protocols)
      if (error || !stream) return fail(error)
      settle()
      // An agent's stream may not be a socket.
      if (target.socket.noDelay === false) stream.setNoDelay?.(false)
      resolve(new NodeWebSocketTransport(socket, stream, limit))
    }
    signal.addEventListener('abort', abort)
    socket.on('open', up).on('error', fail)
    socket.on('unexpected-response', (_request, { statusCode, headers: { location } }) => {
      const moved =
        location === undefined || !URL.canParse(location, target.url)
          ? ''
          : ` to ${placeOf(new URL(location, target.url))}`
      fail(
        new Error(`HTTP ${statusCode}${moved}, no WebSocket at ${host}${pathname}; port and path?`),
      )
    })
    socket.on('upgrade', (response) => {
      stream = response.socket
    })
  })
}

class NodeWebSocketTransport implements Transport {
  readonly #socket: WebSocket
  readonly #stream: Socket
  readonly #holder = new SinkHolder()
  #ended = false
  #cut = false
  #full = false
  #cause: unknown

  constructor(socket: WebSocket, stream: Socket, limit: number) {
    this.#socket = socket
    this.#stream = stream
    // Until `open()`, incoming data stays in the kernel.
    socket.pause()
    socket.on('message', (data, isBinary) => this.#received(data as Buffer, isBinary))
    // `ws` has then sent a close frame and would wait for the peer's.
    const isTooLarge = (error: Error): boolean =>
      (error as { code?: unknown }).code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
    socket.on('error', (error) => this.destroy(isTooLarge(error) ? sizeError(limit) : error))
    socket.on('close', (code, reason) =>
      this.#holder.end(this.#cut ? this.#cause : closeCause(code, reason.toString())),
    )
    stream.on('drain', () => {
      if (!this.#full) return
      this.#full = false
      this.#holder.live?.drain()
    })
  }

  open(sink: Sink): void {
    this.#holder.open(sink, () => this.#socket.resume())
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ended || this.#socket.readyState !== WebSocket.OPEN) return refuse(written)
    // As with sockets, a pending write is reported as successful when the stream is destroyed.
    const done = (error?: Error | null) =>
      written?.(error ?? (this.#stream.destroyed ? new Error('The stream was cut') : undefined))
    let at = 0
    for (; bytes.length - at > messageSize; at += messageSize)
      this.#socket.send(bytes.subarray(at, at + messageSize), ignore)
    this.#socket.send(at === 0 ? bytes : bytes.subarray(at), written ? done : ignore)
    if (this.#socket.bufferedAmount > highWaterMark) this.#full = true
    return !this.#full
  }

  close(): void {
    if (this.#ended) return
    this.#ended = true
    // Resumed so that the answer to our close frame is read.
    this.#socket.resume()
    this.#socket.close(1000)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  destroy(cause?: unknown): void {
    if (this.#cut || this.#holder.over) return
    this.#ended = true
    this.#cut = true
    this.#cause = cause
    this.#holder.drop()
    this.#socket.terminate()
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (!isBinary) this.#fail(1003, textError())
    else if (!this.#holder.chunk(data)) this.#fail(1009, earlyError())
  }

  #fail(code: number, cause: Error): void {
    this.#socket.close(code)
    this.destroy(cause)
  }
}

// Failures are reported by `closed()`; without a callback, `ws` would throw them.
function ignore(): void {}

/** The members by which a Node HTTP server is recognised. */
export interface HttpServer {
  /** True while it listens. */
  readonly listening: boolean
  /** Its address. */
  address(): unknown
}

/** Options of {@link listenWebSocket}. */
export interface ListenWebSocketOptions {
  /** Address to bind. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** Port to bind. Default 0: any free one, shown in `Listener.url`. */
  readonly port?: number | undefined
  /** A listening HTTP server, which the caller closes; host, port and tls are then ignored. */
  readonly server?: HttpServer | undefined
  /** Path of the endpoint. Default `/mqtt`; other paths are answered with 400. */
  readonly path?: string | undefined
  /**
   * Use TLS with this certificate and key. With `ca`, clients must have a certificate signed by it.
   * Default: no TLS.
   */
  readonly tls?: TlsOptions | undefined
  /** Largest packet in bytes, which limits incoming messages. Default 1 MiB. */
  readonly maximumPacketSize?: number | undefined
}

/**
 * Accepts WebSocket streams with the sub-protocol `mqtt` (or `mqttv3.1`) [MQTT-6.0.0-4]; others are
 * closed with 1002. Rejects with the platform's error when it cannot listen, with
 * `ERR_INVALID_OPTION` for an unknown option.
 */
export async function listenWebSocket(
  options: ListenWebSocketOptions,
  accept: Accept,
): Promise<Listener> {
  checkNames('listenWebSocket', options, [
    'host',
    'port',
    'server',
    'path',
    'tls',
    'maximumPacketSize',
  ])
  const { host = '127.0.0.1', port = 0, path = '/mqtt', tls } = options
  if (options.server?.listening === false)
    throw new MqttError(
      'ERR_INVALID_OPTION',
      'server must be listening: await server.listen() first',
      { option: 'server' },
    )
  const limit = messageLimit(options.maximumPacketSize)
  const server =
    (options.server as Server | undefined) ??
    (tls ? createTlsServer(serverContext(tls)) : createServer())
  const sockets = new WebSocketServer({
    server,
    path,
    ...common(limit),
    handleProtocols: (offered) =>
      ['mqtt', 'mqttv3.1'].find((protocol) => offered.has(protocol)) ?? false,
  })
  sockets.on('error', ignore)
  sockets.on('connection', (socket, request) => {
    if (socket.protocol === '') {
      socket.on('error', ignore)
      socket.close(1002)
    } else
      accept(new NodeWebSocketTransport(socket, request.socket, limit), remoteOf(request.socket))
  })
  if (!options.server) await listening(server, host, port)
  return {
    url: `${tls ? 'wss' : 'ws'}://${authorityOf(server)}${path}`,
    close: () => closeSockets(sockets, options.server ? undefined : server),
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function closeSockets(sockets: WebSocketServer, server: Server | undefined): Promise<void> {
  for (const socket of sockets.clients) socket.terminate()
  await new Promise((resolve) => sockets.close(resolve))
  if (!server) return
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
