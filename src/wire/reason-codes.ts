/**
 * The reason codes of section 2.4: name, packets that may carry each, and who may send it.
 *
 * One table serves decoding, encoding and error messages. The packets of a code are a bit mask by packet type;
 * DISCONNECT and AUTH use their own bit for the client and a second one for the server.
 */
import type { Author } from './constants.js'
import { AUTH, DISCONNECT } from './constants.js'

const CONNACK_BIT = 1 << 2
const PUBACK_PUBREC = (1 << 4) | (1 << 5)
const PUBREL_PUBCOMP = (1 << 6) | (1 << 7)
const SUBACK_BIT = 1 << 9
const UNSUBACK_BIT = 1 << 11
const CLIENT_DISCONNECT = 1 << 14
const CLIENT_AUTH = 1 << 15
const SERVER_DISCONNECT = 1 << 16
const SERVER_AUTH = 1 << 17
const ANY_DISCONNECT = CLIENT_DISCONNECT | SERVER_DISCONNECT
const ANY_ACK = CONNACK_BIT | PUBACK_PUBREC | SUBACK_BIT | UNSUBACK_BIT
const SUBSCRIPTIONS = SUBACK_BIT | SERVER_DISCONNECT
const REDIRECT = CONNACK_BIT | SERVER_DISCONNECT
const BOTH = CONNACK_BIT | ANY_DISCONNECT

const table: readonly (readonly [code: number, packets: number, name: string])[] = [
  [0x00, CONNACK_BIT | PUBACK_PUBREC | PUBREL_PUBCOMP | UNSUBACK_BIT | SERVER_AUTH, 'Success'],
  [0x00, ANY_DISCONNECT, 'Normal disconnection'],
  [0x00, SUBACK_BIT, 'Granted QoS 0'],
  [0x01, SUBACK_BIT, 'Granted QoS 1'],
  [0x02, SUBACK_BIT, 'Granted QoS 2'],
  [0x04, CLIENT_DISCONNECT, 'Disconnect with Will Message'],
  [0x10, PUBACK_PUBREC, 'No matching subscribers'],
  [0x11, UNSUBACK_BIT, 'No subscription existed'],
  [0x18, CLIENT_AUTH | SERVER_AUTH, 'Continue authentication'],
  [0x19, CLIENT_AUTH, 'Re-authenticate'],
  [0x80, ANY_ACK | ANY_DISCONNECT, 'Unspecified error'],
  [0x81, BOTH, 'Malformed Packet'],
  [0x82, BOTH, 'Protocol Error'],
  [0x83, ANY_ACK | ANY_DISCONNECT, 'Implementation specific error'],
  [0x84, CONNACK_BIT, 'Unsupported Protocol Version'],
  [0x85, CONNACK_BIT, 'Client Identifier not valid'],
  [0x86, CONNACK_BIT, 'Bad User Name or Password'],
  [0x87, ANY_ACK | SERVER_DISCONNECT, 'Not authorized'],
  [0x88, CONNACK_BIT, 'Server unavailable'],
  [0x89, REDIRECT, 'Server busy'],
  [0x8a, CONNACK_BIT, 'Banned'],
  [0x8b, SERVER_DISCONNECT, 'Server shutting down'],
  // Section 2.4 lists 0x8C for DISCONNECT, section 3.14.2.1 does not: it is taken from a server, and `encode` does not send it.
  [0x8c, REDIRECT, 'Bad authentication method'],
  [0x8d, SERVER_DISCONNECT, 'Keep Alive timeout'],
  [0x8e, SERVER_DISCONNECT, 'Session taken over'],
  [0x8f, UNSUBACK_BIT | SUBSCRIPTIONS, 'Topic Filter invalid'],
  [0x90, PUBACK_PUBREC | BOTH, 'Topic Name invalid'],
  [0x91, PUBACK_PUBREC | SUBACK_BIT | UNSUBACK_BIT, 'Packet Identifier in use'],
  [0x92, PUBREL_PUBCOMP, 'Packet Identifier not found'],
  [0x93, ANY_DISCONNECT, 'Receive Maximum exceeded'],
  [0x94, ANY_DISCONNECT, 'Topic Alias invalid'],
  [0x95, BOTH, 'Packet too large'],
  [0x96, ANY_DISCONNECT, 'Message rate too high'],
  [0x97, PUBACK_PUBREC | SUBACK_BIT | BOTH, 'Quota exceeded'],
  [0x98, ANY_DISCONNECT, 'Administrative action'],
  [0x99, PUBACK_PUBREC | BOTH, 'Payload format invalid'],
  [0x9a, REDIRECT, 'Retain not supported'],
  [0x9b, REDIRECT, 'QoS not supported'],
  [0x9c, REDIRECT, 'Use another server'],
  [0x9d, REDIRECT, 'Server moved'],
  [0x9e, SUBSCRIPTIONS, 'Shared Subscriptions not supported'],
  [0x9f, REDIRECT, 'Connection rate exceeded'],
  [0xa0, SERVER_DISCONNECT, 'Maximum connect time'],
  [0xa1, SUBSCRIPTIONS, 'Subscription Identifiers not supported'],
  [0xa2, SUBSCRIPTIONS, 'Wildcard Subscriptions not supported'],
]

function bitsOf(packetType: number, from: Author): number {
  const client = 1 << packetType
  const server = packetType === DISCONNECT ? SERVER_DISCONNECT : packetType === AUTH ? SERVER_AUTH : client
  return from === 'client' ? client : from === 'server' ? server : client | server
}

function find(code: number, bits: number): string | undefined {
  for (const row of table) if (row[0] === code && (row[1] & bits) !== 0) return row[2]
  return undefined
}

/** The standard's name of a reason code (section 2.4), `undefined` when it has none. `packetType` tells apart the three names of 0x00. */
export function reasonName(code: number, packetType?: number): string | undefined {
  return find(code, packetType === undefined ? -1 : bitsOf(packetType, 'either'))
}

/** Whether a packet of this type may carry the code when `from` sends it. MQTT 5.0 only. */
export function isReasonCode(packetType: number, code: number, from: Author): boolean {
  // 0x10 is sent by servers only (sections 3.4.2.1, 3.5.2.1).
  return find(code, bitsOf(packetType, from)) !== undefined && !(code === 0x10 && from === 'client')
}
