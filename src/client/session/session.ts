/**
 * The client side of an MQTT session: handshake, keep-alive, what is in flight in both directions,
 * and who is at fault when it fails.
 *
 * Pure: no clock, randomness, platform or promise; `now` is an argument (milliseconds, monotonic).
 * Inputs are `handle…` methods and commands; outputs are `actions` and `acks`: the session never
 * sends by itself. Other code may read all other fields. After `close` was queued, nothing more is
 * accepted from the peer.
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

/** Configuration of a session. */
export interface SessionConfig {
  /** Most unacknowledged QoS 1 and 2 messages that the server may have sent, 1 to 65,535. */
  readonly receiveMaximum: number
  /**
   * Whether to tolerate a server that exceeds it or to disconnect with 0x93. Default `'tolerate'`.
   */
  readonly receiveMaximumExceeded?: 'tolerate' | 'disconnect'
  /** Topic Alias Maximum assumed when CONNECT has none. Default 0. */
  readonly unaskedAliases?: number
  /** Session Expiry Interval in seconds, used until there is a CONNECT. Default 0. */
  readonly sessionExpiryInterval?: number
  /** Milliseconds to wait for any byte after PINGREQ. */
  readonly pingTimeout: number
  /**
   * Most publishes in flight; the server's Receive Maximum applies if it is smaller. Default
   * 65,535; on 3.1.1, 20 of them at QoS 2.
   */
  readonly maximumInflight?: number | undefined
  /** The application says that the server may have a session, so Session Present 1 is accepted. */
  readonly ownsSession: boolean
  /**
   * First packet identifier in a session that this process does not know; should differ between
   * processes. Default 0.
   */
  readonly identifierBase?: number
}

/** State of the connection. */
export type SessionState = 'idle' | 'connecting' | 'connected' | 'closed'

/**
 * QoS 2 publishes in flight on 3.1.1, where servers cannot announce a limit: with its defaults,
 * mosquitto acknowledges more and loses them.
 */
const version4Exchanges = 20

/** Client side of a session. */
export class Session {
  /** Acknowledgements to write, in order, before anything else of the same turn. */
  readonly acks = new AckQueue()
  /** All other output, in order. */
  readonly actions: Action[] = []
  readonly receiveWindow: ReceiveWindow
  readonly sendWindow: SendWindow
  readonly aliases = new InboundAliases<TopicRecord>()
  /** Incoming messages that break a rule. */
  readonly faulty = new FaultyMessages()
  /** Aliases assigned to outgoing topics. */
  readonly topics = new OutboundAliases()
  /** Keep-alive of the connection; until CONNACK, that of the previous one. */
  keepAlive: KeepAlive
  readonly authExchange = new AuthExchange(this)
  /** Where the session state is stored. */
  persistence: PersistPort = forgetful
  /** This process has been connected in this session, so it knows the state. */
  known = false
  /** The limits from the latest CONNACK; undefined before the first. */
  negotiated: Negotiated | undefined
  // valid for the connection
  state: SessionState = 'idle'
  /** The protocol version of the connection. */
  version: 4 | 5 = 5
  /**
   * Session Expiry Interval of CONNECT, in seconds. If it was 0, DISCONNECT must not raise it
   * [MQTT-3.14.2-2].
   */
  openedFor: number
  /** The latest CONNECT, until it is accepted. */
  #connect: ConnectPacket | undefined
  /** CONNACK accepted the connection. */
  #up = false
  // valid for the client
  readonly #mostInFlight: number
  /** The limit of publishes in flight on 3.1.1, as learnt from lost connections. */
  #window: number
  readonly #config: SessionConfig

  constructor(config: SessionConfig) {
    this.#config = config
    this.openedFor = config.sessionExpiryInterval ?? 0
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

  /** When to call `handleTimeout`; Infinity for never. */
  get deadline(): number {
    return this.state === 'connected' ? this.keepAlive.deadline : Number.POSITIVE_INFINITY
  }

  // Commands

  /** Queues a packet. */
  send(packet: ClientPacket): void {
    this.actions.push({ type: 'send', packet })
  }

  /**
   * A transport is open and CONNECT is to follow. If it closes now, this client did not disconnect.
   */
  open(): void {
    this.state = 'idle'
  }

  /** A transport is open: CONNECT is its first packet [MQTT-3.1.0-1]. */
  connect(packet: ConnectPacket): void {
    const v5 = packet.protocolVersion === 5
    this.#connect = packet
    this.version = packet.protocolVersion
    this.openedFor = packet.properties.sessionExpiryInterval ?? 0
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

  /**
   * The connection is gone: what is in flight waits for the next one; queued output is discarded
   * [MQTT-4.4.0-1].
   */
  suspend(): void {
    if (this.state !== 'idle') this.state = 'closed'
    this.acks.clear()
    if (this.#up) this.#handleLost(this.sendWindow.inFlight)
    this.receiveWindow.suspend()
    this.sendWindow.suspend()
    this.actions.length = 0
  }

  /** Checks after a wake-up whether the server is still there. */
  probe(now: number): void {
    if (this.state !== 'connected' || this.keepAlive.probing) return
    this.keepAlive.probe(now)
    this.send({ type: 'pingreq' })
  }

  /** Sends PINGREQ, due or not. */
  ask(now: number): void {
    this.keepAlive.ask(now)
    this.send({ type: 'pingreq' })
  }

  /** Sends DISCONNECT as the last packet [MQTT-3.14.4-1], if connected. */
  disconnect(reasonCode: number, properties: Properties): void {
    if (this.state === 'connected') this.send({ type: 'disconnect', reasonCode, properties })
    this.state = 'closed'
    this.receiveWindow.handleClosing()
  }

  /**
   * Ends the connection because of a protocol error (section 4.13); after the handshake, with a
   * DISCONNECT.
   */
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

  /** Ends the connection for a local reason; without `reasonCode`, no DISCONNECT is sent. */
  close(error: MqttError, reasonCode: number | undefined): void {
    if (this.state === 'closed') return
    // A 3.1.1 server takes any DISCONNECT for a clean end and would not publish the will.
    const announced = this.state === 'connected' && this.version === 5 ? reasonCode : undefined
    this.state = 'closed'
    this.actions.push({ type: 'close', error, reasonCode: announced })
  }

  /** The session is gone, on the server or by choice: nothing in flight counts any more. */
  reset(): void {
    this.known = false
    this.receiveWindow.reset()
    this.sendWindow.reset()
    this.persistence.reset()
    this.acks.clear()
  }

  // Inputs

  /**
   * A control-plane packet came in. PUBLISH and its acknowledgements go directly to `receiveWindow`
   * and `sendWindow`.
   */
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
        // PINGRESP does not cover what was sent after its PINGREQ. Only when none is outstanding
        // will the next PINGREQ be sent after this point.
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

  /** True when packets other than CONNACK are allowed; otherwise ends the connection. */
  expectConnected(): boolean {
    if (this.state === 'connected') return true
    this.fail(0x82, 'packet before CONNACK', 'ERR_UNEXPECTED_PACKET')
    return false
  }

  /** The time given by `deadline` has been reached. */
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
    // The server accepted the connection, so ending it requires a DISCONNECT with the reason.
    this.state = 'connected'
    const objection = objectionTo(
      connect,
      packet,
      this.#config.ownsSession || this.negotiated !== undefined,
    )
    if (objection !== undefined) return this.fail(0x82, objection)
    const negotiated = negotiate(connect, packet, this.#config.pingTimeout)
    this.negotiated = negotiated
    this.#connect = undefined
    const foreign = packet.sessionPresent && !this.known
    // Messages that an earlier process had in flight are lost as well.
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

  // A 3.1.1 server cannot announce how many messages it accepts in flight, and may end the
  // connection instead: the next connection gets half.
  #handleLost(inFlight: number): void {
    this.#up = false
    this.faulty.handleLost()
    const narrows = this.version === 4 && inFlight > version4Exchanges
    this.#window = narrows
      ? Math.max(version4Exchanges, Math.floor(inFlight / 2))
      : this.#mostInFlight
  }
}

// True for the answer to a request in flight with the right number of reason codes (UNSUBACK has
// none on 3.1.1).
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
