/**
 * A broker that gives each message the lowest identifier that is free, as several do: one identifier stands for many messages, one soon after the other.
 *
 * It stands between the broker and the wire. It must never touch identifiers that the device has given.
 */
import type { ClientPacket, ServerPacket } from '../../../src/wire/packets.js'

type Packet = ClientPacket | ServerPacket

/** Identifiers of one session. */
export class LowIdentifiers {
  /** By the broker's own identifier, and the other way round. */
  readonly #low = new Map<number, number>()
  readonly #own = new Map<number, number>()

  /** The session is gone. */
  clear(): void {
    this.#low.clear()
    this.#own.clear()
  }

  intercept(direction: 'in' | 'out', packet: Packet): Packet | undefined {
    if (direction === 'out' && packet.type === 'publish' && packet.packetId !== undefined)
      return { ...packet, packetId: this.#lowOf(packet.packetId) }
    if (direction === 'out' && packet.type === 'pubrel') return { ...packet, packetId: this.#lowOf(packet.packetId) }
    if (direction === 'out' || (packet.type !== 'puback' && packet.type !== 'pubrec' && packet.type !== 'pubcomp')) return undefined
    const own = this.#own.get(packet.packetId)
    if (own === undefined) return undefined
    if (packet.type !== 'pubrec' || packet.reasonCode >= 0x80) {
      this.#own.delete(packet.packetId)
      this.#low.delete(own)
    }
    return { ...packet, packetId: own }
  }

  #lowOf(own: number): number {
    let low = this.#low.get(own)
    if (low !== undefined) return low
    for (low = 1; this.#own.has(low); ) low += 1
    this.#low.set(own, low)
    this.#own.set(low, own)
    return low
  }
}
