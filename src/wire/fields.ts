/**
 * Reads the data types of section 1.5 in place: bounds, form and UTF-8, without allocations.
 * Offsets in errors count from the start of the buffer; the entry points convert them to offsets in
 * the packet.
 */
import { malformed, protocolError } from './error.js'
import { ILL_FORMED, scanUtf8 } from './utf8.js'

/** No bytes at all. */
export const nothing: Uint8Array = /* @__PURE__ */ new Uint8Array(0)

/**
 * Result of {@link variableByteInteger} when `end` cuts the integer off: larger than any packet.
 */
export const INCOMPLETE = 0x3fff_ffff

/** The end of `count` bytes from `at`, which must not exceed `end`. */
export function skip(at: number, count: number, end: number): number {
  // After an integer that was cut off, `at` lies beyond the end.
  if (end - at < count) throw malformed('packet is too short', Math.min(at, end))
  return at + count
}

/** Two bytes, big endian. The caller must know that they exist. */
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
 * The Variable Byte Integer at `at`, or {@link INCOMPLETE}. Its size is `variableByteIntegerSize`
 * of the value, because longer forms are malformed [MQTT-1.5.5-1], as are those of more than four
 * bytes.
 *
 * @param origin position that offsets in errors count from
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

/** The end of the length-prefixed field at `at`, which must not exceed `end`. */
export function fieldEnd(bytes: Uint8Array, at: number, end: number): number {
  return skip(skip(at, 2, end), uint16(bytes, at), end)
}

/**
 * {@link scanUtf8} for a UTF-8 Encoded String whose length prefix is at `at`; throws when it is
 * ill-formed.
 */
export function checkString(bytes: Uint8Array, at: number, end: number): number {
  const found = scanUtf8(bytes, at + 2, end)
  if (found === ILL_FORMED) throw malformed('string is not well-formed UTF-8', at)
  return found
}

type Getter<T> = (this: unknown) => T

// Getters of %TypedArray%, which are the same in every realm and cannot be overridden by an object.
function getter<T>(key: string | symbol): Getter<T> {
  return Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), key)
    ?.get as Getter<T>
}

const tagOf = /* @__PURE__ */ getter<string | undefined>(Symbol.toStringTag)
const lengthOf = /* @__PURE__ */ getter<number>('length')
const bufferOf = /* @__PURE__ */ getter<ArrayBuffer>('buffer')
const offsetOf = /* @__PURE__ */ getter<number>('byteOffset')

/** True for a Uint8Array of this realm or another. */
export function isBytes(value: unknown): value is Uint8Array {
  return tagOf.call(value) === 'Uint8Array'
}

/** The real length of a Uint8Array, even if `length` is overridden. */
export function sizeOf(bytes: Uint8Array): number {
  const { length } = bytes
  // Element access cannot be overridden, and checking it is cheaper than calling the getter.
  const honest =
    typeof length === 'number' &&
    bytes[length] === undefined &&
    (length === 0 || bytes[length - 1] !== undefined)
  return honest ? length : lengthOf.call(bytes)
}

const members = ['length', 'buffer', 'byteOffset']

/**
 * The same memory as a plain Uint8Array without overridden members; undefined if it is not a
 * Uint8Array.
 */
export function plainView(value: unknown): Uint8Array | undefined {
  if (!isBytes(value)) return undefined
  const size = sizeOf(value)
  const isPlain =
    Object.getPrototypeOf(value) === Uint8Array.prototype &&
    !members.some((name) => Object.hasOwn(value, name))
  if (isPlain) return value
  // Detached memory cannot be viewed.
  return size === 0 ? nothing : new Uint8Array(bufferOf.call(value), offsetOf.call(value), size)
}
