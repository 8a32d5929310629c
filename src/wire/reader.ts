/**
 * Reads the body of one control packet other than PUBLISH.
 *
 * Every read is checked against the end of the body, every string against UTF-8; results are
 * copies, never views. Offsets in errors count from the start of the buffer; the entry points
 * convert them to offsets in the packet.
 */
import { AUTH, CONNACK, DISCONNECT, PUBACK, PUBCOMP, PUBLISH, type Sender } from './constants.js'
import { malformed, protocolError, rebased } from './error.js'
import {
  nothing,
  packetIdentifier,
  skip,
  variableByteInteger,
  variableByteIntegerSize,
} from './fields.js'
import type {
  AuthPacket,
  DisconnectPacket,
  Properties,
  ProtocolVersion,
  PubackPacket,
  PubcompPacket,
  PubrecPacket,
  PubrelPacket,
} from './packets.js'
import { decodeProperties } from './properties.js'
import { isReasonCode } from './reason-codes.js'

/** A cursor over `bytes[at..end)`. */
export class Reader {
  bytes: Uint8Array
  readonly end: number
  readonly from: Sender
  /** A CONNECT sets its own. */
  version: ProtocolVersion
  at: number

  constructor(bytes: Uint8Array, at: number, end: number, version: ProtocolVersion, from: Sender) {
    this.bytes = bytes
    this.at = at
    this.end = end
    this.version = version
    this.from = from
  }

  /** Moves on by `count` bytes and returns where they began. */
  skip(count: number): number {
    const at = this.at
    this.at = skip(at, count, this.end)
    return at
  }

  u8(): number {
    return this.bytes[this.skip(1)] as number
  }

  /** A Packet Identifier, never 0 [MQTT-2.2.1-3]. */
  packetId(): number {
    const id = packetIdentifier(this.bytes, this.at, this.end)
    this.at += 2
    return id
  }

  /**
   * A reason code that this sender may use in this packet (section 2.4); on 3.1.1 a return code.
   */
  reasonCode(packetType: number): number {
    const at = this.at
    const code = this.u8()
    if (this.version === 4) {
      // [MQTT-3.9.3-2] and section 3.2.2.3 of 3.1.1.
      if (packetType === CONNACK ? code > 5 : code > 2 && code !== 0x80)
        throw malformed('unknown return code', at)
    } else if (!isReasonCode(packetType, code, this.from))
      throw protocolError('reason code is not one of this packet', at)
    return code
  }

  /** A Property Length and its properties; nothing on 3.1.1. */
  properties(packetType: number): Properties {
    if (this.version === 4) return {}
    const length = variableByteInteger(this.bytes, this.at, this.end)
    this.skip(variableByteIntegerSize(length))
    return decodeProperties(this.bytes, this.skip(length), this.at, packetType, this.from)
  }

  /** All bytes must have been read. */
  finish(): void {
    if (this.at < this.end) throw malformed('bytes after the last field', this.at)
  }
}

/** A packet other than PUBLISH that either side may send. */
export type SharedPacket =
  | PubackPacket
  | PubrecPacket
  | PubrelPacket
  | PubcompPacket
  | DisconnectPacket
  | AuthPacket

/** Their names, starting with PUBACK. */
export const acknowledgements = ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const

/**
 * Decodes the packet in `bytes[start..end)`, not a PUBLISH, whose fixed header ends at `body`.
 *
 * @param decodeOther for the types that only this sender sends
 * @throws WireError
 */
export function decodeFrom<T>(
  bytes: Uint8Array,
  start: number,
  body: number,
  end: number,
  version: ProtocolVersion,
  from: Sender,
  decodeOther: (reader: Reader, packetType: number) => T,
): SharedPacket | T {
  const packetType = (bytes[start] as number) >> 4
  const reader = new Reader(bytes, body, end, version, from)
  try {
    const packet = decodeShared(reader, packetType) ?? decodeOther(reader, packetType)
    reader.finish()
    return packet
  } catch (error) {
    // The error's stack may keep the reader alive.
    reader.bytes = nothing
    throw rebased(error, start)
  }
}

function decodeShared(reader: Reader, packetType: number): SharedPacket | undefined {
  if (packetType > PUBLISH && packetType <= PUBCOMP) {
    const packetId = reader.packetId()
    const { reasonCode, properties } = readReason(reader, packetType)
    return {
      type: acknowledgements[packetType - PUBACK] as 'puback',
      packetId,
      reasonCode,
      properties,
    }
  }
  if (packetType === DISCONNECT) return { type: 'disconnect', ...readReason(reader, packetType) }
  return packetType === AUTH ? decodeAuth(reader) : undefined
}

/**
 * Reason Code and properties, both optional at the end of the packet (sections 3.4.2.1, 3.14.2.1).
 */
function readReason(
  reader: Reader,
  packetType: number,
): { reasonCode: number; properties: Properties } {
  if (reader.version === 4 || reader.at === reader.end) return { reasonCode: 0, properties: {} }
  const reasonCode = reader.reasonCode(packetType)
  return { reasonCode, properties: reader.at === reader.end ? {} : reader.properties(packetType) }
}

/**
 * Section 3.15. The method is mandatory, so the form without a body is an error, despite section
 * 3.15.2.1.
 */
function decodeAuth(reader: Reader): AuthPacket {
  const reason = readReason(reader, AUTH)
  if (!Object.hasOwn(reason.properties, 'authenticationMethod'))
    throw protocolError('AUTH without authentication method', reader.at)
  return { type: 'auth', ...reason }
}
