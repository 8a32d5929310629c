/**
 * The records of a stored session: keys and binary format. Pure.
 *
 * A session has one record of its own, one for each publish in flight under a rising number, and
 * one for each packet identifier of an incoming message. Records are checked when read; one that
 * does not parse is damaged.
 */

import { encoder } from '../../common/schema.js'
import { crc32c } from '../../store/base/checksum.js'
import { openRecord, sealRecord } from '../../store/base/record.js'
import type { StoreOperation } from '../../store/base/store.js'
import { writeMessage } from '../../wire/encode-publish.js'
import { nothing, variableByteInteger, variableByteIntegerSize } from '../../wire/fields.js'
import type { Properties, PublishPacket } from '../../wire/packets.js'
import { PublishView } from '../../wire/publish.js'
import { decodeUtf8 } from '../../wire/utf8.js'
import { Writer } from '../../wire/writer.js'
import type { EntryLink } from '../options/hidden.js'

/** Digits of a number in a key: enough for the largest safe integer. */
const digits = 16
/** Most characters of a client identifier in a key. */
const longestName = 400

// Bytes before key and packet of a publish: stage, loss policy, time, and length of the key.
const publishHead = 12
/**
 * Bit position, next to the stage, of the number of connections that ended on the publish, and the
 * largest number.
 */
const strikesAt = 2
const mostStrikes = 31
/**
 * Flag in the stage byte: the payload is in the queue entry, and the record ends with its length in
 * four bytes.
 */
const borrowed = 0x80
const borrowedLength = 4
const inboundLength = 21

/**
 * What a publish waits for: its acknowledgement (`sent`), PUBCOMP (`released`), or that its queue
 * is informed of the end (`failed`, `acknowledged`).
 */
export type PublishStage = 'sent' | 'released' | 'failed' | 'acknowledged'
const stages: readonly PublishStage[] = ['sent', 'released', 'failed', 'acknowledged']
const lossPolicies = [undefined, 'republish', 'reject'] as const

/** A publish in flight. */
export interface PublishRecord {
  readonly stage: PublishStage
  readonly onSessionLost: 'republish' | 'reject' | undefined
  /** When it was published, in epoch milliseconds. */
  readonly taken: number
  /** Its queue entry. */
  readonly link: Pick<EntryLink, 'key'> | undefined
  /** Without its payload when that is no longer needed. */
  readonly packet: Pick<PublishPacket, 'topic' | 'qos' | 'retain'> & {
    readonly packetId: number
    readonly properties: Properties | undefined
  }
  /** A number: the payload is the last that many bytes of the entry's record. */
  readonly payload: Uint8Array | number
  /** Bytes of the packet. */
  readonly length: number
  /** Connections that ended on it. */
  readonly strikes: number
}

/**
 * What is known about the packet identifier of an incoming message; at QoS 2, also whether it was
 * received.
 */
export interface InboundRecord {
  readonly qos: number
  readonly received: boolean
  readonly epoch: number
  readonly counter: number
  /**
   * Checksum of topic and payload, because the server may reuse the identifier for another message.
   */
  readonly print: number
}

/** The record of the session itself. */
export interface SessionRecord {
  readonly clientId: string
  /** Rises with each process. */
  readonly epoch: number
  /**
   * A CONNECT may have been sent, and the server's answer about the session is not stored: QoS 2
   * publishes in flight may belong to a lost session.
   */
  readonly asking: boolean
}

/** Key prefix of the records of a client's session. */
export function prefixOf(clientId: string): string {
  const name = encodeURIComponent(clientId)
  const short =
    name.length <= longestName
      ? name
      : `${name.slice(0, longestName)}~${crc32c(encoder.encode(clientId))}`
  return `c/${short}/`
}

/** The keys of one session. */
export class SessionKeys {
  readonly prefix: string
  /** Upper bound of all keys, exclusive. */
  readonly end: string

  constructor(clientId: string) {
    this.prefix = prefixOf(clientId)
    this.end = `${this.prefix.slice(0, -1)}0`
  }

  get session(): string {
    return `${this.prefix}m`
  }

  publish(number: number): string {
    return `${this.prefix}o/${String(number).padStart(digits, '0')}`
  }

  inbound(packetId: number): string {
    return `${this.prefix}i/${packetId}`
  }

  /** The kind and number in a key. */
  read(key: string): { readonly kind: string; readonly number: number } {
    const rest = key.slice(this.prefix.length)
    return { kind: rest[0] ?? '', number: Number(rest.slice(2)) }
  }
}

/** The change that writes a record. */
export function putting(key: string, body: Uint8Array): StoreOperation {
  return { type: 'put', key, value: sealRecord(body) }
}

/**
 * Encodes the record of a session. `spare`: number of reserved bytes, which can be released when
 * the store is full.
 */
export function encodeSession({ clientId, epoch, asking }: SessionRecord, spare = 0): Uint8Array {
  // The mark does not change the length, so that a full store accepts it.
  return encoder.encode(JSON.stringify([clientId, epoch, ' '.repeat(spare), asking ? 1 : 0]))
}

/** Undefined when it is damaged. */
export function decodeSession(value: Uint8Array): SessionRecord | undefined {
  return attempt(value, (body) => {
    const [clientId, epoch, , asking] = JSON.parse(decodeUtf8(body)) as unknown[]
    return typeof clientId === 'string' && Number.isSafeInteger(epoch)
      ? { clientId, epoch: epoch as number, asking: asking === 1 }
      : undefined
  })
}

/** Encodes the record of a publish. @throws WireError when no packet can carry it */
export function encodePublish({
  stage,
  onSessionLost,
  taken,
  link,
  packet,
  payload,
  strikes,
}: Omit<PublishRecord, 'length'>): Uint8Array {
  const key = encoder.encode(link?.key ?? '')
  const isBorrowed = typeof payload === 'number'
  const bytes = isBorrowed ? nothing : payload
  const writer = new Writer(publishHead + key.length + bytes.length + packet.topic.length * 3 + 64)
  writer.u8(
    stages.indexOf(stage) |
      (Math.min(strikes, mostStrikes) << strikesAt) |
      (isBorrowed ? borrowed : 0),
  )
  writer.u8(lossPolicies.indexOf(onSessionLost))
  const time = new Uint8Array(8)
  new DataView(time.buffer).setFloat64(0, taken)
  writer.raw(time)
  writer.u16(key.length)
  writer.raw(key)
  writeMessage(writer, packet.topic, bytes, packet, packet.packetId, 0, false, 5, false)
  if (isBorrowed) writer.u32(payload)
  return writer.take()
}

/** Bytes of the packet in this record, including its payload. */
export function sizeOfPacket(body: Uint8Array): number {
  const begin = packetStart(body)
  const { end, payloadLength } = tailOf(body)
  const remaining = variableByteInteger(body, begin + 1, body.length)
  const whole = end - begin + payloadLength
  return (
    whole + variableByteIntegerSize(remaining + payloadLength) - variableByteIntegerSize(remaining)
  )
}

// Where the packet ends in the record, and the payload bytes stored elsewhere.
function tailOf(body: Uint8Array): { readonly end: number; readonly payloadLength: number } {
  if (((body[0] as number) & borrowed) === 0) return { end: body.length, payloadLength: 0 }
  const end = body.length - borrowedLength
  return { end, payloadLength: new DataView(body.buffer, body.byteOffset).getUint32(end) }
}

/** The payload at the end of a queue entry's record; undefined when the record is damaged. */
export function payloadOfEntry(record: Uint8Array, length: number): Uint8Array | undefined {
  const body = openRecord(record)
  return body && body.length >= length ? body.slice(body.length - length) : undefined
}

function packetStart(body: Uint8Array): number {
  return publishHead + new DataView(body.buffer, body.byteOffset).getUint16(publishHead - 2)
}

/** Undefined when it is damaged. */
export function decodePublish(value: Uint8Array): PublishRecord | undefined {
  return attempt(value, (body) => {
    const isBorrowed = (body[0] as number) >= borrowed
    const [stage, onSessionLost] = [
      stages[(body[0] as number) % (1 << strikesAt)],
      body[1] as number,
    ]
    if (stage === undefined || onSessionLost >= lossPolicies.length) return undefined
    const fields = new DataView(body.buffer, body.byteOffset, body.length)
    const begin = packetStart(body)
    const { end, payloadLength } = tailOf(body)
    const key = decodeUtf8(body.subarray(publishHead, begin))
    if (isBorrowed && key === '') return undefined
    const view = new PublishView()
    const remaining = variableByteInteger(body, begin + 1, end)
    const start = begin + 1 + variableByteIntegerSize(remaining)
    if ((body[begin] as number) >> 4 !== 3 || start + remaining !== end) return undefined
    view.read(body, begin, start, end, 5, 'client')
    const { topic, qos, retain, packetId, properties, payload } = view.packet()
    if (packetId === undefined || (stage === 'released' && qos !== 2)) return undefined
    const packet = {
      topic,
      qos,
      retain,
      packetId,
      properties: Object.keys(properties).length > 0 ? properties : undefined,
    }
    const link = key === '' ? undefined : { key }
    return {
      stage,
      onSessionLost: lossPolicies[onSessionLost],
      taken: fields.getFloat64(2),
      link,
      packet,
      payload: isBorrowed ? payloadLength : payload,
      length: sizeOfPacket(body),
      strikes: ((body[0] as number) & ~borrowed) >> strikesAt,
    }
  })
}

/** Replaces a payload that is no longer needed. */
export const noPayload: Uint8Array = nothing

/** Encodes the record of an incoming message. */
export function encodeInbound({ qos, received, epoch, counter, print }: InboundRecord): Uint8Array {
  const body = new Uint8Array(inboundLength)
  const view = new DataView(body.buffer)
  body[0] = received ? 3 : qos
  view.setFloat64(1, epoch)
  view.setFloat64(9, counter)
  view.setUint32(17, print)
  return body
}

/** Undefined when it is damaged. */
export function decodeInbound(value: Uint8Array): InboundRecord | undefined {
  return attempt(value, (body) => {
    const state = body[0] as number
    if (body.length !== inboundLength || state < 1 || state > 3) return undefined
    const view = new DataView(body.buffer, body.byteOffset)
    return {
      qos: Math.min(state, 2),
      received: state === 3,
      epoch: view.getFloat64(1),
      counter: view.getFloat64(9),
      print: view.getUint32(17),
    }
  })
}

function attempt<T>(value: Uint8Array, read: (body: Uint8Array) => T | undefined): T | undefined {
  const body = openRecord(value)
  if (body === undefined) return undefined
  try {
    return read(body)
  } catch {
    return undefined
  }
}
