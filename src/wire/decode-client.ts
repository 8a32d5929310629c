/**
 * Decodes what a client sends: for brokers, tools and tests, never in a client's bundle.
 *
 * Assumes a frame exposed by a framer with `from: 'client'`. A CONNECT determines its own protocol
 * version.
 */
import { CONNECT, PINGREQ, SUBSCRIBE, UNSUBSCRIBE, WILL } from './constants.js'
import { malformed, protocolError } from './error.js'
import { checkString, fieldEnd, uint16 } from './fields.js'
import type {
  Bytes,
  ClientPacket,
  ConnectPacket,
  ProtocolVersion,
  QoS,
  SubscribePacket,
  SubscriptionRequest,
  UnsubscribePacket,
  Will,
} from './packets.js'
import { decodeFrom, type Reader } from './reader.js'
import { isShared, validateLevels, validateTopicName } from './topics.js'
import { decodeUtf8 } from './utf8.js'

/**
 * Decodes the packet in `bytes[start..end)`, not a PUBLISH, whose fixed header ends at `body`.
 *
 * @throws WireError
 */
export function decodeClientPacket(
  bytes: Uint8Array,
  start: number,
  body: number,
  end: number,
  version: ProtocolVersion,
): ClientPacket {
  return decodeFrom<ClientPacket>(bytes, start, body, end, version, 'client', decodeClientOnly)
}

function decodeClientOnly(reader: Reader, packetType: number): ClientPacket {
  if (packetType === PINGREQ) return { type: 'pingreq' }
  if (packetType === CONNECT) return decodeConnect(reader)
  return packetType === SUBSCRIBE ? decodeSubscribe(reader) : decodeUnsubscribe(reader)
}

function readString(reader: Reader): string {
  const { bytes, at } = reader
  const end = fieldEnd(bytes, at, reader.end)
  checkString(bytes, at, end)
  reader.at = end
  return decodeUtf8(bytes, at + 2, end)
}

function readBinary(reader: Reader): Bytes {
  const { bytes, at } = reader
  reader.at = fieldEnd(bytes, at, reader.end)
  return new Uint8Array(bytes.subarray(at + 2, reader.at))
}

/**
 * Protocol Name and Version (sections 3.1.2.1, 3.1.2.2) [MQTT-3.1.2-1] [MQTT-3.1.2-2]; the version
 * applies to the rest.
 */
function readProtocol(reader: Reader): ProtocolVersion {
  const at = reader.at
  const name = readString(reader)
  const version = reader.u8()
  if (name !== 'MQTT' || (version !== 4 && version !== 5))
    throw protocolError('unsupported protocol version', at, 0x84)
  reader.version = version
  return version
}

/** Section 3.1. */
function decodeConnect(reader: Reader): ConnectPacket {
  const protocolVersion = readProtocol(reader)
  const flags = reader.u8()
  checkConnectFlags(flags, protocolVersion, reader.at - 1)
  const cleanStart = (flags & 2) !== 0
  const keepAlive = uint16(reader.bytes, reader.skip(2))
  const properties = reader.properties(CONNECT)
  if (
    Object.hasOwn(properties, 'authenticationData') &&
    !Object.hasOwn(properties, 'authenticationMethod')
  ) {
    throw protocolError('authentication data without a method', reader.at)
  }
  const clientId = readString(reader)
  // [MQTT-3.1.3-7] of 3.1.1.
  if (protocolVersion === 4 && clientId === '' && !cleanStart)
    throw protocolError('empty client identifier without clean session', reader.at, 0x85)
  return {
    type: 'connect',
    protocolName: 'MQTT',
    protocolVersion,
    cleanStart,
    keepAlive,
    clientId,
    will: flags & 4 ? readWill(reader, flags) : undefined,
    username: flags & 0x80 ? readString(reader) : undefined,
    password: flags & 0x40 ? readBinary(reader) : undefined,
    properties,
  }
}

function checkConnectFlags(flags: number, version: ProtocolVersion, at: number): void {
  if (flags & 1) throw malformed('reserved CONNECT flag', at) // [MQTT-3.1.2-3]
  if (flags & 4 ? (flags & 0x18) === 0x18 : flags & 0x38)
    throw malformed('will QoS or will retain', at) // [MQTT-3.1.2-11] [MQTT-3.1.2-12]
  // [MQTT-3.1.2-22] of 3.1.1; 5.0 allows it.
  if (version === 4 && (flags & 0xc0) === 0x40) throw malformed('password without user name', at)
}

/** Section 3.1.3.2 to 3.1.3.4. */
function readWill(reader: Reader, flags: number): Will {
  const properties = reader.properties(WILL)
  const at = reader.at
  const topic = readString(reader)
  if (validateTopicName(topic) !== undefined) throw protocolError('will topic is no topic name', at)
  const payload: Bytes = readBinary(reader)
  return {
    topic,
    payload,
    qos: ((flags >> 3) & 3) as QoS,
    retain: (flags & 0x20) !== 0,
    properties,
  }
}

function readFilter(reader: Reader): string {
  const at = reader.at
  const filter = readString(reader)
  const fault = validateLevels(filter, reader.version === 5)
  if (fault !== undefined) throw protocolError('bad topic filter', at)
  return filter
}

/** Section 3.8. */
function decodeSubscribe(reader: Reader): SubscribePacket {
  const packetId = reader.packetId()
  const properties = reader.properties(SUBSCRIBE)
  const subscriptions: SubscriptionRequest[] = []
  if (reader.at === reader.end) throw protocolError('SUBSCRIBE without a filter', reader.at) // [MQTT-3.8.3-2]
  while (reader.at < reader.end) subscriptions.push(readSubscription(reader))
  return { type: 'subscribe', packetId, properties, subscriptions }
}

/** Section 3.8.3.1. */
function readSubscription(reader: Reader): SubscriptionRequest {
  const filter = readFilter(reader)
  const options = reader.u8()
  const at = reader.at - 1
  // [MQTT-3.8.3-5]; 3.1.1 has the QoS only [MQTT-3-8.3-4].
  if (options & (reader.version === 5 ? 0xc0 : 0xfc))
    throw malformed('reserved subscription options', at)
  const retainHandling = options >> 4
  if ((options & 3) === 3)
    throw reader.version === 5 ? protocolError('QoS 3', at) : malformed('QoS 3', at)
  if (retainHandling === 3) throw protocolError('retain handling 3', at)
  const noLocal = (options & 4) !== 0
  if (noLocal && isShared(filter)) throw protocolError('no local on a shared subscription', at) // [MQTT-3.8.3-4]
  return {
    filter,
    qos: (options & 3) as QoS,
    noLocal,
    retainAsPublished: (options & 8) !== 0,
    retainHandling: retainHandling as SubscriptionRequest['retainHandling'],
  }
}

/** Section 3.10. */
function decodeUnsubscribe(reader: Reader): UnsubscribePacket {
  const packetId = reader.packetId()
  const properties = reader.properties(UNSUBSCRIBE)
  const filters: string[] = []
  if (reader.at === reader.end) throw protocolError('UNSUBSCRIBE without a filter', reader.at) // [MQTT-3.10.3-2]
  while (reader.at < reader.end) filters.push(readFilter(reader))
  return { type: 'unsubscribe', packetId, properties, filters }
}
