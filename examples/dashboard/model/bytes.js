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

/** Text and the encoding that bytes are typed in: text where they are UTF-8, else base64. */
export function typedBytes(bytes) {
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return { text: decoder.decode(bytes), encoding: 'text' }
  } catch {
    return { text: base64Of(bytes), encoding: 'base64' }
  }
}

/** The pairs in lines `name: value`. @throws Error for a line that is none */
export function pairsIn(text) {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, value] = /^([^:]+):\s?(.*)$/.exec(line) ?? []
      if (name === undefined) throw new Error(`“${line.slice(0, 40)}” is no line name: value`)
      return [name.trim(), value]
    })
}

/** Pairs as such lines. */
export const linesOf = (pairs = []) => pairs.map(([name, value]) => `${name}: ${value}`).join('\n')
