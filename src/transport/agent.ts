/**
 * Streams that the agent of a target makes, by way of a proxy as a rule, and TLS on top of them.
 *
 * It may assume nothing of an agent: one may never answer, answer after the attempt was given up, or give what is no stream. Everything that it made
 * is destroyed with the attempt, as far as it is seen: when it is handed over, or made by `net.connect` as soon as it is asked for. It must never dial by itself, and never repeat what an agent's error holds besides its text: it may know a password.
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

/** Agents that lead on from one another. */
const mostAgents = 4

/** The diagnostics channel for sockets as they are made by `net.connect`. */
const clientSockets = 'net.client.socket'

/** What an agent is asked for. */
type Request = ReturnType<typeof requestOf>

/** One attempt to get a stream. */
interface Attempt {
  readonly request: Request
  readonly signal: AbortSignal
  /** Sockets that were made when an agent was asked. */
  readonly made: unknown[]
}

/** A stream to host and port of the target, without TLS. Rejects when its agent makes none, with the signal's reason when aborted. */
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

/** TLS over such a stream. Neither outlives the other. */
export function secureOver(stream: Duplex, options: ConnectionOptions): TLSSocket {
  const socket = connectTls({ ...options, socket: stream })
  socket.on('close', () => discard(stream))
  stream.on('error', (error) => socket.destroy(error)).on('close', () => socket.destroy())
  return socket
}

// An agent gives its socket when the proxy has answered. Where that never happens, the socket would stay with each attempt.
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
  // An agent that chooses among others gives one of them.
  const { write, connect, createConnection } = Object(given) as Partial<Record<string, unknown>>
  const leads =
    typeof write !== 'function' &&
    (typeof connect === 'function' || typeof createConnection === 'function')
  if (!leads) return given as Duplex
  if (left <= 1) throw new Error('it leads to ever more agents')
  // An attempt that was given up needs no dial.
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
  // What stands for a stream then gives the proxy's page to an HTTP client.
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
      // Who returns a stream may call back with it, or with nothing once it is connected.
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

/** What stands for the HTTP request that agents want to see: of one that would be upgraded, so that agents that choose make a tunnel. */
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
    // Agents may listen for the end of a request.
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

// An agent's error may carry its options, and these a password: its text and code only.
function wordsOf(error: unknown): string {
  const { code = '', message = '' } = Object(error) as { code?: unknown; message?: unknown }
  const text = textOf(message)
  const name = MqttError.is(error) || text.includes(textOf(code)) ? '' : textOf(code)
  return printable([name, text].filter(Boolean).join(': ') || textOf(error))
}
