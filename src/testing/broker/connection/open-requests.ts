/**
 * Unanswered requests of a client on one connection: PUBLISH, SUBSCRIBE and UNSUBSCRIBE by packet
 * identifier, and PUBREC without PUBREL.
 *
 * It only counts: violations are reported where packets are handled.
 */
import type { ServerPacket } from '../../../wire/packets.js'
import type { Peer } from './peer.js'

/** The packets that are answered by packet identifier. */
export type RequestKind = 'publish' | 'subscribe' | 'unsubscribe'

/** See the file's comment. */
export class OpenRequests {
  /** How many of the requests are PUBLISH [MQTT-3.3.4-7]. */
  publishes = 0
  readonly #peer: Peer
  readonly #kinds = new Map<number, RequestKind>()
  /** Identifiers of the PUBLISH packets at QoS 1. */
  readonly #atQoS1 = new Set<number>()
  /** PUBREC packets sent on this connection and not answered, in order. */
  readonly #receipts = new Set<number>()

  constructor(peer: Peer) {
    this.#peer = peer
  }

  has(packetId: number): boolean {
    return this.#kinds.has(packetId)
  }

  add(packetId: number, kind: RequestKind, qos: number): void {
    this.#kinds.set(packetId, kind)
    if (kind !== 'publish') return
    if (qos === 1) this.#atQoS1.add(packetId)
    this.publishes++
  }

  /** Called for each packet sent to the client: it may be an answer. */
  handleSent(packet: ServerPacket): void {
    if (packet.type === 'pubrec' && packet.reasonCode < 0x80) {
      this.#receipts.delete(packet.packetId)
      this.#receipts.add(packet.packetId)
    }
    const kind = settled(packet)
    if (
      kind === undefined ||
      !('packetId' in packet) ||
      packet.packetId === undefined ||
      this.#kinds.get(packet.packetId) !== kind
    )
      return
    // A refusal because the identifier is in use settles only a QoS 1 request of this connection
    // [MQTT-4.9.0-2].
    const ends =
      this.#atQoS1.delete(packet.packetId) ||
      this.#peer.session?.unreleased.has(packet.packetId) !== true
    if (kind === 'publish' && !ends) return
    if (kind === 'publish') this.publishes--
    this.#kinds.delete(packet.packetId)
  }

  /** A PUBREL answered a PUBREC; false when an earlier PUBREC is still unanswered. */
  takeReceipt(packetId: number): boolean {
    const isFirst = this.#receipts.values().next().value === packetId
    return !this.#receipts.delete(packetId) || isFirst
  }
}

/** The kind of request that a packet settles; undefined if none. */
function settled(packet: ServerPacket): RequestKind | undefined {
  if (
    packet.type === 'puback' ||
    packet.type === 'pubcomp' ||
    (packet.type === 'pubrec' && packet.reasonCode >= 0x80)
  )
    return 'publish'
  if (packet.type === 'suback') return 'subscribe'
  return packet.type === 'unsuback' ? 'unsubscribe' : undefined
}
