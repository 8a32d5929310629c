/**
 * The 27 properties of section 2.2.2.2: one table, and from it validation in place, decoding and encoding.
 *
 * Validation allocates nothing, so that a PUBLISH can be checked where it lies and its properties be decoded only when asked for.
 * Keys of decoded objects come from the table alone: what a peer names is data in `userProperties`.
 */
import { printable } from '../errors.js'
import type { Author, Sender } from './constants.js'
import { AUTH, CONNACK, CONNECT, DISCONNECT, MAXIMUM_VARIABLE_BYTE_INTEGER, PUBLISH, SUBSCRIBE, WILL } from './constants.js'
import { malformed, protocolError, refused } from './error.js'
import { checkString, fieldEnd, uint16, uint32, variableByteInteger } from './fields.js'
import type { Properties } from './packets.js'
import { hasWildcard } from './topics.js'
import { decodeUtf8, HAS_WILDCARD } from './utf8.js'
import type { Writer } from './writer.js'
import { integer, isObject, variableByteIntegerSize } from './writer.js'

// Every property of one byte is limited to 0 and 1. The numeric types are 0 to 3; bit 2 is set on what has a length prefix.
const FLAG = 0
const U16 = 1
const U32 = 2
const VARINT = 3
const UTF8 = 4
const BINARY = 5
const PAIR = 6

const ON_PUBLISH = (1 << PUBLISH) | (1 << WILL)
const ON_CONNECT = 1 << CONNECT
const ON_CONNACK = 1 << CONNACK
const ON_BOTH = ON_CONNECT | ON_CONNACK
const ON_AUTH = 1 << AUTH
const ON_DISCONNECT = 1 << DISCONNECT
/** CONNACK, the four PUBLISH acknowledgements, SUBACK, UNSUBACK, DISCONNECT, AUTH. */
const ON_REASON = 0b1100_1010_1111_0100
/** Everything but PINGREQ and PINGRESP. */
const ON_ANY = 0b1100_1111_1111_1111

const RESPONSE_TOPIC = 0x08
const SUBSCRIPTION_IDENTIFIER = 0x0b
const SESSION_EXPIRY_INTERVAL = 0x11
const SERVER_REFERENCE = 0x1c
const TOPIC_ALIAS = 0x23
const USER_PROPERTY = 0x26

type Row = readonly [key: keyof Properties, type: number, packets: number, least?: 1]

/** By identifier: key, type, packets as a bit mask by packet type (bit 0 is the will), and the least value where 0 is forbidden. */
const table: Readonly<Record<number, Row>> = {
  1: ['payloadFormatIndicator', FLAG, ON_PUBLISH],
  2: ['messageExpiryInterval', U32, ON_PUBLISH],
  3: ['contentType', UTF8, ON_PUBLISH],
  [RESPONSE_TOPIC]: ['responseTopic', UTF8, ON_PUBLISH],
  9: ['correlationData', BINARY, ON_PUBLISH],
  [SUBSCRIPTION_IDENTIFIER]: ['subscriptionIdentifiers', VARINT, (1 << PUBLISH) | (1 << SUBSCRIBE), 1],
  [SESSION_EXPIRY_INTERVAL]: ['sessionExpiryInterval', U32, ON_BOTH | ON_DISCONNECT],
  18: ['assignedClientIdentifier', UTF8, ON_CONNACK],
  19: ['serverKeepAlive', U16, ON_CONNACK],
  21: ['authenticationMethod', UTF8, ON_BOTH | ON_AUTH],
  22: ['authenticationData', BINARY, ON_BOTH | ON_AUTH],
  23: ['requestProblemInformation', FLAG, ON_CONNECT],
  24: ['willDelayInterval', U32, 1 << WILL],
  25: ['requestResponseInformation', FLAG, ON_CONNECT],
  26: ['responseInformation', UTF8, ON_CONNACK],
  [SERVER_REFERENCE]: ['serverReference', UTF8, ON_CONNACK | ON_DISCONNECT],
  31: ['reasonString', UTF8, ON_REASON],
  33: ['receiveMaximum', U16, ON_BOTH, 1],
  34: ['topicAliasMaximum', U16, ON_BOTH],
  [TOPIC_ALIAS]: ['topicAlias', U16, 1 << PUBLISH, 1],
  36: ['maximumQoS', FLAG, ON_CONNACK],
  37: ['retainAvailable', FLAG, ON_CONNACK],
  [USER_PROPERTY]: ['userProperties', PAIR, ON_ANY],
  39: ['maximumPacketSize', U32, ON_BOTH, 1],
  40: ['wildcardSubscriptionAvailable', FLAG, ON_CONNACK],
  41: ['subscriptionIdentifierAvailable', FLAG, ON_CONNACK],
  42: ['sharedSubscriptionAvailable', FLAG, ON_CONNACK],
}

let identifiers: Map<string, number> | undefined

/** The identifier of a key, -1 when there is none. */
function identifierOf(key: string): number {
  identifiers ??= new Map(Object.entries(table).map(([id, row]) => [row[0], Number(id)]))
  return identifiers.get(key) ?? -1
}

/** Whether the property is one that the packet may hold, but not from this sender [MQTT-3.3.4-6] [MQTT-3.14.2-2]. */
function isForbidden(id: number, packetType: number, from: Author): boolean {
  if (id === SUBSCRIPTION_IDENTIFIER || id === SERVER_REFERENCE) return from === 'client' && packetType !== SUBSCRIBE
  return id === SESSION_EXPIRY_INTERVAL && packetType === DISCONNECT && from === 'server'
}

/** What {@link validateProperties} notes on its way. */
export interface PropertyNotes {
  /** The Topic Alias, left alone when there is none. */
  topicAlias: number
  /** Raised by one for each User Property. */
  userPropertyCount: number
  /** Raised by one for each Subscription Identifier. */
  subscriptionIdentifierCount: number
}

/**
 * Checks every rule that the properties in `bytes[start..end)` (without the Property Length) can break by themselves; throws a WireError.
 *
 * @param packetType the packet that holds them, `WILL` for a will
 * @param from who sent it
 */
export function validateProperties(bytes: Uint8Array, start: number, end: number, packetType: number, from: Sender, notes?: PropertyNotes): void {
  let seenLow = 0
  let seenHigh = 0
  let at = start
  while (at < end) {
    const id = bytes[at] as number
    if (id === USER_PROPERTY) {
      const value = fieldEnd(bytes, at + 1, end)
      checkString(bytes, at + 1, value)
      const next = fieldEnd(bytes, value, end)
      checkString(bytes, value, next)
      at = next
      if (notes !== undefined) notes.userPropertyCount++
      continue
    }
    const row = table[id]
    if (row === undefined || ((row[2] >> packetType) & 1) === 0) throw malformed('property is not defined for this packet', at)
    if (isForbidden(id, packetType, from)) throw protocolError('property is not for this sender', at)
    const bit = 1 << (id & 31)
    if (((id < 32 ? seenLow : seenHigh) & bit) !== 0) throw protocolError('property is repeated', at)
    if (id >= 32) seenHigh |= bit
    // A PUBLISH holds one Subscription Identifier per matching subscription [MQTT-3.3.4-4].
    else if (id !== SUBSCRIPTION_IDENTIFIER || packetType !== PUBLISH) seenLow |= bit
    if (notes !== undefined && id === SUBSCRIPTION_IDENTIFIER) notes.subscriptionIdentifierCount++
    if (notes !== undefined && id === TOPIC_ALIAS && end - at > 2) notes.topicAlias = uint16(bytes, at + 1)
    at = validateValue(bytes, at + 1, end, id, row[1], row[3] ?? 0)
  }
}

/** Checks one value and returns its end. */
function validateValue(bytes: Uint8Array, at: number, end: number, id: number, type: number, least: number): number {
  if (type >= UTF8) {
    const next = fieldEnd(bytes, at, end)
    if (type === UTF8) {
      const found = checkString(bytes, at, next)
      if (id === RESPONSE_TOPIC && (found === HAS_WILDCARD || next === at + 2)) throw protocolError('response topic is no topic name', at)
    }
    return next
  }
  const next = at + numberSize(bytes, at, type, end)
  if (next > end) throw malformed('property is cut off', at)
  const value = readNumber(bytes, at, type)
  if (value < least || (type === FLAG && value > 1)) {
    throw protocolError('property value is out of range', at, id === TOPIC_ALIAS ? 0x94 : undefined)
  }
  return next
}

function readNumber(bytes: Uint8Array, at: number, type: number): number {
  if (type === FLAG) return bytes[at] as number
  if (type === U16) return uint16(bytes, at)
  return type === U32 ? uint32(bytes, at) : variableByteInteger(bytes, at, bytes.length)
}

/** {@link validateProperties}, then the values as an object that holds copies only. */
export function decodeProperties(bytes: Uint8Array, start: number, end: number, packetType: number, from: Sender): Properties {
  validateProperties(bytes, start, end, packetType, from)
  return readProperties(bytes, start, end)
}

/** The values of properties that {@link validateProperties} accepted. */
export function readProperties(bytes: Uint8Array, start: number, end: number): Properties {
  const properties: Properties = {}
  let at = start
  while (at < end) {
    const [key, type] = rowOf(bytes[at++] as number)
    const next = valueEnd(bytes, at, type)
    if (type === VARINT) append(properties, 'subscriptionIdentifiers', readNumber(bytes, at, type))
    else if (type < UTF8) set(properties, key, readNumber(bytes, at, type))
    else if (type === BINARY) set(properties, key, new Uint8Array(bytes.subarray(at + 2, next)))
    else if (type === UTF8) set(properties, key, decodeUtf8(bytes, at + 2, next))
    else {
      const value = at + 2 + uint16(bytes, at)
      append(properties, 'userProperties', [decodeUtf8(bytes, at + 2, value), decodeUtf8(bytes, value + 2, next)])
    }
    at = next
  }
  return properties
}

function rowOf(id: number): Row {
  return table[id] as Row
}

function set(properties: Properties, key: keyof Properties, value: unknown): void {
  properties[key] = value as never
}

function append<K extends 'subscriptionIdentifiers' | 'userProperties'>(
  properties: Properties,
  key: K,
  value: (Properties[K] & object)[number],
): void {
  const list = properties[key] as unknown[] | undefined
  if (list === undefined) properties[key] = [value] as Properties[K]
  else list.push(value)
}

/** The end of a valid value. */
function valueEnd(bytes: Uint8Array, at: number, type: number): number {
  if (type < UTF8) return at + numberSize(bytes, at, type, bytes.length)
  const end = at + 2 + uint16(bytes, at)
  return type === PAIR ? end + 2 + uint16(bytes, end) : end
}

function numberSize(bytes: Uint8Array, at: number, type: number, end: number): number {
  if (type === VARINT) return variableByteIntegerSize(variableByteInteger(bytes, at, end))
  return type === FLAG ? 1 : type * 2
}

/** Calls `visit` with each Subscription Identifier in properties that {@link validateProperties} accepted for a PUBLISH. */
export function forEachSubscriptionIdentifier(bytes: Uint8Array, start: number, end: number, visit: (identifier: number) => void): void {
  let at = start
  while (at < end) {
    const type = rowOf(bytes[at++] as number)[1]
    if (type === VARINT) visit(readNumber(bytes, at, type))
    at = valueEnd(bytes, at, type)
  }
}

/**
 * Writes Property Length and properties in the order of the object's keys; keys whose value is `undefined` are left out. Refuses what the packet
 * may not hold, by the rules of `from`.
 *
 * @param path of the properties in the packet, for errors
 */
export function writeProperties(writer: Writer, properties: unknown, packetType: number, from: Author, path = 'properties'): void {
  if (properties === undefined) {
    writer.u8(0)
    return
  }
  if (!isObject(properties)) throw refused(path, 'must be an object')
  const length = writer.leaveLength(1)
  for (const key of Object.keys(properties)) {
    const value = (properties as Record<string, unknown>)[key]
    if (value === undefined) continue
    const id = identifierOf(key)
    const row = table[id]
    const option = `${path}.${row === undefined ? printable(key) : key}`
    if (row === undefined || ((row[2] >> packetType) & 1) === 0 || isForbidden(id, packetType, from)) {
      throw refused(option, 'is not a property of this packet')
    }
    if (row[1] === PAIR) writePairs(writer, value, option)
    else if (row[1] === VARINT) writeIdentifiers(writer, value, option, packetType)
    else writeProperty(writer, id, row[1], value, option, row[3] ?? 0)
  }
  writer.fillLength(length, 1, 0, path)
}

function writeProperty(writer: Writer, id: number, type: number, value: unknown, option: string, least: number): void {
  writer.u8(id)
  if (type === UTF8) {
    writer.string(value, option)
    if (id === RESPONSE_TOPIC && (value === '' || hasWildcard(value as string))) throw refused(option, 'must be a topic name')
  } else if (type === BINARY) writer.binary(value, option)
  else if (type === FLAG) writer.u8(integer(value, 0, 1, option))
  else if (type === U16) writer.u16(integer(value, least, 0xffff, option))
  else writer.u32(integer(value, least, 0xffff_ffff, option))
}

function writeIdentifiers(writer: Writer, value: unknown, option: string, packetType: number): void {
  if (!Array.isArray(value)) throw refused(option, 'must be an array')
  // One per SUBSCRIBE (section 3.8.2.1.2), one per matching subscription on a PUBLISH.
  if (packetType === SUBSCRIBE && value.length > 1) throw refused(option, 'must not hold more than one')
  for (const identifier of value) {
    writer.u8(SUBSCRIPTION_IDENTIFIER)
    writer.varint(integer(identifier, 1, MAXIMUM_VARIABLE_BYTE_INTEGER, option))
  }
}

function writePairs(writer: Writer, value: unknown, option: string): void {
  if (!Array.isArray(value)) throw refused(option, 'must be an array')
  let least = 0
  for (const pair of value) {
    if (!Array.isArray(pair) || pair.length !== 2) throw refused(option, 'must hold pairs of name and value')
    least += textLength(pair[0]) + textLength(pair[1])
  }
  // Refused before the memory for it is taken.
  if (least > MAXIMUM_VARIABLE_BYTE_INTEGER) throw refused(option, 'must not exceed 268,435,455 bytes', 'too-large')
  for (const pair of value) {
    writer.u8(USER_PROPERTY)
    writer.string(pair[0], option)
    writer.string(pair[1], option)
  }
}

function textLength(text: unknown): number {
  return typeof text === 'string' ? text.length : 0
}
