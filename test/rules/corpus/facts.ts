/** What the standard's tables say, as the corpus needs it: packet types, properties, reason codes that a server may send, strings good and bad. */
import tables from '../tables.json' with { type: 'json' }
import { type Bytes, text } from './bytes.js'

/** Control packet types, and the reserved one (section 2.1.2). */
export const typeNumbers = {
  reserved: 0,
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
  auth: 15,
} as const

export type PacketName = keyof typeof typeNumbers

/** Types whose fixed header has the flags 0010; those of PUBLISH mean something, all others are 0000 (section 2.1.3). */
export const flagged: readonly PacketName[] = ['pubrel', 'subscribe', 'unsubscribe']

/** First byte of a packet that is no PUBLISH. */
export const firstByte = (type: PacketName): number =>
  typeNumbers[type] * 16 + (flagged.includes(type) ? 2 : 0)

/** Data types of properties (section 2.2.2.2). A flag is a byte that is 0 or 1. */
export type ValueKind = 'flag' | 'u16' | 'u32' | 'varint' | 'utf8' | 'binary' | 'pair'

export interface PropertyFact {
  readonly id: number
  readonly name: string
  readonly kind: ValueKind
  readonly on: readonly PacketName[]
  readonly positive?: true
}

const kinds = { byte: 'flag', utf8pair: 'pair' } as const

const reasoned: readonly PacketName[] = [
  'connack',
  'puback',
  'pubrec',
  'pubrel',
  'pubcomp',
  'suback',
  'unsuback',
  'disconnect',
  'auth',
]

/** The Session Expiry Interval of a DISCONNECT is the client's. */
export const properties: readonly PropertyFact[] = tables.properties.map((entry) => ({
  id: entry.id,
  name: entry.name,
  kind: kinds[entry.type as keyof typeof kinds] ?? (entry.type as ValueKind),
  on: entry.packets
    .map((name) => name.toLowerCase() as PacketName)
    .filter((name) => name === 'publish' || reasoned.includes(name))
    .filter((name) => name !== 'disconnect' || entry.key !== 'sessionExpiryInterval'),
  ...(entry.limits.min === 1 && { positive: true as const }),
}))

/** Identifiers that table 2-4 does not have: below, in the gaps of, and above it, and in two bytes. */
export const unknownIdentifiers: readonly Bytes[] = [
  [0x00],
  [0x04],
  [0x0a],
  [0x10],
  [0x14],
  [0x1b],
  [0x1e],
  [0x20],
  [0x2b],
  [0x7f],
  [0x80, 0x01],
]

const { reasonCodesByPacket, disconnectCodesBySender, authCodesBySender } = tables

/** Reason codes by packet, of those that a server may send (section 2.4; 0x8C on DISCONNECT by table 2-6). */
export const reasonCodes: Readonly<Partial<Record<PacketName, readonly number[]>>> = {
  connack: reasonCodesByPacket.CONNACK,
  puback: reasonCodesByPacket.PUBACK,
  pubrec: reasonCodesByPacket.PUBREC,
  pubrel: reasonCodesByPacket.PUBREL,
  pubcomp: reasonCodesByPacket.PUBCOMP,
  suback: reasonCodesByPacket.SUBACK,
  unsuback: reasonCodesByPacket.UNSUBACK,
  disconnect: [...disconnectCodesBySender.server, 0x8c],
  auth: authCodesBySender.server,
}

/** Every reason code of section 2.4, and some that it does not have. */
export const anyReasonCode: readonly number[] = [
  ...new Set([
    ...Object.values(reasonCodes).flat(),
    0x04,
    0x19,
    0x03,
    0x05,
    0x1a,
    0x7f,
    0xa3,
    0xc0,
    0xff,
  ]),
].sort((a, b) => a - b)

/** What a UTF-8 Encoded String must not hold, by what is wrong with it (section 1.5.4). */
export const badTexts: Readonly<Record<string, Bytes>> = {
  'lone continuation byte': [0x80],
  'overlong form of two bytes': [0xc1, 0xbf],
  'overlong form of three bytes': [0xe0, 0x9f, 0xbf],
  'overlong form of four bytes': [0xf0, 0x8f, 0xbf, 0xbf],
  'first surrogate U+D800': [0xed, 0xa0, 0x80],
  'last surrogate U+DFFF': [0x61, 0xed, 0xbf, 0xbf],
  'pair of surrogates': [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
  'above U+10FFFF': [0xf4, 0x90, 0x80, 0x80],
  'lead byte F5': [0xf5, 0x80, 0x80, 0x80],
  'sequence of five bytes': [0xf8, 0x88, 0x80, 0x80, 0x80],
  'cut after one of two bytes': [0x61, 0xc3],
  'cut after two of three bytes': [0xe2, 0x82],
  'cut after three of four bytes': [0xf0, 0x9f, 0x98],
  'ASCII inside a sequence': [0xe2, 0x28, 0xa1],
  'U+0000 alone': [0x00],
  'U+0000 behind text': [0x61, 0x62, 0x00],
}

/** What one may hold, though some think otherwise. */
export const goodTexts: Readonly<Record<string, Bytes>> = {
  'byte order mark': [0xef, 0xbb, 0xbf],
  'around the surrogates': [0xed, 0x9f, 0xbf, 0xee, 0x80, 0x80],
  'non-character U+FFFF': [0xef, 0xbf, 0xbf],
  'last code point': [0xf4, 0x8f, 0xbf, 0xbf],
  'first of two, three and four bytes': [0xc2, 0x80, 0xe0, 0xa0, 0x80, 0xf0, 0x90, 0x80, 0x80],
  'control characters': [0x01, 0x1f, 0x7f, 0xc2, 0x9f],
  'names of object members': text('__proto__'),
}
