/**
 * One MQTT session as seen by the client: the handshake, keep-alive, what is in flight in both directions, and who is at fault when it breaks.
 *
 * Pure: no clock, no randomness, no platform, no promise; `now` is an argument (milliseconds, monotonic). Inputs are `handle…` methods and
 * commands; control output is taken with `poll()`, acknowledgements from `acks`. It must never send by itself, and after `close` was queued it
 * accepts nothing more from the peer.
 */
import { MqttError, type MqttErrorCode } from '../../errors.js'
import type {
  AuthPacket,
  Bytes,
  ClientPacket,
  ConnackPacket,
  ConnectPacket,
  Properties,
  ServerPacket,
  SubackPacket,
  UnsubackPacket,
} from '../../wire/packets.js'
import type { Negotiated } from '../api/negotiated.js'
import { AckQueue } from './ack-queue.js'
import type { Action } from './actions.js'
import { InboundAliases, OutboundAliases } from './aliases.js'
import { KeepAlive } from './keep-alive.js'
import { negotiate } from './limits.js'
import { calm, mostAuthRounds } from './numbers.js'
import { Persistence } from './persistence.js'
import { type Fault, ReceiveWindow } from './receive-window.js'
import { broken, nameOf, unknownAlias } from './refusal.js'
import { SendWindow } from './send-window.js'

/** What a session needs to know before it starts. */
export interface SessionConfig {
  /** Highest number of QoS 1 and 2 messages that the server may have open towards us, 1 to 65,535. */
  readonly receiveMaximum: number
  /** What a server does that exceeds it: go on, or end the connection with 0x93. Default `'tolerate'`. */
  readonly receiveMaximumExceeded?: 'tolerate' | 'disconnect'
  /** Aliases that the server may use where CONNECT announces none. Default 0. */
  readonly unaskedAliases?: number
  /** Seconds; what CONNECT will say, before there is one. Default 0. */
  readonly sessionExpiryInterval?: number
  /** Milliseconds to wait for a sign of life after PINGREQ. */
  readonly pingTimeout: number
  /** Most publishes in flight, below the server's Receive Maximum where it is smaller. */
  readonly maximumInflight: number
  /** The application declared that a session may exist on the server: Session Present 1 is then welcome. */
  readonly ownsSession: boolean
  /** What must survive the process waits for `handlePersisted`. */
  readonly durableStore: boolean
  /** Where packet identifiers begin in a session whose past is unknown: a number that differs from process to process. Default 0. */
  readonly identifierBase?: number
}

/** Where the connection stands. */
export type SessionState = 'idle' | 'connecting' | 'connected' | 'closed'

/** Client side of a session. */
export class Session {
  /** Acknowledgements to be written, in order, before anything else of the same turn. */
  readonly acks = new AckQueue()
  readonly receiveWindow: ReceiveWindow
  readonly sendWindow: SendWindow
  readonly aliases = new InboundAliases()
  /** Aliases that we give to topics. */
  readonly topics = new OutboundAliases()
  /** That of the connection, or of the one before until there is CONNACK. */
  keepAlive: KeepAlive
  // valid for the session
  /** A session may exist on the server: Session Present 1 is welcome. */
  #owns: boolean
  /** This process was connected in it, so that it knows its state. */
  #known = false
  // valid for the connection
  #state: SessionState = 'idle'
  #connect: ConnectPacket | undefined
  #authRounds = 0
  #authenticating = false
  /** AUTH of the server that wait for ours. */
  #owed = 0
  #countedSince = 0
  #negotiated: Negotiated | undefined
  readonly #config: SessionConfig
  readonly #actions: Action[] = []
  readonly #persistence: Persistence

  constructor(config: SessionConfig) {
    const fault: Fault = (reasonCode, message) => this.fail(reasonCode, message)
    this.#config = config
    this.#owns = config.ownsSession
    this.#persistence = new Persistence(config.durableStore, this.#actions)
    const tell = (): unknown => this.#actions.push({ type: 'exceeded' })
    this.receiveWindow = new ReceiveWindow(
      config.receiveMaximum,
      this.acks,
      this.#persistence,
      fault,
      config.receiveMaximumExceeded === 'disconnect' ? undefined : tell,
    )
    this.sendWindow = new SendWindow(this.acks, this.#persistence, fault, config.identifierBase)
    this.keepAlive = new KeepAlive(config.pingTimeout, 0, 0)
  }

  get state(): SessionState {
    return this.#state
  }

  /** Undefined before CONNACK. */
  get negotiated(): Negotiated | undefined {
    return this.#negotiated
  }

  /** True when the server may hold a session that this process knows. */
  get known(): boolean {
    return this.#known
  }

  /** The protocol version of the connection. */
  get version(): 4 | 5 {
    return this.#connect?.protocolVersion ?? 5
  }

  /** Session Expiry Interval of CONNECT, in seconds: from 0 it must not be raised later [MQTT-3.14.2-2]. */
  get openedFor(): number {
    return (this.#connect?.properties ?? this.#config).sessionExpiryInterval ?? 0
  }

  /** True while a re-authentication has no answer. */
  get authenticating(): boolean {
    return this.#authenticating
  }

  /** When `handleTimeout` wants to be called; Infinity when never. */
  nextTimeout(): number {
    return this.#state === 'connected' ? this.keepAlive.deadline : Number.POSITIVE_INFINITY
  }

  /** The next thing to do, or undefined. */
  poll(): Action | undefined {
    return this.#actions.shift()
  }

  // Commands

  /** A transport is open: CONNECT is its first packet [MQTT-3.1.0-1]. */
  connect(packet: ConnectPacket): void {
    const v5 = packet.protocolVersion === 5
    this.#connect = packet
    this.#state = 'connecting'
    this.#authRounds = 0
    this.#authenticating = false
    this.#owed = 0
    this.#countedSince = Number.NEGATIVE_INFINITY
    this.aliases.start(v5 ? (packet.properties.topicAliasMaximum ?? this.#config.unaskedAliases ?? 0) : 0)
    this.topics.start(0)
    this.receiveWindow.start(v5 ? (packet.properties.receiveMaximum ?? this.#config.receiveMaximum) : 65_535, !v5)
    this.#send(packet)
  }

  /** The connection is gone: what is in flight waits for the next one, and nothing that was queued for it leaves on another [MQTT-4.4.0-1]. */
  suspend(): void {
    if (this.#state !== 'idle') this.#state = 'closed'
    this.acks.clear()
    this.receiveWindow.suspend()
    this.sendWindow.suspend()
    const kept = this.#actions.filter((action) => action.type === 'persist')
    this.#actions.splice(0, this.#actions.length, ...kept)
  }

  /** Sends AUTH: the next round of an exchange (0x18), or the first of a re-authentication (0x19) (section 4.12). */
  authenticate(reasonCode: 0x18 | 0x19, authenticationData: Bytes | undefined): void {
    if (this.#state !== 'connecting' && this.#state !== 'connected') return
    if (reasonCode === 0x19) this.#beginExchange(true)
    else this.#owed -= 1
    const authenticationMethod = this.#connect?.properties.authenticationMethod
    this.#send({ type: 'auth', reasonCode, properties: { authenticationMethod, authenticationData } })
  }

  /** After a wake-up: is the server still there? */
  probe(now: number): void {
    if (this.#state !== 'connected' || this.keepAlive.probing) return
    this.keepAlive.probe(now)
    this.#send({ type: 'pingreq' })
  }

  /** Sends PINGREQ, whether or not it is due. */
  ask(now: number): void {
    this.keepAlive.ask(now)
    this.#send({ type: 'pingreq' })
  }

  /** DISCONNECT is the last packet [MQTT-3.14.4-1]; a session that is not connected sends none. */
  disconnect(reasonCode: number, properties: Properties): void {
    if (this.#state === 'connected') this.#send({ type: 'disconnect', reasonCode, properties })
    this.#state = 'closed'
  }

  /** Ends the connection because the peer broke the protocol (section 4.13). DISCONNECT goes first where the handshake was done. */
  fail(reasonCode: number, message?: string, code: MqttErrorCode = 'ERR_PROTOCOL_ERROR'): void {
    this.close(new MqttError(code, message, { fault: 'remote', outcome: 'unknown', reasonCode, reasonName: nameOf(reasonCode) }), reasonCode)
  }

  /** Ends the connection for a reason of ours; `reasonCode` undefined sends no DISCONNECT. */
  close(error: MqttError, reasonCode: number | undefined): void {
    if (this.#state === 'closed') return
    // A 3.1.1 server takes any DISCONNECT for a clean end, and would not publish the will.
    const announced = this.#state === 'connected' && this.version === 5 ? reasonCode : undefined
    this.#state = 'closed'
    this.#actions.push({ type: 'close', error, reasonCode: announced })
  }

  /** The session is gone, on the server or by our choice: nothing in flight counts any more. */
  reset(): void {
    this.#known = false
    this.receiveWindow.reset()
    this.sendWindow.reset()
    this.#persistence.reset()
    this.acks.clear()
  }

  // Inputs

  /** A packet of the control plane. PUBLISH and its acknowledgements go to `receiveWindow` and `sendWindow` directly. */
  handlePacket(packet: ServerPacket, now: number): void {
    if (this.#state === 'closed') return
    if (packet.type === 'connack') return this.#handleConnack(packet, now)
    if (packet.type === 'auth') return this.#handleAuth(packet, now)
    if (!this.expectConnected()) return
    switch (packet.type) {
      case 'suback':
        return this.#handleAnswer('subscribe', packet)
      case 'unsuback':
        return this.#handleAnswer('unsubscribe', packet)
      case 'pingresp':
        return this.keepAlive.pong()
      case 'disconnect':
        this.#state = 'closed'
        this.#actions.push({ type: 'server-disconnect', packet })
        return
      default:
        return this.#failUnexpected(packet)
    }
  }

  /**
   * The topic of a PUBLISH with an alias; `topic` when it names one too, which the alias stands for from then on. Undefined where that ends the
   * connection, which it does as well when all topics of aliases take more than `mostBytes`.
   */
  resolve(alias: number, topic: string | undefined, mostBytes: number): string | undefined {
    const { aliases } = this
    const known = topic ?? aliases.topic(alias)
    if (!aliases.accepts(alias)) this.fail(0x94)
    else if (known === undefined) this.fail(0x82, unknownAlias)
    else {
      if (topic !== undefined) aliases.define(alias, topic)
      if (aliases.bytes <= mostBytes) return known
      this.fail(0x97)
    }
    return undefined
  }

  /** True when packets other than CONNACK may come; ends the connection otherwise. */
  expectConnected(): boolean {
    if (this.#state === 'connected') return true
    this.fail(0x82, 'packet before CONNACK', 'ERR_UNEXPECTED_PACKET')
    return false
  }

  /** The time that `nextTimeout()` named has come, or passed. */
  handleTimeout(now: number): void {
    if (this.#state !== 'connected') return
    const verdict = this.keepAlive.handleTimeout(now)
    if (verdict === 'ping') this.#send({ type: 'pingreq' })
    else if (verdict !== 'idle')
      this.close(broken('ERR_KEEPALIVE_TIMEOUT', `the server ${verdict === 'blocked' ? 'stopped reading' : 'is silent'}`), undefined)
  }

  /** The store confirmed a `persist` action. */
  handlePersisted(token: number): void {
    this.#persistence.handlePersisted(token)
  }

  #handleConnack(packet: ConnackPacket, now: number): void {
    const connect = this.#connect
    if (this.#state !== 'connecting' || connect === undefined) return this.fail(0x82, 'second CONNACK')
    if (packet.reasonCode !== 0) {
      this.#state = 'closed'
      this.#actions.push({ type: 'refused', connack: packet })
      return
    }
    // The server took us in: if we object, it is told why.
    this.#state = 'connected'
    const objection = this.#object(connect, packet)
    if (objection !== undefined) return this.fail(0x82, objection)
    const negotiated = negotiate(connect, packet, this.#config.pingTimeout)
    this.#negotiated = negotiated
    const foreign = packet.sessionPresent && !this.#known
    const lost = this.#known && !packet.sessionPresent
    const stale = this.receiveWindow.parked
    if (!packet.sessionPresent) this.reset()
    this.#owns = true
    this.#known = true
    this.#authenticating = false
    this.#owed = 0
    this.sendWindow.start(Math.min(negotiated.receiveMaximum, this.#config.maximumInflight), foreign, this.version === 4)
    this.topics.start(negotiated.topicAliasMaximum)
    this.keepAlive = new KeepAlive(negotiated.pingTimeout, negotiated.keepAlive, now)
    this.#actions.push({ type: 'connected', connack: packet, lost, stale })
  }

  // Why a CONNACK with reason code 0 cannot be accepted, or undefined.
  #object(connect: ConnectPacket, { sessionPresent, properties }: ConnackPacket): string | undefined {
    // [MQTT-3.2.2-4]
    if (sessionPresent && (connect.cleanStart || !this.#owns)) return 'unknown session present'
    if (properties.assignedClientIdentifier !== undefined && connect.clientId !== '') return 'unasked client identifier'
    if (properties.authenticationMethod !== connect.properties.authenticationMethod) return 'other authentication method'
    return undefined
  }

  // [MQTT-4.12.0-5] [MQTT-4.12.0-6]
  #handleAuth(packet: AuthPacket, now: number): void {
    const { reasonCode, properties } = packet
    const method = this.#connect?.properties.authenticationMethod
    if (method === undefined) return this.#failUnexpected(packet)
    const success = reasonCode === 0
    if (properties.authenticationMethod !== method) return this.fail(0x82, 'other authentication method')
    if (success && !this.#authenticating) return this.#failUnexpected(packet)
    if (this.#state === 'connected' && !this.#authenticating) {
      // What does not wait for our answers would pile up here: it is the same exchange.
      const anew = this.#owed === 0 && now - this.#countedSince >= calm
      this.#beginExchange(anew)
      if (anew) this.#countedSince = now
    }
    if (!success) this.#owed += 1
    this.#authRounds += 1
    if (this.#authRounds > mostAuthRounds) return this.fail(0x82, 'too many rounds of authentication')
    this.#authenticating = this.#state === 'connected' && !success
    this.#actions.push({ type: 'auth', packet })
  }

  #failUnexpected({ type }: ServerPacket): void {
    this.fail(0x82, `${type.toUpperCase()} is not expected here`, 'ERR_UNEXPECTED_PACKET')
  }

  #send(packet: ClientPacket): void {
    this.#actions.push({ type: 'send', packet })
  }

  #beginExchange(anew: boolean): void {
    if (anew) this.#authRounds = 0
    this.#authenticating = true
  }

  #handleAnswer(kind: 'subscribe' | 'unsubscribe', packet: SubackPacket | UnsubackPacket): void {
    const count = packet.type === 'unsuback' && this.#connect?.protocolVersion === 4 ? undefined : packet.reasonCodes.length
    if (this.sendWindow.handleAnswer(kind, packet.packetId, count) > 0) this.#actions.push({ type: 'answered', packet })
  }
}
