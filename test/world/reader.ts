/** A small reader of MQTT bytes, 5.0 and 3.1.1, both directions, that shares nothing with `src/wire`: the world's own opinion of what was sent. */

import tables from '../rules/tables.json' with { type: 'json' }

/** Names of the packet kinds by number; 0 does not exist. */
const first = ['reserved', 'connect', 'connack', 'publish', 'puback', 'pubrec', 'pubrel'] as const
const second = ['pubcomp', 'subscribe', 'suback', 'unsubscribe', 'unsuback', 'pingreq'] as const
export const kinds = [...first, ...second, 'pingresp', 'disconnect', 'auth'] as const

export type Kind = (typeof kinds)[number]

export class Malformed extends Error {}

/** A filter of SUBSCRIBE or UNSUBSCRIBE with its options byte (0 in UNSUBSCRIBE). */
export interface SeenFilter {
  readonly filter: string
  readonly options: number
}

/** One packet as read. Fields that its kind does not have keep their neutral value. */
export interface Seen {
  kind: Kind
  size: number
  /** Packet identifier, 0 where there is none. */
  id: number
  qos: number
  dup: boolean
  retain: boolean
  topic: string
  /** Of PUBLISH: the name of the message, without the dots that make it longer. */
  payload: string
  /** Reason code (raw return code on 3.1.1). */
  reason: number
  filters: SeenFilter[]
  sessionPresent: boolean
  cleanStart: boolean
  /** 4 or 5, of CONNECT. */
  version: number
  clientId: string
  /** Seconds, of CONNECT. */
  keepAlive: number
  properties: Map<number, number | string>
}

export const property = {
  subscriptionIdentifier: 0x0b,
  assignedClientIdentifier: 0x12,
  serverKeepAlive: 0x13,
  authenticationMethod: 0x15,
  receiveMaximum: 0x21,
  topicAliasMaximum: 0x22,
  topicAlias: 0x23,
  maximumQos: 0x24,
  retainAvailable: 0x25,
  maximumPacketSize: 0x27,
  subscriptionIdentifierAvailable: 0x29,
} as const

/** By identifier: its type, and the packets that may have it; WILL is the will. One broker leaves the Will Delay Interval in the message that comes of it. */
const table = new Map(
  tables.properties.map(({ id, type, packets, will }) => {
    const owners = [...packets, ...(will ? ['WILL'] : []), ...(id === 24 ? ['PUBLISH'] : [])]
    return [id, { type, owners: owners.map((name) => name.toLowerCase()) }] as const
  }),
)

const flagsOf: Readonly<Record<string, number>> = { pubrel: 2, subscribe: 2, unsubscribe: 2 }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

class Cursor {
  at: number
  readonly bytes: Uint8Array
  readonly end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  byte(): number {
    if (this.at >= this.end) throw new Malformed('too short')
    return this.bytes[this.at++] as number
  }

  two(): number {
    return this.byte() * 256 + this.byte()
  }

  four(): number {
    return this.two() * 65_536 + this.two()
  }

  variable(): number {
    let value = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.byte()
      value += (byte & 127) * 2 ** shift
      if (byte < 128) {
        if (byte === 0 && shift > 0) throw new Malformed('a length that is not minimal')
        return value
      }
    }
    throw new Malformed('a length of five bytes')
  }

  slice(): Uint8Array {
    const length = this.two()
    if (this.at + length > this.end) throw new Malformed('a field beyond the packet')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  text(): string {
    const bytes = this.slice()
    let text = ''
    for (const byte of bytes) {
      if (byte === 0 || byte > 127) return decoded(bytes)
      text += String.fromCharCode(byte)
    }
    return text
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    const text = utf8.decode(bytes)
    if (text.includes('\0')) throw new Malformed('NUL in a string')
    return text
  } catch {
    throw new Malformed('bad UTF-8')
  }
}

function properties(cursor: Cursor, owner: string, into: Map<number, number | string>): void {
  const length = cursor.variable()
  const end = cursor.at + length
  if (end > cursor.end) throw new Malformed('properties beyond the packet')
  while (cursor.at < end) {
    const id = cursor.variable()
    const entry = table.get(id)
    if (entry === undefined || !entry.owners.includes(owner))
      throw new Malformed(`property ${id} in ${owner}`)
    const value = propertyValue(cursor, entry.type)
    if (into.has(id) && id !== 38 && !(id === 11 && owner === 'publish'))
      throw new Malformed(`property ${id} twice`)
    into.set(id, value)
  }
  if (cursor.at !== end) throw new Malformed('a property beyond the properties')
}

function propertyValue(cursor: Cursor, type: string): number | string {
  if (type === 'byte') return cursor.byte()
  if (type === 'u16') return cursor.two()
  if (type === 'u32') return cursor.four()
  if (type === 'varint') return cursor.variable()
  if (type === 'utf8') return cursor.text()
  if (type === 'binary') return cursor.slice().length
  return `${cursor.text()}=${cursor.text()}`
}

const neutral = {
  ...{ id: 0, qos: 0, reason: 0, version: 0, keepAlive: 0, topic: '', payload: '', clientId: '' },
  ...{ dup: false, retain: false, sessionPresent: false, cleanStart: false },
}

function readConnect(cursor: Cursor, seen: Seen): void {
  if (cursor.text() !== 'MQTT') throw new Malformed('another protocol name')
  seen.version = cursor.byte()
  if (seen.version !== 4 && seen.version !== 5) throw new Malformed('another protocol version')
  const flags = cursor.byte()
  if ((flags & 1) !== 0) throw new Malformed('the reserved CONNECT flag')
  seen.cleanStart = (flags & 2) !== 0
  seen.keepAlive = cursor.two()
  if (seen.version === 5) properties(cursor, 'connect', seen.properties)
  seen.clientId = cursor.text()
  if ((flags & 4) !== 0) {
    if (seen.version === 5) properties(cursor, 'will', new Map())
    cursor.text()
    cursor.slice()
    if (((flags >> 3) & 3) === 3) throw new Malformed('will QoS 3')
  } else if ((flags & 0x38) !== 0) throw new Malformed('will flags without a will')
  if ((flags & 0x80) !== 0) cursor.text()
  if ((flags & 0x40) !== 0) cursor.slice()
}

function readPublish(cursor: Cursor, seen: Seen, flags: number, version: number): void {
  seen.qos = (flags >> 1) & 3
  seen.dup = (flags & 8) !== 0
  seen.retain = (flags & 1) !== 0
  if (seen.qos === 3) throw new Malformed('QoS 3')
  if (version === 5 && seen.qos === 0 && seen.dup) throw new Malformed('DUP at QoS 0')
  seen.topic = cursor.text()
  if (/[#+]/.test(seen.topic)) throw new Malformed('a wildcard in a topic')
  if (seen.qos > 0) seen.id = identifier(cursor)
  if (version === 5) properties(cursor, 'publish', seen.properties)
  if (seen.topic === '' && !seen.properties.has(property.topicAlias))
    throw new Malformed('no topic')
  seen.payload = payloadName(cursor.bytes.subarray(cursor.at, cursor.end))
  cursor.at = cursor.end
}

/** The name of a message of the world: its payload up to the dots that make it longer. */
export function payloadName(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) {
    if (byte === 0x2e) break
    text += String.fromCharCode(byte)
  }
  return text
}

function identifier(cursor: Cursor): number {
  const id = cursor.two()
  if (id === 0) throw new Malformed('packet identifier 0')
  return id
}

function readReason(cursor: Cursor, seen: Seen, version: number): void {
  if (version !== 5 || cursor.at === cursor.end) return
  seen.reason = cursor.byte()
  if (cursor.at < cursor.end) properties(cursor, seen.kind, seen.properties)
}

function readFilters(cursor: Cursor, seen: Seen, version: number): void {
  seen.id = identifier(cursor)
  if (version === 5) properties(cursor, seen.kind, seen.properties)
  while (cursor.at < cursor.end) {
    const filter = cursor.text()
    const options = seen.kind === 'subscribe' ? cursor.byte() : 0
    if (filter === '' || (options & 3) === 3 || (options & (version === 5 ? 0xc0 : 0xfc)) !== 0)
      throw new Malformed('a filter')
    seen.filters.push({ filter, options })
  }
  if (seen.filters.length === 0) throw new Malformed('no filter')
}

function readCodes(cursor: Cursor, seen: Seen, version: number): void {
  seen.id = identifier(cursor)
  if (version === 5) properties(cursor, seen.kind, seen.properties)
  while (cursor.at < cursor.end) cursor.byte()
}

function readConnack(cursor: Cursor, seen: Seen, version: number): void {
  const flags = cursor.byte()
  if (flags > 1) throw new Malformed('CONNACK flags')
  seen.sessionPresent = flags === 1
  seen.reason = cursor.byte()
  if (version === 5) properties(cursor, 'connack', seen.properties)
}

function readBody(cursor: Cursor, seen: Seen, flags: number, version: number): void {
  const { kind } = seen
  if (kind === 'connect') return readConnect(cursor, seen)
  if (kind === 'connack') return readConnack(cursor, seen, version)
  if (kind === 'publish') return readPublish(cursor, seen, flags, version)
  if (kind === 'subscribe' || kind === 'unsubscribe') return readFilters(cursor, seen, version)
  if (kind === 'suback' || kind === 'unsuback') return readCodes(cursor, seen, version)
  if (kind.startsWith('ping')) return
  // One broker acknowledges identifier 0; the client may not.
  if (kind === 'pubrel') seen.id = identifier(cursor)
  else if (kind.startsWith('pub')) seen.id = cursor.two()
  readReason(cursor, seen, version)
}

/** Reads one whole packet. @throws Malformed */
export function readPacket(bytes: Uint8Array, version: number): Seen {
  const type = (bytes[0] as number) >> 4
  const flags = (bytes[0] as number) & 15
  const kind = kinds[type] as Kind
  const header = new Cursor(bytes, 1, bytes.length)
  const length = header.variable()
  if (header.at + length !== bytes.length) throw new Malformed('another length')
  if (kind === 'reserved' || (kind === 'auth' && version === 4))
    throw new Malformed(`packet type ${type}`)
  if (kind !== 'publish' && flags !== (flagsOf[kind] ?? 0)) throw new Malformed(`flags of ${kind}`)
  const seen: Seen = { kind, size: bytes.length, ...neutral, filters: [], properties: new Map() }
  const cursor = new Cursor(bytes, header.at, bytes.length)
  readBody(cursor, seen, flags, version)
  if (cursor.at !== cursor.end) throw new Malformed(`${kind} is too long`)
  return seen
}

const longest = 4 * 1024 * 1024

/** Cuts a stream of bytes into whole packets. */
export class Splitter {
  #rest: Uint8Array = new Uint8Array(0)

  get pending(): number {
    return this.#rest.length
  }

  /** The packets that these bytes complete. @throws Malformed on a length that is none */
  push(bytes: Uint8Array): Uint8Array[] {
    const all = this.#rest.length === 0 ? bytes : joined(this.#rest, bytes)
    const packets: Uint8Array[] = []
    let at = 0
    for (
      let end = packetEnd(all, at);
      end !== undefined && end <= all.length;
      end = packetEnd(all, at)
    ) {
      packets.push(all.subarray(at, end))
      at = end
    }
    this.#rest = all.slice(at)
    return packets
  }
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

// Where the packet at `start` ends, or undefined while its length is not there.
function packetEnd(bytes: Uint8Array, start: number): number | undefined {
  let value = 0
  for (let index = 0; index < 4; index++) {
    const byte = bytes[start + 1 + index]
    if (byte === undefined) return undefined
    value += (byte & 127) * 128 ** index
    if (value > longest) throw new Malformed('a packet beyond all bounds')
    if (byte < 128) return start + 2 + index + value
  }
  throw new Malformed('a length of five bytes')
}
