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
import type { PublishView } from '../wire/publish.js'
import { reasonName } from '../wire/reason-codes.js'
import { aborted, type Deferred, deferred, onAbort } from './abort.js'
import type { ClientState, Logger, Subscription } from './api.js'
import { attempt } from './attempt.js'
import { Connection, type ConnectionHandler, type FinalAck } from './connection.js'
import { Emitter } from './emitter.js'
import type { ParsedEndpoint } from './endpoint.js'
import type { ClientEvents } from './events.js'
import type { FilterEntry } from './filter-entry.js'
import type { HandlingContext } from './handling.js'
import { Inbox, type InboxContext, overBudget } from './inbox.js'
import type { DeliveredMessage, Message, Settler } from './message.js'
import type { Config } from './options.js'
import { type OutboundContext, Outbox } from './outbound.js'
import type { CancelTimer, Platform } from './platform.js'
import type { Action } from './session/actions.js'
import { Session } from './session/session.js'
import type { Consumer, ConsumerOwner } from './subscription.js'
import { Registry, type RegistryContext } from './subscriptions.js'

/** A checked `disconnect()`. */
export interface Goodbye {
  readonly reasonCode: number
  readonly properties: Properties
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

/** Losses of incoming messages are told at most once in this many milliseconds. */
const dropInterval = 1000

/** Everything behind a client. */
export class Core implements ConnectionHandler, ConsumerOwner, RegistryContext, InboxContext, OutboundContext, HandlingContext, Settler {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly registry: Registry
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly events: Emitter<ClientEvents>
  readonly closed: Deferred<MqttError | undefined> = deferred()
  state: ClientState = 'idle'
  /** The identifier in force. */
  clientId: string
  reads = 0
  readonly #endpoints: readonly ParsedEndpoint[]
  #endpoint = ''
  #link: Connection | undefined
  #connecting: { readonly promise: Promise<void>; readonly abort: AbortController } | undefined
  #handshake: Deferred<void> | undefined
  #stopping: { readonly promise: Promise<void>; hurry(): void } | undefined
  #turnEnded: (() => void) | undefined
  #counting = false
  #dropped = 0
  #dropTimer: CancelTimer | undefined

  constructor(platform: Platform, endpoints: readonly ParsedEndpoint[], options: Config) {
    this.platform = platform
    this.options = options
    this.clientId = options.clientId
    this.#endpoints = endpoints
    this.events = new Emitter((error, type) => this.log('error', `a listener of '${type}' threw: ${String(error)}`))
    this.session = new Session({
      receiveMaximum: options.receiveMaximum,
      topicAliasMaximum: options.topicAliasMaximum,
      pingTimeout: options.pingTimeout,
      maximumInflight: options.outbound.maxInflight,
      ownsSession: !options.cleanStart,
      durableStore: false,
    })
    this.registry = new Registry(this)
    this.inbox = new Inbox(this)
    this.outbox = new Outbox(this)
  }

  // What the parts ask for

  get config(): Config['outbound'] {
    return this.options.outbound
  }
  get maxFilters(): number {
    return this.options.maxFiltersPerSubscribe
  }
  get unclaimedHold(): number {
    return this.options.unclaimedHold
  }
  get memoryBudget(): number {
    return this.options.memoryBudget
  }
  get connectionBytes(): number {
    return this.#link?.held ?? 0
  }
  get settler(): Settler {
    return this
  }
  get ended(): boolean {
    return this.state === 'closed'
  }
  get stopping(): boolean {
    return this.#stopping !== undefined || this.state === 'closed'
  }

  /** The connection, while it takes packets of the application. */
  get connection(): Connection | undefined {
    return this.session.state === 'connected' ? this.#link : undefined
  }

  get watch(): ((direction: 'in' | 'out', packet: Packet) => void) | undefined {
    return this.events.has('packet') ? (direction, packet) => this.events.emit('packet', { direction, packet: redacted({ ...packet }) }) : undefined
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
  connect(signal: AbortSignal | undefined): Promise<void> {
    if (this.state === 'closed' || this.state === 'disconnecting') return Promise.reject(closedError())
    if (this.state === 'connected') return Promise.reject(new MqttError('ERR_ALREADY_CONNECTED', 'the client is connected'))
    if (signal?.aborted === true) return Promise.reject(aborted(signal))
    this.#connecting ??= this.#begin(signal)
    const joined = deferred<void>()
    const own = this.#connecting
    const stop = onAbort(signal, () => joined.reject(aborted(signal)))
    own.promise.then(joined.resolve, joined.reject).finally(stop)
    return joined.promise
  }

  // The signal of whoever begins it ends the attempt; those of joiners drop only the joiner.
  #begin(signal: AbortSignal | undefined): { readonly promise: Promise<void>; readonly abort: AbortController } {
    const abort = new AbortController()
    const stop = onAbort(signal, () => abort.abort(aborted(signal)))
    const done = deferred<void>()
    this.#connecting = { promise: done.promise, abort }
    this.#enter('connecting')
    this.#round(abort.signal).finally(stop).then(done.resolve, done.reject)
    return this.#connecting
  }

  async #round(signal: AbortSignal): Promise<void> {
    const errors: MqttError[] = []
    for (const endpoint of this.#endpoints) {
      // A listener may have closed the client.
      if (signal.aborted || this.state === 'closed') break
      const error = await this.#try(endpoint, errors.length + 1, errors.at(-1), signal)
      if (error === undefined) return
      errors.push(error)
      this.events.emit('connecterror', { error, endpoint: endpoint.target.url.href, attempt: errors.length })
    }
    const error = signal.aborted || this.state === 'closed' ? asClosed(signal.reason) : asOne(errors)
    this.finish(error)
    throw error
  }

  async #try(endpoint: ParsedEndpoint, number: number, lastError: MqttError | undefined, signal: AbortSignal): Promise<MqttError | undefined> {
    try {
      await attempt({
        config: this.options,
        platform: this.platform,
        endpoint,
        clientId: this.clientId,
        cleanStart: this.options.cleanStart,
        attempt: number,
        lastError,
        signal,
        onDial: (url) => {
          this.#endpoint = url
          this.events.emit('dial', { attempt: number, endpoint: url })
        },
        handshake: (transport, packet, abort) => this.#shake(transport, packet, abort),
      })
      return undefined
    } catch (error) {
      return error as MqttError
    }
  }

  async #shake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void> {
    const done = deferred<void>()
    this.#handshake = done
    const { maximumPacketSize, memoryBudget } = this.options
    const link = new Connection(transport, this.session, this.platform, this, { maximumPacketSize, output: memoryBudget })
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

  // ConnectionHandler

  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void {
    if (action.type === 'connected') this.#handleConnected(action.connack)
    else if (action.type === 'refused') this.#handleRefused(action.connack)
    else if (action.type === 'answered') this.registry.handleAnswer(action.packet)
    else if (action.type === 'server-disconnect') this.#handleServerDisconnect(action.packet)
  }

  handleMessage(view: PublishView, topic: string, ticket: number): void {
    this.inbox.handleMessage(view, topic, ticket)
  }

  handleAcknowledged(packet: FinalAck): void {
    this.outbox.handleAcknowledged(packet)
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
    if (this.session.state !== 'connected') return
    this.registry.flush()
    this.outbox.flush()
  }

  handleTurn(): void {
    this.registry.flush()
  }

  handleDrain(): void {
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
    const code = this.platform.isTlsError(cause) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED'
    return new MqttError(code, 'the connection was closed before CONNACK', { fault: 'remote', outcome: 'unknown', cause })
  }

  #handleConnected(connack: ConnackPacket): void {
    const { negotiated } = this.session
    const link = this.#link
    if (negotiated === undefined || link === undefined) return
    this.clientId = negotiated.clientId
    link.packetLimit = negotiated.maximumPacketSize
    if (connack.sessionPresent) this.inbox.hold()
    const handshake = this.#handshake
    this.#handshake = undefined
    this.#enter('connected')
    this.log('info', 'connected')
    handshake?.resolve()
    this.registry.flush()
    this.outbox.flush()
    // A listener may have ended it all by now.
    if (!this.stopping) this.events.emit('connect', { connack, negotiated, sessionPresent: connack.sessionPresent, endpoint: this.#endpoint })
  }

  #handleRefused({ reasonCode, properties }: ConnackPacket): void {
    const name = reasonName(reasonCode) ?? 'unknown'
    const details = { fault: 'remote', outcome: 'refused', reasonCode, reasonName: name, reasonString: properties.reasonString } as const
    this.#link?.destroy(new MqttError('ERR_CONNECT_REFUSED', `the server refused the connection: ${name}`, details))
  }

  #handleServerDisconnect(packet: DisconnectPacket): void {
    const { reasonCode, properties } = packet
    const name = reasonName(reasonCode, DISCONNECT) ?? 'unknown'
    const code = reasonCode === 0x8e ? 'ERR_SESSION_TAKEN_OVER' : 'ERR_SERVER_DISCONNECT'
    const details = { fault: 'remote', outcome: 'unknown', reasonCode, reasonName: name, reasonString: properties.reasonString } as const
    const error = new MqttError(code, `the server ended the connection: ${name}`, details)
    this.events.emit('serverdisconnect', { packet, error })
    this.#link?.destroy(error)
  }

  // Messages

  settle(ticket: number, reasonCode: number): boolean {
    const settled = this.session.inbound.settle(ticket, reasonCode)
    this.#link?.queueFlush()
    this.#turnEnded?.()
    return settled
  }

  handleJoined(consumer: Consumer, entries: ReadonlySet<FilterEntry>): void {
    this.inbox.handleJoined(consumer, entries)
  }

  handleForgotten(entry: FilterEntry): void {
    this.inbox.handleForgotten(entry)
  }

  handleExit(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    this.registry.drop(consumer, how)
  }

  handleKept(messages: readonly DeliveredMessage[]): void {
    this.inbox.handleKept(messages)
  }

  unsubscribe(consumer: Consumer): Promise<void> {
    return this.registry.leave(consumer)
  }

  handleBytes(change: number): void {
    this.inbox.bytes += change
  }

  handleTurnEnd(): void {
    this.#turnEnded?.()
  }

  handleDrop(consumer: Consumer, message: DeliveredMessage): void {
    this.handleDiscarded(message.topic, message.size)
    try {
      consumer.config.onDrop?.(message)
    } catch (error) {
      this.log('error', `onDrop threw: ${String(error)}`)
    }
  }

  handleDiscarded(topic: string, _bytes: number): void {
    this.#dropped += 1
    if (this.#dropTimer !== undefined) return
    const tell = (): void => {
      const count = this.#dropped
      this.#dropped = 0
      this.#dropTimer = undefined
      if (count === 0 || this.ended) return
      this.#dropTimer = this.platform.setTimer(tell, dropInterval)
      this.events.emit('drop', { direction: 'in', topic, count, error: undefined })
    }
    tell()
  }

  handleDropped(topic: string, error: MqttError): void {
    this.events.emit('drop', { direction: 'out', topic, count: 1, error })
  }

  handleUnclaimed(message: Message): void {
    this.log('debug', `nobody subscribed to ${message.topic}`)
    this.events.emit('unclaimed', { message })
  }

  handleStalled(subscription: Subscription | undefined, age: number): void {
    this.log('warn', `acknowledgements make no progress since ${Math.round(age)} ms`)
    this.events.emit('stalled', { subscription, age })
  }

  handleOverBudget(): void {
    this.session.close(overBudget(), 0x97)
  }

  handleError(error: MqttError): void {
    this.log('error', error.message)
    this.events.emit('error', { error })
  }

  // Ending

  /** Says goodbye: nothing more is handed out, running turns end, their acknowledgements leave, DISCONNECT is last. */
  disconnect(goodbye: Goodbye): Promise<void> {
    if (this.state === 'closed') return Promise.resolve()
    this.#stopping ??= this.#stop(goodbye)
    const { promise, hurry } = this.#stopping
    // Of several callers, whoever is in most of a hurry decides.
    const cancel = this.platform.setTimer(hurry, goodbye.timeout)
    if (goodbye.timeout === 0) hurry()
    const stop = onAbort(goodbye.signal, hurry)
    return promise.finally(() => {
      cancel()
      stop()
    })
  }

  /** Cuts the connection without DISCONNECT: the server publishes the will. */
  destroy(error?: MqttError): void {
    if (this.state === 'closed') return
    this.#connecting?.abort.abort(error ?? closedError())
    this.session.close(error ?? closedError(), undefined)
    this.#link?.destroy(error)
    this.finish(error)
  }

  /** The end of everything: all that is pending settles. */
  finish(error: MqttError | undefined): void {
    if (this.state === 'closed') return
    const wasConnected = this.state === 'connected' || (this.state === 'disconnecting' && this.session.negotiated !== undefined)
    this.session.close(error ?? closedError(), undefined)
    this.session.reset()
    this.inbox.stop()
    this.#dropTimer?.()
    this.#enter('closed')
    this.registry.end(error, error ?? closedError())
    this.#link?.abandon(error ?? closedError())
    this.outbox.end(error ?? closedError())
    if (wasConnected) this.events.emit('disconnect', { cause: error })
    this.#stopping?.hurry()
    this.log('info', error === undefined ? 'closed' : `closed: ${error.message}`)
    this.closed.resolve(error)
    this.events.clear()
  }

  #stop(goodbye: Goodbye): { readonly promise: Promise<void>; hurry(): void } {
    const hurried = deferred<void>()
    if (this.state === 'connected') {
      this.#enter('disconnecting')
      return { promise: this.#leave(goodbye, hurried.promise), hurry: () => hurried.resolve() }
    }
    // Nothing to say goodbye to: an attempt that is under way is given up.
    this.#connecting?.abort.abort(closedError())
    this.#link?.destroy(closedError())
    this.finish(undefined)
    return { promise: Promise.resolve(), hurry: () => hurried.resolve() }
  }

  async #leave(goodbye: Goodbye, hurried: Promise<void>): Promise<void> {
    for (const consumer of this.registry.consumers) consumer.close()
    await Promise.race([this.#turns(), hurried])
    const link = this.#link
    const said = this.platform.now()
    if (link !== undefined && this.session.state === 'connected') {
      link.flush()
      this.session.disconnect(goodbye.reasonCode, goodbye.properties)
      link.pump()
      link.end()
    }
    await Promise.race([this.closed.promise, hurried])
    // A peer that does not end its side is cut off, once our goodbye had time to leave.
    if (this.platform.now() > said) link?.destroy()
    this.finish(undefined)
  }

  // Fulfils when no consumer has a message in hand.
  async #turns(): Promise<void> {
    while ([...this.registry.consumers].some((consumer) => consumer.busy)) {
      const ended = deferred<void>()
      this.#turnEnded = () => ended.resolve()
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
  return new MqttError('ERR_CONNECT_FAILED', 'no endpoint could be connected to', { fault: 'remote', cause: new AggregateError(errors) })
}

function asClosed(reason: unknown): MqttError {
  return MqttError.is(reason) ? reason : closedError()
}

export function closedError(): MqttError {
  return new MqttError('ERR_CLOSED', 'the client was closed')
}

function redacted(packet: Packet): Packet {
  if (packet.type === 'connect')
    return {
      ...packet,
      username: packet.username && '[redacted]',
      password: undefined,
      properties: { ...packet.properties, authenticationData: undefined },
    }
  if (packet.type === 'auth') return { ...packet, properties: { ...packet.properties, authenticationData: undefined } }
  return packet
}
