/**
 * Decoding of what a server sends: all that a client needs.
 *
 * Assumes a frame that a framer with `from: 'server'` exposed. Must not import the decoder of client packets.
 */
import { CONNACK, PUBLISH, SUBACK, UNSUBACK } from './constants.js'
import { decodePublish, decodeShared, readReasonCode } from './decode-shared.js'
import { malformed, protocolError, rebased } from './error.js'
import type { ConnackPacket, ProtocolVersion, ServerPacket, SubackPacket, UnsubackPacket } from './packets.js'
import { Reader } from './reader.js'

/**
 * The packet in `bytes[start..end)`, whose fixed header ends at `body`, as an object of its own.
 *
 * @throws WireError
 */
export function decodeServerPacket(bytes: Uint8Array, start: number, body: number, end: number, version: ProtocolVersion): ServerPacket {
  const type = (bytes[start] as number) >> 4
  if (type === PUBLISH) return decodePublish(bytes, start, body, end, version, 'server')
  try {
    const reader = new Reader(bytes, body, end)
    const packet = decodeShared(reader, type, version, 'server') ?? decodeServerOnly(reader, type, version)
    reader.finish()
    return packet
  } catch (error) {
    throw rebased(error, start)
  }
}

function decodeServerOnly(reader: Reader, type: number, version: ProtocolVersion): ServerPacket {
  if (type === CONNACK) return decodeConnack(reader, version)
  if (type === SUBACK) return decodeSuback(reader, version)
  if (type === UNSUBACK) return decodeUnsuback(reader, version)
  return { type: 'pingresp' }
}

/** Section 3.2. */
function decodeConnack(reader: Reader, version: ProtocolVersion): ConnackPacket {
  const flags = reader.u8()
  if (flags > 1) throw malformed('reserved CONNACK flags', reader.at - 1) // [MQTT-3.2.2-1]
  const reasonCode = version === 5 ? readReasonCode(reader, CONNACK, 'server') : reader.u8()
  if (version === 4 && reasonCode > 5) throw malformed('unknown return code', reader.at - 1)
  if (flags === 1 && reasonCode !== 0) throw protocolError('session present in a refusal', reader.at - 2) // [MQTT-3.2.2-6]
  return { type: 'connack', sessionPresent: flags === 1, reasonCode, properties: reader.properties(CONNACK, 'server', version) }
}

/** One code per filter, at least one [MQTT-3.9.3-1] [MQTT-3.11.3-1]. */
function readReasonCodes(reader: Reader, packetType: number): number[] {
  const reasonCodes: number[] = []
  do {
    if (reader.at === reader.end) throw protocolError('no reason codes', reader.at)
    reasonCodes.push(readReasonCode(reader, packetType, 'server'))
  } while (reader.at < reader.end)
  return reasonCodes
}

/** Section 3.9. */
function decodeSuback(reader: Reader, version: ProtocolVersion): SubackPacket {
  const packetId = reader.packetId()
  const properties = reader.properties(SUBACK, 'server', version)
  const reasonCodes = readReasonCodes(reader, SUBACK)
  // 3.1.1 knows 0, 1, 2 and 0x80 only [MQTT-3.9.3-2].
  if (version === 4 && reasonCodes.some((code) => code > 0x80)) throw malformed('unknown return code', reader.at)
  return { type: 'suback', packetId, properties, reasonCodes }
}

/** Section 3.11; 3.1.1 has no codes. */
function decodeUnsuback(reader: Reader, version: ProtocolVersion): UnsubackPacket {
  const packetId = reader.packetId()
  const properties = reader.properties(UNSUBACK, 'server', version)
  return { type: 'unsuback', packetId, properties, reasonCodes: version === 5 ? readReasonCodes(reader, UNSUBACK) : [] }
}
