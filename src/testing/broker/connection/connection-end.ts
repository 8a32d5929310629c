/**
 * How one connection ends: with or without DISCONNECT, at once or after pending output, and which
 * side ended it.
 *
 * A connection ends once; later reasons have no effect.
 */
import type { Transport } from '../../../transport/transport.js'
import { DISCONNECT } from '../../../wire/constants.js'
import type { Properties } from '../../../wire/packets.js'
import { isReasonCode } from '../../../wire/reason-codes.js'
import { after } from '../common/clock.js'
import { type HookName, report } from '../common/events.js'
import type { BrokerState } from '../state/broker-state.js'
import type { PacketSender } from './packet-sender.js'
import type { Peer } from './peer.js'
import type { ConnectionEnding } from './ports.js'

/** Milliseconds that the client has to end a stream after the broker has ended it. */
const lingerTime = 5000

/** The connection that is to end. */
export interface EndingConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly sender: PacketSender
  /** Called when the connection has ended: stops all work of the connection. */
  handleOver(): void
  restart(keepSessions: boolean): void
}

/** See the file's comment. */
export class ConnectionEnd implements ConnectionEnding {
  over = false
  gone = false
  readonly #connection: EndingConnection
  readonly #transport: Transport
  #linger: (() => void) | undefined
  #end: { by: 'client' | 'broker' | 'network'; reasonCode: number | undefined } = {
    by: 'network',
    reasonCode: undefined,
  }

  constructor(connection: EndingConnection, transport: Transport) {
    this.#connection = connection
    this.#transport = transport
  }

  cut(): void {
    this.#connection.sender.flush()
    this.#transport.destroy(new Error('the broker cut the connection'))
    this.#finishOnce('broker')
  }

  finish(): void {
    if (this.over) return
    const { broker, sender } = this.#connection
    sender.end(() => this.#transport.close())
    if (!this.gone)
      this.#linger = after(broker.clock, lingerTime, () =>
        this.#transport.destroy(new Error('the client did not end its stream')),
      )
    this.#finishOnce('broker')
  }

  /** [MQTT-3.14.0-1] [MQTT-4.13.2-1] */
  disconnect(reasonCode: number, properties: Properties = {}): void {
    if (this.over) return
    const { peer, sender } = this.#connection
    // 0x8C is in section 2.4, not in section 3.14.2.1 [MQTT-3.14.2-1].
    const code =
      isReasonCode(DISCONNECT, reasonCode, 'server') && reasonCode !== 0x8c ? reasonCode : 0x82
    this.#end = { by: 'broker', reasonCode: code }
    if (peer.welcomed && peer.protocolVersion === 5)
      sender.send({ type: 'disconnect', reasonCode: code, properties })
    this.finish()
  }

  leave(reasonCode: number): void {
    this.#end = { by: 'client', reasonCode }
    this.finish()
  }

  restart(keepSessions: boolean): void {
    this.#connection.restart(keepSessions)
  }

  failHook(hook: HookName, error: unknown): void {
    const { broker, peer } = this.#connection
    broker.reportHookError(hook, peer.clientId, error)
    this.cut()
  }

  /**
   * Ends the connection after a defect of the broker or a hook, and reports the error to the test.
   */
  fail(error: unknown): void {
    report(error)
    this.cut()
  }

  /** The client's stream has ended. */
  handleGone(): void {
    this.#linger?.()
    this.gone = true
  }

  /** The client's stream has ended and everything it sent was handled. */
  lose(): void {
    this.#finishOnce('network')
  }

  #finishOnce(by: 'broker' | 'network'): void {
    if (this.over) return
    this.over = true
    const { broker, peer } = this.#connection
    const end = this.#end.by === 'network' ? { by, reasonCode: undefined } : this.#end
    this.#connection.handleOver()
    if (peer.state === 'connected')
      broker.log.events.emit('disconnect', { client: peer.view, ...end })
  }
}
