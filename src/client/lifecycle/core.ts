/**
 * The machinery of one client: the state it is in, the connection it has, and the parts that do the work, wired together.
 *
 * How a connection is come by is the matter of `dialling.ts`. There is at most one transport at a time. Applications see `client.ts`; here nothing
 * is validated any more.
 */
import { MqttError, printable, textOf } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { ConnackPacket, ConnectPacket, DisconnectPacket, Packet, Properties, ProtocolVersion } from '../../wire/packets.js'
import type { ClientEvents, ClientState, Logger, Stats } from '../api/index.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, within } from '../common/abort.js'
import { Counters } from '../common/counters.js'
import { Emitter } from '../common/emitter.js'
import { closedError } from '../common/outcome.js'
import { redacted } from '../common/redact.js'
import { unsupported } from '../common/schema.js'
import { Connection } from '../connection/connection.js'
import type { ConnectionHost } from '../connection/ports.js'
import { Turns } from '../connection/turns.js'
import type { Consumer } from '../delivery/consumer.js'
import { Inbox } from '../delivery/inbox.js'
import type { ConsumerHost } from '../delivery/ports.js'
import { Authentication } from '../dialling/authentication.js'
import { Dialling } from '../dialling/dialling.js'
import type { AuthenticationHost, DiallingHost } from '../dialling/ports.js'
import type { ParsedEndpoint } from '../parsing/endpoint.js'
import type { Config } from '../parsing/options.js'
import type { Goodbye } from '../parsing/requests.js'
import { findScanner } from '../parsing/scanning.js'
import { type CancelTimer, type Platform, whenPassed } from '../platform/platform.js'
import { Outbox } from '../publishing/outbound.js'
import type { PublishingHost } from '../publishing/ports.js'
import type { Action } from '../session/actions.js'
import { broken, refusal, version5Code } from '../session/refusal.js'
import { Session } from '../session/session.js'
import type { SubscribingHost } from '../subscribing/ports.js'
import { Registry } from '../subscribing/registry.js'
import { Ending, type EndingHost } from './ending.js'
import { snapshot } from './snapshot.js'

/** A session that never expires (section 3.1.2.11.2). */
const forEver = 4_294_967_295
/** Seconds: a server that asks for pings more often than that is worth a line. */
const hastyKeepAlive = 5
/** Seconds: who asks for more may have meant milliseconds. */
const lazyKeepAlive = 3600

/** Everything behind a client. */
export class Core implements EndingHost, ConnectionHost, DiallingHost, AuthenticationHost, ConsumerHost<Consumer>, PublishingHost, SubscribingHost {
  readonly platform: Platform
  readonly options: Config
  readonly session: Session
  readonly registry: Registry
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly counters: Counters | undefined
  readonly authentication: Authentication | undefined
  readonly events: Emitter<ClientEvents>
  readonly closed: Deferred<MqttError | undefined> = deferred()
  state: ClientState = 'idle'
  clientId: string
  scanner: FrameScanner | undefined
  readonly #dialling: Dialling
  readonly turns: Turns
  // valid for the connection
  #dialled: Pick<ClientEvents['connect'], 'endpoint' | 'dropped'> = { endpoint: '', dropped: [] }
  #link: Connection | undefined
  #handshake: Deferred<void> | undefined
  /** True from a `connect` event to its `disconnect` event. */
  #up = false
  /** The connection is being replaced, by our own choice, because of this. */
  #replacing: MqttError | undefined
  // between connections
  /** Fulfils when the connection is up, rejects when the client is closed. */
  #arrival: Deferred<void> | undefined
  #expiry: CancelTimer | undefined
  // ending
  #ending: Ending | undefined
  sessionEnds = false
  draining = false
  failure: MqttError | undefined

  constructor(platform: Platform, endpoints: readonly ParsedEndpoint[], options: Config) {
    this.platform = platform
    this.options = options
    this.clientId = options.clientId
    this.counters = options.stats ? new Counters() : undefined
    this.events = new Emitter(
      (error, type) => this.log('error', `a listener of '${type}' threw: `, error),
      platform.trace && ((type, event) => platform.trace?.(type, { clientId: this.clientId, ...event })),
      () => this.#link?.output.watching.refresh(),
    )
    const { cleanStart, outbound, topicAliasMaximum } = options
    const unaskedAliases = topicAliasMaximum === undefined ? 10 : 0
    const maximumInflight = outbound.maxInflight
    const identifierBase = Math.floor(platform.random() * 65_535)
    this.session = new Session({ ...options, unaskedAliases, maximumInflight, ownsSession: !cleanStart, durableStore: false, identifierBase })
    this.registry = new Registry(this)
    this.inbox = new Inbox(this, this.registry.trie)
    this.outbox = new Outbox(this)
    this.authentication = options.auth && new Authentication(this, options.auth)
    this.#dialling = new Dialling(this, endpoints)
    this.turns = new Turns(platform, () => {
      this.registry.flush()
      this.#link?.output.flush()
    })
    platform.attend?.(this)
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

  /** The connection, in every state. */
  get link(): Connection | undefined {
    return this.#link
  }

  get connection(): Connection | undefined {
    return this.#handshake === undefined && this.session.state === 'connected' ? this.#link : undefined
  }

  get watch(): ((direction: 'in' | 'out', packet: Packet) => void) | undefined {
    const watched = this.events.has('packet') || this.platform.traced?.('packet') === true
    return watched ? (direction, packet) => this.events.emit('packet', { direction, packet: redacted(packet) }) : undefined
  }

  log(level: keyof Logger, ...parts: readonly unknown[]): void {
    try {
      this.options.logger?.[level]?.(`mqwire ${printable(this.clientId)}: ${printable(parts.map(textOf).join(''))}`)
    } catch {
      // A logger that fails has nobody to tell.
    }
  }

  stats(): Stats {
    return snapshot(this)
  }

  // Connecting

  /** Joins whatever is under way to connect, or begins. */
  async connect(signal: AbortSignal | undefined): Promise<void> {
    if (this.stopping) throw closedError()
    if (this.state === 'connected') throw new MqttError('ERR_ALREADY_CONNECTED')
    assertNotAborted(signal)
    const arrival = this.awaited()
    if (this.state === 'idle') {
      // The signal of whoever begins it ends the attempt; those of joiners drop only the joiner.
      const stop = onAbort(signal, () => this.destroy(aborted(signal)))
      arrival.then(stop, stop)
      findScanner(this.options.scanner, this.platform, (scanner) => {
        this.scanner = scanner
        this.#link?.useScanner(scanner)
      })
      const { keepAlive = 0 } = this.options
      if (keepAlive > lazyKeepAlive) this.log('warn', `keepAlive: ${Math.round(keepAlive / 3600)} hours`)
      this.enter('connecting')
      if (!this.stopping) this.#dialling.begin()
    }
    return within(arrival, signal)
  }

  /** Dials now instead of after the delay; replaces a connection that is up only when told to. */
  async reconnect(force: boolean, reason: string | undefined): Promise<void> {
    if (this.stopping) throw closedError()
    if (this.state === 'idle') return this.connect(undefined)
    if (this.state === 'connected' && !force) return
    const arrival = this.awaited()
    if (this.state === 'connected') this.replace(reason ?? 'replaced by reconnect()')
    else this.#dialling.hurry()
    return arrival
  }

  /** The one that was dialled last; empty before. */
  get endpoint(): string {
    return this.#dialled.endpoint
  }

  /** The endpoints from now on. */
  setBrokers(endpoints: readonly ParsedEndpoint[]): void {
    if (this.stopping) throw closedError()
    this.#dialling.setBrokers(endpoints)
  }

  /** Authenticates again on the open connection (section 4.12.1). */
  async reauthenticate(signal: AbortSignal | undefined): Promise<void> {
    if (this.stopping) throw closedError()
    if (this.authentication === undefined) throw unsupported('auth', 'is not set')
    if (this.connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
    assertNotAborted(signal)
    return within(this.authentication.renew(this.#dialled.endpoint), signal, 'unknown')
  }

  /** A connection that we give up ourselves ends with DISCONNECT, so that no will is published. */
  replace(reason: string): void {
    const { connection } = this
    if (connection === undefined) return
    this.#replacing = new MqttError('ERR_CONNECTION_LOST', reason, { outcome: 'unknown' })
    connection.output.flush()
    this.session.disconnect(0, {})
    connection.pump()
    connection.end()
  }

  /** Fulfils when the connection is up. */
  awaited(): Promise<void> {
    this.#arrival ??= deferred()
    return this.#arrival.promise
  }

  // Unique per client, and of characters that every 3.1.1 server takes [MQTT-3.1.3-5].
  clientIdFor(version: ProtocolVersion): string {
    const character = (): string => Math.floor(this.platform.random() * 36).toString(36)
    if (version === 4) this.clientId ||= `mqwire${Array.from({ length: 16 }, character).join('')}`
    return this.clientId
  }

  handleDial(url: string, number: number, dropped: readonly string[]): void {
    this.#dialled = { endpoint: url, dropped }
    this.log('debug', `attempt ${number} at ${url}`)
    this.events.emit('dial', { attempt: number, endpoint: url })
  }

  async handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void> {
    const done = deferred<void>()
    this.#handshake = done
    const link = new Connection(transport, this, packet)
    this.#link = link
    const stop = onAbort(signal, () => link.destroy(signal.reason))
    try {
      this.session.connect(packet)
      link.pump()
      await done.promise
    } catch (error) {
      // One that is saying goodbye is left to it.
      if (!link.over) link.destroy()
      throw error
    } finally {
      stop()
      if (this.#handshake === done) this.#handshake = undefined
    }
  }

  // What happens on the connection

  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void {
    if (action.type === 'connected') this.#handleConnected(action)
    else if (action.type === 'refused') this.#handleRefused(action.connack)
    else if (action.type === 'answered') this.registry.handleAnswer(action.packet)
    else if (action.type === 'auth') this.authentication?.handleAuth(action.packet, (error) => this.cut(error))
    else if (action.type === 'server-disconnect') this.#handleServerDisconnect(action.packet)
  }

  pump(): void {
    this.#link?.pump()
  }

  cut(error: MqttError): void {
    this.#link?.destroy(error)
  }

  flush(): void {
    this.registry.flush()
    this.outbox.flush()
  }

  handleClosed(error: MqttError | undefined): void {
    const handshake = this.#handshake
    this.#link = undefined
    if (handshake === undefined) return this.#handleLost(error)
    this.session.suspend()
    handshake.reject(error?.code === 'ERR_CONNECTION_LOST' ? this.#beforeConnack(error.cause) : (error ?? closedError()))
  }

  // A server may refuse our certificate as late as this.
  #beforeConnack(cause: unknown): MqttError {
    return broken(this.platform.isTlsError(cause) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED', 'closed before CONNACK: TLS?', cause)
  }

  // Where the mechanism has the last word, a CONNACK counts for nothing before it has spoken.
  verify({ reasonCode, properties }: ConnackPacket): Promise<void> | undefined {
    const { authentication, options, session } = this
    const ours = properties.authenticationMethod === options.auth?.method
    if (authentication === undefined || reasonCode !== 0 || !ours || session.state !== 'connecting') return undefined
    return authentication.handleAccepted(properties.authenticationData)
  }

  #handleConnected({ connack, lost, stale }: Action & { type: 'connected' }): void {
    const { negotiated } = this.session
    const link = this.#link
    if (negotiated === undefined || link === undefined) return
    const { sessionPresent } = connack
    const first = !this.#dialling.connectedOnce
    this.clientId = negotiated.clientId
    this.inbox.handleConnected()
    if (sessionPresent && first) this.inbox.hold()
    this.#handshake?.resolve()
    this.#handshake = undefined
    this.#expiry?.()
    link.output.handleConnected(negotiated.maximumPacketSize, this.#dialling.handleConnected())
    if (this.counters !== undefined) this.counters.connects += 1
    const tellLoss = lost ? this.#accountForLoss('absent', stale) : undefined
    if (!this.stopping) this.registry.handleConnected(!sessionPresent && !first)
    this.outbox.handleConnected()
    // What goes on leaves before anything new.
    link.output.flush()
    if (this.#link !== link) return tellLoss?.()
    const arrival = this.#arrival
    this.#arrival = undefined
    if (!this.stopping) this.enter('connected')
    this.log('info', sessionPresent ? 'connected, session resumed' : 'connected')
    if (negotiated.keepAlive > 0 && negotiated.keepAlive < hastyKeepAlive) this.log('warn', `the keep-alive is ${negotiated.keepAlive} s`)
    if (first && (this.options.set.pingTimeout ?? 0) > negotiated.pingTimeout)
      this.log('warn', `pingTimeout is ${negotiated.pingTimeout} ms, half the keep-alive`)
    arrival?.resolve()
    this.flush()
    // A listener may have ended it all by now.
    if (this.#link === link && !this.stopping) {
      this.#up = true
      this.events.emit('connect', { connack: redacted(connack) as ConnackPacket, negotiated, sessionPresent, ...this.#dialled })
    }
    tellLoss?.()
  }

  #handleRefused({ reasonCode, properties }: ConnackPacket): void {
    const code = this.session.version === 5 ? reasonCode : version5Code(reasonCode)
    if (this.counters !== undefined) this.counters.refusals += 1
    this.#handleEnd(refusal('ERR_CONNECT_REFUSED', code, properties.reasonString), properties)
  }

  #handleServerDisconnect(packet: DisconnectPacket): void {
    const { reasonCode, properties } = packet
    const code = reasonCode === 0x8e ? 'ERR_SESSION_TAKEN_OVER' : 'ERR_SERVER_DISCONNECT'
    this.#handleEnd(refusal(code, reasonCode, properties.reasonString, DISCONNECT, 'unknown'), properties, packet)
  }

  // The server said why, and perhaps where to go.
  #handleEnd(error: MqttError, { serverReference }: Properties, packet?: DisconnectPacket): void {
    this.#dialling.handleAsking()
    if (packet !== undefined) this.events.emit('serverdisconnect', { packet, error })
    if (departures.includes(error.reasonCode)) this.#dialling.handleReference(serverReference)
    this.#link?.destroy(error)
  }

  settle(ticket: number, reasonCode: number): boolean {
    // 3.1.1 cannot say no.
    const settled = this.session.inbound.settle(ticket, this.session.version === 5 ? reasonCode : 0)
    this.turns.flush()
    this.handleTurnEnd()
    return settled
  }

  handleTurnEnd(): void {
    this.#ending?.handleTurnEnd()
  }

  // Between connections

  #handleLost(given: MqttError | undefined): void {
    const replaced = this.#replacing
    const error = given ?? replaced
    // Over the budget, what was held has been handed out: the rest may come.
    const relieved = error?.reasonCode === 0x97 && error.fault === 'local' && this.inbox.bytes === 0 && this.options.reconnect !== false
    const urgent = replaced !== undefined || relieved || this.session.keepAlive.woken(this.platform.now())
    this.#replacing = undefined
    // Undefined: after our goodbye.
    if (this.ended || error === undefined) return this.end(undefined)
    this.authentication?.handleLost(error)
    if (given !== undefined) this.counters?.fail(error.code)
    if (error.code === 'ERR_KEEPALIVE_TIMEOUT' && this.counters !== undefined) this.counters.pingTimeouts += 1
    const step = this.#dialling.handleLost(error, urgent)
    // A decision of the application may have been to end it.
    if (this.ended) return
    if (step.type === 'stop' && !this.stopping) return this.end(step.error)
    this.registry.handleMismatch(this.session.outbound.mismatched, error)
    this.session.suspend()
    this.registry.handleLost()
    if (!this.stopping) this.enter('reconnecting')
    this.outbox.handleLost(error)
    this.#emitDisconnect(replaced ? given : error, replaced?.message)
    if (this.stopping && !this.draining) return this.finish(given)
    if (!this.ended) this.#watchExpiry()
    this.#dialling.follow(step)
  }

  // The server keeps the session for so long; after that there is no use in waiting for it (section 3.1.2.11.2).
  #watchExpiry(): void {
    const interval = this.sessionExpiry
    if (interval === 0) return this.#expire()
    if (interval < forEver) this.#expiry = whenPassed(this.platform, interval * 1000, () => this.#expire())
  }

  /** Seconds that the server keeps the session without a connection. */
  get sessionExpiry(): number {
    const { negotiated, version } = this.session
    return version === 5 ? (negotiated?.sessionExpiryInterval ?? 0) : this.options.cleanStart ? 0 : forEver
  }

  #expire(): void {
    const stale = this.session.inbound.parked
    this.session.reset()
    this.#accountForLoss('expired', stale)()
  }

  // Gives what tells of it: nobody is told before everything is in order again.
  #accountForLoss(cause: 'absent' | 'expired', stale: number): () => void {
    if (this.counters !== undefined) this.counters.sessionsLost += 1
    const { losses, settle } = this.outbox.handleSessionLost()
    return () => {
      this.log('warn', `session lost: ${cause}`)
      settle()
      if (!this.ended) this.events.emit('sessionlost', Object.freeze({ cause, stale, ...losses }))
    }
  }

  // Ending

  /** Says goodbye: see `ending.ts`. */
  async disconnect(goodbye: Goodbye, drain = false): Promise<void> {
    if (this.ended) return
    this.#ending ??= new Ending(this)
    await this.#ending.disconnect(goodbye, drain)
  }

  /** Cuts the connection without DISCONNECT: the server publishes the will. */
  destroy(error?: MqttError): void {
    if (this.ended) return
    const link = this.#link
    link?.output.stop()
    this.end(error)
    link?.destroy(error)
  }

  finish(error: MqttError | undefined): void {
    if (this.state !== 'disconnecting') return this.end(error)
    const reason = error ?? closedError()
    this.failure = error
    this.#dialling.stop(reason)
    this.outbox.end(reason)
    this.registry.abandon(reason)
  }

  /** The end of everything: all that is pending settles. */
  end(error: MqttError | undefined): void {
    if (this.ended) return
    const reason = error ?? closedError()
    const link = this.#link
    this.session.suspend()
    this.session.reset()
    this.#expiry?.()
    this.enter('closed')
    if (error === undefined) this.registry.letGo()
    this.inbox.stop()
    this.#dialling.stop(reason)
    this.registry.end(error, reason)
    link?.output.abandon(reason)
    this.outbox.end(reason)
    this.authentication?.handleLost(reason)
    this.#emitDisconnect(error)
    this.#arrival?.reject(reason)
    this.log('info', error === undefined ? 'closed' : `closed: ${error.message}`)
    this.closed.resolve(error)
    this.events.clear()
  }

  #emitDisconnect(error: MqttError | undefined, reason?: string): void {
    if (!this.#up) return
    this.#up = false
    if (this.counters !== undefined) this.counters.disconnects += 1
    this.events.emit('disconnect', { error, cause: error, reason })
  }

  enter(state: ClientState): void {
    const previous = this.state
    this.state = state
    this.events.emit('state', { state, previous })
  }
}

/** Use another server, Server moved. */
const departures: readonly (number | undefined)[] = [0x9c, 0x9d]
