/**
 * Writes what a client sends, and with it the packets that travel both ways.
 *
 * Every field is checked, its JavaScript type included. A refusal is a WireError of fault `'local'` that names the field, and leaves the writer as
 * it was. Must not import the encoder of server packets.
 */
import type { Author } from './constants.js'
import { AUTH, CONNECT, DISCONNECT, MAXIMUM_VARIABLE_BYTE_INTEGER, PINGREQ, PUBLISH, PUBREL, SUBSCRIBE, UNSUBSCRIBE, WILL } from './constants.js'
import { refused } from './error.js'
import type { Properties, ProtocolVersion } from './packets.js'
import { writeProperties } from './properties.js'
import { isReasonCode } from './reason-codes.js'
import { isShared, validatePlainFilter, validateTopicFilter } from './topics.js'
import type { Writer } from './writer.js'
import { integer, isBytes, isObject, variableByteIntegerSize } from './writer.js'

/** A will as it is given: absent fields are QoS 0, not retained, empty, without properties. */
export interface WillInput {
  topic: string
  payload?: Uint8Array | undefined
  qos?: number | undefined
  retain?: boolean | undefined
  properties?: Properties | undefined
}

/** A CONNECT as it is given: absent are protocol version 5, Clean Start 1, Keep Alive 0 and an empty client identifier. */
export interface ConnectInput {
  protocolName?: string | undefined
  protocolVersion?: ProtocolVersion | undefined
  cleanStart?: boolean | undefined
  /** Seconds, 0 to 65,535. */
  keepAlive?: number | undefined
  clientId?: string | undefined
  will?: WillInput | undefined
  username?: string | undefined
  password?: Uint8Array | undefined
  properties?: Properties | undefined
}

/** A PUBLISH as it is given: absent are QoS 0, false flags, an empty payload. */
export interface PublishInput {
  /** Empty only with a topic alias. */
  topic: string
  payload?: Uint8Array | undefined
  qos?: number | undefined
  retain?: boolean | undefined
  dup?: boolean | undefined
  /** 1 to 65,535; absent (or 0) at QoS 0. */
  packetId?: number | undefined
  properties?: Properties | undefined
}

/** A filter as it is given: absent options are 0 and false. */
export interface SubscriptionInput {
  filter: string
  qos?: number | undefined
  noLocal?: boolean | undefined
  retainAsPublished?: boolean | undefined
  retainHandling?: number | undefined
}

/** A SUBSCRIBE as it is given. */
export interface SubscribeInput {
  packetId: number
  properties?: Properties | undefined
  subscriptions: readonly SubscriptionInput[]
}

/** An UNSUBSCRIBE as it is given. */
export interface UnsubscribeInput {
  packetId: number
  properties?: Properties | undefined
  filters: readonly string[]
}

/** Checks a boolean, absent is false, and returns it as a bit. */
export function bit(value: unknown, option: string): number {
  if (value !== undefined && typeof value !== 'boolean') throw refused(option, 'must be a boolean')
  return value ? 1 : 0
}

/** Checks and writes a Packet Identifier [MQTT-2.2.1-3]. */
export function writePacketId(writer: Writer, packetId: unknown): void {
  writer.u16(integer(packetId, 1, 65_535, 'packetId'))
}

/** Checks and writes a Property Length with properties; on 3.1.1 there must be none. */
export function writePropertyBlock(
  writer: Writer,
  properties: unknown,
  packetType: number,
  version: ProtocolVersion,
  from: Author,
  path = 'properties',
): void {
  if (version === 5) writeProperties(writer, properties, packetType, from, path)
  else if (!isEmpty(properties)) throw refused(path, 'must be empty on 3.1.1')
}

function isEmpty(properties: unknown): boolean {
  return properties === undefined || (isObject(properties) && Object.values(properties).every((value) => value === undefined))
}

/** Writes one packet whose variable header and payload `fill` writes; when that throws, the writer is left as it was. */
export function writePacket(writer: Writer, firstByte: number, fill: () => void): void {
  const start = writer.length
  try {
    writer.u8(firstByte)
    const length = writer.leaveLength(1)
    fill()
    writer.fillLength(length, 1, 0, 'packet')
  } catch (error) {
    writer.length = start
    throw error
  }
}

/** Writes a CONNECT (section 3.1); `protocolVersion` of the packet decides its form. */
export function writeConnect(writer: Writer, packet: ConnectInput): void {
  writePacket(writer, CONNECT << 4, () => {
    const {
      protocolName = 'MQTT',
      protocolVersion = 5,
      cleanStart = true,
      keepAlive = 0,
      clientId = '',
      will,
      username,
      password,
      properties,
    } = packet
    if (protocolName !== 'MQTT') throw refused('protocolName', 'must be MQTT')
    if (protocolVersion !== 4 && protocolVersion !== 5) throw refused('protocolVersion', 'must be 4 or 5')
    checkConnect(packet, protocolVersion, cleanStart, clientId)
    writer.string('MQTT', 'protocolName')
    writer.u8(protocolVersion)
    const flags = (bit(cleanStart, 'cleanStart') << 1) | (username === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40)
    writer.u8(flags | willFlags(will))
    writer.u16(integer(keepAlive, 0, 65_535, 'keepAlive'))
    writePropertyBlock(writer, properties, CONNECT, protocolVersion, 'client')
    writer.string(clientId, 'clientId')
    if (will !== undefined) writeWill(writer, will, protocolVersion)
    if (username !== undefined) writer.string(username, 'username')
    if (password !== undefined) writer.binary(password, 'password')
  })
}

/** What fields of a CONNECT demand of each other. */
function checkConnect(packet: ConnectInput, version: ProtocolVersion, cleanStart: boolean, clientId: string): void {
  const { username, password, properties } = packet
  // [MQTT-3.1.2-22] and [MQTT-3.1.3-7] of 3.1.1.
  if (version === 4 && password !== undefined && username === undefined) throw refused('password', 'needs a user name on 3.1.1')
  if (version === 4 && clientId === '' && !cleanStart) throw refused('clientId', 'must not be empty without a clean session on 3.1.1')
  if (properties?.authenticationData !== undefined && properties.authenticationMethod === undefined) {
    throw refused('properties.authenticationMethod', 'must be there when authenticationData is')
  }
}

function willFlags(will: WillInput | undefined): number {
  if (will === undefined) return 0
  if (!isObject(will)) throw refused('will', 'must be an object')
  const { qos = 0 } = will
  return 4 | (integer(qos, 0, 2, 'will.qos') << 3) | (bit(will.retain, 'will.retain') << 5)
}

function writeWill(writer: Writer, will: WillInput, version: ProtocolVersion): void {
  writePropertyBlock(writer, will.properties, WILL, version, 'client', 'will.properties')
  writer.topic(will.topic, 'will.topic')
  if (will.payload === undefined) writer.u16(0)
  else writer.binary(will.payload, 'will.payload')
}

/**
 * Writes a PUBLISH without its payload (section 3.3): `payloadLength` bytes of it must follow.
 *
 * @param from whose rules hold
 */
export function writePublishHead(
  writer: Writer,
  input: PublishInput,
  payloadLength: number,
  version: ProtocolVersion,
  from: Author = 'client',
): void {
  const start = writer.length
  try {
    const { topic, qos = 0, packetId, properties } = input
    integer(qos, 0, 2, 'qos')
    const dup = bit(input.dup, 'dup')
    if (dup > qos) throw refused('dup', 'must be false at QoS 0') // [MQTT-3.3.1-2]
    writer.u8((PUBLISH << 4) | (dup << 3) | (qos << 1) | bit(input.retain, 'retain'))
    if (typeof topic !== 'string') throw refused('topic', 'must be a string')
    // Right for ASCII without properties; otherwise `fillLength` moves the head by a byte or two.
    const gap = variableByteIntegerSize(payloadLength + topic.length + (qos > 0 ? 4 : 2) + (version === 5 ? 1 : 0))
    const length = writer.leaveLength(gap)
    if (topic === '' && version === 5 && properties?.topicAlias !== undefined) writer.u16(0)
    else writer.topic(topic, 'topic')
    if (qos > 0) writePacketId(writer, packetId)
    else if (packetId !== undefined && packetId !== 0) throw refused('packetId', 'must be absent at QoS 0') // [MQTT-2.2.1-2]
    writePropertyBlock(writer, properties, PUBLISH, version, from)
    writer.fillLength(length, gap, integer(payloadLength, 0, MAXIMUM_VARIABLE_BYTE_INTEGER, 'payload'), 'payload')
  } catch (error) {
    writer.length = start
    throw error
  }
}

/** Writes a PUBLISH with its payload. */
export function writePublish(writer: Writer, input: PublishInput, version: ProtocolVersion, from: Author = 'client'): void {
  const payload = input.payload
  if (payload !== undefined && !isBytes(payload)) throw refused('payload', 'must be a Uint8Array')
  writePublishHead(writer, input, payload === undefined ? 0 : payload.length, version, from)
  if (payload !== undefined) writer.raw(payload)
}

/** Checks a reason code, by the rules of `from` or of either side; 3.1.1 has none. */
function checkReasonCode(packetType: number, reasonCode: unknown, version: ProtocolVersion, from: Author): number {
  const code = integer(reasonCode, 0, 255, 'reasonCode')
  if (version === 4 ? code !== 0 : !isReasonCode(packetType, code, from)) throw refused('reasonCode', 'is not one of this packet')
  return code
}

/** Reason Code and properties in their shortest form (sections 3.4.2.1, 3.14.2.1). */
function writeReason(writer: Writer, packetType: number, reasonCode: unknown, properties: unknown, version: ProtocolVersion, from: Author): void {
  const code = checkReasonCode(packetType, reasonCode, version, from)
  const bare = isEmpty(properties)
  if (code !== 0 || !bare) writer.u8(code)
  if (!bare) writePropertyBlock(writer, properties, packetType, version, from)
}

/**
 * Writes a PUBACK, PUBREC, PUBREL or PUBCOMP (sections 3.4 to 3.7) in its shortest form; on 3.1.1 the reason code must be 0.
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

/** Writes a SUBSCRIBE (section 3.8). */
export function writeSubscribe(writer: Writer, packet: SubscribeInput, version: ProtocolVersion): void {
  writePacket(writer, (SUBSCRIBE << 4) | 2, () => {
    writePacketId(writer, packet.packetId)
    writePropertyBlock(writer, packet.properties, SUBSCRIBE, version, 'client')
    const list = nonEmptyArray(packet.subscriptions, 'subscriptions') // [MQTT-3.8.3-2]
    list.forEach((subscription, index) => {
      writeSubscription(writer, subscription as SubscriptionInput, version, `subscriptions[${index}]`)
    })
  })
}

function writeSubscription(writer: Writer, subscription: SubscriptionInput, version: ProtocolVersion, path: string): void {
  if (!isObject(subscription)) throw refused(path, 'must be an object')
  const { filter, qos = 0, noLocal, retainAsPublished, retainHandling = 0 } = subscription
  writeFilter(writer, filter, version, `${path}.filter`)
  const local = bit(noLocal, `${path}.noLocal`)
  // [MQTT-3.8.3-4]
  if (local === 1 && isShared(filter)) throw refused(`${path}.noLocal`, 'must be false on a shared subscription')
  const flags =
    (local << 2) | (bit(retainAsPublished, `${path}.retainAsPublished`) << 3) | (integer(retainHandling, 0, 2, `${path}.retainHandling`) << 4)
  if (version === 4 && flags !== 0) throw refused(path, 'must not have options beyond QoS on 3.1.1')
  writer.u8(flags | integer(qos, 0, 2, `${path}.qos`))
}

function writeFilter(writer: Writer, filter: unknown, version: ProtocolVersion, option: string): void {
  if (typeof filter !== 'string') throw refused(option, 'must be a string')
  const fault = version === 5 ? validateTopicFilter(filter) : validatePlainFilter(filter)
  if (fault !== undefined) throw refused(option, fault)
  writer.string(filter, option)
}

function nonEmptyArray(value: unknown, option: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw refused(option, 'must be an array with at least one element')
  return value
}

/** Writes an UNSUBSCRIBE (section 3.10). */
export function writeUnsubscribe(writer: Writer, packet: UnsubscribeInput, version: ProtocolVersion): void {
  writePacket(writer, (UNSUBSCRIBE << 4) | 2, () => {
    writePacketId(writer, packet.packetId)
    writePropertyBlock(writer, packet.properties, UNSUBSCRIBE, version, 'client')
    nonEmptyArray(packet.filters, 'filters').forEach((filter, index) => {
      writeFilter(writer, filter, version, `filters[${index}]`)
    })
  })
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
  writePacket(writer, DISCONNECT << 4, () => writeReason(writer, DISCONNECT, reasonCode, properties, version, from))
}

/** Writes an AUTH (section 3.15), which needs an Authentication Method; MQTT 5.0 only. */
export function writeAuth(writer: Writer, reasonCode: number, properties: Properties, from: Author = 'client'): void {
  writePacket(writer, AUTH << 4, () => {
    writer.u8(checkReasonCode(AUTH, reasonCode, 5, from))
    writeProperties(writer, properties, AUTH, from)
    if (properties?.authenticationMethod === undefined) throw refused('properties.authenticationMethod', 'must be there')
  })
}
