/**
 * Writes what a client sends, including the packets that both sides send, except PUBLISH, which is
 * in `encode-publish.ts`.
 *
 * Every field is checked, including its JavaScript type. A refusal is a WireError of fault
 * `'local'` that names the field, and leaves the writer unchanged. Not checked here: what only
 * 3.1.1 forbids (`check311` does that), protocol name and version (`encode` does). Must not import
 * the encoder of server packets.
 */
import type { Author } from './constants.js'
import {
  AUTH,
  CONNECT,
  DISCONNECT,
  PINGREQ,
  PUBREL,
  SUBSCRIBE,
  UNSUBSCRIBE,
  WILL,
} from './constants.js'
import { type FieldPath, refused } from './error.js'
import { nothing } from './fields.js'
import type { Properties, ProtocolVersion } from './packets.js'
import { WROTE_DATA, WROTE_METHOD, writeProperties } from './properties.js'
import { isReasonCode } from './reason-codes.js'
import { isShared, validateLevels } from './topics.js'
import type { Writer } from './writer.js'
import { integer, isObject } from './writer.js'

/** A will to encode: absent fields mean QoS 0, not retained, empty payload, no properties. */
export interface WillInput {
  /** Topic Name. */
  topic: string
  /** At most 65,535 bytes. Default: empty. */
  payload?: Uint8Array | undefined
  /** 0, 1 or 2. Default 0. */
  qos?: number | undefined
  /** Default false. */
  retain?: boolean | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/**
 * A CONNECT to encode: absent fields mean protocol version 5, Clean Start 1, Keep Alive 0 and an
 * empty client identifier.
 */
export interface ConnectInput {
  /** Default `'MQTT'`, the only one. */
  protocolName?: string | undefined
  /** 5, or 4 for 3.1.1. Default 5. */
  protocolVersion?: ProtocolVersion | undefined
  /** Default true. */
  cleanStart?: boolean | undefined
  /** Seconds, 0 to 65,535; 0 is off. Default 0. */
  keepAlive?: number | undefined
  /** Client Identifier. Default `''`: the server assigns one. */
  clientId?: string | undefined
  /** Default: none. */
  will?: WillInput | undefined
  /** Default: none. */
  username?: string | undefined
  /** At most 65,535 bytes. Default: none. */
  password?: Uint8Array | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** A filter to encode: absent options mean 0 and false. */
export interface SubscriptionInput {
  /** Topic filter. */
  filter: string
  /** 0, 1 or 2. Default 0. */
  qos?: number | undefined
  /** MQTT 5.0 only. Default false. */
  noLocal?: boolean | undefined
  /** MQTT 5.0 only. Default false. */
  retainAsPublished?: boolean | undefined
  /** 0, 1 or 2. MQTT 5.0 only. Default 0. */
  retainHandling?: number | undefined
}

/** A SUBSCRIBE to encode. */
export interface SubscribeInput {
  /** 1 to 65,535. */
  packetId: number
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
  /** At least one. */
  subscriptions: readonly SubscriptionInput[]
}

/** An UNSUBSCRIBE to encode. */
export interface UnsubscribeInput {
  /** 1 to 65,535. */
  packetId: number
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
  /** At least one. */
  filters: readonly string[]
}

/** Checks a boolean (absent means false) and returns it as a bit. */
export function bit(value: unknown, option: FieldPath): number {
  if (value !== undefined && typeof value !== 'boolean') throw refused(option, 'must be a boolean')
  return value ? 1 : 0
}

/** Checks and writes a Packet Identifier [MQTT-2.2.1-3]. */
export function writePacketId(writer: Writer, packetId: unknown): void {
  writer.u16(integer(packetId, 1, 65_535, 'packetId'))
}

/**
 * Checks and writes a Property Length with properties; nothing on 3.1.1. Returns the result of
 * `writeProperties`.
 */
export function writePropertyBlock(
  writer: Writer,
  properties: unknown,
  packetType: number,
  version: ProtocolVersion,
  from: Author,
  path?: string,
): number {
  return version === 5 ? writeProperties(writer, properties, packetType, from, path) : 0
}

/**
 * Writes one packet: `fill` writes its variable header, the payload may follow. When `fill` throws,
 * the writer is restored.
 *
 * @param guess expected Remaining Length; a good guess avoids moving bytes
 */
export function writePacket(
  writer: Writer,
  firstByte: number,
  fill: () => void,
  payloadLength = 0,
  guess = 0,
  option = 'packet',
): void {
  const start = writer.length
  try {
    writer.u8(firstByte)
    writer.varint(guess)
    const from = writer.length
    fill()
    writer.fillLength(start + 1, from, payloadLength, option)
  } catch (error) {
    writer.length = start
    throw error
  }
}

/** Writes a CONNECT (section 3.1) in the version of the packet, which `encode` has checked. */
export function writeConnect(writer: Writer, packet: ConnectInput): void {
  writePacket(writer, CONNECT << 4, () => {
    const {
      protocolVersion = 5,
      cleanStart = true,
      keepAlive = 0,
      clientId = '',
      will,
      username,
      password,
      properties,
    } = packet
    writer.string('MQTT', 'protocolName')
    writer.u8(protocolVersion)
    const flags =
      (bit(cleanStart, 'cleanStart') << 1) |
      (username === undefined ? 0 : 0x80) |
      (password === undefined ? 0 : 0x40)
    writer.u8(flags | willFlags(will))
    writer.u16(integer(keepAlive, 0, 65_535, 'keepAlive'))
    const wrote = writePropertyBlock(writer, properties, CONNECT, protocolVersion, 'client')
    if ((wrote & WROTE_DATA) > 0) checkMethod(wrote)
    writer.string(clientId, 'clientId')
    if (will !== undefined) writeWill(writer, will, protocolVersion)
    if (username !== undefined) writer.string(username, 'username')
    if (password !== undefined) writer.binary(password, 'password')
  })
}

function checkMethod(wrote: number): void {
  if ((wrote & WROTE_METHOD) === 0) throw refused('properties.authenticationMethod', 'is missing')
}

function willFlags(will: WillInput | undefined): number {
  if (will === undefined) return 0
  if (!isObject(will)) throw refused('will', 'must be an object')
  const { qos = 0 } = will
  return 4 | (integer(qos, 0, 2, 'will.qos') << 3) | (bit(will.retain, 'will.retain') << 5)
}

function writeWill(
  writer: Writer,
  { properties, topic, payload = nothing }: WillInput,
  version: ProtocolVersion,
): void {
  writePropertyBlock(writer, properties, WILL, version, 'client', 'will.properties')
  writer.topic(topic, 'will.topic')
  writer.binary(payload, 'will.payload')
}

/** Checks a reason code by the rules of `from`. */
function checkReasonCode(packetType: number, reasonCode: number, from: Author): number {
  if (!isReasonCode(packetType, integer(reasonCode, 0, 255, 'reasonCode'), from))
    throw refused('reasonCode', 'is not one of this packet')
  return reasonCode
}

/** Writes Reason Code and properties in their shortest form (sections 3.4.2.1, 3.14.2.1). */
function writeReason(
  writer: Writer,
  packetType: number,
  reasonCode: number,
  properties: unknown,
  version: ProtocolVersion,
  from: Author,
): void {
  const start = writer.length
  writer.u8(checkReasonCode(packetType, reasonCode, from))
  writePropertyBlock(writer, properties, packetType, version, from)
  // Without properties, the Property Length is omitted, and so is reason code 0.
  if (writer.length < start + 3) writer.length = reasonCode > 0 ? start + 1 : start
}

/**
 * Writes a PUBACK, PUBREC, PUBREL or PUBCOMP (sections 3.4 to 3.7) in its shortest form; on 3.1.1
 * the reason code must be 0.
 *
 * @param packetType 4 to 7
 */
export function writeAck(
  writer: Writer,
  packetType: number,
  packetId: number,
  reasonCode: number,
  properties: Properties | undefined,
  version: ProtocolVersion,
  from: Author = 'client',
): void {
  const firstByte = (packetType << 4) | (packetType === PUBREL ? 2 : 0)
  if (reasonCode === 0 && properties === undefined) {
    const id = integer(packetId, 1, 65_535, 'packetId')
    writer.u16((firstByte << 8) | 2)
    writer.u16(id)
    return
  }
  writePacket(writer, firstByte, () => {
    writePacketId(writer, packetId)
    writeReason(writer, packetType, reasonCode, properties, version, from)
  })
}

/**
 * Fast path: writes the acknowledgement `(packetType << 24) | (reasonCode << 16) | packetId` in its
 * shortest form without checks; on 3.1.1 without a reason code.
 */
export function writePackedAck(writer: Writer, ack: number, version: ProtocolVersion): void {
  const packetType = ack >>> 24
  const reasonCode = version === 5 ? (ack >>> 16) & 0xff : 0
  writer.u16((packetType << 12) | (packetType === PUBREL ? 0x200 : 0) | (reasonCode > 0 ? 3 : 2))
  writer.u16(ack & 0xffff)
  if (reasonCode > 0) writer.u8(reasonCode)
}

/** Writes a SUBSCRIBE (section 3.8). */
export function writeSubscribe(
  writer: Writer,
  packet: SubscribeInput,
  version: ProtocolVersion,
): void {
  const { subscriptions } = packet
  const place = new ItemPlace('subscriptions')
  const { path } = place
  writeRequest(writer, SUBSCRIBE, packet, version, subscriptions, place, (subscription) => {
    if (!isObject(subscription)) throw refused(path, 'must be an object')
    const { filter, qos = 0, noLocal, retainAsPublished, retainHandling = 0 } = subscription
    place.field = '.filter'
    writeFilter(writer, filter, version, path)
    place.field = '.noLocal'
    const local = bit(noLocal, path)
    // [MQTT-3.8.3-4]
    if (local > 0 && isShared(filter)) throw refused(path, 'must be false on a shared subscription')
    place.field = '.qos'
    let options = integer(qos, 0, 2, path) | (local << 2)
    place.field = '.retainAsPublished'
    options |= bit(retainAsPublished, path) << 3
    place.field = '.retainHandling'
    writer.u8(options | (integer(retainHandling, 0, 2, path) << 4))
    place.field = ''
  })
}

/** Writes an UNSUBSCRIBE (section 3.10). */
export function writeUnsubscribe(
  writer: Writer,
  packet: UnsubscribeInput,
  version: ProtocolVersion,
): void {
  const place = new ItemPlace('filters')
  writeRequest(writer, UNSUBSCRIBE, packet, version, packet.filters, place, (filter) =>
    writeFilter(writer, filter, version, place.path),
  )
}

/** What is being written of a list. One for the whole list, because only errors need the path. */
class ItemPlace {
  readonly list: string
  index = 0
  field = ''

  constructor(list: string) {
    this.list = list
  }

  readonly path = (): string => `${this.list}[${this.index}]${this.field}`
}

/**
 * Writes Packet Identifier, properties, and a list that must not be empty [MQTT-3.8.3-2]
 * [MQTT-3.10.3-2].
 */
function writeRequest<T>(
  writer: Writer,
  packetType: number,
  packet: { packetId: number; properties?: Properties | undefined },
  version: ProtocolVersion,
  list: readonly T[],
  place: ItemPlace,
  write: (item: T) => void,
): void {
  writePacket(writer, (packetType << 4) | 2, () => {
    writePacketId(writer, packet.packetId)
    writePropertyBlock(writer, packet.properties, packetType, version, 'client')
    const length = Array.isArray(list) ? list.length : 0
    if (length === 0) throw refused(place.list, 'must be an array with at least one element')
    // By index, so that holes in the array are checked, too.
    for (; place.index < length; place.index++) write(list[place.index] as T)
  })
}

function writeFilter(
  writer: Writer,
  filter: unknown,
  version: ProtocolVersion,
  option: FieldPath,
): void {
  writer.string(filter, option)
  const fault = validateLevels(filter as string, version === 5)
  if (fault !== undefined) throw refused(option, fault)
}

/** Writes a PINGREQ (section 3.12). */
export function writePingreq(writer: Writer): void {
  writer.u16(PINGREQ << 12)
}

/** Writes a DISCONNECT (section 3.14) in its shortest form; on 3.1.1 the reason code must be 0. */
export function writeDisconnect(
  writer: Writer,
  reasonCode: number,
  properties: Properties | undefined,
  version: ProtocolVersion,
  from: Author = 'client',
): void {
  writePacket(writer, DISCONNECT << 4, () =>
    writeReason(writer, DISCONNECT, reasonCode, properties, version, from),
  )
}

/** Writes an AUTH (section 3.15), which needs an Authentication Method; MQTT 5.0 only. */
export function writeAuth(
  writer: Writer,
  reasonCode: number,
  properties: Properties,
  from: Author = 'client',
): void {
  writePacket(writer, AUTH << 4, () => {
    writer.u8(checkReasonCode(AUTH, reasonCode, from))
    checkMethod(writeProperties(writer, properties, AUTH, from))
  })
}
