/**
 * The fields of a packet, byte by byte, with the names of the standard. Pure.
 *
 * Tolerant: whether a packet is valid is decided by `decode` of `mqwire/wire`, not here. Any bytes
 * give fields that cover each byte once and in order; nothing is thrown.
 */
import { type ProtocolVersion, reasonName } from 'mqwire/wire'
import { readable } from '../common/format.js'
import { textOf } from '../common/records.js'

/** Which field it is. */
export interface Place {
  readonly name: string
  /** The parts of the packet that hold the field, outermost first, with slashes between. */
  readonly within: string
}

/** Some bytes of a packet. */
export interface Field extends Place {
  /** Bytes from the start of the packet. */
  readonly offset: number
  readonly length: number
  /** Text is as the sender wrote it, not escaped. */
  readonly value: string | number
  /** The statement that is broken here. */
  readonly statement?: string
}

/** The name of bytes behind a fault. */
const notRead = 'not read'
/** The rest of a packet with more fields is not read. */
const mostFields = 65_536
/** A longer payload is cut, between characters. */
const longest = /^.{0,160}/su

/** The names of section 2.1.2, by packet type. */
export const typeNames = `reserved CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP
SUBSCRIBE SUBACK UNSUBSCRIBE UNSUBACK PINGREQ PINGRESP DISCONNECT AUTH`.split(/\s/)

/** How a value is encoded: the bytes of a number, or a data type of section 1.5. */
type Kind = 1 | 2 | 4 | 'variable' | 'string' | 'pair' | 'binary' | 'payload'

/** Section 2.2.2.2: identifier, kind and name. */
const properties = new Map(
  `1 1 Payload Format Indicator; 2 4 Message Expiry Interval; 3 string Content Type;
8 string Response Topic; 9 binary Correlation Data; 11 variable Subscription Identifier;
17 4 Session Expiry Interval; 18 string Assigned Client Identifier; 19 2 Server Keep Alive;
21 string Authentication Method; 22 binary Authentication Data; 23 1 Request Problem Information;
24 4 Will Delay Interval; 25 1 Request Response Information; 26 string Response Information;
28 string Server Reference; 31 string Reason String; 33 2 Receive Maximum; 34 2 Topic Alias Maximum;
35 2 Topic Alias; 36 1 Maximum QoS; 37 1 Retain Available; 38 pair User Property;
39 4 Maximum Packet Size; 40 1 Wildcard Subscription Available;
41 1 Subscription Identifier Available; 42 1 Shared Subscription Available`
    .split(/;\s/)
    .map((row) => {
      const [id, kind, ...name] = row.split(' ')
      return [Number(id), [name.join(' '), (Number(kind) || kind) as Kind]] as const
    }),
)

/** Of CONNACK, by return code (section 3.2.2.3 of 3.1.1). */
const connectReturnCodes = `Connection Accepted; unacceptable protocol version; identifier rejected;
Server unavailable; bad user name or password; not authorized`.split(/;\s/)

/** A big-endian number. */
const numberOf = (bytes: Uint8Array): number => bytes.reduce((value, byte) => value * 256 + byte, 0)

/** A Variable Byte Integer: its size, and its value unless it is cut off or malformed. */
function variable(bytes: Uint8Array): { readonly size: number; readonly value?: number } {
  let value = 0
  for (let size = 1; size <= 4; size++) {
    const byte = bytes[size - 1]
    if (byte === undefined) return { size }
    value += (byte & 127) * 128 ** (size - 1)
    if (byte < 128) return byte === 0 && size > 1 ? { size } : { size, value }
  }
  return { size: 4 }
}

/** Text, or hexadecimal of what is not well-formed. */
const textIn = (bytes: Uint8Array): string => textOf(bytes) ?? readable(bytes)

/** As {@link textIn}; cut when it is long. */
function cutText(bytes: Uint8Array): string {
  const text = textIn(bytes)
  const start = longest.exec(text)?.[0] ?? ''
  return start === text ? text : `${start}… ${bytes.length} bytes`
}

/** Bytes of the value that begins the bytes, which may hold fewer. */
function sizeOf(kind: Kind, bytes: Uint8Array): number {
  if (typeof kind === 'number') return kind
  if (kind === 'variable') return variable(bytes).size
  if (kind === 'payload') return bytes.length
  const size = 2 + (bytes.length < 2 ? 0 : numberOf(bytes.subarray(0, 2)))
  return kind === 'pair' ? size + sizeOf('string', bytes.subarray(size)) : size
}

function valueIn(kind: Kind, bytes: Uint8Array): string | number {
  if (typeof kind === 'number') return numberOf(bytes)
  if (kind === 'variable') return variable(bytes).value ?? 'malformed'
  if (kind === 'payload') return cutText(bytes)
  if (kind === 'binary') return cutText(bytes.subarray(2))
  const size = sizeOf('string', bytes)
  const text = textIn(bytes.subarray(2, size))
  return kind === 'pair' ? `${text}: ${textIn(bytes.subarray(size + 2))}` : text
}

/** A position in a packet, and the fields before it. */
class Cursor {
  readonly fields: Field[] = []
  readonly bytes: Uint8Array
  /** A CONNECT sets its own. */
  version: ProtocolVersion
  within = 'Fixed header'
  /** The field for which bytes are missing: the end. */
  missing: Place | undefined
  at = 0
  /** Where the packet or its properties end. */
  end: number

  constructor(bytes: Uint8Array, version: ProtocolVersion) {
    this.bytes = bytes
    this.version = version
    this.end = bytes.length
  }

  /** Bytes that can still be read. */
  get left(): number {
    return this.missing === undefined ? this.end - this.at : 0
  }

  /**
   * Adds a field, and returns its number; 0 when bytes are missing.
   *
   * @param identifier bytes before the value
   */
  take(name: string, kind: Kind, show?: (value: number) => string, identifier = 0): number {
    if (this.missing !== undefined) return 0
    if (this.fields.length >= mostFields) return this.stop('further fields')
    const { at, end, within } = this
    const wanted = identifier + sizeOf(kind, this.bytes.subarray(at + identifier, end))
    const length = Math.min(wanted, this.left)
    const part = this.bytes.subarray(at + identifier, at + length)
    const isShort = length < wanted
    const value = isShort ? `cut off: ${length} of ${wanted} bytes` : valueIn(kind, part)
    const shown = typeof value === 'number' && show !== undefined ? show(value) : value
    if (length > 0) this.fields.push({ offset: at, length, name, value: shown, within })
    this.at += length
    if (isShort || (kind === 'variable' && typeof value === 'string')) return this.stop(name)
    return typeof value === 'number' ? value : 0
  }

  /** The rest of the packet cannot be read. */
  stop(name: string): 0 {
    if (this.missing === undefined) this.fields.push(...unread(this.at, this.bytes.length))
    this.missing ??= { name, within: this.within }
    return 0
  }

  /** A reason code, on 3.1.1 a return code. */
  reason(type: number): void {
    const isOld = this.version === 4
    this.take(isOld ? 'Return Code' : 'Reason Code', 1, (code) => {
      const name = isOld ? returnName(code, type) : (reasonName(code, type) ?? reasonName(code))
      return `0x${code.toString(16).padStart(2, '0')} ${name ?? 'unknown'}`
    })
  }

  /** The length of properties, and each of them; nothing on 3.1.1. */
  properties(prefix = ''): void {
    if (this.version === 4) return
    const length = this.take(`${prefix}Property Length`, 'variable')
    if (length > this.left) this.stop('Properties')
    const { end, within } = this
    this.end = this.at + length
    this.within = `${within}/${prefix}Properties`
    while (this.left > 0) {
      const known = properties.get(this.bytes[this.at] as number)
      // Identifier and value are one field.
      if (known !== undefined) this.take(...known, undefined, 1)
      else this.take('unknown Property', 1)
      if (known === undefined) this.stop('Property')
    }
    this.end = end
    this.within = within
  }
}

/** The fields of one packet. */
export type Walked = Readonly<Pick<Cursor, 'fields' | 'missing' | 'version'>>

/** The field of the bytes from `offset` to `end`, if there are any. */
function unread(offset: number, end: number): Field[] {
  const length = end - offset
  return length > 0 ? [{ offset, length, name: notRead, value: `${length} bytes`, within: '' }] : []
}

function returnName(code: number, type: number): string | undefined {
  if (typeNames[type] === 'CONNACK') return connectReturnCodes[code]
  return code === 0x80 ? 'Failure' : code < 3 ? `Success - Maximum QoS ${code}` : undefined
}

/** Shows the bits of a byte by a layout, which has their widths, the highest first. */
function bits(layout: string, size = 8): (byte: number) => string {
  return (byte) => {
    let left = size
    return layout.replace(/\d/g, (width) => {
      left -= Number(width)
      return String((byte >> left) & (2 ** Number(width) - 1))
    })
  }
}

function firstByte(byte: number): string {
  const name = typeNames[byte >> 4] as string
  const layout = name === 'PUBLISH' ? 'DUP 1, QoS 2, RETAIN 1' : 'flags 1111'
  return `${name}, ${bits(layout, 4)(byte)}`
}

function connect(cursor: Cursor): void {
  cursor.take('Protocol Name', 'string')
  const version = cursor.take('Protocol Version', 1)
  // The layout of another version is unknown.
  if (version !== 4 && version !== 5) return void cursor.stop('Protocol Version')
  cursor.version = version
  const clean = version === 5 ? 'Clean Start' : 'Clean Session'
  const layout = `User Name 1, Password 1, Will Retain 1, Will QoS 2, Will Flag 1, ${clean} 1, reserved 1`
  const flags = cursor.take('Connect Flags', 1, bits(layout))
  cursor.take('Keep Alive', 2)
  cursor.properties()
  cursor.within = 'Payload'
  cursor.take('Client Identifier', 'string')
  if (flags & 4) {
    cursor.within = 'Payload/Will'
    cursor.properties('Will ')
    cursor.take('Will Topic', 'string')
    cursor.take('Will Payload', 'binary')
    cursor.within = 'Payload'
  }
  if (flags & 0x80) cursor.take('User Name', 'string')
  if (flags & 0x40) cursor.take('Password', 'binary')
}

/** The payload of SUBSCRIBE, UNSUBSCRIBE and their answers. */
function list(cursor: Cursor, type: number, name: string): void {
  const rest = cursor.version === 4 ? '' : 'Retain Handling 2, Retain As Published 1, No Local 1, '
  const layout = bits(`reserved ${cursor.version === 4 ? 6 : 2}, ${rest}QoS 2`)
  for (let count = 1; cursor.left > 0; count++) {
    cursor.within = name === 'SUBSCRIBE' ? `Payload/Subscription ${count}` : 'Payload'
    if (name.endsWith('ACK')) cursor.reason(type)
    else cursor.take('Topic Filter', 'string')
    if (name === 'SUBSCRIBE') cursor.take('Subscription Options', 1, layout)
  }
}

/** Everything behind the fixed header. */
function body(cursor: Cursor, type: number, flags: number): void {
  const name = typeNames[type] as string
  if (name === 'CONNECT') return connect(cursor)
  if (name === 'CONNACK') {
    cursor.take('Connect Acknowledge Flags', 1, bits('reserved 7, Session Present 1'))
    cursor.reason(type)
    cursor.properties()
  } else if (name === 'PUBLISH') {
    cursor.take('Topic Name', 'string')
    if (flags & 6) cursor.take('Packet Identifier', 2)
    cursor.properties()
    cursor.within = 'Payload'
    cursor.take('Payload', 'payload')
  } else if (name.includes('SUB')) {
    cursor.take('Packet Identifier', 2)
    cursor.properties()
    if (name !== 'UNSUBACK' || cursor.version === 5) list(cursor, type, name)
  } else if (!/^PING|^reserved/.test(name)) {
    if (name.startsWith('PUB')) cursor.take('Packet Identifier', 2)
    // Reason Code and properties may be left out.
    if (cursor.version === 5 && cursor.left > 0) cursor.reason(type)
    if (cursor.version === 5 && cursor.left > 0) cursor.properties()
  }
}

/** Names the fields of the packet in `bytes`, which may be cut off, or be no packet. */
export function walk(bytes: Uint8Array, version: ProtocolVersion): Walked {
  const cursor = new Cursor(bytes, version)
  const first = cursor.take('Control Packet type and flags', 1, firstByte)
  cursor.take('Remaining Length', 'variable')
  cursor.within = 'Variable header'
  body(cursor, first >> 4, first & 15)
  if (cursor.left > 0) cursor.fields.push(...unread(cursor.at, cursor.end))
  return cursor
}

/** The fields up to the one that holds the fault; what is behind it is not read. */
export function upTo(fields: readonly Field[], fault: number, size: number): readonly Field[] {
  const kept = fields.filter(({ offset, name }) => offset <= fault && name !== notRead)
  const last = kept.at(-1)
  return [...kept, ...unread(last === undefined ? 0 : last.offset + last.length, size)]
}

/** Size of the packet that begins the bytes; undefined when it is unknown where it ends. */
export function packetSize(bytes: Uint8Array): number | undefined {
  const [first = 0] = bytes
  // No packet, or one of HTTP or TLS: what follows is no length.
  if (first < 0x10 || first === 0x15 || first === 0x48) return undefined
  const { size, value } = variable(bytes.subarray(1))
  return value === undefined ? undefined : 1 + size + value
}
