/**
 * The reason codes of section 2.4: name, packets, and sender.
 *
 * One table serves decoding, encoding and error messages. It is text, parsed at its first use,
 * because that form is the smallest.
 */
import type { Author } from './constants.js'

/** Reason codes from here on mean failure (section 2.4). */
export const errorReason = 0x80

/**
 * Packets and name, in the order of the codes. Packets: C CONNACK, P PUBACK and PUBREC, R PUBREL
 * and PUBCOMP, S SUBACK, U UNSUBACK; by sender: DISCONNECT (d client, D server) and AUTH (a client,
 * A server). Section 2.4 lists 0x8C (Bad authentication method) for DISCONNECT, section 3.14.2.1
 * does not: it is accepted from a server, and `encode` writes it as well.
 */
const table = `S:Granted QoS 0
dD:Normal disconnection
CPRUA:Success
S:Granted QoS 1
S:Granted QoS 2
d:Disconnect with Will Message
P:No matching subscribers
U:No subscription existed
aA:Continue authentication
a:Re-authenticate
CPSUdD:Unspecified error
CdD:Malformed Packet
CdD:Protocol Error
CPSUdD:Implementation specific error
C:Unsupported Protocol Version
C:Client Identifier not valid
C:Bad User Name or Password
CPSUD:Not authorized
C:Server unavailable
CD:Server busy
C:Banned
D:Server shutting down
CD:Bad authentication method
D:Keep Alive timeout
D:Session taken over
SUD:Topic Filter invalid
CPdD:Topic Name invalid
PSU:Packet Identifier in use
R:Packet Identifier not found
dD:Receive Maximum exceeded
dD:Topic Alias invalid
CdD:Packet too large
dD:Message rate too high
CPSdD:Quota exceeded
dD:Administrative action
CPdD:Payload format invalid
CD:Retain not supported
CD:QoS not supported
CD:Use another server
CD:Server moved
SD:Shared Subscriptions not supported
CD:Connection rate exceeded
D:Maximum connect time
SD:Subscription Identifiers not supported
SD:Wildcard Subscriptions not supported`

/**
 * The codes of the first rows; of the three names of 0x00, the last is the general one. The other
 * rows are 0x80 and following, without gaps.
 */
const successes = [0, 0, 0, 1, 2, 4, 0x10, 0x11, 0x18, 0x19]

/** The letters of {@link table} by sender and packet type. */
const letters = { client: '  C PPRR S U  da', server: '  C PPRR S U  DA' }
/** Matches every packet. */
const ANY = '*'

/** Names by code and letter. */
let names: Map<number, string> | undefined

function find(code: number, list: string, index: number): string | undefined {
  names ??= parse()
  // Fractions and NaN must not match a code.
  return Number.isInteger(code) ? names.get(code * 256 + list.charCodeAt(index)) : undefined
}

function parse(): Map<number, string> {
  const parsed = new Map<number, string>()
  table.split('\n').forEach((row, index) => {
    const [packets, name] = row.split(':') as [string, string]
    for (const letter of packets + ANY)
      parsed.set(
        ((successes.at(index) ?? 0x80 + index - successes.length) << 8) | letter.charCodeAt(0),
        name,
      )
  })
  return parsed
}

function findFrom(code: number, packetType: number, from: Author): string | undefined {
  if (from !== 'either') return find(code, letters[from], packetType)
  return findFrom(code, packetType, 'client') ?? findFrom(code, packetType, 'server')
}

/**
 * The standard's name of a reason code (section 2.4), `undefined` when it has none. `packetType`
 * selects among the three names of 0x00.
 */
export function reasonName(code: number, packetType?: number): string | undefined {
  return packetType === undefined ? find(code, ANY, 0) : findFrom(code, packetType, 'either')
}

/** Whether a packet of this type may carry the code when `from` sends it. MQTT 5.0 only. */
export function isReasonCode(packetType: number, code: number, from: Author): boolean {
  // 0x10 is sent by servers only (sections 3.4.2.1, 3.5.2.1).
  return findFrom(code, packetType, from) !== undefined && !(code === 0x10 && from === 'client')
}
