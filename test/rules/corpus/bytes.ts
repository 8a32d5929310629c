/** Bytes of MQTT packets, put together by hand: integers, length-prefixed fields, fixed headers, and their broken forms. */

/** Bytes of a packet or of a part of one. */
export type Bytes = readonly number[]

/** One list of several: quicker than `flat()`, which matters for long packets. */
export const join = (...parts: readonly Bytes[]): Bytes => ([] as number[]).concat(...parts)

/** Two Byte Integer (section 1.5.2). */
export const u16 = (value: number): Bytes => [(value >> 8) & 255, value & 255]

/** Four Byte Integer (section 1.5.3). */
export const u32 = (value: number): Bytes => [
  (value >>> 24) & 255,
  (value >>> 16) & 255,
  (value >>> 8) & 255,
  value & 255,
]

/** Variable Byte Integer in the fewest bytes (section 1.5.5). */
export function vbi(value: number): Bytes {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push(rest % 128)
    rest = Math.floor(rest / 128)
  } while (rest > 0)
  return bytes.map((byte, index) => (index < bytes.length - 1 ? byte | 128 : byte))
}

/** The same in `size` bytes: more than needed, which is malformed [MQTT-1.5.5-1]. */
export function stretched(value: number, size: number): Bytes {
  const shortest = vbi(value).map((byte) => byte & 127)
  return Array.from(
    { length: size },
    (_, index) => (shortest[index] ?? 0) | (index < size - 1 ? 128 : 0),
  )
}

export const text = (value: string): Bytes => [...new TextEncoder().encode(value)]

/** Binary Data, or a UTF-8 Encoded String whose bytes are given: two bytes of length before them (sections 1.5.4, 1.5.6). */
export const prefixed = (bytes: Bytes): Bytes => join(u16(bytes.length), bytes)

export const string = (value: string): Bytes => prefixed(text(value))

export const fill = (count: number, byte: number): Bytes => new Array<number>(count).fill(byte)

/** A packet: first byte, Remaining Length, and what it counts. */
export function frame(first: number, ...parts: Bytes[]): Bytes {
  const body = join(...parts)
  return join([first], vbi(body.length), body)
}

export function block(...properties: Bytes[]): Bytes {
  const list = join(...properties)
  return join(vbi(list.length), list)
}

export const hex = (bytes: Bytes): string =>
  bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
