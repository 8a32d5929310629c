/**
 * The small packets of a connection: writing those of the control plane, and what is odd about a few that come in.
 *
 * Pure functions over writers and bytes.
 */
import { PUBACK, PUBCOMP, PUBREC, PUBREL } from '../wire/constants.js'
import { writeAuth, writeConnect, writeDisconnect, writePingreq, writeSubscribe, writeUnsubscribe } from '../wire/encode-client.js'
import type { ClientPacket, Packet, ProtocolVersion, PubackPacket, PubcompPacket, PubrecPacket, ServerPacket } from '../wire/packets.js'
import type { Writer } from '../wire/writer.js'
import { ackId, ackReason, ackType } from './session/ack-queue.js'

/** The last acknowledgement of a publish. */
export type FinalAck = PubackPacket | PubrecPacket | PubcompPacket

/** A PUBLISH at QoS 1 or 2 as it was sent, to be sent again on another connection. */
export interface Encoded {
  /** The packet, without a payload that is handed over as it lies. */
  readonly bytes: Uint8Array
  readonly payload: Uint8Array | undefined
  readonly version: ProtocolVersion
}

/** A server that knows 3.1.1 only says "unacceptable protocol version" in the form of that version (3.1.1, section 3.2.2.3). */
export function isOldRefusal(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 4 && bytes[start] === 0x20 && bytes[start + 2] === 0 && bytes[start + 3] === 1
}

/** What such a refusal means. */
export const unsupportedVersion: ServerPacket = { type: 'connack', sessionPresent: false, reasonCode: 0x84, properties: {} }

/** Writes a control packet other than PUBLISH and its acknowledgements. @throws WireError */
export function writeControl(writer: Writer, packet: ClientPacket, version: ProtocolVersion): void {
  if (packet.type === 'connect') writeConnect(writer, packet)
  else if (packet.type === 'subscribe') writeSubscribe(writer, packet, version)
  else if (packet.type === 'unsubscribe') writeUnsubscribe(writer, packet, version)
  else if (packet.type === 'disconnect') writeDisconnect(writer, version === 5 ? packet.reasonCode : 0, packet.properties, version)
  else if (packet.type === 'auth') writeAuth(writer, packet.reasonCode, packet.properties)
  else if (packet.type === 'pingreq') writePingreq(writer)
}

const ackNames: Readonly<Record<number, string>> = { [PUBACK]: 'puback', [PUBREC]: 'pubrec', [PUBREL]: 'pubrel', [PUBCOMP]: 'pubcomp' }

/** A queued acknowledgement as a packet, for those who watch. */
export function acknowledgement(entry: number): Packet {
  return { type: ackNames[ackType(entry)], packetId: ackId(entry), reasonCode: ackReason(entry), properties: {} } as Packet
}
