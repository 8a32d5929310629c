/**
 * Names chosen by callers that are safe in keys, client identifiers and errors.
 */
import { type Parser, that } from './schema.js'

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789_-'

function isPlain(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= 64 &&
    [...value.toLowerCase()].every((letter) => letters.includes(letter))
  )
}

/** 1 to 64 letters, digits, `_` and `-`. */
export const plainName: Parser<string> = /* @__PURE__ */ that(
  isPlain,
  'of 1 to 64 letters, digits, _ and -',
)
