/**
 * A growing byte buffer with the data types of section 1.5.
 *
 * Values are checked as they are written, JavaScript types included; a refusal names the field. A writer that threw may hold a started packet:
 * whoever called sets `length` back.
 */
import { MAXIMUM_STRING_LENGTH, MAXIMUM_VARIABLE_BYTE_INTEGER } from './constants.js'
import { refused } from './error.js'
import type { Bytes } from './packets.js'
import { hasWildcard } from './topics.js'
import { utf8Length, writeUtf8 } from './utf8.js'

// Up to here the worst case is reserved, beyond it the text is measured first.
const measuredFrom = 256

const cachedTopics = 256
const cachedTopicLength = 256

/** Bytes of the shortest Variable Byte Integer for `value` [MQTT-1.5.5-1]. */
export function variableByteIntegerSize(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4
}

/** Whether it is a Uint8Array, of this realm or another. */
export function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array || Object.prototype.toString.call(value) === '[object Uint8Array]'
}

/** Whether it is an object that can hold fields. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value when it is an integer in the range; else refuses `option`. */
export function integer(value: unknown, lowest: number, highest: number, option: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < lowest || value > highest) {
    throw refused(option, `must be an integer from ${lowest} to ${highest}`)
  }
  return value
}

/** Collects packets. `bytes[0..length)` is what has been written; `bytes` is replaced when it grows. */
export class Writer {
  bytes: Uint8Array
  length = 0
  /** Topic Names that were written, with their bytes: checked and encoded once. Bounded; a full one takes no more. */
  readonly #topics: Map<string, Uint8Array> | undefined

  /** @param cacheTopics for a writer that lives as long as a connection */
  constructor(capacity = 128, cacheTopics = false) {
    this.bytes = new Uint8Array(capacity)
    this.#topics = cacheTopics ? new Map() : undefined
  }

  /** Forgets what was written and keeps the buffer. */
  reset(): void {
    this.length = 0
  }

  /** Makes room for `count` more bytes, by doubling. */
  reserve(count: number): void {
    const needed = this.length + count
    if (needed <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
  }

  u8(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  u16(value: number): void {
    this.reserve(2)
    this.bytes[this.length++] = value >> 8
    this.bytes[this.length++] = value
  }

  u32(value: number): void {
    this.u16(value >>> 16)
    this.u16(value)
  }

  /** A Variable Byte Integer, 0 to 268,435,455 (section 1.5.5). */
  varint(value: number): void {
    this.reserve(4)
    while (value > 127) {
      this.bytes[this.length++] = (value & 127) | 128
      value >>>= 7
    }
    this.bytes[this.length++] = value
  }

  /** A UTF-8 Encoded String (section 1.5.4); refuses lone surrogates, U+0000 and more than 65,535 bytes. */
  string(value: unknown, option: string): void {
    if (typeof value !== 'string') throw refused(option, 'must be a string')
    if (value.length <= MAXIMUM_STRING_LENGTH) {
      const at = this.length
      this.reserve(2 + (value.length < measuredFrom ? value.length * 3 : utf8Length(value)))
      const { bytes } = this
      const end = writeUtf8(bytes, at + 2, value)
      if (end < 0) throw refused(option, 'must not hold U+0000 or a lone surrogate')
      const size = end - at - 2
      if (size <= MAXIMUM_STRING_LENGTH) {
        bytes[at] = size >> 8
        bytes[at + 1] = size
        this.length = end
        return
      }
    }
    throw refused(option, 'must not exceed 65,535 bytes')
  }

  /** A Topic Name (section 4.7), which must not be empty. */
  topic(value: unknown, option: string): void {
    const known = this.#topics?.get(value as string)
    if (known !== undefined) {
      this.raw(known)
      return
    }
    const start = this.length
    this.string(value, option)
    if (value === '') throw refused(option, 'must not be empty')
    if (hasWildcard(value as string)) throw refused(option, 'must not hold a wildcard') // [MQTT-3.3.2-2]
    if (this.#topics !== undefined && this.#topics.size < cachedTopics && this.length - start <= cachedTopicLength) {
      this.#topics.set(value as string, new Uint8Array(this.bytes.subarray(start, this.length)))
    }
  }

  /** Binary Data (section 1.5.6); refuses more than 65,535 bytes. */
  binary(value: unknown, option: string): void {
    if (!isBytes(value)) throw refused(option, 'must be a Uint8Array')
    if (value.length > MAXIMUM_STRING_LENGTH) throw refused(option, 'must not exceed 65,535 bytes')
    this.u16(value.length)
    this.raw(value)
  }

  /** Bytes as they are. */
  raw(value: Uint8Array): void {
    this.reserve(value.length)
    this.bytes.set(value, this.length)
    this.length += value.length
  }

  /** Leaves `size` bytes for a length that is not known yet and returns their place for {@link fillLength}. */
  leaveLength(size: number): number {
    const at = this.length
    this.reserve(size)
    this.length += size
    return at
  }

  /**
   * Writes the length of everything after the gap at `at`, plus `extra` bytes that follow elsewhere; moves what was written when the gap has the
   * wrong size. Refuses `option` above 268,435,455.
   */
  fillLength(at: number, gap: number, extra: number, option: string): void {
    const value = this.length - at - gap + extra
    if (value > MAXIMUM_VARIABLE_BYTE_INTEGER) throw refused(option, 'must not exceed 268,435,455 bytes', 'too-large')
    const size = variableByteIntegerSize(value)
    if (size !== gap) {
      this.reserve(4)
      this.bytes.copyWithin(at + size, at + gap, this.length)
      this.length += size - gap
    }
    let rest = value
    for (let i = at; i < at + size; i++) {
      this.bytes[i] = i + 1 < at + size ? (rest & 127) | 128 : rest
      rest >>>= 7
    }
  }

  /** An exact copy of what was written. */
  take(): Bytes {
    return new Uint8Array(this.bytes.subarray(0, this.length))
  }
}
