/**
 * Which normative statement a broken packet breaks. Pure.
 *
 * Decided by the message of the error and the field that it is at. Many faults break no numbered
 * statement: a property that occurs twice is forbidden by the text alone.
 */
import { isShared, type ProtocolVersion, parseShare, type Sender } from 'mqwire/wire'
import type { Place } from './fields.js'

/** What is known of a fault; its place is the field that is wrong, or that lacks bytes. */
export interface Fault extends Place {
  /** Message of the WireError. */
  readonly message: string
  /** As the standard writes it. */
  readonly type: string
  readonly from: Sender
  readonly version: ProtocolVersion
  /** Value of the field. */
  readonly value: string | number
  /** The first byte. */
  readonly first: number
  /** Connect Flags of a CONNECT. */
  readonly connectFlags: number
}

type Rule = string | ((fault: Fault) => string | undefined)

/** Flags that have a statement of their own, by packet type. */
const flagStatements: Readonly<Record<string, string>> = {
  PUBREL: '3.6.1-1',
  SUBSCRIBE: '3.8.1-1',
  UNSUBSCRIBE: '3.10.1-1',
  DISCONNECT: '3.14.1-1',
  AUTH: '3.15.1-1',
}

/** Reason codes, by packet type. */
const reasonStatements: Readonly<Record<string, string>> = {
  CONNACK: '3.2.2-8',
  PUBACK: '3.4.2-1',
  PUBREC: '3.5.2-1',
  PUBREL: '3.6.2-1',
  PUBCOMP: '3.7.2-1',
  SUBACK: '3.9.3-2',
  UNSUBACK: '3.11.3-2',
  DISCONNECT: '3.14.2-1',
  AUTH: '3.15.2-1',
}

function flags({ type, version }: Fault): string | undefined {
  if (type === 'reserved' || (type === 'AUTH' && version === 4)) return undefined
  return flagStatements[type] ?? (version === 5 ? '2.1.3-1' : '2.2.2-1')
}

function packetIdentifier({ type, from, version }: Fault): string {
  const isRequest = ['PUBLISH', 'SUBSCRIBE', 'UNSUBSCRIBE'].includes(type)
  const isAnswer = type === 'SUBACK' || type === 'UNSUBACK'
  if (version === 4) return isRequest ? '2.3.1-1' : isAnswer ? '2.3.1-7' : '2.3.1-6'
  if (!isRequest) return isAnswer ? '2.2.1-6' : '2.2.1-5'
  return from === 'client' ? '2.2.1-3' : '2.2.1-4'
}

function tooShort(fault: Fault): string | undefined {
  const { type, name, within, version } = fault
  if (type === 'CONNECT') {
    if (within.startsWith('Payload/Will')) return '3.1.2-9'
    if (name === 'User Name') return version === 5 ? '3.1.2-17' : '3.1.2-19'
    if (name === 'Password') return version === 5 ? '3.1.2-19' : '3.1.2-21'
    return '3.1.4-1'
  }
  if (name === 'Packet Identifier') return packetIdentifier(fault)
  if (name === 'Property Length') return '2.2.2-1'
  if (name === 'Topic Name') return '3.3.2-1'
  // Later subscriptions stand beside one that is complete.
  if (type === 'SUBSCRIBE' && within === 'Payload/Subscription 1')
    return version === 5 ? '3.8.3-2' : '3.8.3-3'
  return undefined
}

function bytesLeft({ type, version, connectFlags }: Fault): string | undefined {
  if (type !== 'CONNECT') return undefined
  if ((connectFlags & 0x80) === 0) return version === 5 ? '3.1.2-16' : '3.1.2-18'
  if ((connectFlags & 0x40) === 0) return version === 5 ? '3.1.2-18' : '3.1.2-20'
  return undefined
}

function illFormed({ name, value, version, within }: Fault): string {
  if (name === 'Protocol Name') return '3.1.2-1'
  if (name === 'User Property') return '1.5.7-1'
  // A string with U+0000 is UTF-8 otherwise; one that is none has its bytes as the value.
  const hasNull = String(value).includes('\0')
  if (version === 4) return hasNull ? '1.5.3-2' : '1.5.3-1'
  if (hasNull) return '1.5.4-2'
  // The section of the will has no statements for these two.
  if (name === 'Response Topic' && !within.includes('Will')) return '3.3.2-13'
  if (name === 'Content Type' && !within.includes('Will')) return '3.3.2-19'
  return '1.5.4-1'
}

function willFlags({ version, connectFlags }: Fault): string {
  if (connectFlags & 4) return version === 5 ? '3.1.2-12' : '3.1.2-14'
  if (connectFlags & 0x18) return version === 5 ? '3.1.2-11' : '3.1.2-13'
  return version === 5 ? '3.1.2-13' : '3.1.2-15'
}

function topicFilter({ value, version }: Fault): string | undefined {
  const filter = String(value)
  if (filter === '') return '4.7.3-1'
  const levels = filter.split('/')
  const stray = levels.find(
    (level, index) =>
      (level.length > 1 && /[+#]/.test(level)) || (level === '#' && index < levels.length - 1),
  )
  if (version === 4) return stray?.includes('#') ? '4.7.1-2' : '4.7.1-3'
  if (isShared(filter)) {
    const share = parseShare(filter)
    if (share === undefined) return levels[1] === '' ? '4.8.2-1' : '4.8.2-2'
    if (/[+#]/.test(share.shareName)) return '4.8.2-2'
  }
  return stray?.includes('#') ? '4.7.1-1' : '4.7.1-2'
}

function outOfRange({ name, type }: Fault): string | undefined {
  return name === 'Topic Alias' && type === 'PUBLISH' ? '3.3.2-8' : undefined
}

function wrongSender({ name, type }: Fault): string | undefined {
  if (name === 'Subscription Identifier' && type === 'PUBLISH') return '3.3.4-6'
  return name === 'Session Expiry Interval' ? '3.14.2-2' : undefined
}

/** By message: the rule of 5.0, and that of 3.1.1 where it is another; '' is none. */
const rules: Readonly<Record<string, readonly [rule: Rule, older?: Rule]>> = {
  'bad packet type or flags': [flags],
  'QoS 3 or DUP at QoS 0': [({ first }) => ((first & 6) === 6 ? '3.3.1-4' : '3.3.1-2')],
  'bad variable byte integer': ['1.5.5-1', ''],
  'packet is too short': [tooShort],
  'bytes after the last field': [bytesLeft],
  'string is not well-formed UTF-8': [illFormed],
  'packet identifier 0': [packetIdentifier],
  'reason code is not one of this packet': [({ type }) => reasonStatements[type]],
  'unknown return code': ['', ({ type }) => (type === 'SUBACK' ? '3.9.3-2' : undefined)],
  'unsupported protocol version': [
    ({ name }) => (name === 'Protocol Version' ? '3.1.2-2' : '3.1.2-1'),
  ],
  'reserved CONNECT flag': ['3.1.2-3'],
  'will QoS or will retain': [willFlags],
  'password without user name': ['', '3.1.2-22'],
  'empty client identifier without clean session': ['', '3.1.3-7'],
  'will topic is no topic name': [
    ({ value }) => (value === '' ? '4.7.3-1' : '4.7.0-1'),
    ({ value }) => (value === '' ? '4.7.3-1' : '4.7.1-1'),
  ],
  'reserved CONNACK flags': ['3.2.2-1', ''],
  'refusal with a session': ['3.2.2-6', '3.2.2-4'],
  'wildcard in a topic name': ['3.3.2-2'],
  'empty topic name': ['4.7.3-1'],
  'response topic is no topic name': [({ value }) => (value === '' ? '4.7.3-1' : '3.3.2-14')],
  'SUBSCRIBE without a filter': ['3.8.3-2', '3.8.3-3'],
  'UNSUBSCRIBE without a filter': ['3.10.3-2'],
  'bad topic filter': [topicFilter],
  'reserved subscription options': ['3.8.3-5', '3-8.3-4'],
  'QoS 3': ['', '3-8.3-4'],
  'no local on a shared subscription': ['3.8.3-4'],
  'no reason codes': [({ type }) => (type === 'SUBACK' ? '3.8.4-6' : '3.11.3-2'), '3.8.4-5'],
  'AUTH without authentication method': ['4.12.0-5'],
  'property is not for this sender': [wrongSender],
  'property value is out of range': [outOfRange],
}

/** The statement that is broken, as `MQTT-3.1.2-1`; undefined when none has a number. */
export function statementOf(fault: Fault): string | undefined {
  // The codec adds a guess to the first message, as in 'bad packet type or flags: is it HTTP?'.
  const [message = ''] = fault.message.split(':')
  const [rule, older = rule] = rules[message] ?? ['']
  const chosen = fault.version === 5 ? rule : older
  const statement = typeof chosen === 'string' ? chosen : chosen(fault)
  return statement ? `MQTT-${statement}` : undefined
}
