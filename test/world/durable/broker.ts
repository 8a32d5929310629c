/** The broker of the durable world: that of `mqwire/testing`, with the habits of the run, refusals of single messages, and low identifiers. */
import { MemoryBroker } from '../../../src/testing/broker/index.js'
import type { ClientPacket, ServerPacket } from '../../../src/wire/packets.js'
import type { WorldClock } from '../clock.js'
import { interceptionOf } from '../habits.js'
import { type Refused, refusing } from '../play.js'
import type { History } from './history.js'
import type { Op, Setup } from './schedule.js'

type Packet = ClientPacket | ServerPacket

/** Makes the broker of one run, and what stands between it and the wire. @param reset cuts the link of the device */
export function makeBroker(
  clock: WorldClock,
  setup: Setup,
  ops: readonly Op[],
  history: History,
  reset: () => void,
): { readonly broker: MemoryBroker; readonly identifiers: LowIdentifiers } {
  const identifiers = new LowIdentifiers()
  const habit = interceptionOf(setup.habit, { reset })
  const refused = new Map<string, Refused>()
  // 3.1.1 has no way to say no.
  for (const op of setup.version === 4 ? [] : ops)
    if ('refused' in op && op.refused !== undefined)
      refused.set(`${op.do === 'publish' ? 'p' : 'e'}${op.n}`, op.refused)
  const broker = new MemoryBroker({
    clock,
    receiveMaximum: setup.brokerReceiveMaximum,
    intercept: (direction, packet) => {
      const given = habit(direction, packet)
      return given === false || !setup.lowIdentifiers
        ? given
        : (identifiers.intercept(direction, given ?? packet) ?? given)
    },
    authorizePublish: refusing(refused),
  })
  broker.on('hookerror', ({ error }) =>
    history.report('world', `a hook of the broker threw ${error}`),
  )
  return { broker, identifiers }
}

/**
 * Gives each message the lowest identifier that is free, as several brokers do: one identifier stands for many messages, one soon after the other. It must
 * never touch identifiers that the device has given.
 */
export class LowIdentifiers {
  /** By the broker's own identifier, and the other way round. */
  readonly #low = new Map<number, number>()
  readonly #own = new Map<number, number>()

  clear(): void {
    this.#low.clear()
    this.#own.clear()
  }

  intercept(direction: 'in' | 'out', packet: Packet): Packet | undefined {
    if (direction === 'out' && packet.type === 'publish' && packet.packetId !== undefined)
      return { ...packet, packetId: this.#lowOf(packet.packetId) }
    if (direction === 'out' && packet.type === 'pubrel')
      return { ...packet, packetId: this.#lowOf(packet.packetId) }
    if (
      direction === 'out' ||
      (packet.type !== 'puback' && packet.type !== 'pubrec' && packet.type !== 'pubcomp')
    )
      return undefined
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
