/**
 * Streams created by a target's agent, usually through a proxy, and TLS on top of them.
 *
 * An agent may never answer, answer after the attempt was given up, or return something that is not
 * a stream. Everything it created is destroyed with the attempt, as far as it can be observed: when
 * it is returned, or when `net.connect` creates it during the call. This module never dials by
 * itself, and repeats only the text of an agent's error, whose other fields may contain a password.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { MqttError, printable, textOf } from '../errors.js'
import { discard, openStream } from './open-stream.js'
import { hostOf } from './socket.js'
import { portOf, settingsOf } from './socket-options.js'
import type { SocketAgent, Target } from './transport.js'

/** Most agents followed when one returns another. */
const mostAgents = 4

/** Diagnostics channel of sockets created by `net.connect`. */
const clientSockets = 'net.client.socket'

/** The request given to an agent. */
type Request = ReturnType<typeof requestOf>

/** One attempt to get a stream. */
interface Attempt {
  readonly request: Request
  readonly signal: AbortSignal
  /** Sockets created while an agent was called. */
  readonly made: unknown[]
}

/**
 * Opens a stream to the target's host and port, without TLS. Rejects when the agent provides none,
 * or with the signal's reason.
 */
export async function openTunnel(
  target: Target,
  agent: SocketAgent,
  signal: AbortSignal,
): Promise<Duplex> {
  const attempt: Attempt = { request: requestOf(target), signal, made: [] }
  try {
    const stream = (await openStream(() => ask(agent, attempt, mostAgents), signal)) as Duplex
    const { setNoDelay } = stream as Partial<Socket>
    if (typeof setNoDelay === 'function') setNoDelay.call(stream, target.socket.noDelay ?? true)
    return stream
  } catch (error) {
    attempt.made.forEach(discard)
    signal.throwIfAborted()
    throw new Error(`no stream from the agent: ${wordsOf(error)}`)
  }
}

/** TLS over such a stream. When one ends, so does the other. */
export function secureOver(stream: Duplex, options: ConnectionOptions): TLSSocket {
  const socket = connectTls({ ...options, socket: stream })
  socket.on('close', () => discard(stream))
  stream.on('error', (error) => socket.destroy(error)).on('close', () => socket.destroy())
  return socket
}

// Records sockets created during a call. An agent returns its socket only after the proxy has
// answered; without that answer the socket would leak.
function watched<T>(made: unknown[], call: () => T): T {
  const note = (message: unknown) => void made.push((message as { socket: unknown }).socket)
  subscribe(clientSockets, note)
  try {
    return call()
  } finally {
    unsubscribe(clientSockets, note)
  }
}

function requestOf({ url, socket: { agent: _, ...settings } }: Target) {
  const { noDelay: _noDelay, ...others } = settingsOf(settings)
  return { host: hostOf(url), port: portOf(url), secureEndpoint: false as const, ...others }
}

async function ask(agent: SocketAgent, attempt: Attempt, left: number): Promise<Duplex> {
  const { request, signal, made } = attempt
  const given = await watched(made, () =>
    typeof agent.connect === 'function'
      ? askToConnect(agent, request, signal)
      : askToCreate(agent, request),
  )
  // A selecting agent may return another agent.
  const { write, connect, createConnection } = Object(given) as Partial<Record<string, unknown>>
  const leads =
    typeof write !== 'function' &&
    (typeof connect === 'function' || typeof createConnection === 'function')
  if (!leads) return given as Duplex
  if (left <= 1) throw new Error('it leads to ever more agents')
  // No need to dial for an aborted attempt.
  signal.throwIfAborted()
  return ask(given as SocketAgent, attempt, left - 1)
}

async function askToConnect(
  agent: SocketAgent,
  options: Request,
  signal: AbortSignal,
): Promise<unknown> {
  const request = new TunnelRequest(options, signal)
  let refusal: string | undefined
  request.on('proxyConnect', (answer: unknown) => {
    const { statusCode, statusText = '' } = Object(answer) as {
      statusCode?: unknown
      statusText?: unknown
    }
    refusal = statusCode === 200 ? undefined : `the proxy answered ${statusCode} ${statusText}`
  })
  const connect = agent.connect as unknown as (request: TunnelRequest, options: object) => unknown
  const given = await connect.call(agent, request, { ...options })
  if (refusal === undefined) return given
  // The returned stream contains the proxy's error page for an HTTP client.
  discard(given)
  throw new Error(refusal)
}

function askToCreate(agent: SocketAgent, options: Request): Promise<unknown> {
  const create = agent.createConnection as unknown as (
    options: object,
    callback: (error: unknown, stream?: unknown) => void,
  ) => unknown
  return new Promise((resolve, reject) => {
    let taken: unknown
    const take = (stream: unknown) => {
      // An agent may both return a stream and call back, with it or with nothing.
      if (stream === undefined || stream === null || stream === taken) return
      if (taken !== undefined) return discard(stream)
      taken = stream
      resolve(stream)
    }
    const answer = (error: unknown, stream?: unknown) => {
      if (!error) return take(stream)
      taken ??= error
      reject(error)
    }
    take(create.call(agent, { ...options }, answer))
  })
}

/**
 * The HTTP request that agents expect: an upgrade request, so that selecting agents create a
 * tunnel.
 */
class TunnelRequest extends EventEmitter {
  readonly method = 'GET'
  readonly path = '/'
  readonly protocol = 'http:'
  readonly host: string
  destroyed = false
  readonly #authority: string

  constructor({ host, port }: Request, signal: AbortSignal) {
    super()
    this.host = host
    this.#authority = `${host.includes(':') ? `[${host}]` : host}:${port}`
    // Agents may listen for the request's end.
    signal.addEventListener('abort', () => this.destroy(), { once: true })
    this.on('error', () => undefined)
  }

  getHeader(name: string): string | undefined {
    const headers: Partial<Record<string, string>> = {
      host: this.#authority,
      upgrade: 'websocket',
      connection: 'Upgrade',
    }
    return headers[name.toLowerCase()]
  }

  destroy(): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.emit('close')
    return this
  }
}

// Text and code of an agent's error. Its other fields may contain options with a password.
function wordsOf(error: unknown): string {
  const { code = '', message = '' } = Object(error) as { code?: unknown; message?: unknown }
  const text = textOf(message)
  const name = MqttError.is(error) || text.includes(textOf(code)) ? '' : textOf(code)
  return printable([name, text].filter(Boolean).join(': ') || textOf(error))
}
