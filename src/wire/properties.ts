/**
 * The 27 properties of section 2.2.2.2: one table for validation in place, decoding and encoding.
 *
 * Validation allocates nothing, so a PUBLISH is checked in place and its properties are decoded
 * only on demand. Keys of decoded objects come only from the table: names chosen by a peer are data
 * in `userProperties`.
 */
import { printable } from '../errors.js'
import type { Author, Sender } from './constants.js'
import { DISCONNECT, MAXIMUM_VARIABLE_BYTE_INTEGER, PUBLISH, SUBSCRIBE } from './constants.js'
import { type FieldPath, malformed, mistyped, protocolError, refused } from './error.js'
import {
  checkString,
  fieldEnd,
  skip,
  uint16,
  variableByteInteger,
  variableByteIntegerSize,
} from './fields.js'
import type { Properties } from './packets.js'
import { decodeUtf8, HAS_WILDCARD, ILL_FORMED, isPlain, scanUtf8 } from './utf8.js'
import type { Writer } from './writer.js'
import { integer, isObject } from './writer.js'

// Types of values. A fixed-size number has its size as its type; single bytes must be 0 or 1. Types
// above VARINT have a length prefix.
/** One byte, 0 or 1. */
const FLAG = 1
/** Two Byte Integer. */
const U16 = 2
/** Four Byte Integer. */
const U32 = 4
/** Variable Byte Integer. */
const VARINT = 5
/** UTF-8 Encoded String. */
const UTF8 = 6
/** Binary Data. */
const BINARY = 7
/** UTF-8 String Pair. */
const PAIR = 8

// Sets of packets as bits by packet type; bit 0 is the will.
/** PUBLISH and the will. */
const ON_PUBLISH = 0b1001
/** CONNECT. */
const ON_CONNECT = 0b10
/** CONNACK. */
const ON_CONNACK = 0b100
/** CONNECT and CONNACK. */
const ON_BOTH = 0b110
/** DISCONNECT. */
const ON_DISCONNECT = 0b100_0000_0000_0000
/** AUTH. */
const ON_AUTH = 0b1000_0000_0000_0000
/** CONNACK, the four PUBLISH acknowledgements, SUBACK, UNSUBACK, DISCONNECT, AUTH. */
const ON_REASON = 0b1100_1010_1111_0100
/** Everything but PINGREQ and PINGRESP. */
const ON_ANY = 0b1100_1111_1111_1111

// Identifiers that have rules of their own.
/** Section 3.3.2.3.5. */
const RESPONSE_TOPIC = 0x08
/** Sections 3.3.2.3.8, 3.8.2.1.2. */
const SUBSCRIPTION_IDENTIFIER = 0x0b
/** Sections 3.1.2.11.2, 3.14.2.2.2. */
const SESSION_EXPIRY_INTERVAL = 0x11
/** Sections 3.1.2.11.9, 3.2.2.3.17, 3.15.2.2.2. */
const AUTHENTICATION_METHOD = 0x15
/** Sections 3.1.2.11.10, 3.2.2.3.18, 3.15.2.2.3. */
const AUTHENTICATION_DATA = 0x16
/** Section 3.1.3.2.2. */
const WILL_DELAY_INTERVAL = 0x18
/** Sections 3.2.2.3.16, 3.14.2.2.5. */
const SERVER_REFERENCE = 0x1c
/** Section 3.3.2.3.4. */
export const TOPIC_ALIAS = 0x23
/** Section 2.2.2.2. */
const USER_PROPERTY = 0x26

/**
 * Most Subscription Identifiers noted of one packet, so that a packet with a million of them
 * creates no list of a million.
 */
export const MOST_NOTED = 256

// Bits of the result of `writeProperties`: properties that other fields depend on.
export const WROTE_ALIAS = 1
export const WROTE_METHOD = 2
export const WROTE_DATA = 4

type Row = readonly [key: keyof Properties, type: number, packets: number, least?: 1]

const none = undefined

/**
 * By identifier: key, type, allowed packets as bits by packet type (bit 0 is the will), and the
 * least value if 0 is forbidden.
 */
const table: readonly (Row | undefined)[] = [
  none,
  // 1
  ['payloadFormatIndicator', FLAG, ON_PUBLISH],
  ['messageExpiryInterval', U32, ON_PUBLISH],
  ['contentType', UTF8, ON_PUBLISH],
  none,
  none,
  none,
  none,
  // 8
  ['responseTopic', UTF8, ON_PUBLISH],
  ['correlationData', BINARY, ON_PUBLISH],
  none,
  // 11
  ['subscriptionIdentifiers', VARINT, 0b1_0000_1000, 1],
  none,
  none,
  none,
  none,
  none,
  // 17
  ['sessionExpiryInterval', U32, ON_BOTH | ON_DISCONNECT],
  ['assignedClientIdentifier', UTF8, ON_CONNACK],
  ['serverKeepAlive', U16, ON_CONNACK],
  none,
  // 21
  ['authenticationMethod', UTF8, ON_BOTH | ON_AUTH],
  ['authenticationData', BINARY, ON_BOTH | ON_AUTH],
  ['requestProblemInformation', FLAG, ON_CONNECT],
  ['willDelayInterval', U32, 1],
  ['requestResponseInformation', FLAG, ON_CONNECT],
  ['responseInformation', UTF8, ON_CONNACK],
  none,
  // 28
  ['serverReference', UTF8, ON_CONNACK | ON_DISCONNECT],
  none,
  none,
  // 31
  ['reasonString', UTF8, ON_REASON],
  none,
  // 33
  ['receiveMaximum', U16, ON_BOTH, 1],
  ['topicAliasMaximum', U16, ON_BOTH],
  ['topicAlias', U16, 0b1000, 1],
  ['maximumQoS', FLAG, ON_CONNACK],
  ['retainAvailable', FLAG, ON_CONNACK],
  ['userProperties', PAIR, ON_ANY],
  ['maximumPacketSize', U32, ON_BOTH, 1],
  ['wildcardSubscriptionAvailable', FLAG, ON_CONNACK],
  ['subscriptionIdentifierAvailable', FLAG, ON_CONNACK],
  ['sharedSubscriptionAvailable', FLAG, ON_CONNACK],
]

let identifiers: Map<string | undefined, number> | undefined

/** The identifier of a key; 0: no such key. */
function identifierOf(key: string): number {
  identifiers ??= new Map(table.map((row, id) => [row?.[0], id]))
  return identifiers.get(key) ?? 0
}

/**
 * True when the packet may have the property, but not from this sender [MQTT-3.3.4-6]
 * [MQTT-3.14.2-2].
 */
function isForbidden(id: number, packetType: number, from: Author): boolean {
  if (id === SUBSCRIPTION_IDENTIFIER || id === SERVER_REFERENCE)
    return from === 'client' && packetType !== SUBSCRIBE
  return id === SESSION_EXPIRY_INTERVAL && packetType === DISCONNECT && from === 'server'
}

/** Results of {@link validateProperties} besides errors. */
export interface PropertyNotes {
  /** The Topic Alias; unchanged without one. */
  topicAlias: number
  /** Incremented for each User Property. */
  userPropertyCount: number
  /**
   * Incremented for each Subscription Identifier, which is stored at this index while there is
   * space.
   */
  subscriptionIdentifierCount: number
  readonly subscriptionIdentifiers: number[]
  /**
   * Accept a Will Delay Interval in a PUBLISH, which some servers leave in the message of a will:
   * it is checked, but not treated as a property.
   */
  readonly lenient?: boolean
  /** Set when that happens; the reader of this flag resets it. */
  willDelay?: boolean
}

/**
 * Checks every rule that the properties in `bytes[start..end)` (without the Property Length) can
 * break by themselves; throws a WireError.
 *
 * @param packetType the packet that contains them, `WILL` for a will
 * @param from the sender
 * @param out receives the values, as copies
 * @param data a DataView of the same bytes: user properties are checked faster with it
 */
export function validateProperties(
  bytes: Uint8Array,
  start: number,
  end: number,
  packetType: number,
  from: Sender,
  notes?: PropertyNotes,
  out?: Properties,
  data?: DataView,
): void {
  let seenLow = 0
  let seenHigh = 0
  let at = start
  while (at < end) {
    const id = bytes[at] as number
    if (id === USER_PROPERTY && data !== undefined && notes !== undefined) {
      const next = pairEnd(bytes, data, at + 1, end)
      if (next > 0) {
        notes.userPropertyCount++
        at = next
        continue
      }
    }
    // Bounds are checked, so that inherited array members are not taken for properties.
    const row = id < table.length ? table[id] : undefined
    const strange = id === WILL_DELAY_INTERVAL && packetType === PUBLISH && notes?.lenient === true
    if (row === undefined || (((row[2] >> packetType) & 1) === 0 && !strange))
      throw malformed('property is not one of this packet', at)
    if (isForbidden(id, packetType, from))
      throw protocolError('property is not for this sender', at)
    const type = row[1]
    // A PUBLISH holds one Subscription Identifier per matching subscription [MQTT-3.3.4-4].
    if (type !== PAIR && (type !== VARINT || packetType !== PUBLISH)) {
      const bit = 1 << (id & 31)
      if (((id < 32 ? seenLow : seenHigh) & bit) !== 0)
        throw protocolError('property is repeated', at)
      if (id < 32) seenLow |= bit
      else seenHigh |= bit
    }
    const next = validateValue(bytes, at + 1, end, id, row)
    if (notes !== undefined) {
      if (type === PAIR) notes.userPropertyCount++
      else if (type === VARINT) noteIdentifier(notes, numberAt(bytes, at + 1, next, type))
      else if (id === TOPIC_ALIAS) notes.topicAlias = numberAt(bytes, at + 1, next, type)
      else if (strange) notes.willDelay = true
    }
    if (out !== undefined)
      put(out as Record<string, unknown>, row[0], type, valueAt(bytes, at + 1, next, type))
    at = next
  }
}

// Fast check of a pair of strings: returns its end, or 0 when something is wrong, which is then
// examined closely.
function pairEnd(bytes: Uint8Array, data: DataView, at: number, end: number): number {
  const name = at + 2 + uint16(bytes, at)
  if (name + 2 > end || !isText(bytes, data, at + 2, name)) return 0
  const next = name + 2 + uint16(bytes, name)
  return next <= end && isText(bytes, data, name + 2, next) ? next : 0
}

function isText(bytes: Uint8Array, data: DataView, start: number, end: number): boolean {
  return isPlain(data, start, end) || scanUtf8(bytes, start, end) !== ILL_FORMED
}

function noteIdentifier(notes: PropertyNotes, identifier: number): void {
  const at = notes.subscriptionIdentifierCount++
  if (at < MOST_NOTED) notes.subscriptionIdentifiers[at] = identifier
}

/** Checks one value and returns its end. */
function validateValue(bytes: Uint8Array, at: number, end: number, id: number, row: Row): number {
  const type = row[1]
  if (type > VARINT) {
    const next = fieldEnd(bytes, at, end)
    if (type === BINARY) return next
    const found = checkString(bytes, at, next)
    if (id === RESPONSE_TOPIC && (found === HAS_WILDCARD || next === at + 2))
      throw protocolError('response topic is no topic name', at)
    if (type === UTF8) return next
    const last = fieldEnd(bytes, next, end)
    checkString(bytes, next, last)
    return last
  }
  const next = skip(
    at,
    type === VARINT ? variableByteIntegerSize(variableByteInteger(bytes, at, end)) : type,
    end,
  )
  const value = numberAt(bytes, at, next, type)
  if (value < (row[3] ?? 0) || (type === FLAG && value > 1)) {
    throw protocolError('property value is out of range', at, id === TOPIC_ALIAS ? 0x94 : undefined)
  }
  return next
}

/** The valid number in `bytes[at..end)`. */
function numberAt(bytes: Uint8Array, at: number, end: number, type: number): number {
  if (type === VARINT) return variableByteInteger(bytes, at, end)
  let value = 0
  for (let i = at; i < end; i++) value = value * 256 + (bytes[i] as number)
  return value
}

/** The valid value in `bytes[at..end)`, a copy. */
function valueAt(bytes: Uint8Array, at: number, end: number, type: number): unknown {
  if (type <= VARINT) return numberAt(bytes, at, end, type)
  if (type === BINARY) return new Uint8Array(bytes.subarray(at + 2, end))
  const next = at + 2 + uint16(bytes, at)
  const text = decodeUtf8(bytes, at + 2, next)
  return type === PAIR ? [text, decodeUtf8(bytes, next + 2, end)] : text
}

/** Sets a value, or adds it to the list of those that may repeat. */
function put(values: Record<string, unknown>, key: string, type: number, value: unknown): void {
  if (type !== PAIR && type !== VARINT) values[key] = value
  else if (Object.hasOwn(values, key)) (values[key] as unknown[]).push(value)
  else values[key] = [value]
}

/** {@link validateProperties} with the values as an object that holds copies only. */
export function decodeProperties(
  bytes: Uint8Array,
  start: number,
  end: number,
  packetType: number,
  from: Sender,
): Properties {
  const properties: Properties = {}
  validateProperties(bytes, start, end, packetType, from, undefined, properties)
  return properties
}

/**
 * The properties of a PUBLISH that {@link validateProperties} accepted, without keys that do not
 * belong in a PUBLISH.
 */
export function readProperties(bytes: Uint8Array, start: number, end: number): Properties {
  const properties: Properties = {}
  for (let at = start; at < end; ) {
    const row = table[bytes[at] as number]
    const next = row === undefined ? end + 1 : valueEnd(bytes, at + 1, end, row[1])
    // Memory that the program has written to meanwhile.
    if (row === undefined || next > end) throw malformed('properties were changed', at)
    const [key, type, packets] = row
    if (((packets >> PUBLISH) & 1) === 1)
      put(properties as Record<string, unknown>, key, type, valueAt(bytes, at + 1, next, type))
    at = next
  }
  return properties
}

/** The end of the valid value at `at`. */
function valueEnd(bytes: Uint8Array, at: number, end: number, type: number): number {
  if (type < VARINT) return at + type
  if (type === VARINT) return at + variableByteIntegerSize(variableByteInteger(bytes, at, end))
  const next = at + 2 + uint16(bytes, at)
  return type === PAIR ? next + 2 + uint16(bytes, next) : next
}

/**
 * Writes Property Length and properties in the order of the object's keys, without those that are
 * `undefined`. Refuses properties that the packet may not have by the rules of `from`.
 *
 * @param path of the properties in the packet, for errors
 * @returns the bits `WROTE_…` of what was written; the object may have getters and inherited keys,
 * so only this result is certain
 */
export function writeProperties(
  writer: Writer,
  properties: unknown,
  packetType: number,
  from: Author,
  path = 'properties',
): number {
  const start = writer.length
  let wrote = 0
  writer.u8(0)
  if (properties === undefined) return wrote
  if (!isObject(properties)) throw mistyped(path, 'must be an object')
  for (const key of Object.keys(properties)) {
    const value = (properties as Record<string, unknown>)[key]
    if (value === undefined) continue
    const id = identifierOf(key)
    const row = table[id]
    const option = (): string => `${path}.${row === undefined ? printable(key) : key}`
    if (
      row === undefined ||
      ((row[2] >> packetType) & 1) === 0 ||
      isForbidden(id, packetType, from)
    ) {
      const plural = [`${key}s`, `${key.slice(0, -1)}ies`].find((name) => identifierOf(name) > 0)
      throw mistyped(
        option,
        `is not one of this packet${plural === undefined ? '' : `: ${plural}?`}`,
      )
    }
    if (row[1] === PAIR || row[1] === VARINT) writeList(writer, id, row, value, packetType, option)
    else writeValue(writer, id, row, value, option)
    wrote |=
      id === TOPIC_ALIAS
        ? WROTE_ALIAS
        : id === AUTHENTICATION_METHOD
          ? WROTE_METHOD
          : id === AUTHENTICATION_DATA
            ? WROTE_DATA
            : 0
  }
  writer.fillLength(start, start + 1, 0, path)
  return wrote
}

function writeList(
  writer: Writer,
  id: number,
  row: Row,
  list: unknown,
  packetType: number,
  option: FieldPath,
): void {
  if (!Array.isArray(list)) throw mistyped(option, 'must be an array')
  // One per SUBSCRIBE (section 3.8.2.1.2), one per matching subscription on a PUBLISH.
  const { length } = list
  if (id === SUBSCRIPTION_IDENTIFIER && packetType === SUBSCRIBE && length > 1)
    throw refused(option, 'must not hold more than one')
  // Refused before memory is allocated for it.
  let least = 0
  for (let index = 0; index < length && row[1] === PAIR; index++) {
    const pair = list[index] as unknown[] | undefined
    least += lengthOf(pair?.[0]) + lengthOf(pair?.[1])
  }
  if (least > MAXIMUM_VARIABLE_BYTE_INTEGER)
    throw refused(option, 'must not exceed 268,435,455 bytes', 'too-large')
  for (let index = 0; index < length; index++) writeValue(writer, id, row, list[index], option)
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' ? value.length : 0
}

function writeValue(writer: Writer, id: number, row: Row, value: unknown, option: FieldPath): void {
  const type = row[1]
  writer.u8(id)
  if (type === PAIR) {
    if (!Array.isArray(value) || value.length !== 2)
      throw mistyped(option, 'must hold pairs of name and value')
    writer.string(value[0], option)
    writer.string(value[1], option)
  } else if (type === BINARY) writer.binary(value, option)
  else if (id === RESPONSE_TOPIC) writer.topic(value, option)
  else if (type === UTF8) writer.string(value, option)
  else if (type === VARINT) writer.varint(integer(value, 1, MAXIMUM_VARIABLE_BYTE_INTEGER, option))
  else if (type === U32) writer.u32(integer(value, row[3] ?? 0, 0xffff_ffff, option))
  else if (type === U16) writer.u16(integer(value, row[3] ?? 0, 0xffff, option))
  else writer.u8(integer(value, 0, 1, option))
}
