/**
 * The small packets of a connection: writing those of the control plane, and what is odd about a few that come in.
 *
 * Pure functions over writers and bytes.
 */
import { PINGRESP, PUBACK, PUBCOMP, PUBLISH } from '../../wire/constants.js'
import { decodeServerPacket } from '../../wire/decode-server.js'
import { acknowledgements } from '../../wire/decode-shared.js'
import {
  writeAuth,
  writeConnect,
  writeDisconnect,
  writeKnownHead,
  writePingreq,
  writePublishHead,
  writeSubscribe,
  writeUnsubscribe,
} from '../../wire/encode-client.js'
import type { ClientPacket, DisconnectPacket, Packet, ProtocolVersion, ServerPacket } from '../../wire/packets.js'
import type { PropertyNotes } from '../../wire/properties.js'
import type { Writer } from '../../wire/writer.js'
import type { Sending } from '../api/parse-calls.js'
import { encoder } from '../common/schema.js'
import { ackId, ackReason, ackType } from '../session/ack-queue.js'
import { subscriptionIdentifierLimit, userPropertyLimit } from './bounds.js'

/** A packet of a server, but for PUBLISH. @throws WireError */
export function readControl(bytes: Uint8Array, start: number, body: number, end: number, version: ProtocolVersion): ServerPacket {
  return version === 5 && isOldRefusal(bytes, start, end) ? unsupportedVersion : decodeServerPacket(bytes, start, body, end, version)
}

/** A DISCONNECT, and with ever less optional text for a server that takes no long packets [MQTT-3.14.2-3] [MQTT-3.14.2-4]. */
export function goodbyes(packet: DisconnectPacket): DisconnectPacket[] {
  const { sessionExpiryInterval, reasonString } = packet.properties
  const forms = [packet.properties, { sessionExpiryInterval, reasonString }, { sessionExpiryInterval }, {}]
  return forms.map((properties) => ({ ...packet, properties }))
}

/** A server that knows 3.1.1 only says "unacceptable protocol version" in the form of that version (3.1.1, section 3.2.2.3). */
function isOldRefusal(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 4 && bytes[start] === 0x20 && bytes[start + 2] === 0 && bytes[start + 3] === 1
}

/** What such a refusal means. */
const unsupportedVersion: ServerPacket = { type: 'connack', sessionPresent: false, reasonCode: 0x84, properties: {} }

/** Writes a control packet other than PUBLISH and its acknowledgements. @throws WireError */
export function writeControl(writer: Writer, packet: ClientPacket, version: ProtocolVersion): void {
  if (packet.type === 'connect') writeConnect(writer, packet)
  else if (packet.type === 'subscribe') writeSubscribe(writer, packet, version)
  else if (packet.type === 'unsubscribe') writeUnsubscribe(writer, packet, version)
  else if (packet.type === 'disconnect') writeDisconnect(writer, version === 5 ? packet.reasonCode : 0, packet.properties, version)
  else if (packet.type === 'auth') writeAuth(writer, packet.reasonCode, packet.properties)
  else if (packet.type === 'pingreq') writePingreq(writer)
}

/** Most bytes of a packet other than PUBLISH, by kind: what no honest peer needs to exceed. */
export function sizeLimit(type: number): number {
  return (type >= PUBACK && type <= PUBCOMP) || type === PINGRESP ? 10_000 : 100_000
}

/** True when a PUBLISH has more properties than any needs: of Subscription Identifiers, one for each of our filters. */
export function holdsTooMuch({ userPropertyCount, subscriptionIdentifierCount }: PropertyNotes, filters: number): boolean {
  return userPropertyCount > userPropertyLimit || subscriptionIdentifierCount > Math.max(subscriptionIdentifierLimit, filters)
}

/** A queued acknowledgement as a packet, for those who watch. */
export function acknowledgement(entry: number): Packet {
  return { type: acknowledgements[ackType(entry) - PUBACK], packetId: ackId(entry), reasonCode: ackReason(entry), properties: {} } as Packet
}

/** The empty Topic Name of a PUBLISH under an alias. */
const noTopic = /* @__PURE__ */ new Uint8Array(2)

/** Writes a PUBLISH up to its payload. @throws WireError */
export function writePublishStart(
  writer: Writer,
  topic: string,
  payloadLength: number,
  { qos, retain, properties }: Sending,
  packetId: number,
  alias: number,
  dup: boolean,
  version: ProtocolVersion,
): void {
  const known = properties !== undefined ? undefined : topic === '' && alias > 0 ? noTopic : writer.known(topic)
  if (known !== undefined) {
    const firstByte = (PUBLISH << 4) | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
    return writeKnownHead(writer, firstByte, known, packetId, alias, payloadLength, version)
  }
  const all = alias > 0 ? { ...properties, topicAlias: alias } : properties
  writePublishHead(writer, { topic, qos, retain, dup, packetId, properties: all }, payloadLength, version)
}

/** A PUBLISH that was written, for those who watch. */
export function publishPacket(
  topic: string,
  given: Uint8Array | string,
  { qos, retain, properties }: Sending,
  packetId: number,
  alias: number,
  dup: boolean,
): Packet {
  const payload = typeof given === 'string' ? encoder.encode(given) : new Uint8Array(given.buffer, given.byteOffset, given.length)
  const all = alias > 0 ? { ...properties, topicAlias: alias } : (properties ?? {})
  return { type: 'publish', topic, payload, qos, retain, dup, packetId: packetId || undefined, properties: all } as Packet
}
