/**
 * Reads the body of one control packet that is not a PUBLISH.
 *
 * Every read is checked against the end of the body, every string against UTF-8; what is handed out are copies, never views.
 * Offsets in errors count from the start of the buffer; the entry points turn them into offsets in the packet.
 */
import type { Sender } from './constants.js'
import { CONNACK } from './constants.js'
import { malformed, protocolError } from './error.js'
import { packetIdentifier, skip, variableByteInteger, variableByteIntegerSize } from './fields.js'
import type { Properties, ProtocolVersion } from './packets.js'
import { decodeProperties } from './properties.js'
import { isReasonCode } from './reason-codes.js'

/** A cursor over `bytes[at..end)`. */
export class Reader {
  bytes: Uint8Array
  readonly end: number
  readonly from: Sender
  /** A CONNECT brings its own. */
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

  /** A reason code that the packet's table has, for this sender (section 2.4); on 3.1.1 one of its return codes. */
  reasonCode(packetType: number): number {
    const at = this.at
    const code = this.u8()
    if (this.version === 4) {
      // [MQTT-3.9.3-2] of 3.1.1, and its section 3.2.2.3.
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
