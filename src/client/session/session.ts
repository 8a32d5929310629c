/**
 * One MQTT session as seen by the client: the handshake, keep-alive, what is in flight in both directions, and who is at fault when it breaks.
 *
 * Pure: no clock, no randomness, no platform, no promise; `now` is an argument (milliseconds, monotonic). Inputs are `handle…` methods and
 * commands; output is taken from `actions` and `acks`. All other fields are for others to read. It must never send by itself, and after `close` was
 * queued it accepts nothing more from the peer.
 */
import { MqttError, type MqttErrorCode } from '../../errors.js'
import type {
  ClientPacket,
  ConnackPacket,
  ConnectPacket,
  Properties,
  ServerPacket,
  SubackPacket,
  UnsubackPacket,
} from '../../wire/packets.js'
import type { TopicRecord } from '../../wire/topic-table.js'
import type { Negotiated } from '../options/negotiated.js'
import { AckQueue, type Action, forgetful, type PersistPort } from './actions.js'
import { InboundAliases, OutboundAliases } from './aliases.js'
import { AuthExchange } from './auth-exchange.js'
import { KeepAlive } from './keep-alive.js'
import { negotiate, objectionTo } from './limits.js'
import { ReceiveWindow } from './receive-window.js'
import { broken, FaultyMessages, failUnexpected, nameOf } from './refusal.js'
import { DONE, SendWindow } from './send-window.js'

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
  /**
   * Most publishes in flight, below the server's Receive Maximum where it is smaller. Default 65,535; on 3.1.1 20 of them at QoS 2.
   */
  readonly maximumInflight?: number | undefined
  /** The application declared that a session may exist on the server: Session Present 1 is then welcome. */
  readonly ownsSession: boolean
  /** Where packet identifiers begin in a session whose past is unknown: a number that differs from process to process. Default 0. */
  readonly identifierBase?: number
}

/** Where the connection stands. */
export type SessionState = 'idle' | 'connecting' | 'connected' | 'closed'

/**
 * QoS 2 exchanges in flight on 3.1.1, where the server cannot say how many it takes: mosquitto acknowledges more with its defaults, and loses them.
 */
const version4Exchanges = 20

/** Client side of a session. */
export class Session {
  /** Acknowledgements to be written, in order, before anything else of the same turn. */
  readonly acks = new AckQueue()
  /** Everything else that is to be done, in order. */
  readonly actions: Action[] = []
  readonly receiveWindow: ReceiveWindow
  readonly sendWindow: SendWindow
  readonly aliases = new InboundAliases<TopicRecord>()
  /** Messages of the server that break a rule. */
  readonly faulty = new FaultyMessages()
  /** Aliases that we give to topics. */
  readonly topics = new OutboundAliases()
  /** That of the connection, or of the one before until there is CONNACK. */
  keepAlive: KeepAlive
  readonly authExchange = new AuthExchange(this)
  /** Where the session state is kept. */
  persistence: PersistPort = forgetful
  /** This process was connected in the session, so that it knows its state. */
  known = false
  /** What the latest CONNACK allows; undefined before the first. */
  negotiated: Negotiated | undefined
  // valid for the connection
  state: SessionState = 'idle'
  #connect: ConnectPacket | undefined
  /** CONNACK said yes. */
  #up = false
  // valid for the client
  readonly #mostInFlight: number
  /** The same on 3.1.1, as connections have taught. */
  #window: number
  readonly #config: SessionConfig

  constructor(config: SessionConfig) {
    this.#config = config
    this.#mostInFlight = config.maximumInflight ?? 65_535
    this.#window = this.#mostInFlight
    this.receiveWindow = new ReceiveWindow(
      this,
      config.receiveMaximum,
      config.receiveMaximumExceeded !== 'disconnect',
    )
    this.sendWindow = new SendWindow(this, config.identifierBase)
    this.keepAlive = new KeepAlive(config.pingTimeout, 0, 0)
  }

  /** The protocol version of the connection. */
  get version(): 4 | 5 {
    return this.#connect?.protocolVersion ?? 5
  }

  /** Session Expiry Interval of CONNECT, in seconds: from 0 it must not be raised later [MQTT-3.14.2-2]. */
  get openedFor(): number {
    return (this.#connect?.properties ?? this.#config).sessionExpiryInterval ?? 0
  }

  /** When `handleTimeout` wants to be called; Infinity when never. */
  get deadline(): number {
    return this.state === 'connected' ? this.keepAlive.deadline : Number.POSITIVE_INFINITY
  }

  // Commands

  /** Asks for a packet to be sent. */
  send(packet: ClientPacket): void {
    this.actions.push({ type: 'send', packet })
  }

  /** A transport is open, and CONNECT waits: its end is no goodbye of ours. */
  open(): void {
    this.state = 'idle'
  }

  /** A transport is open: CONNECT is its first packet [MQTT-3.1.0-1]. */
  connect(packet: ConnectPacket): void {
    const v5 = packet.protocolVersion === 5
    this.#connect = packet
    this.state = 'connecting'
    this.authExchange.start(packet.properties.authenticationMethod)
    this.aliases.start(
      v5 ? (packet.properties.topicAliasMaximum ?? this.#config.unaskedAliases ?? 0) : 0,
    )
    this.topics.start(0)
    this.receiveWindow.start(
      v5 ? (packet.properties.receiveMaximum ?? this.#config.receiveMaximum) : 65_535,
      !v5,
    )
    this.send(packet)
  }

  /** The connection is gone: what is in flight waits for the next one, and nothing that was queued for it leaves on another [MQTT-4.4.0-1]. */
  suspend(): void {
    if (this.state !== 'idle') this.state = 'closed'
    this.acks.clear()
    if (this.#up) this.#handleLost(this.sendWindow.inFlight)
    this.receiveWindow.suspend()
    this.sendWindow.suspend()
    this.actions.length = 0
  }

  /** After a wake-up: is the server still there? */
  probe(now: number): void {
    if (this.state !== 'connected' || this.keepAlive.probing) return
    this.keepAlive.probe(now)
    this.send({ type: 'pingreq' })
  }

  /** Sends PINGREQ, whether or not it is due. */
  ask(now: number): void {
    this.keepAlive.ask(now)
    this.send({ type: 'pingreq' })
  }

  /** DISCONNECT is the last packet [MQTT-3.14.4-1]; a session that is not connected sends none. */
  disconnect(reasonCode: number, properties: Properties): void {
    if (this.state === 'connected') this.send({ type: 'disconnect', reasonCode, properties })
    this.state = 'closed'
    this.receiveWindow.handleClosing()
  }

  /** Ends the connection because the peer broke the protocol (section 4.13). DISCONNECT goes first where the handshake was done. */
  fail(reasonCode: number, message?: string, code: MqttErrorCode = 'ERR_PROTOCOL_ERROR'): void {
    this.close(
      new MqttError(code, message, {
        fault: 'remote',
        outcome: 'unknown',
        reasonCode,
        reasonName: nameOf(reasonCode),
      }),
      reasonCode,
    )
  }

  /** Ends the connection for a reason of ours; `reasonCode` undefined sends no DISCONNECT. */
  close(error: MqttError, reasonCode: number | undefined): void {
    if (this.state === 'closed') return
    // A 3.1.1 server takes any DISCONNECT for a clean end, and would not publish the will.
    const announced = this.state === 'connected' && this.version === 5 ? reasonCode : undefined
    this.state = 'closed'
    this.actions.push({ type: 'close', error, reasonCode: announced })
  }

  /** The session is gone, on the server or by our choice: nothing in flight counts any more. */
  reset(): void {
    this.known = false
    this.receiveWindow.reset()
    this.sendWindow.reset()
    this.persistence.reset()
    this.acks.clear()
  }

  // Inputs

  /** A packet of the control plane. PUBLISH and its acknowledgements go to `receiveWindow` and `sendWindow` directly. */
  handlePacket(packet: ServerPacket, now: number): void {
    if (this.state === 'closed') return
    if (packet.type === 'connack') return this.#handleConnack(packet, now)
    if (packet.type === 'auth') return this.authExchange.handleAuth(packet, now)
    if (!this.expectConnected()) return
    switch (packet.type) {
      case 'suback':
      case 'unsuback':
        if (isAnswer(this, packet)) this.actions.push({ type: 'answered', packet })
        return
      case 'pingresp':
        this.keepAlive.pong()
        // An answer says nothing of what was acknowledged after its PINGREQ: only with none open was the next one sent after this.
        if (!this.keepAlive.asked) this.persistence.confirm()
        return
      case 'disconnect':
        this.state = 'closed'
        this.actions.push({ type: 'server-disconnect', packet })
        return
      default:
        return failUnexpected(this, packet)
    }
  }

  /** True when packets other than CONNACK may come; ends the connection otherwise. */
  expectConnected(): boolean {
    if (this.state === 'connected') return true
    this.fail(0x82, 'packet before CONNACK', 'ERR_UNEXPECTED_PACKET')
    return false
  }

  /** The time that `deadline` named has come, or passed. */
  handleTimeout(now: number): void {
    if (this.state !== 'connected') return
    const verdict = this.keepAlive.handleTimeout(now)
    if (verdict === 'ping') this.send({ type: 'pingreq' })
    else if (verdict !== 'idle')
      this.close(
        broken(
          'ERR_KEEPALIVE_TIMEOUT',
          `the server ${verdict === 'blocked' ? 'stopped reading' : 'is silent'}`,
        ),
        undefined,
      )
  }

  #handleConnack(packet: ConnackPacket, now: number): void {
    const connect = this.#connect
    if (this.state !== 'connecting' || connect === undefined)
      return this.fail(0x82, 'second CONNACK')
    if (packet.reasonCode !== 0) {
      this.state = 'closed'
      this.actions.push({ type: 'refused', connack: packet })
      return
    }
    // The server accepted the connection: if we end it, DISCONNECT says why.
    this.state = 'connected'
    const objection = objectionTo(
      connect,
      packet,
      this.#config.ownsSession || this.negotiated !== undefined,
    )
    if (objection !== undefined) return this.fail(0x82, objection)
    const negotiated = negotiate(connect, packet, this.#config.pingTimeout)
    this.negotiated = negotiated
    const foreign = packet.sessionPresent && !this.known
    // What an earlier process had in flight is lost, too, where nothing else is known of its session.
    const lost = (this.known || this.sendWindow.size > 0) && !packet.sessionPresent
    const stale = this.receiveWindow.parked
    if (!packet.sessionPresent) this.reset()
    this.known = true
    this.authExchange.accept()
    this.#up = true
    const v4 = this.version === 4
    const most = Math.min(negotiated.receiveMaximum, v4 ? this.#window : this.#mostInFlight)
    this.sendWindow.start(
      most,
      foreign,
      v4,
      v4 ? (this.#config.maximumInflight ?? version4Exchanges) : undefined,
    )
    this.topics.start(negotiated.topicAliasMaximum)
    this.keepAlive = new KeepAlive(negotiated.pingTimeout, negotiated.keepAlive, now)
    this.actions.push({ type: 'connected', connack: packet, lost, stale })
  }

  // A server of 3.1.1 that takes no more in flight cannot say so, and may end the connection: the next one gets half.
  #handleLost(inFlight: number): void {
    this.#up = false
    this.faulty.handleLost()
    const narrows = this.version === 4 && inFlight > version4Exchanges
    this.#window = narrows
      ? Math.max(version4Exchanges, Math.floor(inFlight / 2))
      : this.#mostInFlight
  }
}

// Of a request that is in flight, with as many reason codes as there were filters; on 3.1.1 an UNSUBACK has none.
function isAnswer(
  { sendWindow, version }: Session,
  { type, packetId, reasonCodes }: SubackPacket | UnsubackPacket,
): boolean {
  const count = type === 'unsuback' && version === 4 ? undefined : reasonCodes.length
  return (
    sendWindow.handleAnswer(type === 'suback' ? 'subscribe' : 'unsubscribe', packetId, count) ===
    DONE
  )
}
