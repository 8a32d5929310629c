/**
 * The path of an incoming packet: through faults and the `intercept` hook to its handler.
 *
 * The handlers are in `handshake.ts` and `requests.ts`. While a hook decides on one packet, later
 * ones wait. Received data never makes this throw, and nothing is handled after the end.
 */
import type { Transport } from '../../../transport/transport.js'
import type { WireError } from '../../../wire/error.js'
import type { ClientPacket } from '../../../wire/packets.js'
import { type Eventually, isPromise } from '../common/hooks.js'
import { intercept } from '../common/interception.js'
import type { BrokerHooks } from '../common/options.js'
import type { ConnectionEnd } from './connection-end.js'
import type { ConnectionTimers } from './connection-timers.js'
import { type FaultEnds, FaultInjector } from './fault-injector.js'
import { handleEarly, handleWireError, refuseConnect } from './handshake.js'
import { HookBacklog } from './hook-backlog.js'
import type { Peer } from './peer.js'
import type { HandledConnection } from './ports.js'
import { handleRequest, refuseRequest } from './requests.js'

/** The connection that the packets came in on. */
export interface ReceivingConnection extends HandledConnection {
  readonly end: ConnectionEnd
}

/** See the file's comment. */
export class IncomingPackets implements FaultEnds<ClientPacket> {
  /** True while a copy made by a fault is handled: violations of such a copy are not counted. */
  lenient = false
  readonly #connection: ReceivingConnection
  readonly #peer: Peer
  readonly #hook: BrokerHooks['intercept']
  readonly #timers: ConnectionTimers
  readonly #faults: FaultInjector<ClientPacket>
  readonly #backlog: HookBacklog

  constructor(connection: ReceivingConnection, transport: Transport, timers: ConnectionTimers) {
    this.#connection = connection
    this.#peer = connection.peer
    this.#hook = connection.broker.settings.intercept
    this.#timers = timers
    this.#faults = new FaultInjector('in', connection, this)
    this.#backlog = new HookBacklog(transport, connection.broker.settings.maxBacklog)
  }

  /** Whether a hook call for a packet of this client is pending. */
  get isThinking(): boolean {
    return this.#backlog.thinking > 0
  }

  /** True when no packet waits for a hook. */
  get isEmpty(): boolean {
    return this.#backlog.isEmpty
  }

  /** Takes a packet from the decoder. */
  receive(packet: ClientPacket): void {
    const peer = this.#peer
    this.#timers.hear()
    if (peer.state === 'new' && packet.type === 'connect') peer.clientId = packet.clientId
    this.#faults.pass(packet)
  }

  /** Handles bytes that are not a packet. */
  receiveError(error: WireError): void {
    if (this.isThinking && this.#peer.state === 'connected')
      this.#wait(() => handleWireError(this.#connection, error), 0)
    else handleWireError(this.#connection, error)
  }

  /** Takes an incoming packet that passed the faults. */
  deliver(packet: ClientPacket | Uint8Array, again: boolean): void {
    if (packet instanceof Uint8Array) return
    if (!this.isThinking || this.#endsHandshake(packet)) this.#take(packet, again)
    else
      this.#wait(
        () => this.#take(packet, again),
        packet.type === 'publish' ? packet.payload.length : 0,
      )
  }

  refuse(packet: ClientPacket, reasonCode: number): void {
    if (packet.type !== 'connect') refuseRequest(this.#connection, packet, reasonCode)
    else if (this.#peer.state === 'new') {
      this.#connection.sender.configure(packet)
      refuseConnect(this.#connection, reasonCode)
    }
  }

  /** See {@link HandledConnection.decide}. */
  decide<T>(given: Eventually<T>, next: (value: T) => void): void {
    if (!isPromise(given)) {
      next(given)
      return
    }
    const { lenient } = this
    const { broker, end } = this.#connection
    this.#backlog.thinking++
    void given.then((value) => {
      this.#backlog.thinking--
      if (end.over) return
      this.#timers.hear()
      broker.writes.begin()
      this.#guard(lenient, () => next(value))
      this.#goOn()
      broker.writes.end()
    })
  }

  /** Discards waiting packets. */
  stop(): void {
    this.#faults.stop()
    this.#backlog.clear()
  }

  #take(packet: ClientPacket, again: boolean): void {
    this.lenient = again
    try {
      this.#handle(packet)
    } catch (error) {
      this.#connection.end.fail(error)
    } finally {
      this.lenient = false
    }
  }

  #guard(lenient: boolean, run: () => void): void {
    this.lenient = lenient
    try {
      run()
    } catch (error) {
      this.#connection.end.fail(error)
    } finally {
      this.lenient = false
    }
  }

  #handle(packet: ClientPacket): void {
    if (this.#hook === undefined) {
      this.#understand(packet)
      return
    }
    const { broker, end } = this.#connection
    this.decide(intercept(broker, this.#hook, this.#peer, 'in', packet), (taken) => {
      if (taken === undefined) end.cut()
      else if (taken !== false && !end.over) this.#understand(taken)
    })
  }

  #understand(packet: ClientPacket): void {
    if (this.#peer.state === 'connected') handleRequest(this.#connection, packet)
    else handleEarly(this.#connection, packet)
  }

  /**
   * True for a packet that ends a connection before CONNACK whatever the hook decides; nothing of
   * it may be handled then [MQTT-3.1.4-6].
   */
  #endsHandshake({ type }: ClientPacket): boolean {
    if (this.#peer.state !== 'authenticating') return false
    return type === 'connect' || type === 'auth' || (type === 'disconnect' && this.#backlog.isEmpty)
  }

  #wait(run: () => void, size: number): void {
    if (!this.#backlog.add(run, size, this.#peer.state === 'connected')) this.#refuseFlood()
  }

  #refuseFlood(): void {
    const text = 'too much was sent while a hook was asked'
    if (this.#peer.state === 'connected')
      this.#connection.end.disconnect(0x97, { reasonString: text })
    else refuseConnect(this.#connection, 0x97, text)
  }

  #goOn(): void {
    const { end } = this.#connection
    this.#backlog.goOn(end)
    if (!end.over && end.gone && !this.isThinking) end.lose()
  }
}
