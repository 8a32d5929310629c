/**
 * The data types of section 1.5, read where they lie: bounds, form and UTF-8, without an allocation.
 *
 * Offsets in errors count from the start of the buffer; the entry points turn them into offsets in the packet.
 */
import { malformed, protocolError } from './error.js'
import { ILL_FORMED, scanUtf8 } from './utf8.js'

/** No bytes at all. */
export const nothing: Uint8Array = /* @__PURE__ */ new Uint8Array(0)

/** What {@link variableByteInteger} returns when `end` cuts the integer off: more than any packet holds. */
export const INCOMPLETE = 0x3fff_ffff

/** Where `count` bytes from `at` on end, which must lie within `end`. */
export function skip(at: number, count: number, end: number): number {
  // Behind an integer that was cut off `at` lies beyond the end.
  if (end - at < count) throw malformed('packet is too short', Math.min(at, end))
  return at + count
}

/** Two bytes, big endian; the caller knows that they are there. */
export function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
}

/** The Packet Identifier at `at`, never 0 [MQTT-2.2.1-3]. */
export function packetIdentifier(bytes: Uint8Array, at: number, end: number): number {
  skip(at, 2, end)
  const id = uint16(bytes, at)
  if (id === 0) throw protocolError('packet identifier 0', at)
  return id
}

/** Bytes of the shortest Variable Byte Integer for `value` [MQTT-1.5.5-1]. */
export function variableByteIntegerSize(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4
}

/**
 * The Variable Byte Integer at `at`, or {@link INCOMPLETE}. Its size is `variableByteIntegerSize` of the value, since longer forms than needed are
 * malformed [MQTT-1.5.5-1], as are those of more than four bytes.
 *
 * @param origin where the offset in the error counts from
 */
export function variableByteInteger(
  bytes: Uint8Array,
  at: number,
  end: number,
  origin = 0,
): number {
  let value = 0
  for (let i = 0; at + i < end; i++) {
    const byte = bytes[at + i] as number
    value |= (byte & 127) << (7 * i)
    if (byte < 128 && (byte > 0 || i === 0)) return value
    if (byte === 0 || i === 3) throw malformed('bad variable byte integer', at - origin)
  }
  return INCOMPLETE
}

/** The end of the length-prefixed field at `at`, which must lie within `end`. */
export function fieldEnd(bytes: Uint8Array, at: number, end: number): number {
  return skip(skip(at, 2, end), uint16(bytes, at), end)
}

/** {@link scanUtf8} over a UTF-8 Encoded String whose length prefix is at `at`; throws when it is ill-formed. */
export function checkString(bytes: Uint8Array, at: number, end: number): number {
  const found = scanUtf8(bytes, at + 2, end)
  if (found === ILL_FORMED) throw malformed('string is not well-formed UTF-8', at)
  return found
}
