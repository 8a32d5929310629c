/**
 * Writes what only a server sends: for brokers, tools and tests, never in a client's bundle.
 *
 * Every field is checked, including its JavaScript type. A refusal names the field and leaves the
 * writer unchanged.
 */
import { CONNACK, PINGRESP, SUBACK, UNSUBACK } from './constants.js'
import { bit, writePacket, writePacketId, writePropertyBlock } from './encode-client.js'
import { refused } from './error.js'
import type { Properties, ProtocolVersion } from './packets.js'
import { isReasonCode } from './reason-codes.js'
import type { Writer } from './writer.js'
import { integer } from './writer.js'

/** A CONNACK to encode: absent fields mean Session Present 0, reason code 0, no properties. */
export interface ConnackInput {
  /** Default false. */
  sessionPresent?: boolean | undefined
  /** On 3.1.1 the return code. Default 0. */
  reasonCode?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** A SUBACK or UNSUBACK to encode; UNSUBACK has no codes on 3.1.1. */
export interface SubackInput {
  /** 1 to 65,535. */
  packetId: number
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
  /** One for each filter, in order. Default: none. */
  reasonCodes?: readonly number[] | undefined
}

/** Writes a CONNACK (section 3.2). */
export function writeConnack(writer: Writer, packet: ConnackInput, version: ProtocolVersion): void {
  writePacket(writer, CONNACK << 4, () => {
    const { sessionPresent, reasonCode = 0, properties } = packet
    const code = integer(reasonCode, 0, version === 4 ? 5 : 255, 'reasonCode')
    if (version === 5 && !isReasonCode(CONNACK, code, 'server'))
      throw refused('reasonCode', 'is not one of this packet')
    const flags = bit(sessionPresent, 'sessionPresent')
    if (flags === 1 && code !== 0) throw refused('sessionPresent', 'must be false in a refusal') // [MQTT-3.2.2-6]
    writer.u8(flags)
    writer.u8(code)
    writePropertyBlock(writer, properties, CONNACK, version, 'server')
  })
}

/** Writes a SUBACK (section 3.9). */
export function writeSuback(writer: Writer, packet: SubackInput, version: ProtocolVersion): void {
  writeCodes(writer, SUBACK, packet, version)
}

/** Writes an UNSUBACK (section 3.11). */
export function writeUnsuback(writer: Writer, packet: SubackInput, version: ProtocolVersion): void {
  writeCodes(writer, UNSUBACK, packet, version)
}

function writeCodes(
  writer: Writer,
  packetType: number,
  packet: SubackInput,
  version: ProtocolVersion,
): void {
  writePacket(writer, packetType << 4, () => {
    writePacketId(writer, packet.packetId)
    writePropertyBlock(writer, packet.properties, packetType, version, 'server')
    const { reasonCodes = [] } = packet
    const wanted = packetType === SUBACK || version === 5
    const length = Array.isArray(reasonCodes) ? reasonCodes.length : -1
    if (length < 0 || length > 0 !== wanted) {
      throw refused(
        'reasonCodes',
        wanted ? 'must be an array with at least one element' : 'must be empty on 3.1.1',
      )
    }
    for (let index = 0; index < length; index++) {
      const option = `reasonCodes[${index}]`
      // 3.1.1 allows only 0, 1, 2 and 0x80.
      const code = integer(reasonCodes[index], 0, version === 4 ? 0x80 : 255, option)
      if (!isReasonCode(packetType, code, 'server'))
        throw refused(option, 'is not one of this packet')
      writer.u8(code)
    }
  })
}

/** Writes a PINGRESP (section 3.13). */
export function writePingresp(writer: Writer): void {
  writer.u16(PINGRESP << 12)
}
