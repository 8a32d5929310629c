/**
 * The data types of section 1.5, read where they lie: bounds, form and UTF-8, without an allocation.
 *
 * Offsets in errors count from the start of the buffer; the entry points turn them into offsets in the packet.
 */
import { malformed } from './error.js'
import { ILL_FORMED, scanUtf8 } from './utf8.js'

/** Two bytes, big endian; the caller knows that they are there. */
export function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
}

/** Four bytes, big endian; the caller knows that they are there. */
export function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) * 65_536 + uint16(bytes, at + 2)
}

/**
 * The Variable Byte Integer at `at`; its size is `variableByteIntegerSize` of the value, since longer forms than needed are malformed
 * [MQTT-1.5.5-1], as is one that does not end within four bytes or before `end`.
 */
export function variableByteInteger(bytes: Uint8Array, at: number, end: number): number {
  let value = 0
  for (let i = 0; i < 4 && at + i < end; i++) {
    const byte = bytes[at + i] as number
    value |= (byte & 127) << (7 * i)
    if (byte < 128) {
      if (byte === 0 && i > 0) break
      return value
    }
  }
  throw malformed('bad variable byte integer', at)
}

/** The end of the length-prefixed field at `at`, which must lie within `end`. */
export function fieldEnd(bytes: Uint8Array, at: number, end: number): number {
  const to = end - at < 2 ? end + 1 : at + 2 + uint16(bytes, at)
  if (to > end) throw malformed('field is cut off', at)
  return to
}

/** {@link scanUtf8} over a UTF-8 Encoded String whose length prefix is at `at`; throws when it is ill-formed. */
export function checkString(bytes: Uint8Array, at: number, end: number): number {
  const found = scanUtf8(bytes, at + 2, end)
  if (found === ILL_FORMED) throw malformed('string is not well-formed UTF-8', at)
  return found
}
