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

type Rule = readonly [section: string, reason: string]

/** Rules that a packet can break by itself, by the name that the reference decoder gives them. */
const rules: Readonly<Record<string, Rule>> = {
  'AUTH without method': ['3.15.2.2.2', 'every AUTH has an Authentication Method'],
  'DUP at QoS 0': ['3.3.1.1', 'DUP must be 0 at QoS 0 [MQTT-3.3.1-2]'],
  'QoS 3': ['3.3.1.2', 'QoS 3 is malformed [MQTT-3.3.1-4]'],
  'UTF-8': ['1.5.4', 'ill-formed UTF-8 is malformed [MQTT-1.5.4-1]'],
  'U+0000': ['1.5.4', 'U+0000 is not allowed in a string [MQTT-1.5.4-2]'],
  'acknowledge flags': [
    '3.2.2.1',
    'bits 7-1 are 0, a refusal has no session [MQTT-3.2.2-1] [MQTT-3.2.2-6]',
  ],
  'cut off': ['4.13.1', 'a field that ends beyond its packet: a Malformed Packet'],
  'data without method': ['3.1.2.11.10', 'Authentication Data needs a method'],
  direction: ['2.1.2', 'the packet type is not sent in this direction'],
  'empty client identifier': ['3.1.3.1 of 3.1.1', 'it needs Clean Session 1 [MQTT-3.1.3-7]'],
  'empty filter': ['4.7.3', 'a Topic Filter has at least one character [MQTT-4.7.3-1]'],
  'five bytes': ['1.5.5', 'a Variable Byte Integer has four bytes at most'],
  flags: ['2.1.3', 'reserved flags have one value [MQTT-2.1.3-1]'],
  'longer than needed': ['1.5.5', 'the encoded value uses the fewest bytes [MQTT-1.5.5-1]'],
  'no flag': ['2.2.2.2', 'the property is 0 or 1, any other value is a Protocol Error'],
  'no local, shared': [
    '3.8.3.1',
    'No Local 1 on a Shared Subscription is a Protocol Error [MQTT-3.8.3-4]',
  ],
  'not of this packet': ['2.2.2.2', 'a property of other packets, or none: a Malformed Packet'],
  'not of this sender': [
    '3.3.4, 3.14.2.2',
    'the other side alone may send it [MQTT-3.3.4-6] [MQTT-3.14.2-2]',
  ],
  'not on 3.1.1': ['2.2.1 of 3.1.1', '3.1.1 has no AUTH, and no DISCONNECT from a server'],
  options: ['3.8.3.1', 'reserved bits are 0, nothing is 3 [MQTT-3.8.3-5]'],
  'packet identifier 0': ['2.2.1', 'a Packet Identifier is not 0 [MQTT-2.2.1-3]'],
  'password alone': [
    '3.1.2.9 of 3.1.1',
    'without a User Name there is no Password [MQTT-3.1.2-22]',
  ],
  'reason code': ['2.4', 'the Reason Code is not one of this packet, from this sender'],
  'reserved flag': ['3.1.2.3', 'the reserved Connect Flag is 0 [MQTT-3.1.2-3]'],
  'share name': ['4.8.2', 'a ShareName and a filter are there [MQTT-4.8.2-1] [MQTT-4.8.2-2]'],
  'share name with a wildcard': ['4.8.2', 'a ShareName has no wildcard [MQTT-4.8.2-2]'],
  'something behind it': ['2.1.4', 'what follows is another packet: exactly one was asked for'],
  'something behind the last field': ['2.1.4', 'the Remaining Length covers the fields alone'],
  'too small': ['2.2.2.2', 'the property is not 0: a Protocol Error'],
  'topic name': ['4.7', 'one character or more, no wildcard [MQTT-3.3.2-2] [MQTT-4.7.3-1]'],
  twice: ['2.2.2.2', 'the property may be there once: a Protocol Error'],
  type: ['2.1.2', 'type 0 is reserved'],
  version: [
    '3.1.2.1, 3.1.2.2',
    'the name is MQTT, the version 5 or 4 [MQTT-3.1.2-1] [MQTT-3.1.2-2]',
  ],
  'will flags': [
    '3.1.2.6',
    'not 3, and 0 without a will [MQTT-3.1.2-11] [MQTT-3.1.2-12] [MQTT-3.1.2-13]',
  ],
  '# before the end': ['4.7.1.2', '# is the last character of the filter [MQTT-4.7.1-1]'],
  '# beside something': ['4.7.1.2', '# is a whole level [MQTT-4.7.1-1]'],
  '+ beside something': ['4.7.1.3', '+ is a whole level [MQTT-4.7.1-2]'],
}

/** Which rules each codec does not hold a packet to; after a colon, in packets of which types where it does in others that have the field. */
const answers = 'puback pubrec pubrel pubcomp'
const byAll = `# before the end; # beside something; + beside something; AUTH without method; acknowledge flags;
  cut off; data without method; direction; empty filter; longer than needed; no flag; no local, shared;
  share name; share name with a wildcard; too small; topic name; twice; version; will flags`
const unchecked: Readonly<Record<Codec, string>> = {
  'mqtt-packet': `${byAll}; DUP at QoS 0; U+0000; UTF-8; empty client identifier; not of this packet;
    not of this sender; not on 3.1.1: disconnect; packet identifier 0; password alone;
    reason code: auth connack disconnect puback pubrec;
    something behind the last field: auth connack connect disconnect pingreq pingresp ${answers}`,
  'paho.golang': `${byAll}; DUP at QoS 0; QoS 3; U+0000; UTF-8; five bytes; flags;
    not of this packet: connect; not of this sender; options; packet identifier 0; reason code; reserved flag;
    something behind the last field: auth connack connect disconnect pingreq pingresp ${answers}`,
  'mochi-mqtt': `${byAll}; U+0000: connect; UTF-8: connect; empty client identifier; five bytes;
    not of this sender: disconnect; not on 3.1.1; options;
    packet identifier 0: publish ${answers} suback unsuback; password alone;
    reason code: auth connack disconnect puback pubrec suback unsuback;
    something behind the last field: auth connack connect disconnect pingreq pingresp unsuback ${answers}`,
}

function acceptsAgainst(codec: Codec, given: string): Judgement {
  const [rule = '', types] = given.trim().split(/:\s*/)
  const [section, reason] = rules[rule] as Rule
  return {
    name: `${codec} does not check '${rule}'${types === undefined ? '' : ` in ${types}`}`,
    codec,
    section,
    reason,
    applies: ({ kind, rule: broken, type }) =>
      kind === 'accepts' && broken === rule && (types?.split(' ').includes(type) ?? true),
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

const maybeEmpty =
  `contentType responseTopic assignedClientIdentifier authenticationMethod responseInformation
  serverReference reasonString correlationData authenticationData`.split(/\s+/)
const maybeZero =
  'messageExpiryInterval willDelayInterval requestResponseInformation topicAliasMaximum'.split(' ')
const ofWillMessage =
  'payloadFormatIndicator messageExpiryInterval contentType responseTopic correlationData'.split(
    ' ',
  )

const judged = (
  codec: Codec,
  does: string,
  section: string,
  reason: string,
  applies: Judgement['applies'],
): Judgement => ({
  ...{ name: `${codec} ${does}`, codec, section, reason, applies },
})
const losesEmpty = (codec: Codec): Judgement =>
  judged(
    codec,
    'takes an empty value for an absent property',
    '1.5.4, 1.5.6',
    'a string and Binary Data may have no bytes: that is a value',
    (d) =>
      d.kind === 'field' &&
      d.place.ours === '' &&
      d.place.theirs === undefined &&
      maybeEmpty.includes(nameOf(d)),
  )
const writesNoMethod = (codec: Codec): Judgement =>
  judged(
    codec,
    'leaves out an empty Authentication Method when it writes',
    '3.1.2.11.9, 3.15.2.2.2',
    'without it the data of CONNECT and every AUTH is a Protocol Error',
    (d) =>
      d.kind === 'unread' &&
      properties(d.fields)['authenticationMethod'] === '' &&
      d.error.includes('method'),
  )
const sameJson = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const others: readonly Judgement[] = [
  losesEmpty('paho.golang'),
  losesEmpty('mochi-mqtt'),
  writesNoMethod('paho.golang'),
  writesNoMethod('mochi-mqtt'),
  judged(
    'paho.golang',
    'keeps the last of several Subscription Identifiers',
    '3.3.2.3.8',
    'a PUBLISH holds one for each matching subscription [MQTT-3.3.4-4]',
    ({ kind, place: { path, ours, theirs } }) => {
      if (kind !== 'field' || path !== 'properties.subscriptionIdentifiers' || !Array.isArray(ours))
        return false
      return ours.length > 1 && sameJson(theirs, ours.slice(-1))
    },
  ),
  judged(
    'paho.golang',
    'does not write the properties of a Will Message',
    '3.1.3.2',
    'they are among the Will Properties; it writes the Will Delay Interval alone',
    (d) => {
      const isLost = d.kind === 'rewritten' && d.type === 'connect' && d.place.theirs === undefined
      return isLost && d.place.path.startsWith('will.') && ofWillMessage.includes(nameOf(d))
    },
  ),
  judged(
    'paho.golang',
    'reads a CONNECT of 3.1.1 as one of MQTT 5.0',
    '3.1.2.2',
    'the Protocol Version decides how the rest is read; a version that is not supported is refused',
    ({ kind, type, each }) =>
      type === 'connect' &&
      ['accepts', 'refuses', 'field'].includes(kind) &&
      levelOf(each.bytes) === 4,
  ),
  judged(
    'paho.golang',
    'refuses a DISCONNECT without a body',
    '3.14.2.1',
    'the Reason Code may be left out when it is 0x00 and there are no properties',
    ({ kind, type, each, error }) =>
      kind === 'refuses' && type === 'disconnect' && each.bytes.length === 2 && error === 'EOF',
  ),
  judged(
    'mochi-mqtt',
    'takes 0 for an absent property',
    '2.2.2.2',
    'the property is there, with its value 0',
    (d) =>
      d.kind === 'field' &&
      d.place.ours === 0 &&
      d.place.theirs === undefined &&
      maybeZero.includes(nameOf(d)),
  ),
  judged(
    'mochi-mqtt',
    'does not read the Reason Code of a DISCONNECT without properties',
    '3.14.2.2.1',
    'with a Remaining Length of 1 the Reason Code is there, and the Property Length is 0',
    ({ kind, type, place: { path, theirs }, each }) =>
      kind === 'field' &&
      type === 'disconnect' &&
      path === 'reasonCode' &&
      theirs === 0 &&
      each.bytes[1] === 1,
  ),
  judged(
    'mochi-mqtt',
    'refuses an empty Password',
    '3.1.3.6',
    'a Password is Binary Data, of 0 bytes too',
    ({ kind, fields, error }) =>
      kind === 'refuses' &&
      fields['password'] === '' &&
      error.includes('password flag set but no value'),
  ),
  judged(
    'mochi-mqtt',
    'refuses an empty Will Payload',
    '3.1.3.4',
    'a Will Payload is Binary Data, of 0 bytes too',
    (d) =>
      d.kind === 'refuses' &&
      (d.fields['will'] as Fields | undefined)?.['payload'] === '' &&
      d.error.includes('will flag'),
  ),
  judged(
    'mochi-mqtt',
    'refuses DUP at QoS 0 on 3.1.1',
    '3.3.1.1 of 3.1.1',
    'it may: [MQTT-3.3.1-2] binds the sender. Ours takes it on purpose, since clients that set it are in use, and says so in its reference',
    ({ kind, fields, each: { version }, error }) =>
      kind === 'refuses' &&
      version === 4 &&
      fields['dup'] === true &&
      fields['qos'] === 0 &&
      error.includes('dup true with no qos'),
  ),
  judged(
    'mqtt-packet',
    'keeps user properties in an object',
    '2.2.2.2, 3.3.2.3.7',
    'their order is kept, and names may repeat, with empty values too [MQTT-3.3.2-18]',
    ({ kind, place: { path, ours, theirs } }) => {
      const isPairs =
        kind === 'field' && path.endsWith('properties.userProperties') && Array.isArray(ours)
      return isPairs && sameJson(groupedPairs(ours as [string, string][]), theirs)
    },
  ),
  judged(
    'mochi-mqtt',
    'does not write Reason Codes below 0x80',
    '3.4.2.1, 3.5.2.1',
    'only 0x00 may be left out: 0x10 is lost',
    ({ kind, place: { path, ours, theirs } }) =>
      kind === 'rewritten' && path === 'reasonCode' && ours === 0x10 && theirs === 0,
  ),
  judged(
    'mqtt-packet',
    'refuses a DISCONNECT with Reason Code 0x8C from a server',
    '2.4, 3.14.2.1',
    'the standard contradicts itself: section 2.4 lists it for DISCONNECT, section 3.14.2.1 does not. Ours takes it, as the other two do',
    ({ kind, type, fields, each: { from } }) =>
      kind === 'refuses' &&
      type === 'disconnect' &&
      from === 'server' &&
      fields['reasonCode'] === 0x8c,
  ),
  judged(
    'mqtt-packet',
    'does not write an empty Client Identifier without Clean Start',
    '3.1.3.1',
    'MQTT 5.0 allows it: the server assigns one',
    ({ kind, fields, error }) =>
      kind === 'unwritten' &&
      fields['clientId'] === '' &&
      error.startsWith('clientId must be given'),
  ),
  judged(
    'mqtt-packet',
    'does not write a Password without a User Name',
    '3.1.2.9',
    'MQTT 5.0 allows a Password with no User Name',
    (d) => {
      const isAlone = d.fields['protocolVersion'] === 5 && d.fields['password'] !== undefined
      return d.kind === 'unwritten' && isAlone && d.error.startsWith('Username is required')
    },
  ),
]

/** All of them. */
export const judgements: readonly Judgement[] = [
  ...(Object.keys(unchecked) as Codec[]).flatMap((codec) =>
    unchecked[codec].split(';').map((rule) => acceptsAgainst(codec, rule)),
  ),
  ...others,
]
