/**
 * MQTT packets, byte by byte, for both sides and both versions: what fuzz inputs are made of.
 *
 * Shares nothing with `src/wire`: an error there must not find its twin here. It builds what it is told, right or wrong, and must never check.
 */

const encoder = new TextEncoder()

/** Bytes in any form: numbers, or text for its UTF-8. */
export type Part = number | string | readonly number[] | Uint8Array

/** Joins parts. */
export function join(...parts: readonly Part[]): Uint8Array {
  const chunks = parts.map((part) =>
    typeof part === 'number' ? [part] : typeof part === 'string' ? encoder.encode(part) : part,
  )
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    all.set(chunk, at)
    at += chunk.length
  }
  return all
}

/** A Two Byte Integer. */
export const two = (value: number): number[] => [(value >> 8) & 255, value & 255]

/** A Four Byte Integer. */
export const four = (value: number): number[] => [...two(value >>> 16), ...two(value & 65_535)]

/** A Variable Byte Integer. */
export function variable(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...variable(Math.floor(value / 128))]
}

/** A string or binary field with its length. */
export function field(part: Part): Uint8Array {
  const bytes = join(part)
  return join(two(bytes.length), bytes)
}

/** A packet from its first byte and its body. */
export function packet(first: number, ...body: readonly Part[]): Uint8Array {
  const bytes = join(...body)
  return join(first, variable(bytes.length), bytes)
}

/** Properties by number, in the order given; a pair is a user property. */
export type Pairs = readonly (readonly [id: number, ...value: readonly Part[]])[]

/** Properties, written in one line. */
export const given = (...pairs: Pairs): Pairs => pairs

function propertyBytes([id, ...values]: Pairs[number]): Uint8Array {
  const value = values[0] as number
  if (id === 11) return join(id, variable(value))
  if ([1, 23, 25, 36, 37, 40, 41, 42].includes(id)) return join(id, value)
  if ([19, 33, 34, 35].includes(id)) return join(id, two(value))
  if ([2, 17, 24, 39].includes(id)) return join(id, four(value))
  return join(id, ...values.map(field))
}

/** A property section with its length; nothing on 3.1.1. */
export function section(version: number, pairs: Pairs): Uint8Array {
  if (version === 4) return new Uint8Array(0)
  if (pairs.length === 0) return Uint8Array.of(0)
  const bytes = join(...pairs.map(propertyBytes))
  return join(variable(bytes.length), bytes)
}

/** Speaks this version. */
export type Speaker = { readonly version: 4 | 5 }

/** CONNECT. */
export function connect(
  { version }: Speaker,
  name: string,
  flags = 2,
  keepAlive = 30,
  pairs: Pairs = [],
  ...payload: Part[]
): Uint8Array {
  return packet(
    0x10,
    field('MQTT'),
    version,
    flags,
    two(keepAlive),
    section(version, pairs),
    field(name),
    ...payload,
  )
}

/** CONNACK. */
export function connack(
  { version }: Speaker,
  present = 0,
  code = 0,
  pairs: Pairs = [],
): Uint8Array {
  return packet(0x20, present, code, section(version, pairs))
}

/** What a PUBLISH is like. */
export interface PublishShape {
  readonly qos?: number
  readonly dup?: boolean
  readonly retain?: boolean
  readonly id?: number
  readonly pairs?: Pairs
}

/** PUBLISH. */
export function publish(
  { version }: Speaker,
  topic: string,
  payload: Part,
  shape: PublishShape = {},
): Uint8Array {
  const { qos = 0, dup = false, retain = false, id = 1, pairs = [] } = shape
  const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  return packet(first, field(topic), qos > 0 ? two(id) : [], section(version, pairs), payload)
}

/** PUBACK 4, PUBREC 5, PUBREL 6 or PUBCOMP 7. A reason code of 0 without properties is left out. */
export function acknowledge(
  { version }: Speaker,
  type: number,
  id: number,
  code = 0,
  pairs: Pairs = [],
): Uint8Array {
  const long = version === 5 && (code > 0 || pairs.length > 0)
  return packet(
    (type << 4) | (type === 6 ? 2 : 0),
    two(id),
    long ? [code] : [],
    long && pairs.length > 0 ? section(version, pairs) : [],
  )
}

/** SUBSCRIBE with one options byte for each filter. */
export function subscribe(
  { version }: Speaker,
  id: number,
  filters: readonly (readonly [string, number])[],
  pairs: Pairs = [],
): Uint8Array {
  return packet(
    0x82,
    two(id),
    section(version, pairs),
    ...filters.map(([filter, options]) => join(field(filter), options)),
  )
}

/** SUBACK 9 or UNSUBACK 11. */
export function answer(
  { version }: Speaker,
  type: 9 | 11,
  id: number,
  codes: readonly number[],
  pairs: Pairs = [],
): Uint8Array {
  return packet(
    type << 4,
    two(id),
    section(version, pairs),
    version === 4 && type === 11 ? [] : codes,
  )
}

/** UNSUBSCRIBE. */
export function unsubscribe(
  { version }: Speaker,
  id: number,
  filters: readonly string[],
  pairs: Pairs = [],
): Uint8Array {
  return packet(0xa2, two(id), section(version, pairs), ...filters.map(field))
}

/** DISCONNECT. */
export function disconnect({ version }: Speaker, code = 0, pairs: Pairs = []): Uint8Array {
  if (version === 4 || (code === 0 && pairs.length === 0)) return packet(0xe0)
  return packet(0xe0, code, pairs.length > 0 ? section(version, pairs) : [])
}

/** AUTH. */
export function auth(code: number, pairs: Pairs): Uint8Array {
  return packet(0xf0, code, section(5, pairs))
}

/** PINGREQ. */
export const pingreq: Uint8Array = Uint8Array.of(0xc0, 0)
/** PINGRESP. */
export const pingresp: Uint8Array = Uint8Array.of(0xd0, 0)

/** Bytes as hexadecimal text. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** Hexadecimal text as bytes. */
export function fromHex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replace(/[^0-9a-f]/gi, ''), 'hex'))
}
