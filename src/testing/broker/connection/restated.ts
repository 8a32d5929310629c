/**
 * Rewrites outgoing packets: with another reason code, with 3.1.1 codes, or without explanatory
 * properties.
 *
 * Pure functions; the packets given to them are not changed.
 */
import type { ServerPacket } from '../../../wire/packets.js'

/** Without Reason String and User Properties, which only explain. */
export function withoutProblem<P extends ServerPacket>(packet: P): P {
  if (!('properties' in packet)) return packet
  const { reasonString: _reason, userProperties: _user, ...properties } = packet.properties
  return { ...packet, properties }
}

/** With another reason code, where the packet has one. */
export function restated(packet: ServerPacket, reasonCode: number): ServerPacket {
  if (packet.type === 'connack')
    return { ...packet, reasonCode, sessionPresent: false, properties: {} }
  if ('reasonCodes' in packet)
    return { ...packet, reasonCodes: packet.reasonCodes.map(() => reasonCode) }
  return 'reasonCode' in packet ? { ...packet, reasonCode } : packet
}

/** As {@link restated} for 3.1.1, which has codes in CONNACK and SUBACK only. */
export function restated311(packet: ServerPacket, reasonCode: number): ServerPacket {
  if (packet.type === 'connack')
    return { ...packet, reasonCode: returnCodeOf(reasonCode), sessionPresent: false }
  return packet.type === 'suback'
    ? { ...packet, reasonCodes: packet.reasonCodes.map(() => (reasonCode > 2 ? 0x80 : reasonCode)) }
    : packet
}

const returnCodes: Readonly<Record<number, number>> = {
  0: 0,
  132: 1,
  133: 2,
  134: 4,
  135: 5,
  140: 4,
}

/** The closest CONNACK return code of 3.1.1; a code that 3.1.1 has is unchanged. */
export function returnCodeOf(reasonCode: number): number {
  return reasonCode <= 5 ? reasonCode : (returnCodes[reasonCode] ?? 3)
}
