/**
 * The small packets of a connection: writes those of the control plane, and handles peculiarities
 * of incoming ones. Pure functions.
 */
import { encoder } from '../../common/schema.js'
import { headSize, samplePayload } from '../../wire/carry.js'
import { PINGRESP, PUBACK, PUBCOMP, SUBACK, UNSUBACK } from '../../wire/constants.js'
import { decodeServerPacket } from '../../wire/decode-server.js'
import {
  writeAuth,
  writeConnect,
  writeDisconnect,
  writePingreq,
  writeSubscribe,
  writeUnsubscribe,
} from '../../wire/encode-client.js'
import { uint16 } from '../../wire/fields.js'
import type { FrameSource } from '../../wire/frames.js'
import type {
  ClientPacket,
  DisconnectPacket,
  Packet,
  ProtocolVersion,
  QoS,
  ServerPacket,
} from '../../wire/packets.js'
import type { PropertyNotes } from '../../wire/properties.js'
import { acknowledgements } from '../../wire/reader.js'
import { decodeUtf8, ILL_FORMED, scanUtf8 } from '../../wire/utf8.js'
import type { Writer } from '../../wire/writer.js'
import type { Sending } from '../options/check-calls.js'

/**
 * Most user properties in a packet, and most Subscription Identifiers if there are fewer filters
 * than that.
 */
export const userPropertyLimit = 128
const subscriptionIdentifierLimit = 64

/** Decodes any server packet except PUBLISH. @throws WireError */
export function readControl(
  bytes: Uint8Array,
  start: number,
  body: number,
  end: number,
  version: ProtocolVersion,
): ServerPacket {
  return version === 5 && isOldRefusal(bytes, start, end)
    ? unsupportedVersion
    : decodeServerPacket(bytes, start, body, end, version)
}

/**
 * A DISCONNECT, followed by versions with less optional text, for servers with a small Maximum
 * Packet Size [MQTT-3.14.2-3] [MQTT-3.14.2-4].
 */
export function goodbyes(packet: DisconnectPacket): DisconnectPacket[] {
  const { sessionExpiryInterval, reasonString } = packet.properties
  const forms = [
    packet.properties,
    { sessionExpiryInterval, reasonString },
    { sessionExpiryInterval },
    {},
  ]
  return forms.map((properties) => ({ ...packet, properties }))
}

/** A 3.1.1-only server refuses 5.0 with a CONNACK in 3.1.1 format (3.1.1, section 3.2.2.3). */
function isOldRefusal(bytes: Uint8Array, start: number, end: number): boolean {
  return (
    end - start === 4 && bytes[start] === 0x20 && bytes[start + 2] === 0 && bytes[start + 3] === 1
  )
}

/** The meaning of such a refusal. */
const unsupportedVersion: ServerPacket = {
  type: 'connack',
  sessionPresent: false,
  reasonCode: 0x84,
  properties: {},
}

/** Writes a control packet other than PUBLISH and its acknowledgements. @throws WireError */
export function writeControl(writer: Writer, packet: ClientPacket, version: ProtocolVersion): void {
  if (packet.type === 'connect') writeConnect(writer, packet)
  else if (packet.type === 'subscribe') writeSubscribe(writer, packet, version)
  else if (packet.type === 'unsubscribe') writeUnsubscribe(writer, packet, version)
  else if (packet.type === 'disconnect')
    writeDisconnect(writer, version === 5 ? packet.reasonCode : 0, packet.properties, version)
  else if (packet.type === 'auth') writeAuth(writer, packet.reasonCode, packet.properties)
  else if (packet.type === 'pingreq') writePingreq(writer)
}

/** Most bytes of a packet other than PUBLISH, by type: beyond what a legitimate peer needs. */
export function sizeLimit(type: number): number {
  return (type >= PUBACK && type <= PUBCOMP) || type === PINGRESP ? 10_000 : 100_000
}

/** True for an acknowledgement of packet identifier 0, which is never used [MQTT-2.2.1-3]. */
export function isUnowned(type: number, bytes: Uint8Array, body: number, end: number): boolean {
  const acknowledges = (type >= PUBACK && type <= PUBCOMP) || type === SUBACK || type === UNSUBACK
  return acknowledges && end - body > 1 && bytes[body] === 0 && bytes[body + 1] === 0
}

/**
 * True when a PUBLISH has more properties than any needs; for Subscription Identifiers, one per
 * subscribed filter.
 */
export function holdsTooMuch(
  { userPropertyCount, subscriptionIdentifierCount }: PropertyNotes,
  filters: number,
): boolean {
  return (
    userPropertyCount > userPropertyLimit ||
    subscriptionIdentifierCount > Math.max(subscriptionIdentifierLimit, filters)
  )
}

/** A queued acknowledgement as a packet object, for `packet` listeners. */
export function acknowledgement(ack: number): Packet {
  return {
    type: acknowledgements[(ack >>> 24) - PUBACK],
    packetId: ack & 0xffff,
    reasonCode: (ack >>> 16) & 0xff,
    properties: {},
  } as Packet
}

/** A written PUBLISH as a packet object, for `packet` listeners. */
export function publishPacket(
  topic: string,
  given: Uint8Array | string,
  { qos, retain, properties }: Sending,
  packetId: number,
  alias: number,
  dup: boolean,
): Packet {
  const payload =
    typeof given === 'string'
      ? encoder.encode(given)
      : new Uint8Array(given.buffer, given.byteOffset, given.length)
  const all = alias > 0 ? { ...properties, topicAlias: alias } : (properties ?? {})
  return {
    type: 'publish',
    topic,
    payload,
    qos,
    retain,
    dup,
    packetId: packetId || undefined,
    properties: all,
  } as Packet
}

/** A PUBLISH that breaks a rule. */
export interface FaultyPublish {
  /** Identifies the message by topic, length and beginning of the payload. */
  readonly key: string
  /** Topic Name; '' when the topic itself is invalid. */
  readonly topic: string
  readonly qos: QoS
  readonly dup: boolean
  /** 0 at QoS 0, and when the packet has no identifier. */
  readonly packetId: number
}

/**
 * The identity of a PUBLISH that breaks a rule, read from the frame as far as it can be trusted.
 * Packet identifier, flags and Subscription Identifiers differ between connections, so they are
 * left out.
 */
export function faultyPublish(
  { bytes, start, body, end, size, apart }: FrameSource,
  version: ProtocolVersion,
): FaultyPublish {
  const first = bytes[start] as number
  const qos = ((first >> 1) & 3) as QoS
  const topicStart = Math.min(body + 2, end)
  const topicEnd = Math.min(end, topicStart + (topicStart === body + 2 ? uint16(bytes, body) : 0))
  const head = Math.min(size, headSize(bytes, start, body, end, version))
  const sample = (apart ?? bytes.subarray(start + head, end)).subarray(0, samplePayload)
  const isText = scanUtf8(bytes, topicStart, topicEnd) !== ILL_FORMED
  return {
    key: `${hashOf(bytes.subarray(topicStart, topicEnd))} ${size - head} ${hashOf(sample)}`,
    topic: isText ? decodeUtf8(bytes, topicStart, topicEnd) : '',
    qos,
    dup: (first & 8) > 0,
    packetId: qos > 0 && topicEnd + 2 <= end ? uint16(bytes, topicEnd) : 0,
  }
}

function hashOf(bytes: Uint8Array): number {
  let hash = bytes.length
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x9e3779b1) ^ (hash >>> 15)
  return hash
}
