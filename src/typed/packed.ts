/**
 * Common part of the binary codecs: refuses values that cannot be sent, and checks received bytes
 * before a library decodes them.
 *
 * The libraries allocate as many items as the bytes announce and recurse to any depth. So each
 * payload is checked first, without creating values: it must hold exactly one value, all announced
 * items, and a bounded depth.
 */
import { type Codec, isText, raise, type SchemaOptions, withSchema } from './codec.js'
import type { StandardSchema } from './standard-schema.js'

/** Most levels of nested values. */
const mostDepth = 500
/** Most bits of a bigint, including its sign. */
const mostBits = 1024

/** Length in bytes up to which all libraries keep the byte order mark of a text. */
const mostMarked = 64

/** The parts that differ between formats. */
export interface Format {
  readonly contentType: string
  pack(value: unknown): Uint8Array
  unpack(bytes: Uint8Array): unknown
  /** Reads the head of one item. */
  head(walk: Walk): void
}

/** A codec of a format. */
export function packed(
  { contentType, pack, unpack, head }: Format,
  schema: StandardSchema | undefined,
  options: SchemaOptions<unknown, unknown> | undefined,
): Codec<unknown> {
  const write = (value: unknown): Uint8Array => {
    assertPlain(value, 0)
    return pack(value)
  }
  const read = (bytes: Uint8Array): unknown => {
    new Walk(bytes, head).all()
    return unpack(bytes)
  }
  return { ...withSchema(schema, options, write, read, (raw) => new Uint8Array(raw)), contentType }
}

/** Checks one payload, item by item. */
export class Walk {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #head: (walk: Walk) => void
  #at = 0
  /**
   * Items left in the innermost list or map, and in those around it. Infinity: a list that an end
   * mark ends; -Infinity: such a map.
   */
  #left = 1
  readonly #around: number[] = []
  /** Items announced by lists and maps and not read yet. */
  #owed = 1
  /** Items read in the innermost list or map, including its end mark. */
  #seen = 0
  readonly #seenAround: number[] = []

  constructor(bytes: Uint8Array, head: (walk: Walk) => void) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#head = head
  }

  /**
   * Checks everything.
   * @throws Error unless it is exactly one value, and needs no more memory than its bytes justify
   */
  all(): void {
    for (;;) {
      while (this.#left === 0) {
        if (this.#around.length === 0)
          return this.#at < this.#bytes.length
            ? raise(new Error('has more than one value'))
            : undefined
        this.#leave()
      }
      if (Number.isFinite(this.#left)) this.#owed -= 1
      this.#left -= 1
      this.#seen += 1
      this.#head(this)
    }
  }

  /** The next byte. */
  byte(): number {
    this.#take(1)
    return this.#bytes[this.#at - 1] as number
  }

  /** An unsigned number of 1, 2, 4 or 8 bytes. */
  number(size: number): number {
    this.#take(size)
    const at = this.#at - size
    if (size === 1) return this.#view.getUint8(at)
    if (size === 2) return this.#view.getUint16(at)
    return size === 4
      ? this.#view.getUint32(at)
      : this.#view.getUint32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
  }

  /** Skips bytes that contain no items. */
  skip(length: number): void {
    this.#take(length)
  }

  /** Skips bytes of text and returns the text. */
  text(length: number): string {
    this.#take(length)
    const text = utf8.decode(this.#bytes.subarray(this.#at - length, this.#at))
    if (length > mostMarked && text.startsWith('\ufeff')) marked()
    return text
  }

  /** Skips bytes and returns a view of them. */
  view(length: number): DataView {
    this.#take(length)
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + this.#at - length, length)
  }

  /**
   * Enters a list of `count` items, or a map whose `count` is twice its number of keys. Infinity
   * for a list and -Infinity for a map that an end mark ends.
   */
  enter(count: number): void {
    if (this.#around.length >= mostDepth) tooDeep()
    const isCounted = Number.isFinite(count)
    // Each item needs at least one byte.
    if (isCounted && this.#owed + count > this.#bytes.length - this.#at) tooShort()
    this.#around.push(this.#left)
    this.#seenAround.push(this.#seen)
    this.#left = count
    this.#seen = 0
    if (isCounted) this.#owed += count
  }

  /** Handles an end mark. */
  end(): void {
    if (Number.isFinite(this.#left)) raise(new Error('has an end of nothing'))
    if (this.#left < 0 && this.#seen % 2 === 0) raise(new Error('has a key without a value'))
    this.#leave()
  }

  #leave(): void {
    this.#left = this.#around.pop() as number
    this.#seen = this.#seenAround.pop() as number
  }

  #take(length: number): void {
    if (length > this.#bytes.length - this.#at) tooShort()
    this.#at += length
  }
}

/** Refuses a time that is not a number or that a `Date` cannot hold. */
export function assertTime(milliseconds: number): void {
  if (Number.isNaN(new Date(milliseconds).getTime()))
    raise(new Error('has a time that no Date can hold'))
}

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function tooDeep(): never {
  throw new Error(`is more than ${mostDepth} values deep`)
}

function tooShort(): never {
  throw new Error('says that it holds more than it has bytes for')
}

/**
 * Refuses values that would be decoded as something else: for example, libraries differ in how they
 * encode Map and Set.
 */
function assertPlain(value: unknown, depth: number): void {
  if (typeof value === 'string') return assertText(value)
  if (typeof value === 'bigint' && BigInt.asIntN(mostBits, value) !== value)
    raise(new Error(`has a bigint of more than ${mostBits} bits`))
  if (typeof value === 'function' || typeof value === 'symbol')
    raise(new Error(`has a ${typeof value}`))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  if (value instanceof Date)
    return Number.isNaN(value.getTime())
      ? raise(new Error('has a date that is not valid'))
      : undefined
  if (depth >= mostDepth) tooDeep()
  if (Array.isArray(value)) {
    for (const each of value) assertPlain(each, depth + 1)
    return
  }
  const kind = Object.prototype.toString.call(value).slice(8, -1)
  if (kind !== 'Object') raise(new Error(`has a ${kind}: a schema with encode may map it`))
  if (
    Symbol.iterator in value ||
    Symbol.asyncIterator in value ||
    typeof (value as { toJSON?: unknown }).toJSON === 'function'
  )
    raise(
      new Error(
        'has an object that says itself how it is written: a schema with encode may map it',
      ),
    )
  for (const [key, each] of Object.entries(value)) {
    if (key === '__proto__') raise(new Error('has a key that cannot be sent'))
    assertText(key)
    assertPlain(each, depth + 1)
  }
}

function assertText(text: string): void {
  if (!isText(text)) raise(new Error('has a text that is not well-formed'))
  if (text.startsWith('\ufeff')) marked()
}

// Libraries drop the byte order mark of longer texts, as text decoders do.
function marked(): never {
  throw new Error('has a text that begins with a byte order mark')
}
