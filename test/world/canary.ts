/** The secrets of the world's client, and the search for them in everything that it says: log lines, errors, events. */
import { inspect } from 'node:util'

export const canary = 'tweety-5up3r-s3cr3t'

const codes = [...canary].map((character) => character.charCodeAt(0))
const decimal = codes.join(',')
const hexadecimal = codes.map((code) => code.toString(16)).join('')

/** True when the text holds a secret, also as the bytes that `inspect` and JSON print. */
export function tells(text: string): boolean {
  if (text.includes(canary)) return true
  const dense = text.replace(/\s+/g, '')
  return dense.includes(decimal) || dense.includes(hexadecimal)
}

/** Everything that a careless program prints of a value: `inspect` with depth, message, stack, JSON. */
export function printed(value: unknown): string {
  const parts = [
    inspect(value, { depth: 6, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 64 }),
  ]
  if (value instanceof Error) parts.push(value.message, value.stack ?? '', String(value))
  try {
    parts.push(JSON.stringify(value) ?? '')
  } catch {
    // Circular: `inspect` has shown it.
  }
  return parts.join('\n')
}
