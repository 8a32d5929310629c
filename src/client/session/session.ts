/**
 * One MQTT session as seen by the client: the handshake, keep-alive, what is in flight in both directions, and who is at fault when it breaks.
 *
 * Pure: no clock, no randomness, no platform, no promise; `now` is an argument (milliseconds, monotonic). Inputs are `handle…` methods and
 * commands; control output is taken with `poll()`, acknowledgements from `acks`. It must never send by itself, and after `close` was queued it
 * accepts nothing more from the peer.
 */
import { MqttError, type MqttErrorCode } from '../../errors.js'
import type { ConnackPacket, ConnectPacket, Properties, ServerPacket, SubackPacket, UnsubackPacket } from '../../wire/packets.js'
import { AckQueue } from './ack-queue.js'
import type { Action } from './actions.js'
import { InboundAliases } from './aliases.js'
import { type Fault, Inbound } from './inbound.js'
import { KeepAlive } from './keep-alive.js'
import { type Negotiated, negotiate } from './limits.js'
import { Outbound } from './outbound.js'
import { Persistence } from './persistence.js'
import { broken, nameOf } from './refusal.js'

/** What a session needs to know before it starts. */
export interface SessionConfig {
  /** Highest number of QoS 1 and 2 messages that the server may have open towards us, 1 to 65,535. */
  readonly receiveMaximum: number
  readonly topicAliasMaximum: number
  /** Milliseconds to wait for a sign of life after PINGREQ. */
  readonly pingTimeout: number
  /** Most publishes in flight, below the server's Receive Maximum where it is smaller. */
  readonly maximumInflight: number
  /** The application declared that a session may exist on the server: Session Present 1 is then welcome. */
  readonly ownsSession: boolean
  /** What must survive the process waits for `handlePersisted`. */
  readonly durableStore: boolean
}

/** Where the connection stands. */
export type SessionState = 'idle' | 'connecting' | 'connected' | 'closed'

/** Client side of a session. */
export class Session {
  /** Acknowledgements to be written, in order, before anything else of the same turn. */
  readonly acks = new AckQueue()
  readonly inbound: Inbound
  readonly outbound: Outbound
  readonly aliases: InboundAliases
  readonly keepAlive: KeepAlive
  // valid for the connection
  #state: SessionState = 'idle'
  #connect: ConnectPacket | undefined
  #negotiated: Negotiated | undefined
  readonly #config: SessionConfig
  readonly #actions: Action[] = []
  readonly #persistence: Persistence

  constructor(config: SessionConfig) {
    const fault: Fault = (reasonCode, message) => this.fail(reasonCode, message)
    this.#config = config
    this.#persistence = new Persistence(config.durableStore, this.#actions)
    this.inbound = new Inbound(config.receiveMaximum, this.acks, this.#persistence, fault)
    this.outbound = new Outbound(this.acks, this.#persistence, fault)
    this.aliases = new InboundAliases(config.topicAliasMaximum)
    this.keepAlive = new KeepAlive(config.pingTimeout)
  }

  get state(): SessionState {
    return this.#state
  }

  /** Undefined before CONNACK. */
  get negotiated(): Negotiated | undefined {
    return this.#negotiated
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
    this.#connect = packet
    this.#state = 'connecting'
    this.aliases.clear()
    this.#actions.push({ type: 'send', packet })
  }

  /** DISCONNECT is the last packet [MQTT-3.14.4-1]; a session that is not connected sends none. */
  disconnect(reasonCode: number, properties: Properties): void {
    if (this.#state === 'connected') this.#actions.push({ type: 'send', packet: { type: 'disconnect', reasonCode, properties } })
    this.#state = 'closed'
  }

  /** Ends the connection because the peer broke the protocol (section 4.13). DISCONNECT goes first where the handshake was done. */
  fail(reasonCode: number, message?: string, code: MqttErrorCode = 'ERR_PROTOCOL_ERROR'): void {
    this.close(new MqttError(code, message, { fault: 'remote', outcome: 'unknown', reasonCode, reasonName: nameOf(reasonCode) }), reasonCode)
  }

  /** Ends the connection for a reason of ours; `reasonCode` undefined sends no DISCONNECT. */
  close(error: MqttError, reasonCode: number | undefined): void {
    if (this.#state === 'closed') return
    const announced = this.#state === 'connected' ? reasonCode : undefined
    this.#state = 'closed'
    this.#actions.push({ type: 'close', error, reasonCode: announced })
  }

  /** The session is gone, on the server or by our choice: nothing in flight counts any more. */
  reset(): void {
    this.inbound.reset()
    this.outbound.reset()
    this.#persistence.reset()
    this.acks.clear()
  }

  // Inputs

  /** A packet of the control plane. PUBLISH and its acknowledgements go to `inbound` and `outbound` directly. */
  handlePacket(packet: ServerPacket, now: number): void {
    if (this.#state === 'closed') return
    if (packet.type === 'connack') return this.#handleConnack(packet, now)
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
        return this.fail(0x82, `${packet.type.toUpperCase()} is not expected here`, 'ERR_UNEXPECTED_PACKET')
    }
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
    if (verdict === 'ping') this.#actions.push({ type: 'send', packet: { type: 'pingreq' } })
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
    const negotiated = negotiate(connect, packet)
    this.#negotiated = negotiated
    this.outbound.start(Math.min(negotiated.receiveMaximum, this.#config.maximumInflight))
    this.keepAlive.start(negotiated.keepAlive, now)
    this.#actions.push({ type: 'connected', connack: packet })
  }

  // Why a CONNACK with reason code 0 cannot be accepted, or undefined.
  #object(connect: ConnectPacket, { sessionPresent, properties }: ConnackPacket): string | undefined {
    // [MQTT-3.2.2-4]
    if (sessionPresent && (connect.cleanStart || !this.#config.ownsSession)) return 'unknown session present'
    if (properties.assignedClientIdentifier !== undefined && connect.clientId !== '') return 'unasked client identifier'
    if (properties.authenticationMethod !== connect.properties.authenticationMethod) return 'other authentication method'
    return undefined
  }

  #handleAnswer(kind: 'subscribe' | 'unsubscribe', packet: SubackPacket | UnsubackPacket): void {
    const count = packet.type === 'unsuback' && this.#connect?.protocolVersion === 4 ? undefined : packet.reasonCodes.length
    if (this.outbound.handleAnswer(kind, packet.packetId, count) > 0) this.#actions.push({ type: 'answered', packet })
  }
}
