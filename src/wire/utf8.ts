/**
 * UTF-8 as required by MQTT (section 1.5.4): well-formed, no surrogates, no U+0000; U+FEFF is kept,
 * control characters and non-characters are allowed.
 *
 * Short strings are decoded, and all are encoded, in JavaScript, because a platform call costs
 * more.
 */

// Declared here because this folder compiles without the types of any platform.
declare const TextDecoder: new (
  label: string,
  options: { ignoreBOM: boolean },
) => { decode(bytes: Uint8Array): string }

// Characters with a meaning in topics.
export const HASH = 0x23
export const PLUS = 0x2b
export const SLASH = 0x2f

/** Result of {@link scanUtf8}: ill-formed, or contains U+0000. */
export const ILL_FORMED = -1
/** Result of {@link scanUtf8}: contains `+` or `#`. */
export const HAS_WILDCARD = 1

/** The longest string that is not left to the platform's decoder. */
const shortString = 24
/** By length: the code units of a short string. */
const units = /* @__PURE__ */ Array.from({ length: shortString + 1 }, (_, size) =>
  new Array<number>(size).fill(0),
)

let decoder: InstanceType<typeof TextDecoder> | undefined

/**
 * Checks `bytes[start..end)`. Returns {@link HAS_WILDCARD}, {@link ILL_FORMED} [MQTT-1.5.4-1]
 * [MQTT-1.5.4-2], or 0.
 */
export function scanUtf8(bytes: Uint8Array, start: number, end: number): number {
  let result = 0
  let at = start
  while (at < end) {
    const byte = bytes[at] as number
    if (byte < 0x80) {
      at++
      if (byte < 0x2c) {
        if (byte === 0) return ILL_FORMED
        if (byte === HASH || byte === PLUS) result = HAS_WILDCARD
      }
    } else {
      const size = sequenceSize(bytes, at, end)
      if (size === 0) return ILL_FORMED
      at += size
    }
  }
  return result
}

/**
 * True when `bytes[start..end)` are ASCII without U+0000; `data` is a DataView of the same bytes,
 * read four at a time. Enough for most strings in practice.
 */
export function isPlain(data: DataView, start: number, end: number): boolean {
  let at = start
  for (; at + 4 <= end; at += 4) {
    const word = data.getInt32(at)
    // Set for bytes above 0x7f, and for bytes that are 0 (by the borrow of the subtraction).
    if (((word | (word - 0x01010101)) & 0x80808080) !== 0) return false
  }
  for (; at < end; at++) {
    const byte = data.getUint8(at)
    if (byte === 0 || byte > 0x7f) return false
  }
  return true
}

/** Bytes of the well-formed sequence at `at`; 0: ill-formed. Not for ASCII. */
function sequenceSize(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at] as number
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  if (lead < 0xc2 || lead > 0xf4 || end - at < size) return 0
  let point = lead & (0x7f >> size)
  for (let i = at + 1; i < at + size; i++) {
    const byte = bytes[i] as number
    if (byte >> 6 !== 2) return 0
    point = (point << 6) | (byte & 0x3f)
  }
  // Rejects surrogates and overlong forms: three bytes start at U+0800, four at U+10000. Overlong
  // sequences of two bytes were rejected above.
  return isSurrogate(point) || point < 1 << (5 * size - 4) || point > 0x10ffff ? 0 : size
}

/** Decodes `bytes[start..end)`, of any content. A byte order mark is kept [MQTT-1.5.4-3]. */
export function decodeUtf8(bytes: Uint8Array, start = 0, end = bytes.length): string {
  const size = end - start
  if (size <= shortString) {
    // An array of exactly this length makes a flat string in one call.
    const short = units[size] as number[]
    let at = 0
    for (; at < size; at++) {
      const byte = bytes[start + at] as number
      if (byte >= 0x80) break
      short[at] = byte
    }
    if (at === size) return String.fromCharCode.apply(undefined, short)
  }
  decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
  const part = bytes.subarray(start, end)
  try {
    return decoder.decode(part)
  } catch {
    // Browsers refuse shared or resizable memory, so it is copied.
    return decoder.decode(new Uint8Array(part))
  }
}

/**
 * Writes the text at `at` and returns the end; {@link ILL_FORMED} when it has a lone surrogate or
 * U+0000. There must be space for three bytes per code unit.
 */
export function writeUtf8(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) {
      if (unit === 0) return ILL_FORMED
      bytes[at++] = unit
    } else {
      const point = text.codePointAt(i) as number
      if (isSurrogate(point)) return ILL_FORMED
      const tail = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3
      if (tail === 3) i++
      // As many leading ones as there are bytes; the array drops higher bits.
      bytes[at++] = (0x7f80 >> tail) | (point >> (6 * tail))
      for (let shift = 6 * tail - 6; shift >= 0; shift -= 6)
        bytes[at++] = 0x80 | ((point >> shift) & 0x3f)
    }
  }
  return at
}

/** UTF-8 bytes of the text, or {@link ILL_FORMED}. */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 0) return ILL_FORMED
    if (unit < 0x80) continue
    length += unit < 0x800 ? 1 : 2
    if (!isSurrogate(unit)) continue
    if ((text.codePointAt(i) as number) === unit) return ILL_FORMED
    // The second half of the pair: four bytes in all.
    i++
  }
  return length
}

function isSurrogate(point: number): boolean {
  return point >> 11 === 27
}
