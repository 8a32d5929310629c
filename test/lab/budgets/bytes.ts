/** MQTT control packets written by hand: nothing of the package's codec is used, so that no error stands on both sides. */

/** What bytes can be made of: numbers below 256, bytes, or text for its UTF-8. */
export type Part = number | string | Uint8Array | readonly number[]

/** Everything in a row. */
export function join(...parts: Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'number') return Buffer.of(part)
      return typeof part === 'string' ? Buffer.from(part) : Buffer.from(part as Uint8Array)
    }),
  )
}

/** A Variable Byte Integer (section 1.5.5). */
export function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push((rest & 127) | (rest > 127 ? 128 : 0))
    rest >>>= 7
  } while (rest > 0)
  return bytes
}

export const uint16 = (value: number): number[] => [(value >> 8) & 255, value & 255]

/** A string or binary data with its length before it. */
export function text(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string)
  return join(uint16(bytes.length), bytes)
}

/** A whole packet: first byte, Remaining Length, the rest. */
export function packet(first: number, ...parts: Part[]): Buffer {
  const body = join(...parts)
  return join(first, varint(body.length), body)
}

/** A property block with its length. */
export function properties(...parts: Part[]): Buffer {
  const body = join(...parts)
  return join(varint(body.length), body)
}

/** User properties: `count` times the same pair. */
export function pairs(count: number, name = '', value = ''): Buffer {
  const one = join(0x26, text(name), text(value))
  const all = Buffer.alloc(one.length * count)
  for (let at = 0; at < all.length; at += one.length) all.set(one, at)
  return all
}

/** What a PUBLISH is made of. */
export interface PublishParts {
  readonly topic?: string
  readonly qos?: 0 | 1 | 2
  readonly id?: number
  readonly retain?: boolean
  readonly dup?: boolean
  /** The property block with its length; on 3.1.1 there is none. Default: an empty one. */
  readonly properties?: Uint8Array | undefined
  readonly payload?: string | Uint8Array
  readonly version?: 4 | 5
}

/** A PUBLISH. */
export function publish({
  topic = 'a',
  qos = 0,
  id = 1,
  retain = false,
  dup = false,
  properties: block,
  payload = '',
  version = 5,
}: PublishParts): Buffer {
  const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  return packet(
    first,
    text(topic),
    qos === 0 ? '' : uint16(id),
    version === 4 ? '' : (block ?? [0]),
    payload,
  )
}

/** A CONNACK. */
export function connack(
  reasonCode = 0,
  block: Uint8Array | readonly number[] = [0],
  sessionPresent = false,
  version: 4 | 5 = 5,
): Buffer {
  return packet(0x20, sessionPresent ? 1 : 0, reasonCode, version === 4 ? '' : (block as Part))
}

/** The same bytes, again and again, up to about `size` bytes, and how many times that is. */
export function repeated(
  bytes: Uint8Array,
  size: number,
): { readonly bytes: Buffer; readonly count: number } {
  const count = Math.max(1, Math.floor(size / bytes.length))
  const all = Buffer.alloc(count * bytes.length)
  for (let at = 0; at < all.length; at += bytes.length) all.set(bytes, at)
  return { bytes: all, count }
}
