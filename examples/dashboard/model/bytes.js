/**
 * Bytes as text, and text that people type as bytes. Pure.
 */

/** The base64 of bytes. */
export function base64Of(bytes) {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

const encoder = new TextEncoder()

/** The bytes that a text stands for: itself, or what it has as `'hex'` or `'base64'`. @throws Error when it is none of them */
export function bytesIn(text, encoding = 'text') {
  if (encoding === 'text') return encoder.encode(text)
  const compact = text.replace(/\s/g, '')
  if (encoding === 'hex') {
    if (!/^(?:[\da-f]{2})*$/i.test(compact)) throw new Error('this is no hexadecimal')
    return Uint8Array.from(compact.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  }
  try {
    return Uint8Array.from(atob(compact), (character) => character.charCodeAt(0))
  } catch {
    throw new Error('this is no base64')
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text and its encoding: text where bytes are UTF-8, else base64. */
export function textOfBytes(bytes) {
  try {
    return { text: decoder.decode(bytes), encoding: 'text' }
  } catch {
    return { text: base64Of(bytes), encoding: 'base64' }
  }
}

/** The same for a field of many lines, which would change carriage returns. */
export function typedBytes(bytes) {
  const { text, encoding } = textOfBytes(bytes)
  return text.includes('\r') ? { text: base64Of(bytes), encoding: 'base64' } : { text, encoding }
}

const prefix = 'base64:'

/** The bytes that stand in a field of one line: its text, or what it has as base64 behind `base64:`. @throws Error when it is none */
export const bytesOfField = (text) =>
  text.startsWith(prefix) ? bytesIn(text.slice(prefix.length), 'base64') : bytesIn(text)

/** Bytes for such a field. */
export function fieldOfBytes(bytes) {
  const { text, encoding } = textOfBytes(bytes)
  const isPlain = encoding === 'text' && !/[\r\n]/.test(text) && !text.startsWith(prefix)
  return isPlain ? text : prefix + base64Of(bytes)
}

/** The pairs in lines `name: value`; names and values that such a line cannot have stand in quotes, as in JSON. @throws Error for a line that is none */
export function pairsIn(text) {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, value] = /^\s*("(?:[^"\\]|\\.)*"|[^:"]+):\s?(.*)$/.exec(line) ?? []
      if (name === undefined) throw new Error(`“${line.slice(0, 40)}” is no line name: value`)
      return [unquoted(name.trim()), unquoted(value)]
    })
}

function unquoted(text) {
  if (!text.startsWith('"')) return text
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${text.slice(0, 40)} is no text in quotes`)
  }
}

/** Pairs as such lines. */
export const linesOf = (pairs = []) =>
  pairs
    .map(([name, value]) => {
      const isPlain = /^[^\s:"](?:[^:"\n\r]*[^\s:"])?$/.test(name)
      const isValue = !/^["\s]|[\r\n]/.test(value)
      return `${isPlain ? name : JSON.stringify(name)}: ${isValue ? value : JSON.stringify(value)}`
    })
    .join('\n')
