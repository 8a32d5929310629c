/**
 * Accepts and closes the connections of a broker, holds what they share, and notices when the last
 * one has ended.
 *
 * Nothing here throws, except for wrong arguments of the test.
 */
import type { Transport } from '../../transport/transport.js'
import type { BrokerSettings } from './common/options.js'
import { BrokerConnection } from './connection/broker-connection.js'
import type { ConnectionOwner, HandledConnection } from './connection/ports.js'
import { BrokerState } from './state/broker-state.js'

const windowSize = 65_536

/** See the file's comment. */
export class BrokerCore implements ConnectionOwner {
  readonly state: BrokerState
  readonly connections = new Set<HandledConnection>()
  closed = false
  /** Open streams, including those of connections that have ended. */
  readonly #streams = new Set<HandledConnection>()
  #idle: (() => void) | undefined
  #window: Uint8Array | undefined

  constructor(settings: BrokerSettings) {
    this.state = new BrokerState(settings)
  }

  get settings(): BrokerSettings {
    return this.state.settings
  }

  /**
   * The buffer that transports read into. Each read is handled before the next one, so one buffer
   * serves all.
   */
  get window(): Uint8Array {
    this.#window ??= new Uint8Array(windowSize)
    return this.#window
  }

  accept(transport: Transport, remote: string | undefined): void {
    if (this.closed || this.connections.size >= this.state.settings.maxConnections) {
      transport.destroy(new Error('the broker takes no connections'))
      return
    }
    const connection = new BrokerConnection(this, transport, remote)
    this.connections.add(connection)
    this.#streams.add(connection)
  }

  forget(connection: HandledConnection): void {
    this.connections.delete(connection)
    this.state.sessions.leave(connection.peer, connection.end, connection.sender)
  }

  forgetStream(connection: HandledConnection): void {
    this.#streams.delete(connection)
    if (this.#streams.size === 0) this.#idle?.()
  }

  /** Fulfils when all streams have ended. */
  idle(): Promise<void> {
    if (this.#streams.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#idle = resolve
    })
  }

  /** Cuts all connections. Without `keepSessions`, all state is discarded, wills included. */
  restart(keepSessions: boolean): void {
    const { sessions, retained, wills } = this.state
    if (!keepSessions) {
      sessions.clear()
      retained.clear()
      wills.forget()
    }
    // Cutting publishes wills: detached first, no client receives one before it has reconnected.
    for (const { peer, sender } of this.connections) peer.session?.deliveries.detach(sender)
    for (const { end } of [...this.connections]) end.cut()
  }

  close(): void {
    const { sessions, wills } = this.state
    this.closed = true
    wills.forget()
    for (const session of sessions.byClientId.values()) session.will?.cancel()
    for (const { peer, end } of [...this.connections]) {
      peer.will = undefined
      end.disconnect(0x8b)
    }
    sessions.clear()
  }
}
