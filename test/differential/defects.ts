/**
 * Defects that are planted to see the comparison fail. None of them is in the product: each replaces a piece of source text while the run is bundled.
 *
 * A defect whose text does not occur exactly once stops the run: it has to follow the source.
 */

/** One planted defect. */
export interface Defect {
  readonly name: string
  /** How the kind of the finding begins: who notices it. */
  readonly by: string
  /** Below `src`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** All of them. */
export const defects: readonly Defect[] = [
  {
    name: 'surrogates pass for UTF-8',
    by: 'mochi-mqtt refuses',
    file: 'wire/utf8.ts',
    find: 'return isSurrogate(point) || point < 1',
    replace: 'return point < 1',
  },
  {
    name: 'two properties have changed places, in both directions',
    by: 'paho.golang field',
    file: 'wire/properties.ts',
    find: `  ['wildcardSubscriptionAvailable', FLAG, ON_CONNACK],
  ['subscriptionIdentifierAvailable', FLAG, ON_CONNACK],`,
    replace: `  ['subscriptionIdentifierAvailable', FLAG, ON_CONNACK],
  ['wildcardSubscriptionAvailable', FLAG, ON_CONNACK],`,
  },
  {
    name: 'no Reason Code 0x10',
    by: 'mqtt-packet accepts',
    file: 'wire/reason-codes.ts',
    find: 'P:No matching subscribers',
    replace: 'S:No matching subscribers',
  },
  {
    name: 'a reserved bit of the Subscription Options is not looked at',
    by: 'mqtt-packet refuses',
    file: 'wire/decode-client.ts',
    find: 'options & (reader.version === 5 ? 0xc0 : 0xfc)',
    replace: 'options & (reader.version === 5 ? 0x80 : 0xfc)',
  },
  {
    name: 'a User Property without a value is lost, in both directions',
    by: 'standard',
    file: 'wire/properties.ts',
    find: '  if (type !== PAIR && type !== VARINT) values[key] = value\n',
    replace: "  if (type !== PAIR && type !== VARINT) values[key] = value\n  else if (type === PAIR && (value as string[])[1] === '') return\n",
  },
  {
    name: 'a Will Payload shares the memory of the chunk',
    by: 'form',
    file: 'wire/decode-client.ts',
    find: 'return new Uint8Array(bytes.subarray(at + 2, reader.at))',
    replace: 'return bytes.subarray(at + 2, reader.at) as Bytes',
  },
  {
    name: 'a packet that begins inside of a chunk and ends in the next is read from the wrong place',
    by: 'stream',
    file: 'wire/framer.ts',
    find: '      this.body -= start\n',
    replace: '',
  },
]
