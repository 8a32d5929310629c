/**
 * One connection of a client: creates and connects the parts that send, receive, time and end it.
 *
 * Received data never makes it throw into the transport.
 */
import type { Sink, Transport } from '../../../transport/transport.js'
import { Decoder } from '../../../wire/decode.js'
import { WireError } from '../../../wire/error.js'
import type { ClientPacket } from '../../../wire/packets.js'
import type { Eventually } from '../common/hooks.js'
import type { BrokerState } from '../state/broker-state.js'
import { ConnectionEnd, type EndingConnection } from './connection-end.js'
import { ConnectionTimers } from './connection-timers.js'
import { endHandshake } from './handshake.js'
import { IncomingPackets, type ReceivingConnection } from './incoming-packets.js'
import { OpenRequests } from './open-requests.js'
import { PacketSender } from './packet-sender.js'
import { Peer } from './peer.js'
import type { ConnectionOwner } from './ports.js'

/** See the file's comment. */
export class BrokerConnection implements Sink, ReceivingConnection, EndingConnection {
  readonly broker: BrokerState
  readonly peer: Peer
  readonly requests: OpenRequests
  readonly sender: PacketSender
  readonly end: ConnectionEnd
  readonly #owner: ConnectionOwner
  readonly #decoder: Decoder
  readonly #timers: ConnectionTimers
  readonly #incoming: IncomingPackets

  constructor(owner: ConnectionOwner, transport: Transport, remote: string | undefined) {
    const { settings, clock } = owner.state
    this.#owner = owner
    this.broker = owner.state
    this.peer = new Peer(remote)
    this.requests = new OpenRequests(this.peer)
    this.end = new ConnectionEnd(this, transport)
    this.sender = new PacketSender(this, this.requests, transport)
    this.#decoder = new Decoder({ from: 'client', maximumPacketSize: settings.maximumPacketSize })
    this.#timers = new ConnectionTimers(clock, this.end)
    this.#incoming = new IncomingPackets(this, transport, this.#timers)
    this.#timers.later(settings.connectTimeout, () => {
      if (this.peer.state === 'new')
        this.violate('no CONNECT in time [MQTT-3.1.0-1]', undefined, 0x80)
      else if (this.peer.state === 'authenticating') endHandshake(this, this.#incoming.isThinking)
    })
    transport.open(this)
  }

  buffer(): Uint8Array {
    return this.#owner.window
  }

  read(length: number): void {
    this.chunk(this.#owner.window.subarray(0, length))
  }

  chunk(bytes: Uint8Array): void {
    if (this.end.over) return
    this.peer.count(bytes)
    this.broker.writes.begin()
    try {
      for (const packet of this.#decoder.push(bytes)) {
        // Messages are kept for long, and hooks may do anything with them: not in shared memory.
        if (packet.type === 'publish') packet.payload = new Uint8Array(packet.payload)
        this.#incoming.receive(packet as ClientPacket)
        if (this.end.over) return
      }
      // Part of a large packet over a slow link also resets the keep-alive timer.
      if (this.#decoder.pending > 0) this.#timers.hear()
    } catch (error) {
      if (error instanceof WireError) this.#incoming.receiveError(error)
      else this.end.fail(error)
    } finally {
      this.broker.writes.end()
    }
  }

  drain(): void {
    this.sender.handleDrain()
  }

  closed(): void {
    const { end, peer, sender } = this
    end.handleGone()
    this.#owner.forgetStream(this)
    sender.lose()
    // Packets sent before the end still count.
    const isDone =
      !this.#incoming.isThinking ||
      end.over ||
      (peer.state !== 'connected' && this.#incoming.isEmpty)
    if (isDone) end.lose()
    else peer.session?.deliveries.detach(sender)
  }

  decide<T>(given: Eventually<T>, next: (value: T) => void): void {
    this.#incoming.decide(given, next)
  }

  violate(text: string, packet: ClientPacket['type'] | undefined, reasonCode?: number): void {
    if (this.#incoming.lenient) return
    this.broker.log.addViolation({ clientId: this.peer.clientId, packet, reasonCode, text })
    if (reasonCode !== undefined) this.end.disconnect(reasonCode, { reasonString: text })
  }

  /**
   * Closes after one and a half times the Keep Alive without a packet, or a part of one
   * [MQTT-3.1.2-22].
   */
  begin(): void {
    const { keepAlive } = this.peer
    this.peer.state = 'connected'
    if (keepAlive > 0) this.#watch(keepAlive * 1500)
  }

  restart(keepSessions: boolean): void {
    this.#owner.restart(keepSessions)
  }

  handleOver(): void {
    this.#timers.stop()
    this.#incoming.stop()
    this.sender.stop()
    this.#owner.forget(this)
  }

  #watch(limit: number): void {
    const isBusy = (): boolean => this.#incoming.isThinking
    this.#timers.watchSilence(limit, isBusy, () =>
      this.violate(
        'silent for more than one and a half times the keep alive [MQTT-3.1.2-22]',
        undefined,
        0x8d,
      ),
    )
  }
}
