/**
 * The numbers in a payload, which is what a chart can draw: a bare number is the field `value`, in JSON a field is named by its path.
 *
 * Payloads are hostile: what is long, deep, many or has long names is left out, and no number can be one that a chart gets lost in. Pure.
 */

/** Bytes of a payload that is looked into, levels of nesting, fields of one payload, and characters of a field's name. */
export const limits = { bytes: 16_384, depth: 4, fields: 16, name: 64 }

/** What a JSON text with a number may begin with: white space, a sign, digits, brackets. */
const openings = new Set([...' \t\n\r-0123456789[{'].map((character) => character.charCodeAt(0)))

/** Larger than this is no reading; smaller is 0. */
const largest = 1e12
const smallest = 1e-12

/** A number with the twelve digits that count; undefined when it is too large to be drawn. */
export function drawable(value) {
  if (typeof value !== 'number' || !(Math.abs(value) <= largest)) return undefined
  return Math.abs(value) < smallest ? 0 : Number(value.toPrecision(12))
}

/** Pairs of field and number. Gives none for what is no JSON. */
export function numbersIn(message) {
  if (
    message.payloadLength === 0 ||
    message.payloadLength > limits.bytes ||
    !openings.has(message.payload[0])
  )
    return []
  const found = []
  try {
    collect(message.json(), '', 0, found)
  } catch {
    // Not JSON.
  }
  return found
}

function collect(value, path, depth, found) {
  if (found.length >= limits.fields || path.length > limits.name) return
  const number = drawable(value)
  if (number !== undefined) found.push([path || 'value', number])
  if (typeof value !== 'object' || value === null || depth >= limits.depth) return
  let looked = 0
  for (const key in value) {
    // A long list of texts is no reason to read all of it.
    if (++looked > limits.fields * 4) return
    collect(value[key], path === '' ? key : `${path}.${key}`, depth + 1, found)
  }
}
