/**
 * The outgoing half of a connection: from a packet to bytes that the client accepts.
 *
 * Keeps the client's limits: Maximum Packet Size, Topic Alias Maximum, Request Problem Information. Every packet passes the `intercept` hook and
 * the faults first; aliases are decided last, when it is certain that the bytes leave.
 */
import type { Transport } from '../../transport/transport.js'
import { encode } from '../../wire/encode.js'
import type { ConnectPacket, Properties, ProtocolVersion, PublishPacket, ServerPacket } from '../../wire/packets.js'
import type { BrokerClock } from './clock.js'
import { type BrokerClient, report } from './events.js'
import type { FaultTable } from './fault-table.js'
import { Lane, type LaneEnds } from './lane.js'
import { deliveredProperties } from './message.js'
import type { Delivery } from './message-queue.js'
import type { BrokerSettings } from './options.js'
import type { OutboxLink } from './outbox.js'

/** What the output needs of its connection. */
export interface OutputHost {
  readonly clientId: string
  readonly over: boolean
  readonly accepted: BrokerClient | undefined
  readonly faults: FaultTable
  cut(): void
  finish(): void
  restart(keepSessions: boolean): void
  /** The packet is on its way. */
  sent(packet: ServerPacket): void
  /** A PUBREC said by a fault that the message was refused. */
  disown(packetId: number): void
}

const none: Properties = Object.freeze({})

/** See the file's comment. */
export class Output implements OutboxLink, LaneEnds<ServerPacket> {
  version: ProtocolVersion = 5
  receiveMaximum = 65_535
  congested = false
  /** True once CONNACK, or what a fault made of it, is on its way: no DISCONNECT goes before it [MQTT-3.14.0-1]. */
  welcomed = false
  /** Bytes of packets that went out. */
  bytes = 0
  readonly clock: BrokerClock
  readonly lane: Lane<ServerPacket>
  readonly #host: OutputHost
  readonly #transport: Transport
  readonly #settings: BrokerSettings
  #maximumPacketSize = Infinity
  #problemInformation = true
  #aliasMaximum = 0
  readonly #aliases = new Map<string, number>()
  /** Bytes written since the client stopped to read. */
  #backlog = 0

  constructor(host: OutputHost, transport: Transport, settings: BrokerSettings) {
    this.#host = host
    this.#transport = transport
    this.#settings = settings
    this.clock = settings.clock
    this.lane = new Lane('out', this)
  }

  get clientId(): string {
    return this.#host.clientId
  }

  get over(): boolean {
    return this.#host.over
  }

  get faults(): FaultTable {
    return this.#host.faults
  }

  /** Takes the client's limits from its CONNECT. */
  configure({ protocolVersion, properties }: ConnectPacket): void {
    this.version = protocolVersion
    this.receiveMaximum = Math.min(properties.receiveMaximum ?? 65_535, this.#settings.maxInflight)
    this.#maximumPacketSize = properties.maximumPacketSize ?? Infinity
    this.#problemInformation = properties.requestProblemInformation !== 0
    this.#aliasMaximum = this.#settings.assignTopicAliases ? (properties.topicAliasMaximum ?? 0) : 0
  }

  /** Sends a packet, if no hook or fault is against it. */
  send(packet: ServerPacket): void {
    if (this.over) return
    const { intercept } = this.#settings
    if (intercept === undefined) {
      this.lane.pass(packet)
      return
    }
    try {
      const other = intercept('out', packet, this.#host.accepted)
      if (other !== false && !this.over) this.lane.pass((other ?? packet) as ServerPacket)
    } catch (error) {
      report(error)
    }
  }

  publish({ message, qos, retain, identifiers }: Delivery, packetId: number | undefined, dup: boolean): boolean {
    const { topic, payload } = message
    const properties = this.version === 4 ? none : deliveredProperties(message, this.clock.now(), identifiers)
    const packet: PublishPacket = { type: 'publish', dup, qos, retain, topic, packetId, properties, payload }
    // Encoding only to measure is left out where the message is small in any case.
    const mayBeLarge = message.size + identifiers.length * 5 > this.#maximumPacketSize
    if (mayBeLarge && (this.#encode(packet)?.length ?? 0) > this.#maximumPacketSize) return false
    this.send(packet)
    return true
  }

  release(packetId: number, reasonCode: number): void {
    this.send({ type: 'pubrel', packetId, reasonCode: this.version === 4 ? 0 : reasonCode, properties: {} })
  }

  /** The client reads again. */
  drained(): void {
    this.congested = false
    this.#backlog = 0
  }

  deliver(packet: ServerPacket | Uint8Array): void {
    if (packet instanceof Uint8Array) {
      this.#write(packet)
      return
    }
    const bytes = this.#fitted(packet)
    if (bytes !== undefined) {
      this.#write(bytes)
      this.#host.sent(packet)
    } else if (packet.type === 'connack') this.#host.finish()
  }

  refuse(packet: ServerPacket, reasonCode: number): void {
    if (packet.type === 'pubrec' && reasonCode >= 0x80 && this.version === 5) this.#host.disown(packet.packetId)
    this.deliver(this.version === 4 ? restated311(packet, reasonCode) : restated(packet, reasonCode))
    if (packet.type === 'disconnect' || (packet.type === 'connack' && reasonCode > 0)) this.#host.finish()
  }

  cut(): void {
    this.#host.cut()
  }

  finish(): void {
    this.#host.finish()
  }

  restart(keepSessions: boolean): void {
    this.#host.restart(keepSessions)
  }

  /** As large as the client takes: what only explains is left out where it does not fit [MQTT-3.1.2-24]. */
  #fitted(packet: ServerPacket): Uint8Array | undefined {
    if (packet.type === 'publish') return this.#fittedPublish(packet)
    const kept = this.#problemInformation || packet.type === 'connack' || packet.type === 'disconnect' ? packet : withoutProblem(packet) // [MQTT-3.1.2-29]
    const bytes = this.#encode(kept)
    if (bytes === undefined || bytes.length <= this.#maximumPacketSize) return bytes
    const shorter = this.#encode(withoutProblem(kept))
    return shorter === undefined || shorter.length > this.#maximumPacketSize ? undefined : shorter
  }

  #fittedPublish(packet: PublishPacket): Uint8Array | undefined {
    const { topic, properties } = packet
    if (this.#aliasMaximum === 0 || properties.topicAlias !== undefined) return this.#whole(packet)
    const known = this.#aliases.get(topic)
    if (known !== undefined) return this.#whole({ ...packet, topic: '', properties: { ...properties, topicAlias: known } }) ?? this.#whole(packet)
    if (this.#aliases.size >= this.#aliasMaximum) return this.#whole(packet)
    const topicAlias = this.#aliases.size + 1
    const bytes = this.#whole({ ...packet, properties: { ...properties, topicAlias } })
    if (bytes === undefined) return this.#whole(packet)
    this.#aliases.set(topic, topicAlias)
    return bytes
  }

  #whole(packet: PublishPacket): Uint8Array | undefined {
    const bytes = this.#encode(packet)
    return bytes === undefined || bytes.length > this.#maximumPacketSize ? undefined : bytes
  }

  // What cannot be encoded came from a hook or a fault of the test.
  #encode(packet: ServerPacket): Uint8Array | undefined {
    try {
      return encode(packet, { protocolVersion: this.version })
    } catch (error) {
      report(error)
      return undefined
    }
  }

  #write(bytes: Uint8Array): void {
    this.bytes += bytes.length
    this.welcomed ||= this.#host.accepted !== undefined
    if (!this.#transport.write(bytes)) this.congested = true
    if (!this.congested) return
    this.#backlog += bytes.length
    if (this.#backlog > this.#settings.maxBacklog + bytes.length) this.#host.cut()
  }
}

/** Without Reason String and User Properties, which only explain. */
function withoutProblem<P extends ServerPacket>(packet: P): P {
  if (!('properties' in packet)) return packet
  const { reasonString: _reason, userProperties: _user, ...properties } = packet.properties
  return { ...packet, properties }
}

function restated(packet: ServerPacket, reasonCode: number): ServerPacket {
  if (packet.type === 'connack') return { ...packet, reasonCode, sessionPresent: false, properties: {} }
  if ('reasonCodes' in packet) return { ...packet, reasonCodes: packet.reasonCodes.map(() => reasonCode) }
  return 'reasonCode' in packet ? { ...packet, reasonCode } : packet
}

// 3.1.1 has codes in CONNACK and SUBACK only.
function restated311(packet: ServerPacket, reasonCode: number): ServerPacket {
  if (packet.type === 'connack') return { ...packet, reasonCode: returnCodeOf(reasonCode), sessionPresent: false }
  return packet.type === 'suback' ? { ...packet, reasonCodes: packet.reasonCodes.map(() => (reasonCode > 2 ? 0x80 : reasonCode)) } : packet
}

const returnCodes: Readonly<Record<number, number>> = { 0: 0, 132: 1, 133: 2, 134: 4, 135: 5, 140: 4 }

/** The CONNACK return code of 3.1.1 that comes nearest; one of its own stays as it is. */
export function returnCodeOf(reasonCode: number): number {
  return reasonCode <= 5 ? reasonCode : (returnCodes[reasonCode] ?? 3)
}
