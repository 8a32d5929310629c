/**
 * Encodes packets within one client's limits: Maximum Packet Size, Topic Alias Maximum and Request
 * Problem Information.
 *
 * Aliases are assigned here, as the last step, so bytes returned from here must be sent.
 */
import { encode } from '../../../wire/encode.js'
import type { ConnectPacket, PublishPacket, ServerPacket } from '../../../wire/packets.js'
import type { PublishBytes, Variation } from '../common/publish-bytes.js'
import type { BrokerState } from '../state/broker-state.js'
import type { Delivery } from '../state/message-queue.js'
import type { Peer } from './peer.js'
import { withoutProblem } from './restated.js'

/** See the file's comment. */
export class LimitedEncoder {
  readonly #broker: BrokerState
  readonly #peer: Peer
  #maximumPacketSize = Infinity
  #problemInformation = true
  #aliasMaximum = 0
  /** Aliases assigned by the broker, by topic. */
  readonly #aliases = new Map<string, number>()

  constructor(broker: BrokerState, peer: Peer) {
    this.#broker = broker
    this.#peer = peer
  }

  /** Takes the client's limits from its CONNECT. */
  configure({ properties }: ConnectPacket): void {
    this.#maximumPacketSize = properties.maximumPacketSize ?? Infinity
    this.#problemInformation = properties.requestProblemInformation !== 0
    this.#aliasMaximum = this.#broker.settings.assignTopicAliases
      ? (properties.topicAliasMaximum ?? 0)
      : 0
  }

  /**
   * Whether a PUBLISH exceeds the client's Maximum Packet Size. `estimate` must be at least its
   * encoded size, so that small packets need not be encoded to be measured.
   */
  isTooLarge(packet: PublishPacket, estimate: number): boolean {
    const mayBeLarge = estimate > this.#maximumPacketSize
    return mayBeLarge && (this.#bytesOf(packet)?.length ?? 0) > this.#maximumPacketSize
  }

  /**
   * Encodes within the client's packet size: explanatory properties are left out if needed
   * [MQTT-3.1.2-24]. Undefined when nothing fits.
   */
  encode(packet: ServerPacket): Uint8Array | undefined {
    if (packet.type === 'publish') return this.#publish(packet)
    const kept =
      this.#problemInformation || packet.type === 'connack' || packet.type === 'disconnect'
        ? packet
        : withoutProblem(packet) // [MQTT-3.1.2-29]
    const bytes = this.#bytesOf(kept)
    if (bytes === undefined || bytes.length <= this.#maximumPacketSize) return bytes
    const shorter = this.#bytesOf(withoutProblem(kept))
    return shorter === undefined || shorter.length > this.#maximumPacketSize ? undefined : shorter
  }

  /**
   * Encodes the PUBLISH of a delivery that no hook or fault sees: only the parts that differ for
   * this client. `'large'` when it exceeds the client's Maximum Packet Size; undefined when it
   * cannot be encoded, which is reported.
   */
  encodeShared(
    { message, qos, retain, identifiers }: Delivery,
    packetId: number | undefined,
    dup: boolean,
  ): Uint8Array | 'large' | undefined {
    const { publishBytes, clock } = this.#broker
    const hasProperties = this.#peer.protocolVersion === 5
    const variation: Variation = {
      qos,
      retain,
      dup,
      packetId,
      hasProperties,
      identifiers,
      alias: 0,
      hasTopic: true,
    }
    try {
      publishBytes.take(message)
    } catch (error) {
      this.#broker.reportHookError('faults', this.#peer.clientId, error)
      return undefined
    }
    if (publishBytes.size(variation) > this.#maximumPacketSize) return 'large'
    if (this.#aliasMaximum > 0) this.#useAlias(publishBytes, message.topic, variation)
    return publishBytes.write(variation, clock.now())
  }

  #publish(packet: PublishPacket): Uint8Array | undefined {
    const { topic, properties } = packet
    if (this.#aliasMaximum === 0 || properties.topicAlias !== undefined) return this.#whole(packet)
    const known = this.#aliases.get(topic)
    if (known !== undefined)
      return (
        this.#whole({ ...packet, topic: '', properties: { ...properties, topicAlias: known } }) ??
        this.#whole(packet)
      )
    if (this.#aliases.size >= this.#aliasMaximum) return this.#whole(packet)
    const topicAlias = this.#aliases.size + 1
    const bytes = this.#whole({ ...packet, properties: { ...properties, topicAlias } })
    if (bytes === undefined) return this.#whole(packet)
    this.#aliases.set(topic, topicAlias)
    return bytes
  }

  #whole(packet: PublishPacket): Uint8Array | undefined {
    const bytes = this.#bytesOf(packet)
    return bytes === undefined || bytes.length > this.#maximumPacketSize ? undefined : bytes
  }

  /** Uses or assigns a topic alias, if the packet fits with it. */
  #useAlias(publishBytes: PublishBytes, topic: string, variation: Variation): void {
    const known = this.#aliases.get(topic)
    if (known === undefined && this.#aliases.size >= this.#aliasMaximum) return
    variation.alias = known ?? this.#aliases.size + 1
    variation.hasTopic = known === undefined
    if (publishBytes.size(variation) > this.#maximumPacketSize) {
      variation.alias = 0
      variation.hasTopic = true
    } else if (known === undefined) this.#aliases.set(topic, variation.alias)
  }

  // A packet that cannot be encoded came from a hook or fault of the test.
  #bytesOf(packet: ServerPacket): Uint8Array | undefined {
    try {
      return encode(packet, { protocolVersion: this.#peer.protocolVersion })
    } catch (error) {
      this.#broker.reportHookError(
        this.#broker.settings.intercept === undefined ? 'faults' : 'intercept',
        this.#peer.clientId,
        error,
      )
      return undefined
    }
  }
}
