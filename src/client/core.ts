/**
 * The machinery of one client: the state it is in, the connection it has, and the parts that do the work, wired together.
 *
 * One connection per client for now: when it is lost the client is closed and everything settles with the cause. Applications see `client.ts`;
 * here nothing is validated any more.
 */
import { MqttError, printable } from '../errors.js'
import type { Transport } from '../transport/transport.js'
import { DISCONNECT } from '../wire/constants.js'
import type { ConnackPacket, ConnectPacket, DisconnectPacket, Packet, Properties } from '../wire/packets.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, within } from './abort.js'
import type { ClientState, Logger } from './api.js'
import { attempt } from './attempt.js'
import { Connection } from './connection.js'
import { Emitter } from './emitter.js'
import { type ParsedEndpoint, shown } from './endpoint.js'
import type { ClientEvents } from './events.js'
import type { Host } from './host.js'
import { Inbox } from './inbox.js'
import type { Config } from './options.js'
import { Outbox } from './outbound.js'
import type { Platform } from './platform.js'
import { Registry } from './registry.js'
import type { Action } from './session/actions.js'
import { broken, refusal } from './session/refusal.js'
import { Session } from './session/session.js'

/** A checked `disconnect()`. */
export interface Goodbye {
  readonly reasonCode: number
  readonly properties: Properties
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

/** Everything behind a client. */
export class Core implements Host {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly registry: Registry
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly events: Emitter<ClientEvents>
  readonly closed: Deferred<MqttError | undefined> = deferred()
  state: ClientState = 'idle'
  clientId: string
  reads = 0
  readonly #endpoints: readonly ParsedEndpoint[]
  #endpoint = ''
  #link: Connection | undefined
  #attempts: { readonly done: Deferred<void>; readonly abort: AbortController } | undefined
  #handshake: Deferred<void> | undefined
  #stopping: Promise<void> | undefined
  readonly #hurry: Deferred<void> = deferred()
  /** No time is left to wait for anything. */
  #rushed = false
  #turnEnded: (() => void) | undefined
  #counting = false

  constructor(platform: Platform, endpoints: readonly ParsedEndpoint[], options: Config) {
    this.platform = platform
    this.options = options
    this.clientId = options.clientId
    this.#endpoints = endpoints
    this.events = new Emitter((error, type) => this.log('error', `a listener of '${type}' threw: ${String(error)}`))
    this.session = new Session({
      ...options,
      maximumInflight: options.outbound.maxInflight,
      ownsSession: !options.cleanStart,
      durableStore: false,
    })
    this.registry = new Registry(this)
    this.inbox = new Inbox(this)
    this.outbox = new Outbox(this)
  }

  get held(): number {
    return this.#link?.held ?? 0
  }
  get ended(): boolean {
    return this.state === 'closed'
  }
  get stopping(): boolean {
    return this.ended || this.state === 'disconnecting'
  }

  get connection(): Connection | undefined {
    return this.session.state === 'connected' ? this.#link : undefined
  }

  get watch(): ((direction: 'in' | 'out', packet: Packet) => void) | undefined {
    return this.events.has('packet') ? (direction, packet) => this.events.emit('packet', { direction, packet: redacted(packet) }) : undefined
  }

  log(level: keyof Logger, message: string): void {
    try {
      this.options.logger?.[level]?.(`mqwire ${printable(this.clientId)}: ${printable(message)}`)
    } catch {
      // A logger that fails has nobody to tell.
    }
  }

  // Connecting

  /** Joins the attempt that is under way, or begins one round over the endpoints. */
  async connect(signal: AbortSignal | undefined): Promise<void> {
    if (this.stopping) throw closedError()
    if (this.state === 'connected') throw new MqttError('ERR_ALREADY_CONNECTED')
    assertNotAborted(signal)
    const { done } = this.#attempts ?? this.#begin(signal)
    return within(done.promise, signal)
  }

  // The signal of whoever begins it ends the attempt; those of joiners drop only the joiner.
  #begin(signal: AbortSignal | undefined): { readonly done: Deferred<void> } {
    const abort = new AbortController()
    const done = deferred<void>()
    const stop = onAbort(signal, () => abort.abort(aborted(signal)))
    this.#attempts = { done, abort }
    this.#enter('connecting')
    this.#round(abort.signal).finally(stop).then(done.resolve, done.reject)
    return this.#attempts
  }

  async #round(signal: AbortSignal): Promise<void> {
    const errors: MqttError[] = []
    for (const endpoint of this.#endpoints) {
      // A listener may have closed the client.
      if (signal.aborted || this.ended) break
      const number = errors.length + 1
      try {
        return await attempt(this, endpoint, number, errors.at(-1), signal)
      } catch (thrown) {
        const error = thrown as MqttError
        errors.push(error)
        this.events.emit('connecterror', { error, endpoint: shown(endpoint.target.url), attempt: number })
      }
    }
    const error = signal.aborted || this.ended ? asClosed(signal.reason) : asOne(errors)
    this.finish(error)
    throw error
  }

  handleDial(url: string, number: number): void {
    this.#endpoint = url
    this.events.emit('dial', { attempt: number, endpoint: url })
  }

  async handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void> {
    const done = deferred<void>()
    this.#handshake = done
    const link = new Connection(transport, this)
    this.#link = link
    const stop = onAbort(signal, () => link.destroy(signal.reason))
    try {
      this.session.connect(packet)
      link.pump()
      await done.promise
    } catch (error) {
      link.destroy()
      throw error
    } finally {
      stop()
      this.#handshake = undefined
    }
  }

  // What happens on the connection

  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void {
    if (action.type === 'connected') this.#handleConnected(action.connack)
    else if (action.type === 'refused') this.#handleRefused(action.connack)
    else if (action.type === 'answered') this.registry.handleAnswer(action.packet)
    else if (action.type === 'server-disconnect') this.#handleServerDisconnect(action.packet)
  }

  handleReadEnd(): void {
    // Several reads may come in one turn of the event loop: consumers have their turn only after it.
    if (!this.#counting) {
      this.#counting = true
      this.platform.microtask(() => {
        this.#counting = false
        this.reads += 1
      })
    }
    if (this.session.state === 'connected') this.flush()
  }

  flush(): void {
    this.registry.flush()
    this.outbox.flush()
  }

  handleClosed(error: MqttError | undefined): void {
    const handshake = this.#handshake
    this.#link = undefined
    if (handshake === undefined) this.finish(error)
    else handshake.reject(error?.code === 'ERR_CONNECTION_LOST' ? this.#beforeConnack(error.cause) : (error ?? closedError()))
  }

  // A server may refuse our certificate as late as this.
  #beforeConnack(cause: unknown): MqttError {
    return broken(this.platform.isTlsError(cause) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED', 'closed before CONNACK', cause)
  }

  #handleConnected(connack: ConnackPacket): void {
    const { negotiated } = this.session
    const link = this.#link
    if (negotiated === undefined || link === undefined) return
    const { sessionPresent } = connack
    this.clientId = negotiated.clientId
    link.packetLimit = negotiated.maximumPacketSize
    if (sessionPresent) this.inbox.hold()
    const handshake = this.#handshake
    this.#handshake = undefined
    this.#enter('connected')
    this.log('info', 'connected')
    handshake?.resolve()
    this.flush()
    // A listener may have ended it all by now.
    if (!this.stopping) this.events.emit('connect', { connack, negotiated, sessionPresent, endpoint: this.#endpoint })
  }

  #handleRefused({ reasonCode, properties }: ConnackPacket): void {
    this.#link?.destroy(refusal('ERR_CONNECT_REFUSED', reasonCode, properties.reasonString))
  }

  #handleServerDisconnect(packet: DisconnectPacket): void {
    const { reasonCode, properties } = packet
    const code = reasonCode === 0x8e ? 'ERR_SESSION_TAKEN_OVER' : 'ERR_SERVER_DISCONNECT'
    const error = refusal(code, reasonCode, properties.reasonString, DISCONNECT, 'unknown')
    this.events.emit('serverdisconnect', { packet, error })
    this.#link?.destroy(error)
  }

  settle(ticket: number, reasonCode: number): boolean {
    const settled = this.session.inbound.settle(ticket, reasonCode)
    this.#link?.queueFlush()
    this.handleTurnEnd()
    return settled
  }

  handleTurnEnd(): void {
    this.#turnEnded?.()
  }

  // Ending

  /** Says goodbye: nothing more is handed out, running turns end, their acknowledgements leave, DISCONNECT is last. */
  async disconnect(goodbye: Goodbye): Promise<void> {
    if (this.ended) return
    const hurry = (): void => {
      this.#rushed = true
      this.#hurry.resolve()
    }
    if (this.#stopping === undefined) {
      // Set before anybody is told, so that a listener's own call joins.
      const done = deferred<void>()
      this.#stopping = done.promise
      this.#stop(goodbye).then(done.resolve, done.reject)
    }
    // Of several callers, whoever is in most of a hurry decides.
    const cancel = this.platform.setTimer(hurry, goodbye.timeout)
    if (goodbye.timeout === 0) hurry()
    const stop = onAbort(goodbye.signal, hurry)
    await this.#stopping
    cancel()
    stop()
  }

  /** Cuts the connection without DISCONNECT: the server publishes the will. */
  destroy(error?: MqttError): void {
    if (this.ended) return
    this.#attempts?.abort.abort(error ?? closedError())
    this.session.close(error ?? closedError(), undefined)
    this.#link?.destroy(error)
    this.finish(error)
  }

  /** The end of everything: all that is pending settles. */
  finish(error: MqttError | undefined): void {
    if (this.ended) return
    const reason = error ?? closedError()
    const wasConnected = this.session.negotiated !== undefined && this.state !== 'connecting'
    this.session.close(reason, undefined)
    this.session.reset()
    this.inbox.stop()
    this.#enter('closed')
    this.registry.end(error, reason)
    this.#link?.abandon(reason)
    this.outbox.end(reason)
    if (wasConnected) this.events.emit('disconnect', { cause: error })
    this.#hurry.resolve()
    this.log('info', error === undefined ? 'closed' : `closed: ${error.message}`)
    this.closed.resolve(error)
    this.events.clear()
  }

  async #stop(goodbye: Goodbye): Promise<void> {
    // Nothing to say goodbye to: an attempt that is under way is given up.
    if (this.state !== 'connected') return this.destroy()
    this.#enter('disconnecting')
    for (const consumer of this.registry.consumers) consumer.close()
    const hurried = this.#hurry.promise
    await Promise.race([this.#turns(), hurried])
    const rushed = this.#rushed
    const link = this.#link
    if (link !== undefined && this.session.state === 'connected') {
      link.flush()
      this.session.disconnect(goodbye.reasonCode, goodbye.properties)
      link.pump()
      link.end()
    }
    await Promise.race([this.closed.promise, hurried])
    // A peer that does not end its side is cut off, when our goodbye had time to leave; else the connection gives it a little longer.
    if (!rushed) link?.destroy()
    this.finish(undefined)
  }

  // Fulfils when no consumer has a message in hand.
  async #turns(): Promise<void> {
    while (this.registry.busy) {
      const ended = deferred<void>()
      this.#turnEnded = ended.resolve
      await ended.promise
    }
  }

  #enter(state: ClientState): void {
    const previous = this.state
    this.state = state
    this.events.emit('state', { state, previous })
  }
}

// One cause for each endpoint that was tried.
function asOne(errors: readonly MqttError[]): MqttError {
  const [first] = errors
  if (first !== undefined && errors.length === 1) return first
  return new MqttError('ERR_CONNECT_FAILED', undefined, { fault: 'remote', cause: new AggregateError(errors) })
}

function asClosed(reason: unknown): MqttError {
  return MqttError.is(reason) ? reason : closedError()
}

export function closedError(): MqttError {
  return new MqttError('ERR_CLOSED')
}

function redacted(packet: Packet): Packet {
  if (packet.type !== 'connect' && packet.type !== 'auth') return { ...packet }
  const properties = { ...packet.properties, authenticationData: undefined }
  if (packet.type === 'auth') return { ...packet, properties }
  return { ...packet, properties, username: packet.username && '[redacted]', password: undefined }
}
