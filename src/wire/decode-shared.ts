/**
 * Decoding of the packets that travel both ways but for PUBLISH: its four acknowledgements, DISCONNECT and AUTH.
 *
 * Assumes a frame whose fixed header the framer accepted. Decoded packets hold copies only.
 */
import type { Sender } from './constants.js'
import { AUTH, DISCONNECT, PUBACK, PUBCOMP, PUBLISH } from './constants.js'
import { protocolError, rebased } from './error.js'
import { nothing } from './fields.js'
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
import { Reader } from './reader.js'

/** A packet other than PUBLISH that either side may send. */
export type SharedPacket =
  | PubackPacket
  | PubrecPacket
  | PubrelPacket
  | PubcompPacket
  | DisconnectPacket
  | AuthPacket

/** Their types, from PUBACK on. */
export const acknowledgements = ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const

/**
 * The packet in `bytes[start..end)`, no PUBLISH, whose fixed header ends at `body`, as an object of its own.
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
    // The trace of an error holds the reader.
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

/** Reason Code and properties, both of which may be missing at the end of the packet (sections 3.4.2.1, 3.14.2.1). */
function readReason(
  reader: Reader,
  packetType: number,
): { reasonCode: number; properties: Properties } {
  if (reader.version === 4 || reader.at === reader.end) return { reasonCode: 0, properties: {} }
  const reasonCode = reader.reasonCode(packetType)
  return { reasonCode, properties: reader.at === reader.end ? {} : reader.properties(packetType) }
}

/** Section 3.15. A method is mandatory, so that the form without a body is an error, whatever section 3.15.2.1 says of it. */
function decodeAuth(reader: Reader): AuthPacket {
  const reason = readReason(reader, AUTH)
  if (!Object.hasOwn(reason.properties, 'authenticationMethod'))
    throw protocolError('AUTH without authentication method', reader.at)
  return { type: 'auth', ...reason }
}
