/**
 * The judged differences: where a foreign codec differs from ours and the standard says who is right.
 *
 * A judgement covers one way of one codec, told by the packet and both verdicts; nothing is judged away where ours is wrong. The rule that a packet
 * breaks is the one that `test/unit/wire/reference-decoder.ts` names. Sections are those of MQTT 5.0 unless 3.1.1 is named. In each of them the standard is
 * with ours, except where the reason says otherwise.
 */
import type { Difference } from './compare.js'
import type { Codec } from './foreign.js'
import { type Fields, groupedPairs } from './normalize.js'

/** One judged class of differences. */
export interface Judgement {
  readonly name: string
  readonly codec: Codec
  readonly section: string
  readonly reason: string
  readonly applies: (difference: Difference) => boolean
}

interface Rule {
  readonly section: string
  readonly reason: string
}

/** Rules that a packet can break by itself, by the name that the reference decoder gives them. */
const rules: Readonly<Record<string, Rule>> = {
  'AUTH without method': { section: '3.15.2.2.2', reason: 'AUTH without an Authentication Method is a Protocol Error' },
  'DUP at QoS 0': { section: '3.3.1.1', reason: 'DUP must be 0 at QoS 0 [MQTT-3.3.1-2]' },
  'QoS 3': { section: '3.3.1.2', reason: 'QoS 3 is malformed [MQTT-3.3.1-4]' },
  'UTF-8': { section: '1.5.4', reason: 'ill-formed UTF-8 is malformed [MQTT-1.5.4-1]' },
  'U+0000': { section: '1.5.4', reason: 'U+0000 is not allowed in a string [MQTT-1.5.4-2]' },
  'acknowledge flags': { section: '3.2.2.1', reason: 'bits 7-1 are reserved, and a refusal has Session Present 0 [MQTT-3.2.2-1] [MQTT-3.2.2-6]' },
  'cut off': { section: '4.13.1', reason: 'a field that ends beyond its packet cannot be parsed: a Malformed Packet' },
  'data without method': { section: '3.1.2.11.10', reason: 'Authentication Data without a method is a Protocol Error' },
  direction: { section: '2.1.2', reason: 'the packet type is not sent in this direction' },
  'empty client identifier': { section: '3.1.3.1 of 3.1.1', reason: 'an empty Client Identifier needs Clean Session 1 [MQTT-3.1.3-7]' },
  'empty filter': { section: '4.7.3', reason: 'a Topic Filter has at least one character [MQTT-4.7.3-1]' },
  'five bytes': { section: '1.5.5', reason: 'a Variable Byte Integer has four bytes at most' },
  flags: { section: '2.1.3', reason: 'reserved flags of the fixed header have one value [MQTT-2.1.3-1]' },
  'longer than needed': { section: '1.5.5', reason: 'the encoded value uses the fewest bytes [MQTT-1.5.5-1]' },
  'no flag': { section: '2.2.2.2', reason: 'the property is 0 or 1, any other value is a Protocol Error' },
  'no local, shared': { section: '3.8.3.1', reason: 'No Local 1 on a Shared Subscription is a Protocol Error [MQTT-3.8.3-4]' },
  'not of this packet': { section: '2.2.2.2', reason: 'the property is not one of this packet, or there is no such property: a Malformed Packet' },
  'not of this sender': { section: '3.3.4, 3.14.2.2', reason: 'the other side alone may send this property [MQTT-3.3.4-6] [MQTT-3.14.2-2]' },
  'not on 3.1.1': { section: '2.2.1 of 3.1.1', reason: '3.1.1 has no AUTH, and no DISCONNECT from a server' },
  options: { section: '3.8.3.1', reason: 'reserved bits are 0, QoS and Retain Handling are not 3 [MQTT-3.8.3-5]' },
  'packet identifier 0': { section: '2.2.1', reason: 'a Packet Identifier is not 0 [MQTT-2.2.1-3]' },
  'password alone': { section: '3.1.2.9 of 3.1.1', reason: 'without a User Name there is no Password [MQTT-3.1.2-22]' },
  'reason code': { section: '2.4', reason: 'the Reason Code is not one of this packet, from this sender' },
  'reserved flag': { section: '3.1.2.3', reason: 'the reserved Connect Flag is 0 [MQTT-3.1.2-3]' },
  'share name': { section: '4.8.2', reason: 'a Shared Subscription has a ShareName and a Topic Filter [MQTT-4.8.2-1] [MQTT-4.8.2-2]' },
  'share name with a wildcard': { section: '4.8.2', reason: 'a ShareName has no wildcard [MQTT-4.8.2-2]' },
  'something behind it': { section: '2.1.4', reason: 'bytes behind the packet are another packet: it was asked for exactly one' },
  'something behind the last field': { section: '2.1.4', reason: 'the Remaining Length covers the fields of the packet and nothing else' },
  'too small': { section: '2.2.2.2', reason: 'the property is not 0: a Protocol Error' },
  'topic name': { section: '4.7', reason: 'a Topic Name has at least one character and no wildcard [MQTT-3.3.2-2] [MQTT-4.7.1-1] [MQTT-4.7.3-1]' },
  twice: { section: '2.2.2.2', reason: 'the property may be there once: a Protocol Error' },
  type: { section: '2.1.2', reason: 'type 0 is reserved' },
  version: { section: '3.1.2.1, 3.1.2.2', reason: 'the Protocol Name is MQTT, the version 5 or 4 [MQTT-3.1.2-1] [MQTT-3.1.2-2]' },
  'will flags': {
    section: '3.1.2.6, 3.1.2.7',
    reason: 'Will QoS is not 3, and 0 without a will, as is Will Retain [MQTT-3.1.2-11] [MQTT-3.1.2-12] [MQTT-3.1.2-13]',
  },
  '# before the end': { section: '4.7.1.2', reason: '# is the last character of the filter [MQTT-4.7.1-1]' },
  '# beside something': { section: '4.7.1.2', reason: '# is a whole level [MQTT-4.7.1-1]' },
  '+ beside something': { section: '4.7.1.3', reason: '+ is a whole level [MQTT-4.7.1-2]' },
}

const answers = 'puback pubrec pubrel pubcomp'

/** Which rules each codec does not hold a packet to, and in packets of which types where it does in others that have the field. */
const unchecked: Readonly<Record<Codec, readonly (readonly [rule: string, types?: string])[]>> = {
  'mqtt-packet': [
    ['# before the end'],
    ['# beside something'],
    ['+ beside something'],
    ['AUTH without method'],
    ['DUP at QoS 0'],
    ['U+0000'],
    ['UTF-8'],
    ['acknowledge flags'],
    ['cut off'],
    ['data without method'],
    ['direction'],
    ['empty client identifier'],
    ['empty filter'],
    ['longer than needed'],
    ['no flag'],
    ['no local, shared'],
    ['not of this packet'],
    ['not of this sender'],
    ['not on 3.1.1', 'disconnect'],
    ['packet identifier 0'],
    ['password alone'],
    ['reason code', 'auth connack disconnect puback pubrec'],
    ['share name'],
    ['share name with a wildcard'],
    ['something behind the last field', `auth connack connect disconnect pingreq pingresp ${answers}`],
    ['too small'],
    ['topic name'],
    ['twice'],
    ['version'],
    ['will flags'],
  ],
  'paho.golang': [
    ['# before the end'],
    ['# beside something'],
    ['+ beside something'],
    ['AUTH without method'],
    ['DUP at QoS 0'],
    ['QoS 3'],
    ['U+0000'],
    ['UTF-8'],
    ['acknowledge flags'],
    ['cut off'],
    ['data without method'],
    ['direction'],
    ['empty filter'],
    ['five bytes'],
    ['flags'],
    ['longer than needed'],
    ['no flag'],
    ['no local, shared'],
    ['not of this packet', 'connect'],
    ['not of this sender'],
    ['options'],
    ['packet identifier 0'],
    ['reason code'],
    ['reserved flag'],
    ['share name'],
    ['share name with a wildcard'],
    ['something behind the last field', `auth connack connect disconnect pingreq pingresp ${answers}`],
    ['too small'],
    ['topic name'],
    ['twice'],
    ['version'],
    ['will flags'],
  ],
  'mochi-mqtt': [
    ['# before the end'],
    ['# beside something'],
    ['+ beside something'],
    ['AUTH without method'],
    ['U+0000', 'connect'],
    ['UTF-8', 'connect'],
    ['acknowledge flags'],
    ['cut off'],
    ['data without method'],
    ['direction'],
    ['empty client identifier'],
    ['empty filter'],
    ['five bytes'],
    ['longer than needed'],
    ['no flag'],
    ['no local, shared'],
    ['not of this sender', 'disconnect'],
    ['not on 3.1.1'],
    ['options'],
    ['packet identifier 0', `publish ${answers} suback unsuback`],
    ['password alone'],
    ['reason code', 'auth connack disconnect puback pubrec suback unsuback'],
    ['share name'],
    ['share name with a wildcard'],
    ['something behind the last field', `auth connack connect disconnect pingreq pingresp unsuback ${answers}`],
    ['too small'],
    ['topic name'],
    ['twice'],
    ['version'],
    ['will flags'],
  ],
}

function acceptsAgainst(codec: Codec, rule: string, types: readonly string[] | undefined): Judgement {
  return {
    name: `${codec} does not check '${rule}'${types === undefined ? '' : ` in ${types.join(', ')}`}`,
    codec,
    ...(rules[rule] as Rule),
    applies: (difference) => difference.kind === 'accepts' && difference.rule === rule && (types?.includes(difference.type) ?? true),
  }
}

const properties = (fields: Fields): Fields => (fields['properties'] ?? {}) as Fields

/** The last part of the path of a field. */
const nameOf = ({ place }: Difference): string => place.path.split('.').at(-1) ?? ''

/** The Protocol Version of a CONNECT whose Protocol Name is MQTT; -1 where it does not stand there. */
function levelOf(bytes: Uint8Array): number {
  const at = Buffer.from(bytes).indexOf('\0\u0004MQTT')
  return at < 2 || at > 5 ? -1 : (bytes[at + 6] ?? -1)
}

const texts = [
  'contentType',
  'responseTopic',
  'assignedClientIdentifier',
  'authenticationMethod',
  'responseInformation',
  'serverReference',
  'reasonString',
]
const maybeEmpty = new Set([...texts, 'correlationData', 'authenticationData'])
const maybeZero = new Set(['messageExpiryInterval', 'willDelayInterval', 'requestResponseInformation', 'topicAliasMaximum'])
const ofWillMessage = new Set(['payloadFormatIndicator', 'messageExpiryInterval', 'contentType', 'responseTopic', 'correlationData'])

function losesEmpty(codec: Codec): Judgement {
  return {
    name: `${codec} takes an empty value for an absent property`,
    codec,
    section: '1.5.4, 1.5.6',
    reason: 'a string and Binary Data may have no bytes: that is a value',
    applies: (d) => d.kind === 'field' && d.place.ours === '' && d.place.theirs === undefined && maybeEmpty.has(nameOf(d)),
  }
}

function writesNoMethod(codec: Codec): Judgement {
  return {
    name: `${codec} leaves out an empty Authentication Method when it writes`,
    codec,
    section: '3.1.2.11.9, 3.15.2.2.2',
    reason: 'without it the data of CONNECT and every AUTH is a Protocol Error',
    applies: ({ kind, fields, error }) => kind === 'unread' && properties(fields)['authenticationMethod'] === '' && error.includes('method'),
  }
}

const others: readonly Judgement[] = [
  losesEmpty('paho.golang'),
  losesEmpty('mochi-mqtt'),
  writesNoMethod('paho.golang'),
  writesNoMethod('mochi-mqtt'),
  {
    name: 'paho.golang keeps the last of several Subscription Identifiers',
    codec: 'paho.golang',
    section: '3.3.2.3.8',
    reason: 'a PUBLISH holds one for each matching subscription [MQTT-3.3.4-4]',
    applies: ({ kind, place: { path, ours, theirs } }) => {
      if (kind !== 'field' || path !== 'properties.subscriptionIdentifiers' || !Array.isArray(ours)) return false
      return ours.length > 1 && JSON.stringify(theirs) === JSON.stringify(ours.slice(-1))
    },
  },
  {
    name: 'paho.golang does not write the properties of a Will Message',
    codec: 'paho.golang',
    section: '3.1.3.2',
    reason: 'they are among the Will Properties; it writes the Will Delay Interval alone',
    applies: (d) =>
      d.kind === 'rewritten' &&
      d.type === 'connect' &&
      d.place.path.startsWith('will.') &&
      d.place.theirs === undefined &&
      ofWillMessage.has(nameOf(d)),
  },
  {
    name: 'paho.golang reads a CONNECT of 3.1.1 as one of MQTT 5.0',
    codec: 'paho.golang',
    section: '3.1.2.2',
    reason: 'the Protocol Version decides how the rest is read; a version that is not supported is refused',
    applies: ({ kind, type, each }) =>
      type === 'connect' && (kind === 'accepts' || kind === 'refuses' || kind === 'field') && levelOf(each.bytes) === 4,
  },
  {
    name: 'paho.golang refuses a DISCONNECT without a body',
    codec: 'paho.golang',
    section: '3.14.2.1',
    reason: 'the Reason Code may be left out when it is 0x00 and there are no properties',
    applies: ({ kind, type, each, error }) => kind === 'refuses' && type === 'disconnect' && each.bytes.length === 2 && error === 'EOF',
  },
  {
    name: 'mochi-mqtt takes 0 for an absent property',
    codec: 'mochi-mqtt',
    section: '2.2.2.2',
    reason: 'the property is there, with its value 0',
    applies: (d) => d.kind === 'field' && d.place.ours === 0 && d.place.theirs === undefined && maybeZero.has(nameOf(d)),
  },
  {
    name: 'mochi-mqtt does not read the Reason Code of a DISCONNECT without properties',
    codec: 'mochi-mqtt',
    section: '3.14.2.2.1',
    reason: 'with a Remaining Length of 1 the Reason Code is there, and the Property Length is 0',
    applies: ({ kind, type, place, each }) =>
      kind === 'field' && type === 'disconnect' && place.path === 'reasonCode' && place.theirs === 0 && each.bytes[1] === 1,
  },
  {
    name: 'mochi-mqtt refuses an empty Password',
    codec: 'mochi-mqtt',
    section: '3.1.3.6',
    reason: 'a Password is Binary Data, of 0 bytes too',
    applies: ({ kind, fields, error }) => kind === 'refuses' && fields['password'] === '' && error.includes('password flag set but no value'),
  },
  {
    name: 'mochi-mqtt refuses an empty Will Payload',
    codec: 'mochi-mqtt',
    section: '3.1.3.4',
    reason: 'a Will Payload is Binary Data, of 0 bytes too',
    applies: ({ kind, fields, error }) =>
      kind === 'refuses' && (fields['will'] as Fields | undefined)?.['payload'] === '' && error.includes('will flag'),
  },
  {
    name: 'mochi-mqtt refuses DUP at QoS 0 on 3.1.1',
    codec: 'mochi-mqtt',
    section: '3.3.1.1 of 3.1.1',
    reason: 'it may: [MQTT-3.3.1-2] binds the sender. Ours takes it on purpose, since clients that set it are in use, and says so in its reference',
    applies: ({ kind, fields, each, error }) =>
      kind === 'refuses' && each.version === 4 && fields['dup'] === true && fields['qos'] === 0 && error.includes('dup true with no qos'),
  },
  {
    name: 'mqtt-packet keeps user properties in an object',
    codec: 'mqtt-packet',
    section: '2.2.2.2, 3.3.2.3.7',
    reason: 'their order is kept, and names may repeat, with empty values too [MQTT-3.3.2-18]',
    applies: ({ kind, place: { path, ours, theirs } }) =>
      kind === 'field' &&
      path.endsWith('properties.userProperties') &&
      Array.isArray(ours) &&
      JSON.stringify(groupedPairs(ours as [string, string][])) === JSON.stringify(theirs),
  },
  {
    name: 'mochi-mqtt does not write Reason Codes below 0x80',
    codec: 'mochi-mqtt',
    section: '3.4.2.1, 3.5.2.1',
    reason: 'only 0x00 may be left out: 0x10 is lost',
    applies: ({ kind, place: { path, ours, theirs } }) => kind === 'rewritten' && path === 'reasonCode' && ours === 0x10 && theirs === 0,
  },
  {
    name: 'mqtt-packet refuses a DISCONNECT with Reason Code 0x8C from a server',
    codec: 'mqtt-packet',
    section: '2.4, 3.14.2.1',
    reason: 'the standard contradicts itself: section 2.4 lists it for DISCONNECT, section 3.14.2.1 does not. Ours takes it, as the other two do',
    applies: ({ kind, type, fields, each }) => kind === 'refuses' && type === 'disconnect' && each.from === 'server' && fields['reasonCode'] === 0x8c,
  },
  {
    name: 'mqtt-packet does not write an empty Client Identifier without Clean Start',
    codec: 'mqtt-packet',
    section: '3.1.3.1',
    reason: 'MQTT 5.0 allows it: the server assigns one',
    applies: ({ kind, fields, error }) => kind === 'unwritten' && fields['clientId'] === '' && error.startsWith('clientId must be given'),
  },
  {
    name: 'mqtt-packet does not write a Password without a User Name',
    codec: 'mqtt-packet',
    section: '3.1.2.9',
    reason: 'MQTT 5.0 allows a Password with no User Name',
    applies: ({ kind, fields, error }) =>
      kind === 'unwritten' && fields['protocolVersion'] === 5 && fields['password'] !== undefined && error.startsWith('Username is required'),
  },
]

/** All of them. */
export const judgements: readonly Judgement[] = [
  ...(Object.keys(unchecked) as Codec[]).flatMap((codec) => unchecked[codec].map(([rule, types]) => acceptsAgainst(codec, rule, types?.split(' ')))),
  ...others,
]
