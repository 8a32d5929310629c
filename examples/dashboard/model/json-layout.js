/**
 * JSON laid out over lines, in pieces: each number is a piece of its own with the name of its field, as `numbers.js` names it, so that a page can make it
 * something to click on. Pure. The caller sees to it that the value is not nested too deep.
 */

/** Pieces `{ text, field }` of a JSON value, which together are what `JSON.stringify(value, null, 2)` gives. Only numbers have a field. */
export function piecesOf(value) {
  const pieces = []
  write(value, '', '', pieces)
  return pieces
}

function write(value, field, indent, pieces) {
  if (typeof value === 'number')
    pieces.push({ text: JSON.stringify(value), field: field || 'value' })
  else if (typeof value !== 'object' || value === null) add(pieces, JSON.stringify(value))
  else writeAll(value, field, indent, pieces)
}

function writeAll(value, field, indent, pieces) {
  const isList = Array.isArray(value)
  const [open, close] = isList ? '[]' : '{}'
  const keys = Object.keys(value)
  const inner = `${indent}  `
  add(pieces, open)
  for (const [index, key] of keys.entries()) {
    add(pieces, `${index === 0 ? '' : ','}\n${inner}${isList ? '' : `${JSON.stringify(key)}: `}`)
    write(value[key], field === '' ? key : `${field}.${key}`, inner, pieces)
  }
  add(pieces, keys.length === 0 ? close : `\n${indent}${close}`)
}

// What is no number is one piece as long as it can be.
function add(pieces, text) {
  const last = pieces.at(-1)
  if (last === undefined || last.field !== undefined) pieces.push({ text, field: undefined })
  else last.text += text
}
