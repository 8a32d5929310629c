/**
 * A growing byte buffer with the data types of section 1.5.
 *
 * Values are checked as they are written, including JavaScript types; a refusal names the field.
 * After an error, the writer may contain part of a packet, and the caller resets `length`.
 */
import { MAXIMUM_STRING_LENGTH, MAXIMUM_VARIABLE_BYTE_INTEGER } from './constants.js'
import { type FieldPath, mistyped, refused } from './error.js'
import { isBytes, nothing, sizeOf, variableByteIntegerSize } from './fields.js'
import type { Bytes } from './packets.js'
import { hasWildcard, validateSize } from './topics.js'
import { writeUtf8 } from './utf8.js'

/** Topics in a generation of the cache, and the longest that is cached, in bytes. */
const generation = 256
const longest = 256

interface Known {
  readonly topic: unknown
  readonly bytes: Uint8Array | undefined
  /** The topic that was looked up after this one last time. */
  next: Known | undefined
}

let younger = /* @__PURE__ */ new Map<unknown, Known>()
let older = younger
/** The topic that was looked up last. */
let last: Known = { topic: undefined, bytes: undefined, next: undefined }

/** The bytes of a recently written topic, including its length; otherwise undefined. */
export function knownTopic(topic: unknown): Uint8Array | undefined {
  if (topic === last.topic) return last.bytes
  const { next } = last
  if (next === undefined || next.topic !== topic) return recall(topic)
  last = next
  return next.bytes
}

/** Caches a copy of a valid Topic Name's bytes, including its length. */
export function keepTopic(topic: string, bytes: Uint8Array): void {
  if (bytes.length <= longest) keep({ topic, bytes: new Uint8Array(bytes), next: undefined })
}

function recall(topic: unknown): Uint8Array | undefined {
  const young = younger.get(topic)
  const known = young ?? older.get(topic)
  if (young !== undefined) follow(young)
  else if (known !== undefined) keep(known)
  return known?.bytes
}

function follow(known: Known): void {
  last.next = known
  last = known
}

function keep(known: Known): void {
  if (younger.size === generation) {
    // Discarded entries must not keep others alive.
    for (const forgotten of older.values()) forgotten.next = undefined
    older = younger
    younger = new Map()
  }
  younger.set(known.topic, known)
  follow(known)
}

/** Below this many bytes, copying in a loop is faster. */
const shortCopy = 24

/** Returns an array of at least `size` bytes to replace `old`, which the writer no longer uses. */
export type Allocate = (size: number, old: Uint8Array) => Uint8Array

/** True for an object that can have fields. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an integer within the range; otherwise refuses `option`. */
export function integer(
  value: unknown,
  lowest: number,
  highest: number,
  option: FieldPath,
): number {
  const number = value as number
  if (Number.isInteger(value) && number >= lowest && number <= highest) return number
  throw (typeof value === 'number' ? refused : mistyped)(
    option,
    `must be an integer from ${lowest} to ${highest}`,
  )
}

/** Collects packets. `bytes[0..length)` is what was written; `bytes` is replaced when it grows. */
export class Writer {
  bytes: Uint8Array
  length = 0
  readonly #cacheTopics: boolean
  readonly #allocate: Allocate | undefined

  /**
   * @param cacheTopics look Topic Names up among recently written ones, for a writer of many
   * packets
   * @param allocate source of memory; each request is at least twice as large as the last
   */
  constructor(capacity = 128, cacheTopics = false, allocate?: Allocate) {
    this.bytes = capacity === 0 ? nothing : new Uint8Array(capacity)
    this.#cacheTopics = cacheTopics
    this.#allocate = allocate
  }

  /** Discards what was written and keeps the buffer. */
  reset(): void {
    this.length = 0
  }

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    if (this.length + count > this.bytes.length) this.#grow(this.length + count)
  }

  #grow(needed: number): void {
    const old = this.bytes
    const size = Math.max(needed, old.length * 2)
    this.bytes = this.#allocate?.(size, old) ?? new Uint8Array(size)
    this.bytes.set(old.subarray(0, this.length))
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

  /**
   * A UTF-8 Encoded String (section 1.5.4); refuses lone surrogates, U+0000 and more than 65,535
   * bytes.
   */
  string(value: unknown, option: FieldPath): void {
    if (typeof value !== 'string') throw mistyped(option, 'must be a string')
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

  #checkSize(size: number, option: FieldPath): void {
    const fault = validateSize(size)
    if (fault !== undefined) throw refused(option, fault)
  }

  /**
   * The bytes of a recently written Topic Name, including its length; otherwise, and without
   * `cacheTopics`, undefined.
   */
  known(topic: unknown): Uint8Array | undefined {
    return this.#cacheTopics ? knownTopic(topic) : undefined
  }

  /** A Topic Name (section 4.7), which must not be empty. */
  topic(value: unknown, option: FieldPath): void {
    const known = this.known(value)
    if (known !== undefined) return this.raw(known)
    const start = this.length
    this.string(value, option)
    const fault =
      value === ''
        ? 'must not be empty'
        : hasWildcard(value as string) && 'must not hold a wildcard'
    if (fault) throw refused(option, fault) // [MQTT-3.3.2-2]
    if (this.#cacheTopics) keepTopic(value as string, this.bytes.subarray(start, this.length))
  }

  /** Binary Data (section 1.5.6); refuses more than 65,535 bytes. */
  binary(value: unknown, option: FieldPath): void {
    if (!isBytes(value)) throw mistyped(option, 'must be a Uint8Array')
    const size = sizeOf(value)
    this.#checkSize(size, option)
    this.u16(size)
    this.raw(value, size)
  }

  /** Writes bytes; `size` must be their length. */
  raw(value: Uint8Array, size = value.length): void {
    this.reserve(size)
    const { bytes, length } = this
    if (size < shortCopy) for (let i = 0; i < size; i++) bytes[length + i] = value[i] as number
    else bytes.set(value, length)
    this.length = length + size
  }

  /** Writes ASCII text without a length; returns false and writes nothing if it is not ASCII. */
  ascii(text: string): boolean {
    const size = text.length
    this.reserve(size)
    const { bytes, length } = this
    for (let i = 0; i < size; i++) {
      const unit = text.charCodeAt(i)
      if (unit > 0x7f) return false
      bytes[length + i] = unit
    }
    this.length = length + size
    return true
  }

  /**
   * Writes at `at` the length of everything from `from` on, plus `extra` bytes that follow
   * elsewhere. Moves what was written if the space reserved for the length has the wrong size.
   * Refuses `option` above 268,435,455.
   */
  fillLength(at: number, from: number, extra: number, option: FieldPath): void {
    const value = this.length - from + extra
    if (value > MAXIMUM_VARIABLE_BYTE_INTEGER)
      throw refused(option, 'must not exceed 268,435,455 bytes', 'too-large')
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
