/**
 * Payloads and names as text that is safe to show: as text, as JSON laid out, as hexadecimal, and in one line. Pure.
 *
 * What comes is hostile: nothing here is longer than its limit, and control characters, and those that turn the direction of text, are made visible.
 * It gives text and never markup; who shows it must use `textContent`.
 */

import { cutNote, decode } from './decoding.js'
import { piecesOf } from './json-layout.js'

/** Bytes of a payload that are shown as text or JSON and as hexadecimal, characters of one line, and levels of JSON that are laid out. */
export const limits = { text: 65_536, hex: 4096, line: 80, depth: 32 }

/** Bidirectional controls and what else is not seen, from and to. */
const unseen = [
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x2069],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
]

function shown(character, keep) {
  const code = character.codePointAt(0)
  // The pictures that Unicode has for control characters.
  if (code < 0x20) return keep.includes(character) ? character : String.fromCodePoint(0x2400 + code)
  return unseen.some(([from, to]) => code >= from && code <= to)
    ? `\\u{${code.toString(16)}}`
    : character
}

/** Text in which nothing is hidden; line breaks and tabs stay. */
export function visible(text, keep = '\n\t') {
  let safe = ''
  for (const character of text) safe += shown(character, keep)
  return safe
}

/** Text in one line of at most so many characters. */
export function oneLine(text, limit = limits.line) {
  const characters = [...text.slice(0, 2 * limit)]
  const safe = visible(characters.slice(0, limit).join(''), '')
  return characters.length > limit || text.length > 2 * limit ? `${safe}…` : safe
}

/** The UTF-8 in the first bytes; undefined when they are none. A character that is cut at the end is left out. */
function decoded(bytes, limit) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      bytes.subarray(0, limit),
      { stream: bytes.length > limit },
    )
  } catch {
    return undefined
  }
}

const twoDigits = (byte) => byte.toString(16).padStart(2, '0')

function inHex(bytes, limit) {
  return Array.from(bytes.subarray(0, limit), twoDigits).join(' ')
}

/** True for text that somebody may want to read: a byte in ten may be a control character. */
function isReadable(text) {
  let controls = 0
  for (let at = 0; at < text.length; at += 1)
    if (text.charCodeAt(at) < 0x20 && !'\n\r\t'.includes(text[at])) controls += 1
  return controls * 10 <= text.length
}

/** A payload in one line, for a table. */
export function preview(bytes) {
  if (bytes.length === 0) return '(empty)'
  const text = decoded(bytes, 4 * limits.line)
  if (text !== undefined && isReadable(text)) return oneLine(text)
  return `${inHex(bytes, 16)}${bytes.length > 16 ? ' …' : ''}`
}

/** What a payload looks like: `'json'`, `'text'` or `'hex'`. */
export function formatOf(bytes) {
  const text = decoded(bytes, limits.text)
  if (text === undefined || !isReadable(text)) return 'hex'
  return /^\s*[[{]/.test(text) && laidOut(text) !== undefined ? 'json' : 'text'
}

function laidOut(text) {
  if (tooDeep(text)) return undefined
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return undefined
  }
}

/** True for a content type that promises JSON. */
export function isJson(contentType = '') {
  const [type] = contentType.toLowerCase().split(';')
  return type.trim() === 'application/json' || type.trim().endsWith('+json')
}

/** Why a text is no JSON, in one line; undefined when it is. */
export function jsonProblem(text) {
  if (text.trim() === '') return 'it is empty'
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return oneLine(error.message, 160)
  }
}

// Laid out, a thousand brackets would be a thousand lines with up to a thousand blanks before them.
function tooDeep(text) {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]
    if (inString) {
      if (character === '\\') at += 1
      else if (character === '"') inString = false
    } else if (character === '"') inString = true
    else if (character === '[' || character === '{') {
      depth += 1
      if (depth > limits.depth) return true
    } else if (character === ']' || character === '}') depth -= 1
  }
  return false
}

/** Pieces that are safe to show, of as many characters as are shown. */
function cut(pieces) {
  let room = limits.text
  return pieces.flatMap(({ text, field }) => {
    const shown = visible(text).slice(0, room)
    room -= shown.length
    return shown === '' ? [] : [{ text: shown, field }]
  })
}

/** A payload in pieces `{ text, field }`: numbers that have a field are pieces of their own. */
export function pieces(bytes, format, text) {
  const number = format === 'text' && text.trim() !== '' && Number.isFinite(Number(text))
  if (number) return [{ text, field: 'value' }]
  return format === 'json' && laidOut(text) !== undefined
    ? cut(piecesOf(JSON.parse(decoded(bytes, limits.text))))
    : [{ text, field: undefined }]
}

/** So few bytes in a line, that a phone has room for it. */
const perLine = 8

function hexLines(bytes) {
  const lines = []
  for (let at = 0; at < Math.min(bytes.length, limits.hex); at += perLine) {
    const row = bytes.subarray(at, Math.min(at + perLine, limits.hex))
    const characters = Array.from(row, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '·',
    ).join('')
    lines.push(
      `${at.toString(16).padStart(6, '0')}  ${inHex(row, perLine).padEnd(3 * perLine)} ${characters}`,
    )
  }
  return lines.join('\n')
}

/** A payload in one of the formats: its text, and a note on what is missing from it or wrong with it, also by its content type. */
export function render(bytes, format, contentType = '', schema = undefined) {
  if (bytes.length === 0) return { text: '', note: 'The payload is empty.' }
  if (!['text', 'json', 'hex'].includes(format)) {
    const { text, note } = decode(bytes, format, schema)
    const safe = visible(text)
    return safe.length > limits.text
      ? { text: safe.slice(0, limits.text), note: `Cut at ${size(limits.text)} of text.` }
      : { text: safe, note: oneLine(note, 300) }
  }
  const limit = format === 'hex' ? limits.hex : limits.text
  const note = cutNote(bytes, limit)
  if (format === 'hex') return { text: hexLines(bytes), note }
  const text = decoded(bytes, limit)
  if (text === undefined)
    return { text: '', note: 'These bytes are no UTF-8: see them as hexadecimal.' }
  const promised = isJson(contentType) && !note ? jsonProblem(text) : undefined
  if (format === 'text')
    return {
      text: visible(text),
      note:
        promised === undefined ? note : `The content type says JSON, but it is none: ${promised}`,
    }
  const layout = laidOut(text)
  if (layout !== undefined) return { text: visible(layout).slice(0, limits.text), note }
  return {
    text: visible(text),
    note:
      note ||
      (tooDeep(text)
        ? `Nested deeper than ${limits.depth} levels.`
        : `This is no JSON: ${jsonProblem(text)}`),
  }
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes, as people say it. */
export function size(bytes) {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** Milliseconds, as people say them. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** A number with as many digits as matter. */
export function short(value) {
  if (value === undefined) return '–'
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString('en')
  return Math.abs(value) >= 1e6 || Math.abs(value) < 0.001
    ? value.toExponential(2)
    : value.toLocaleString('en', { maximumSignificantDigits: 4 })
}
