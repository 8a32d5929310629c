/**
 * UTF-8 as MQTT wants it (section 1.5.4): well-formed, no surrogates, no U+0000; U+FEFF is kept, control characters and non-characters pass.
 *
 * Short strings are read and written by hand, since a call into the platform costs more than they do. `decodeUtf8` assumes bytes that
 * `scanUtf8` accepted.
 */

// Declared here because this folder compiles without the types of any platform.
declare const TextDecoder: new (label: string, options: { ignoreBOM: boolean }) => { decode(bytes: Uint8Array): string }

/** {@link scanUtf8}: ill-formed, or holds U+0000. */
export const ILL_FORMED = -1
/** {@link scanUtf8}: holds `+` or `#`. */
export const HAS_WILDCARD = 1

// Longer ones would be joined as a rope, which costs more to flatten than the platform's decoder.
const shortString = 12

let decoder: { decode(bytes: Uint8Array): string } | undefined

/** Walks `bytes[start..end)`: {@link ILL_FORMED} [MQTT-1.5.4-1] [MQTT-1.5.4-2], {@link HAS_WILDCARD}, or 0 when it is neither. */
export function scanUtf8(bytes: Uint8Array, start: number, end: number): number {
  let result = 0
  let at = start
  while (at < end) {
    const byte = bytes[at] as number
    if (byte < 0x80) {
      at++
      if (byte < 0x2c) {
        if (byte === 0) return ILL_FORMED
        if (byte === 0x23 || byte === 0x2b) result = HAS_WILDCARD
      }
    } else {
      const size = sequenceSize(bytes, at, end)
      if (size === 0) return ILL_FORMED
      at += size
    }
  }
  return result
}

/** Bytes of the well-formed sequence at `at`, 0 when there is none. Never called for ASCII. */
function sequenceSize(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at] as number
  if (lead < 0xc2 || lead > 0xf4) return 0
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
  if (end - at < size) return 0
  // Overlong forms, surrogates and code points above U+10FFFF all show in the second byte.
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  const second = bytes[at + 1] as number
  if (second < lowest || second > highest) return 0
  for (let i = at + 2; i < at + size; i++) if (((bytes[i] as number) & 0xc0) !== 0x80) return 0
  return size
}

/** The text of bytes that {@link scanUtf8} accepted. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= shortString) {
    let text = ''
    let at = start
    for (; at < end; at++) {
      const byte = bytes[at] as number
      if (byte >= 0x80) break
      text += String.fromCharCode(byte)
    }
    if (at === end) return text
  }
  // A byte order mark is text here [MQTT-1.5.4-3].
  decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
  return decoder.decode(bytes.subarray(start, end))
}

/** Bytes that the text needs, or {@link ILL_FORMED} when it has a lone surrogate or U+0000. */
export function utf8Length(text: string): number {
  let length = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 0) return ILL_FORMED
    if (unit >= 0x80) {
      length++
      if (unit >= 0x800) {
        length++
        if (unit >= 0xd800 && unit <= 0xdfff) {
          if (!isPair(unit, text.charCodeAt(i + 1))) return ILL_FORMED
          i++
        }
      }
    }
  }
  return length
}

function isPair(high: number, low: number): boolean {
  return high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff
}

/** Writes the text at `at`, where there must be room, and returns the end; {@link ILL_FORMED} when it has a lone surrogate or U+0000. */
export function writeUtf8(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) {
      if (unit === 0) return ILL_FORMED
      bytes[at++] = unit
    } else if (unit < 0x800) {
      bytes[at++] = 0xc0 | (unit >> 6)
      bytes[at++] = 0x80 | (unit & 0x3f)
    } else if (unit < 0xd800 || unit > 0xdfff) {
      bytes[at++] = 0xe0 | (unit >> 12)
      bytes[at++] = 0x80 | ((unit >> 6) & 0x3f)
      bytes[at++] = 0x80 | (unit & 0x3f)
    } else {
      const low = text.charCodeAt(++i)
      if (!isPair(unit, low)) return ILL_FORMED
      const point = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff)
      bytes[at++] = 0xf0 | (point >> 18)
      bytes[at++] = 0x80 | ((point >> 12) & 0x3f)
      bytes[at++] = 0x80 | ((point >> 6) & 0x3f)
      bytes[at++] = 0x80 | (point & 0x3f)
    }
  }
  return at
}
