/**
 * A growing byte buffer with the data types of section 1.5.
 *
 * Values are checked as they are written, JavaScript types included; a refusal names the field. A writer that threw may hold a started packet:
 * whoever called sets `length` back.
 */
import { MAXIMUM_STRING_LENGTH, MAXIMUM_VARIABLE_BYTE_INTEGER } from './constants.js'
import { refused } from './error.js'
import { variableByteIntegerSize } from './fields.js'
import type { Bytes } from './packets.js'
import { hasWildcard, validateSize } from './topics.js'
import { writeUtf8 } from './utf8.js'

const cachedTopics = 256
const cachedTopicLength = 256

/** Whether it is a Uint8Array, of this realm or another. */
export function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array ? ArrayBuffer.isView(value) : ArrayBuffer.isView(value) && tagOf(value) === '[object Uint8Array]'
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value)
}

/** Whether it is an object that can hold fields. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value when it is an integer in the range; else refuses `option`. */
export function integer(value: unknown, lowest: number, highest: number, option: string): number {
  const number = value as number
  if (!Number.isInteger(value) || number < lowest || number > highest) throw refused(option, `must be an integer from ${lowest} to ${highest}`)
  return number
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
    const at = this.length
    let size = value.length
    if (size <= MAXIMUM_STRING_LENGTH) {
      this.reserve(2 + size * 3)
      size = writeUtf8(this.bytes, at + 2, value) - at - 2
    }
    this.#checkSize(size, option)
    this.u16(size)
    this.length += size
  }

  #checkSize(size: number, option: string): void {
    const fault = validateSize(size)
    if (fault !== undefined) throw refused(option, fault)
  }

  /** A Topic Name (section 4.7), which must not be empty. */
  topic(value: unknown, option: string): void {
    const known = this.#topics?.get(value as string)
    if (known !== undefined) return this.raw(known)
    const start = this.length
    this.string(value, option)
    if (value === '' || hasWildcard(value as string)) throw refused(option, 'must be a topic name') // [MQTT-3.3.2-2]
    if (this.#topics !== undefined && this.#topics.size < cachedTopics && this.length - start <= cachedTopicLength) {
      this.#topics.set(value as string, this.bytes.slice(start, this.length))
    }
  }

  /** Binary Data (section 1.5.6); refuses more than 65,535 bytes. */
  binary(value: unknown, option: string): void {
    if (!isBytes(value)) throw refused(option, 'must be a Uint8Array')
    this.#checkSize(value.length, option)
    this.u16(value.length)
    this.raw(value)
  }

  /** Bytes as they are. */
  raw(value: Uint8Array): void {
    this.reserve(value.length)
    this.bytes.set(value, this.length)
    this.length += value.length
  }

  /**
   * Writes the length of everything from `from` on, plus `extra` bytes that follow elsewhere, at `at`; moves what was written when the place that
   * was left between them has the wrong size. Refuses `option` above 268,435,455.
   */
  fillLength(at: number, from: number, extra: number, option: string): void {
    const value = this.length - from + extra
    if (value > MAXIMUM_VARIABLE_BYTE_INTEGER) throw refused(option, 'must not exceed 268,435,455 bytes', 'too-large')
    const to = at + variableByteIntegerSize(value)
    const end = this.length + to - from
    this.reserve(4)
    if (to !== from) this.bytes.copyWithin(to, from, this.length)
    this.length = at
    this.varint(value)
    this.length = end
  }

  /** An exact copy of what was written. */
  take(): Bytes {
    return this.bytes.slice(0, this.length)
  }
}
