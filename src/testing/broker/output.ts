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
import type { BrokerClient, HookName } from './events.js'
import type { FaultTable } from './fault-table.js'
import { type Eventually, isPromise } from './hooks.js'
import { type Intercepted, intercept } from './interception.js'
import { Lane, type LaneEnds } from './lane.js'
import { deliveredProperties } from './message.js'
import type { Delivery } from './message-queue.js'
import type { BrokerSettings } from './options.js'
import type { OutboxLink } from './outbox.js'
import type { PublishBytes, Variation } from './publish-bytes.js'
import { deliveryVerdict, type VerdictHost } from './verdicts.js'
import type { WriteBatch, Writing } from './write-batch.js'

/** What the output needs of its connection. */
export interface OutputHost {
  readonly core: VerdictHost & { readonly writes: WriteBatch; readonly publishBytes: PublishBytes }
  readonly client: BrokerClient
  readonly clientId: string
  readonly over: boolean
  readonly accepted: BrokerClient | undefined
  readonly faults: FaultTable
  cut(): void
  finish(): void
  restart(keepSessions: boolean): void
  failHook(hook: HookName, error: unknown): void
  /** There is room again, or nothing to wait for any more. */
  relieved(): void
  /** The packet is on its way. */
  sent(packet: ServerPacket): void
  /** A PUBREC said by a fault that the message was refused. */
  disown(packetId: number): void
}

const none: Properties = Object.freeze({})

/** Packets from so many bytes on do not wait for others. */
const largePacket = 16_384

/** So many bytes never wait for more. */
const mostInBatch = 65_536

/** Packets that wait behind one that the hook thinks about. */
const mostHeld = 10_000

/** See the file's comment. */
export class Output implements OutboxLink, LaneEnds<ServerPacket>, Writing {
  version: ProtocolVersion = 5
  receiveMaximum = 65_535
  /** True once CONNACK, or what a fault made of it, is on its way: no DISCONNECT goes before it [MQTT-3.14.0-1]. */
  welcomed = false
  /** Bytes of packets that went out. */
  bytes = 0
  readonly clock: BrokerClock
  readonly lane: Lane<ServerPacket>
  readonly #host: OutputHost
  readonly #transport: Transport
  readonly #settings: BrokerSettings
  /** So many bytes do not wait for more: what waits must stay far below what a client may leave unread. */
  readonly #fullBatch: number
  #maximumPacketSize = Infinity
  #problemInformation = true
  #aliasMaximum = 0
  readonly #aliases = new Map<string, number>()
  /** Bytes written since the client stopped to read. */
  #backlog = 0
  #full = false
  #lost = false
  /** Packets behind one that the hook thinks about; undefined when it does not. */
  #held: ServerPacket[] | undefined
  /** Packets that leave together at the end of the batch. */
  #batch: Uint8Array[] = []
  #batchBytes = 0
  /** Ends the stream once nothing is held any more. */
  #end: (() => void) | undefined

  constructor(host: OutputHost, transport: Transport, settings: BrokerSettings) {
    this.#host = host
    this.#transport = transport
    this.#settings = settings
    this.#fullBatch = Math.min(mostInBatch, settings.maxBacklog / 4)
    this.clock = settings.clock
    this.lane = new Lane('out', this)
  }

  get clientId(): string {
    return this.#host.clientId
  }

  get over(): boolean {
    return this.#host.over
  }

  get congested(): boolean {
    return this.#full || this.#held !== undefined
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
    if (this.#settings.intercept === undefined) this.lane.pass(packet)
    else if (this.#held === undefined) this.#intercept(this.#settings.intercept, packet)
    else if (this.#held.push(packet) > mostHeld) this.#host.cut()
  }

  /** Ends the stream when everything is on its way. */
  end(end: () => void): void {
    this.#end = () => {
      this.flush()
      end()
    }
    if (this.#held === undefined) this.#end()
  }

  /** The client is gone: nothing can be written any more. */
  lose(): void {
    this.#lost = true
    this.#batch = []
  }

  /** Writes what waits for the end of the batch. */
  flush(): void {
    const [first, ...more] = this.#batch
    if (first === undefined) return
    const total = this.#batchBytes
    this.#batch = []
    this.#batchBytes = 0
    this.#hand(more.length === 0 ? first : joined([first, ...more], total))
  }

  /** Whether the client may have a message. */
  allows({ message }: Delivery): Eventually<boolean> {
    return deliveryVerdict(this.#host.core, this.#host.client, message)
  }

  failHook(hook: HookName, error: unknown): void {
    this.#host.failHook(hook, error)
  }

  publish(delivery: Delivery, packetId: number | undefined, dup: boolean): boolean {
    if (this.#settings.intercept === undefined && this.lane.isClear) return this.#publishShared(delivery, packetId, dup)
    const { message, qos, retain, identifiers } = delivery
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
    this.#full = false
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
      this.#host.core.tell(this.#settings.intercept === undefined ? 'faults' : 'intercept', this.clientId, error)
      return undefined
    }
  }

  /** Nobody looks at the packet: only what is different for this client is encoded. */
  #publishShared({ message, qos, retain, identifiers }: Delivery, packetId: number | undefined, dup: boolean): boolean {
    const { publishBytes } = this.#host.core
    const variation: Variation = { qos, retain, dup, packetId, hasProperties: this.version === 5, identifiers, alias: 0, hasTopic: true }
    try {
      publishBytes.take(message)
    } catch (error) {
      this.#host.core.tell('faults', this.clientId, error)
      return true
    }
    if (publishBytes.size(variation) > this.#maximumPacketSize) return false
    if (this.#aliasMaximum > 0) this.#useAlias(publishBytes, message.topic, variation)
    this.#write(publishBytes.write(variation, this.clock.now()))
    return true
  }

  /** Uses the alias that the topic has, or gives it one, as long as the packet fits with it. */
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

  #intercept(hook: NonNullable<BrokerSettings['intercept']>, packet: ServerPacket): void {
    const given = intercept(this.#host.core, hook, this.#host, 'out', packet)
    if (!isPromise(given)) {
      this.#goOn(given)
      return
    }
    this.#held = []
    void given.then((taken) => {
      const held = this.#held ?? []
      this.#held = undefined
      this.#goOn(taken)
      this.#release(held)
    })
  }

  #goOn(packet: Intercepted<ServerPacket>): void {
    if (packet === undefined) this.#host.cut()
    else if (packet !== false && !this.over) this.lane.pass(packet)
    // What was said before the end still leaves.
    else if (packet !== false && this.#end !== undefined) this.deliver(packet)
  }

  /** Takes what was held to the hook, one after the other, until it thinks again. */
  #release(held: ServerPacket[]): void {
    const hook = this.#settings.intercept
    let next = 0
    while (next < held.length && this.#held === undefined && hook !== undefined && !this.#lost) this.#intercept(hook, held[next++] as ServerPacket)
    // What was sent meanwhile comes behind what was held before.
    if (this.#held !== undefined) this.#held = [...held.slice(next), ...this.#held]
    else if (this.#end !== undefined) this.#end()
    else this.#host.relieved()
  }

  #write(bytes: Uint8Array): void {
    if (this.#lost) return
    this.bytes += bytes.length
    this.welcomed ||= this.#host.accepted !== undefined
    const { writes } = this.#host.core
    if (writes.isOpen && bytes.length < largePacket) {
      if (this.#batch.push(bytes) === 1) writes.add(this)
      this.#batchBytes += bytes.length
      if (this.#batchBytes >= this.#fullBatch) this.flush()
    } else {
      this.flush()
      this.#hand(bytes)
    }
  }

  #hand(bytes: Uint8Array): void {
    if (!this.#transport.write(bytes)) this.#full = true
    if (!this.#full) return
    this.#backlog += bytes.length
    if (this.#backlog > this.#settings.maxBacklog + bytes.length) this.#host.cut()
  }
}

function joined(list: readonly Uint8Array[], total: number): Uint8Array {
  const whole = new Uint8Array(total)
  let at = 0
  for (const bytes of list) {
    whole.set(bytes, at)
    at += bytes.length
  }
  return whole
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
