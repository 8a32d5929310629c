/**
 * Which normative statement a broken packet breaks. Pure.
 *
 * Decided by the message of the error and the field that it is at. Many faults break no numbered
 * statement: a property that occurs twice is forbidden by the text alone.
 */
import { isShared, type ProtocolVersion, type Sender } from 'mqwire/wire'
import { type Field, type Place, typeNames } from './fields.js'

/** What is known of a fault; its place is the field that is wrong, or that lacks bytes. */
export interface Fault extends Pick<Field, keyof Place | 'value'> {
  readonly message: string
  readonly type: string
  readonly from: Sender
  readonly version: ProtocolVersion
  /** Those of the field. */
  readonly bytes: Uint8Array
  readonly connectFlags: number
}

/** A statement; behind a bar that of 3.1.1, where it is another. Without a number: empty. */
type Rule = string | ((fault: Fault) => string)

/** The section of a packet type. */
const sectionOf = (type: string): string => `3.${typeNames.indexOf(type)}`

function flags({ type, version }: Fault): string {
  if (type === 'reserved' || (type === 'AUTH' && version === 4)) return ''
  const hasOwn = ['PUBREL', 'SUBSCRIBE', 'UNSUBSCRIBE', 'DISCONNECT', 'AUTH'].includes(type)
  return hasOwn ? `${sectionOf(type)}.1-1` : '2.1.3-1|2.2.2-1'
}

function packetIdentifier({ type, from }: Fault): string {
  if (type.endsWith('SUBACK')) return '2.2.1-6|2.3.1-7'
  if (type.startsWith('PUB') && type !== 'PUBLISH') return '2.2.1-5|2.3.1-6'
  return from === 'client' ? '2.2.1-3|2.3.1-1' : '2.2.1-4|2.3.1-1'
}

function reasonCode({ type }: Fault): string {
  if (type === 'CONNACK') return '3.2.2-8'
  return `${sectionOf(type)}.${type.endsWith('SUBACK') ? '3-2' : '2-1'}`
}

function tooShort(fault: Fault): string {
  const { type, name, within } = fault
  if (within.startsWith('Payload/Will')) return '3.1.2-9'
  if (name === 'User Name') return '3.1.2-17|3.1.2-19'
  if (name === 'Password') return '3.1.2-19|3.1.2-21'
  if (type === 'CONNECT') return '3.1.4-1'
  if (name === 'Packet Identifier') return packetIdentifier(fault)
  if (name === 'Property Length') return '2.2.2-1'
  if (name === 'Topic Name') return '3.3.2-1'
  // Later subscriptions stand beside one that is complete.
  return within === 'Payload/Subscription 1' ? '3.8.3-2|3.8.3-3' : ''
}

function bytesLeft({ type, connectFlags, bytes }: Fault): string {
  if (type !== 'CONNECT') return ''
  // User name and password begin with their length.
  const [high = 0, low = 0] = bytes
  if (bytes.length < 2 + high * 256 + low || (connectFlags & 0xc0) === 0xc0) return '3.1.4-1'
  return connectFlags & 0x80 ? '3.1.2-18|3.1.2-20' : '3.1.2-16|3.1.2-18'
}

function illFormed({ name, value, within }: Fault): string {
  if (name === 'Protocol Name') return '3.1.2-1'
  if (name === 'User Property') return '1.5.7-1'
  // A string with U+0000 is UTF-8 otherwise; other bytes are the value themselves.
  if (String(value).includes('\0')) return '1.5.4-2|1.5.3-2'
  // The section of the will has no statements for these two.
  if (name === 'Response Topic' && !within.includes('Will')) return '3.3.2-13'
  if (name === 'Content Type' && !within.includes('Will')) return '3.3.2-19'
  return '1.5.4-1|1.5.3-1'
}

function willFlags({ connectFlags }: Fault): string {
  if (connectFlags & 4) return '3.1.2-12|3.1.2-14'
  return connectFlags & 0x18 ? '3.1.2-11|3.1.2-13' : '3.1.2-13|3.1.2-15'
}

function topicFilter({ value, version }: Fault): string {
  const filter = String(value)
  if (filter === '') return '4.7.3-1'
  if (version === 5 && isShared(filter)) {
    if (filter.startsWith('$share//')) return '4.8.2-1'
    if (!/^\$share\/[^/+#]+\/./s.test(filter)) return '4.8.2-2'
  }
  // The first wildcard that shares its level, or `#` before the last level.
  const [stray = ''] = /[^/][+#]|[+#][^/]|#(?=\/)/.exec(filter) ?? []
  return stray.includes('#') ? '4.7.1-1|4.7.1-2' : '4.7.1-2|4.7.1-3'
}

/** By message of the WireError. */
const rules: Readonly<Record<string, Rule>> = {
  'bad packet type or flags': flags,
  'QoS 3 or DUP at QoS 0': ({ bytes: [first = 0] }) => ((first & 6) === 6 ? '3.3.1-4' : '3.3.1-2'),
  'bad variable byte integer': '1.5.5-1|',
  'packet is too short': tooShort,
  'bytes after the last field': bytesLeft,
  'string is not well-formed UTF-8': illFormed,
  'packet identifier 0': packetIdentifier,
  'reason code is not one of this packet': reasonCode,
  'unknown return code': ({ type }) => (type === 'SUBACK' ? '3.9.3-2' : ''),
  'unsupported protocol version': ({ name }) =>
    name === 'Protocol Version' ? '3.1.2-2' : '3.1.2-1',
  'reserved CONNECT flag': '3.1.2-3',
  'will QoS or will retain': willFlags,
  'password without user name': '3.1.2-22',
  'empty client identifier without clean session': '3.1.3-7',
  'will topic is no topic name': ({ value }) => (value === '' ? '4.7.3-1' : '4.7.0-1|4.7.1-1'),
  'reserved CONNACK flags': '3.2.2-1|',
  'refusal with a session': '3.2.2-6|3.2.2-4',
  'wildcard in a topic name': '3.3.2-2',
  'empty topic name': '4.7.3-1',
  'response topic is no topic name': ({ value }) => (value === '' ? '4.7.3-1' : '3.3.2-14'),
  'SUBSCRIBE without a filter': '3.8.3-2|3.8.3-3',
  'UNSUBSCRIBE without a filter': '3.10.3-2',
  'bad topic filter': topicFilter,
  'reserved subscription options': '3.8.3-5|3-8.3-4',
  'QoS 3': '|3-8.3-4',
  'no local on a shared subscription': '3.8.3-4',
  'no reason codes': ({ type }) => (type === 'SUBACK' ? '3.8.4-6|3.8.4-5' : '3.11.3-2'),
  'AUTH without authentication method': '4.12.0-5',
  'property is not for this sender': ({ type, from }) =>
    type === 'PUBLISH' ? '3.3.4-6' : from === 'server' ? '3.14.2-2' : '',
  'property value is out of range': ({ name }) => (name === 'Topic Alias' ? '3.3.2-8' : ''),
}

/** The statement that is broken, as `MQTT-3.1.2-1`; undefined when none has a number. */
export function statementOf(fault: Fault): string | undefined {
  // The codec adds a guess to the first message, as in 'bad packet type or flags: is it HTTP?'.
  const rule = rules[fault.message.replace(/: is it .*/, '')] ?? ''
  const [current, older = current] = (typeof rule === 'string' ? rule : rule(fault)).split('|')
  const statement = fault.version === 5 ? current : older
  return statement ? `MQTT-${statement}` : undefined
}
