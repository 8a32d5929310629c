/** What the standard's tables say, as the corpus needs it: packet types, properties, reason codes that a server may send, strings good and bad. */
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

export const properties: readonly PropertyFact[] = [
  { id: 0x01, name: 'Payload Format Indicator', kind: 'flag', on: ['publish'] },
  { id: 0x02, name: 'Message Expiry Interval', kind: 'u32', on: ['publish'] },
  { id: 0x03, name: 'Content Type', kind: 'utf8', on: ['publish'] },
  { id: 0x08, name: 'Response Topic', kind: 'utf8', on: ['publish'] },
  { id: 0x09, name: 'Correlation Data', kind: 'binary', on: ['publish'] },
  { id: 0x0b, name: 'Subscription Identifier', kind: 'varint', on: ['publish'], positive: true },
  { id: 0x11, name: 'Session Expiry Interval', kind: 'u32', on: ['connack'] },
  { id: 0x12, name: 'Assigned Client Identifier', kind: 'utf8', on: ['connack'] },
  { id: 0x13, name: 'Server Keep Alive', kind: 'u16', on: ['connack'] },
  { id: 0x15, name: 'Authentication Method', kind: 'utf8', on: ['connack', 'auth'] },
  { id: 0x16, name: 'Authentication Data', kind: 'binary', on: ['connack', 'auth'] },
  { id: 0x17, name: 'Request Problem Information', kind: 'flag', on: [] },
  { id: 0x18, name: 'Will Delay Interval', kind: 'u32', on: [] },
  { id: 0x19, name: 'Request Response Information', kind: 'flag', on: [] },
  { id: 0x1a, name: 'Response Information', kind: 'utf8', on: ['connack'] },
  { id: 0x1c, name: 'Server Reference', kind: 'utf8', on: ['connack', 'disconnect'] },
  { id: 0x1f, name: 'Reason String', kind: 'utf8', on: reasoned },
  { id: 0x21, name: 'Receive Maximum', kind: 'u16', on: ['connack'], positive: true },
  { id: 0x22, name: 'Topic Alias Maximum', kind: 'u16', on: ['connack'] },
  { id: 0x23, name: 'Topic Alias', kind: 'u16', on: ['publish'], positive: true },
  { id: 0x24, name: 'Maximum QoS', kind: 'flag', on: ['connack'] },
  { id: 0x25, name: 'Retain Available', kind: 'flag', on: ['connack'] },
  { id: 0x26, name: 'User Property', kind: 'pair', on: [...reasoned, 'publish'] },
  { id: 0x27, name: 'Maximum Packet Size', kind: 'u32', on: ['connack'], positive: true },
  { id: 0x28, name: 'Wildcard Subscription Available', kind: 'flag', on: ['connack'] },
  { id: 0x29, name: 'Subscription Identifier Available', kind: 'flag', on: ['connack'] },
  { id: 0x2a, name: 'Shared Subscription Available', kind: 'flag', on: ['connack'] },
]

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

/** Reason codes by packet, of those that a server may send (section 2.4; 0x8C on DISCONNECT by table 2-6). */
export const reasonCodes: Readonly<Partial<Record<PacketName, readonly number[]>>> = {
  connack: [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97,
    0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9f,
  ],
  puback: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrec: [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrel: [0x00, 0x92],
  pubcomp: [0x00, 0x92],
  suback: [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2],
  unsuback: [0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91],
  disconnect: [
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95,
    0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
  ],
  auth: [0x00, 0x18],
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
