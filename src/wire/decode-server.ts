/**
 * Decodes what a server sends: all that a client needs.
 *
 * Assumes a frame exposed by a framer with `from: 'server'`. Must not import the decoder of client
 * packets.
 */
import { CONNACK, PINGRESP, SUBACK } from './constants.js'
import { malformed, protocolError } from './error.js'
import type {
  ConnackPacket,
  ProtocolVersion,
  ServerPacket,
  SubackPacket,
  UnsubackPacket,
} from './packets.js'
import { decodeFrom, type Reader } from './reader.js'

/**
 * Decodes the packet in `bytes[start..end)`, not a PUBLISH, whose fixed header ends at `body`.
 *
 * @throws WireError
 */
export function decodeServerPacket(
  bytes: Uint8Array,
  start: number,
  body: number,
  end: number,
  version: ProtocolVersion,
): ServerPacket {
  return decodeFrom<ServerPacket>(bytes, start, body, end, version, 'server', decodeServerOnly)
}

function decodeServerOnly(reader: Reader, packetType: number): ServerPacket {
  if (packetType === PINGRESP) return { type: 'pingresp' }
  return packetType === CONNACK ? decodeConnack(reader) : decodeSuback(reader, packetType)
}

/** Section 3.2. */
function decodeConnack(reader: Reader): ConnackPacket {
  const { at } = reader
  const flags = reader.u8()
  if (flags > 1) throw malformed('reserved CONNACK flags', at) // [MQTT-3.2.2-1]
  const reasonCode = reader.reasonCode(CONNACK)
  if (flags > 0 && reasonCode > 0) throw protocolError('refusal with a session', at) // [MQTT-3.2.2-6]
  return {
    type: 'connack',
    sessionPresent: flags > 0,
    reasonCode,
    properties: reader.properties(CONNACK),
  }
}

/**
 * Sections 3.9 and 3.11: one code per filter, at least one [MQTT-3.9.3-1] [MQTT-3.11.3-1]; 3.1.1
 * has none in UNSUBACK.
 */
function decodeSuback(reader: Reader, packetType: number): SubackPacket | UnsubackPacket {
  const packetId = reader.packetId()
  const properties = reader.properties(packetType)
  const reasonCodes: number[] = []
  if (reader.version === 5 || packetType === SUBACK) {
    if (reader.at === reader.end) throw protocolError('no reason codes', reader.at)
    while (reader.at < reader.end) reasonCodes.push(reader.reasonCode(packetType))
  }
  return { type: packetType === SUBACK ? 'suback' : 'unsuback', packetId, properties, reasonCodes }
}
