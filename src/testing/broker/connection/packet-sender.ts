/**
 * Sends packets on one connection: through the `intercept` hook, the faults and the client's limits
 * to the transport.
 *
 * It sends what it is given, in order. `session-deliveries.ts` chooses the next message of a
 * session.
 */
import type { Transport } from '../../../transport/transport.js'
import type {
  ConnectPacket,
  Properties,
  PublishPacket,
  ServerPacket,
} from '../../../wire/packets.js'
import type { Eventually } from '../common/hooks.js'
import { deliveredProperties } from '../common/message.js'
import { deliveryVerdict } from '../common/verdicts.js'
import type { BrokerState } from '../state/broker-state.js'
import type { Delivery } from '../state/message-queue.js'
import { type FaultEnds, FaultInjector } from './fault-injector.js'
import { type InterceptEnds, InterceptQueue } from './intercept-queue.js'
import { LimitedEncoder } from './limited-encoder.js'
import type { OpenRequests } from './open-requests.js'
import type { Peer } from './peer.js'
import type { AnswerWriter, CarryingConnection, ConnectionLife } from './ports.js'
import { restated, restated311 } from './restated.js'
import { TransportWriter } from './transport-writer.js'

const none: Properties = Object.freeze({})

/** See the file's comment. */
export class PacketSender implements AnswerWriter, FaultEnds<ServerPacket>, InterceptEnds {
  receiveMaximum = 65_535
  readonly #broker: BrokerState
  readonly #peer: Peer
  readonly #life: ConnectionLife
  readonly #requests: OpenRequests
  readonly #intercepted: InterceptQueue
  readonly #faults: FaultInjector<ServerPacket>
  readonly #encoder: LimitedEncoder
  readonly #writer: TransportWriter
  /** Whether the hook sees every packet. */
  readonly #isIntercepting: boolean

  constructor(connection: CarryingConnection, requests: OpenRequests, transport: Transport) {
    const { broker, peer, end } = connection
    this.#broker = broker
    this.#peer = peer
    this.#life = end
    this.#requests = requests
    this.#isIntercepting = broker.settings.intercept !== undefined
    this.#intercepted = new InterceptQueue(connection, this)
    this.#faults = new FaultInjector('out', connection, this)
    this.#encoder = new LimitedEncoder(broker, peer)
    this.#writer = new TransportWriter(transport, broker.writes, end, broker.settings.maxBacklog)
  }

  get congested(): boolean {
    return this.#writer.isFull || this.#intercepted.isHolding
  }

  get isLost(): boolean {
    return this.#writer.isLost
  }

  configure(connect: ConnectPacket): void {
    this.#peer.protocolVersion = connect.protocolVersion
    this.receiveMaximum = Math.min(
      connect.properties.receiveMaximum ?? 65_535,
      this.#broker.settings.maxInflight,
    )
    this.#encoder.configure(connect)
  }

  send(packet: ServerPacket): void {
    if (this.#life.over) return
    if (this.#isIntercepting) this.#intercepted.send(packet)
    else this.#faults.pass(packet)
  }

  publish(delivery: Delivery, packetId: number | undefined, dup: boolean): boolean {
    if (!this.#isIntercepting && this.#faults.isClear) {
      const bytes = this.#encoder.encodeShared(delivery, packetId, dup)
      if (bytes === 'large') return false
      if (bytes !== undefined) this.#write(bytes)
      return true
    }
    const { message, qos, retain, identifiers } = delivery
    const { topic, payload } = message
    const properties =
      this.#peer.protocolVersion === 4
        ? none
        : deliveredProperties(message, this.#broker.clock.now(), identifiers)
    const packet: PublishPacket = {
      type: 'publish',
      dup,
      qos,
      retain,
      topic,
      packetId,
      properties,
      payload,
    }
    if (this.#encoder.isTooLarge(packet, message.size + identifiers.length * 5)) return false
    this.send(packet)
    return true
  }

  release(packetId: number, reasonCode: number): void {
    this.send({
      type: 'pubrel',
      packetId,
      reasonCode: this.#peer.protocolVersion === 4 ? 0 : reasonCode,
      properties: {},
    })
  }

  allows({ message }: Delivery): Eventually<boolean> {
    return deliveryVerdict(this.#broker, this.#peer.view, message)
  }

  /** Calls back once the hook holds no packet and the batch is written. */
  end(end: () => void): void {
    this.#intercepted.end(() => {
      this.#writer.flush()
      end()
    })
  }

  /** Writes the current batch. */
  flush(): void {
    this.#writer.flush()
  }

  /** The client's stream has ended: nothing more can be written. */
  lose(): void {
    this.#writer.lose()
  }

  /** Discards packets held by faults. */
  stop(): void {
    this.#faults.stop()
  }

  /** The client reads again. */
  handleDrain(): void {
    this.#writer.handleDrain()
    this.handleReleased()
  }

  /** Continues sending: the hook holds no packet any more, or the client reads again. */
  handleReleased(): void {
    const { writes } = this.#broker
    writes.begin()
    this.#peer.session?.deliveries.flush()
    writes.end()
  }

  pass(packet: ServerPacket): void {
    this.#faults.pass(packet)
  }

  deliver(packet: ServerPacket | Uint8Array): void {
    if (packet instanceof Uint8Array) {
      this.#write(packet)
      return
    }
    const bytes = this.#encoder.encode(packet)
    if (bytes !== undefined) {
      this.#write(bytes)
      this.#requests.handleSent(packet)
    } else if (packet.type === 'connack') this.#life.finish()
  }

  refuse(packet: ServerPacket, reasonCode: number): void {
    const { session, protocolVersion } = this.#peer
    // The client learns that the message was refused, so its identifier is free.
    if (packet.type === 'pubrec' && reasonCode >= 0x80 && protocolVersion === 5)
      session?.unreleased.delete(packet.packetId)
    this.deliver(
      protocolVersion === 4 ? restated311(packet, reasonCode) : restated(packet, reasonCode),
    )
    if (packet.type === 'disconnect' || (packet.type === 'connack' && reasonCode > 0))
      this.#life.finish()
  }

  #write(bytes: Uint8Array): void {
    if (this.#writer.isLost) return
    this.#peer.bytesOut += bytes.length
    this.#peer.welcomed ||= this.#peer.state === 'connected'
    this.#writer.write(bytes)
  }
}
