/**
 * Refuses unknown option names and suggests the intended one. Values are never repeated in errors.
 */

import { MqttError } from '../errors.js'

/**
 * @throws MqttError `ERR_INVALID_OPTION` unless it is an object whose keys are all in `names`; the
 * message suggests the nearest name
 */
export function checkNames(what: string, given: unknown, names: readonly string[]): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new MqttError('ERR_INVALID_OPTION', `${what} must be an object`, { option: what })
  }
  for (const name of Object.keys(given))
    if (!names.includes(name)) throw unknownName(what, name, names)
}

/** The error for an unknown name. */
export function unknownName(what: string, name: unknown, names: readonly string[]): MqttError {
  const given = String(name).slice(0, 40)
  const near = nearest(given, names)
  const hint = near === undefined ? `it may be ${names.join(', ')}` : `did you mean '${near}'?`
  return new MqttError('ERR_INVALID_OPTION', `${what}: '${given}' is unknown; ${hint}`, {
    option: given,
  })
}

/** The most similar name, if it is similar enough. */
function nearest(given: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, changes: distance(given.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.changes - b.changes)
  const best = ranked[0]
  return best !== undefined && best.changes <= Math.max(2, given.length / 3) ? best.name : undefined
}

/**
 * Number of letters to add, remove, change or swap with a neighbour to turn one text into the
 * other.
 */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, index) => index)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= other.length; j++) {
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const changed = at(i - 1, j - 1) + (one[i - 1] === other[j - 1] ? 0 : 1)
      row.push(
        Math.min(
          changed,
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          isSwapped ? at(i - 2, j - 2) + 1 : Infinity,
        ),
      )
    }
  }
  return at(one.length, other.length)
}
