/**
 * Decoding of the packets that travel both ways: PUBLISH, its four acknowledgements, DISCONNECT and AUTH.
 *
 * Assumes a frame whose fixed header the framer accepted. Decoded packets hold copies only.
 */
import type { Sender } from './constants.js'
import { AUTH, DISCONNECT, PUBACK, PUBCOMP, PUBLISH } from './constants.js'
import { protocolError } from './error.js'
import type {
  AuthPacket,
  DisconnectPacket,
  Properties,
  ProtocolVersion,
  PubackPacket,
  PubcompPacket,
  PublishPacket,
  PubrecPacket,
  PubrelPacket,
} from './packets.js'
import { PublishView } from './publish.js'
import type { Reader } from './reader.js'
import { isReasonCode } from './reason-codes.js'

/** A packet that either side may send. */
export type SharedPacket = PublishPacket | PubackPacket | PubrecPacket | PubrelPacket | PubcompPacket | DisconnectPacket | AuthPacket

const acknowledgements = ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const

/** Decodes a PUBLISH into an object of its own (section 3.3). */
export function decodePublish(bytes: Uint8Array, start: number, body: number, end: number, version: ProtocolVersion, from: Sender): PublishPacket {
  const view = new PublishView()
  view.read(bytes, start, body, end, version, from)
  return {
    type: 'publish',
    dup: view.dup,
    qos: view.qos,
    retain: view.retain,
    topic: view.topic(),
    packetId: view.qos > 0 ? view.packetId : undefined,
    properties: view.properties(),
    payload: new Uint8Array(view.payload()),
  }
}

/** A reason code that the packet's table has, for this sender (section 2.4). */
export function readReasonCode(reader: Reader, packetType: number, from: Sender): number {
  const code = reader.u8()
  if (!isReasonCode(packetType, code, from)) throw protocolError('reason code is not one of this packet', reader.at - 1)
  return code
}

/** Reason Code and properties, both of which may be missing at the end of the packet (sections 3.4.2.1, 3.14.2.1). */
function readReason(reader: Reader, packetType: number, version: ProtocolVersion, from: Sender): [reasonCode: number, properties: Properties] {
  if (version === 4 || reader.at === reader.end) return [0, {}]
  const reasonCode = readReasonCode(reader, packetType, from)
  return [reasonCode, reader.at === reader.end ? {} : reader.properties(packetType, from, version)]
}

/** Decodes what `reader` holds as a packet of this type; `undefined` when the type is not one of those that travel both ways. */
export function decodeShared(
  reader: Reader,
  packetType: number,
  version: ProtocolVersion,
  from: Sender,
): Exclude<SharedPacket, PublishPacket> | undefined {
  if (packetType > PUBLISH && packetType <= PUBCOMP) {
    const packetId = reader.packetId()
    const [reasonCode, properties] = readReason(reader, packetType, version, from)
    return { type: acknowledgements[packetType - PUBACK] as 'puback', packetId, reasonCode, properties }
  }
  if (packetType === DISCONNECT) {
    const [reasonCode, properties] = readReason(reader, packetType, version, from)
    return { type: 'disconnect', reasonCode, properties }
  }
  if (packetType === AUTH) return decodeAuth(reader, from)
  return undefined
}

/** Section 3.15. A method is mandatory, so that the form without a body is an error, whatever section 3.15.2.1 says of it. */
function decodeAuth(reader: Reader, from: Sender): AuthPacket {
  const [reasonCode, properties] = readReason(reader, AUTH, 5, from)
  if (properties.authenticationMethod === undefined) throw protocolError('AUTH without authentication method', reader.at)
  return { type: 'auth', reasonCode, properties }
}
