/**
 * Reads the data types of section 1.5 from the body of one control packet.
 *
 * Every read is checked against the end of the body, every string against UTF-8; what is handed out are copies, never views.
 * Offsets in errors count from the start of the buffer; the entry points turn them into offsets in the packet.
 */
import type { Sender } from './constants.js'
import { malformed, protocolError } from './error.js'
import { checkString, fieldEnd, uint16, variableByteInteger } from './fields.js'
import type { Bytes, Properties, ProtocolVersion } from './packets.js'
import { decodeProperties } from './properties.js'
import { decodeUtf8 } from './utf8.js'
import { variableByteIntegerSize } from './writer.js'

/** A cursor over `bytes[at..end)`. */
export class Reader {
  readonly bytes: Uint8Array
  readonly end: number
  at: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  /** Moves on by `count` bytes and returns where they began. */
  skip(count: number): number {
    const at = this.at
    if (this.end - at < count) throw malformed('packet is too short', at)
    this.at += count
    return at
  }

  u8(): number {
    return this.bytes[this.skip(1)] as number
  }

  u16(): number {
    return uint16(this.bytes, this.skip(2))
  }

  /** A Packet Identifier, never 0 [MQTT-2.2.1-3]. */
  packetId(): number {
    const id = this.u16()
    if (id === 0) throw protocolError('packet identifier 0', this.at - 2)
    return id
  }

  string(): string {
    const at = this.at
    this.at = fieldEnd(this.bytes, at, this.end)
    checkString(this.bytes, at, this.at)
    return decodeUtf8(this.bytes, at + 2, this.at)
  }

  binary(): Bytes {
    const from = this.at + 2
    this.at = fieldEnd(this.bytes, this.at, this.end)
    return new Uint8Array(this.bytes.subarray(from, this.at))
  }

  /** A Property Length and its properties; nothing on 3.1.1. */
  properties(packetType: number, from: Sender, version: ProtocolVersion): Properties {
    if (version === 4) return {}
    const length = variableByteInteger(this.bytes, this.at, this.end)
    this.skip(variableByteIntegerSize(length))
    const start = this.skip(length)
    return decodeProperties(this.bytes, start, this.at, packetType, from)
  }

  /** All bytes must have been read. */
  finish(): void {
    if (this.at !== this.end) throw malformed('bytes after the last field', this.at)
  }
}
