/** A small correct server, written from sections 3.3, 4.3 and 4.4 of the standard: one session that outlives its connections. It answers at once. */
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { ClientPacket, PublishPacket } from '../../../src/wire/packets.js'
import { agreeable } from './harness.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** A message on its way to the client. */
interface Outgoing {
  readonly text: string
  readonly qos: 1 | 2
  id: number
  released: boolean
}

/** A broker with one client. */
export class SmallBroker {
  /** Payloads that were accepted, in that order. */
  readonly accepted: { readonly text: string; readonly qos: number }[] = []
  /** Rules that the client broke. */
  readonly broken: string[] = []
  connections = 0
  readonly #receiveMaximum: number
  // valid for the session
  #session = false
  /** QoS 2 identifiers between PUBLISH and PUBREL. */
  readonly #received = new Set<number>()
  readonly #outgoing: Outgoing[]
  #subscribed = false
  #lastId = 0
  // valid for the connection
  readonly #seen = new Set<number>()
  #fresh = false
  #clientMaximum = 0

  /** `deliver` goes to the client once it has subscribed. */
  constructor({
    receiveMaximum = 65_535,
    deliver = [],
  }: { receiveMaximum?: number; deliver?: readonly { text: string; qos: 1 | 2 }[] } = {}) {
    this.#receiveMaximum = receiveMaximum
    this.#outgoing = deliver.map(({ text, qos }) => ({ text, qos, id: 0, released: false }))
  }

  /** Messages that the client has not acknowledged to the end. */
  get undelivered(): number {
    return this.#outgoing.length
  }

  /** For the scripted peer. */
  readonly answer: Answer = (packet) => this.#handle(packet)

  /** Everything of the session is gone. */
  forget(): void {
    this.#session = false
    this.#received.clear()
    this.#subscribed = false
  }

  #handle(packet: ClientPacket): PacketInput[] {
    switch (packet.type) {
      case 'connect':
        return this.#connect(packet.cleanStart, packet.properties.receiveMaximum ?? 65_535)
      case 'subscribe':
        this.#subscribed = true
        return [agreeable(packet) ?? [], this.#deliver()].flat() as PacketInput[]
      case 'publish':
        return this.#publish(packet)
      case 'pubrel':
        return [this.#pubcomp(packet.packetId)]
      case 'puback':
      case 'pubcomp':
        return this.#finish(packet.type, packet.packetId)
      case 'pubrec':
        return this.#release(packet.packetId)
      case 'pingreq':
        return [{ type: 'pingresp' }]
      default:
        return []
    }
  }

  #connect(cleanStart: boolean, clientMaximum: number): PacketInput[] {
    this.connections += 1
    if (cleanStart) this.forget()
    const sessionPresent = this.#session
    this.#session = true
    this.#seen.clear()
    this.#fresh = false
    this.#clientMaximum = clientMaximum
    const properties = { receiveMaximum: this.#receiveMaximum }
    const repeats = this.#outgoing.filter(({ id }) => id !== 0)
    return [
      { type: 'connack', sessionPresent, reasonCode: 0, properties },
      ...repeats.map((message) => this.#packet(message, true)),
      ...this.#deliver(),
    ]
  }

  // DUP marks a repeat on a later connection, repeats come before anything new, and no identifier is used twice on one [MQTT-4.4.0-1].
  #publish({ qos, dup, packetId = 0, payload }: PublishPacket): PacketInput[] {
    const text = decoder.decode(payload)
    if (qos === 0) return this.#accept(text, 0)
    if (this.#seen.has(packetId))
      this.broken.push(`#${packetId} twice on connection ${this.connections}`)
    if (dup && this.connections === 1) this.broken.push(`DUP on the first connection: ${text}`)
    if (dup && this.#fresh) this.broken.push(`a repeat after something new: ${text}`)
    this.#fresh ||= !dup
    if (qos === 1) {
      this.#accept(text, 1)
      return [{ type: 'puback', packetId, reasonCode: 0, properties: {} }]
    }
    this.#seen.add(packetId)
    if (!this.#received.has(packetId)) this.#accept(text, 2)
    else if (!dup) this.broken.push(`#${packetId} taken for something new: ${text}`)
    this.#received.add(packetId)
    return [{ type: 'pubrec', packetId, reasonCode: 0, properties: {} }]
  }

  #pubcomp(packetId: number): PacketInput {
    const reasonCode = this.#received.delete(packetId) ? 0 : 0x92
    return { type: 'pubcomp', packetId, reasonCode, properties: {} }
  }

  #accept(text: string, qos: number): PacketInput[] {
    this.accepted.push({ text, qos })
    return []
  }

  // As much as the client takes.
  #deliver(): PacketInput[] {
    const packets: PacketInput[] = []
    if (!this.#subscribed) return packets
    for (const message of this.#outgoing) {
      if (message.id !== 0) continue
      if (this.#outgoing.filter(({ id }) => id !== 0).length >= this.#clientMaximum) break
      this.#lastId = (this.#lastId % 65_535) + 1
      message.id = this.#lastId
      packets.push(this.#packet(message, false))
    }
    return packets
  }

  #packet({ id, qos, text, released }: Outgoing, dup: boolean): PacketInput {
    if (released) return { type: 'pubrel', packetId: id, reasonCode: 0, properties: {} }
    return { type: 'publish', topic: 'in', payload: encoder.encode(text), qos, dup, packetId: id }
  }

  #find(packetId: number): Outgoing | undefined {
    return this.#outgoing.find((message) => message.id === packetId)
  }

  #release(packetId: number): PacketInput[] {
    const message = this.#find(packetId)
    if (message?.qos !== 2) this.broken.push(`pubrec #${packetId} for nothing`)
    else message.released = true
    return [
      { type: 'pubrel', packetId, reasonCode: message === undefined ? 0x92 : 0, properties: {} },
    ]
  }

  #finish(type: 'puback' | 'pubcomp', packetId: number): PacketInput[] {
    const message = this.#find(packetId)
    if (
      message === undefined ||
      (message.qos === 1) !== (type === 'puback') ||
      (message.qos === 2 && !message.released)
    ) {
      this.broken.push(`${type} #${packetId} for nothing`)
      return []
    }
    this.#outgoing.splice(this.#outgoing.indexOf(message), 1)
    return this.#deliver()
  }
}
