/**
 * Readers of JSON: each checks one value and names its path, the rule, and what is allowed.
 *
 * Pure: a page in the browser reads descriptions with it as well.
 */

/** A value of JSON that is neither a list nor an object. */
export type Scalar = string | number | boolean | null

/** Any value of JSON. */
export type Json = Scalar | readonly Json[] | { readonly [key: string]: Json }

/** A mistake in a description. The message begins with the path. */
export class DescriptionError extends Error {
  constructor(path: string, rule: string) {
    super(`${path === '' ? 'the description' : path}: ${rule}`)
  }
}

/** Checks a value at a path; undefined where it is absent. @throws DescriptionError */
export type Check<T> = (value: unknown, path: string) => T

/** A value of JSON as an error shows it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function wrong(path: string, rule: string, value: unknown): DescriptionError {
  const found = value === undefined ? 'it is missing' : `it is ${shown(value)}`
  return new DescriptionError(path, `must be ${rule}; ${found}`)
}

/** A text of a bounded length. */
export function text(least = 1, most = 1000): Check<string> {
  return (value, path) => {
    if (typeof value === 'string' && value.length >= least && value.length <= most) return value
    throw wrong(path, `a text of ${least} to ${most} characters`, value)
  }
}

/** A number in a range. */
export function number(least = -1e15, most = 1e15): Check<number> {
  return (value, path) => {
    if (typeof value === 'number' && value >= least && value <= most) return value
    throw wrong(path, `a number from ${least} to ${most}`, value)
  }
}

/** A whole number in a range. */
export function whole(least: number, most: number): Check<number> {
  return (value, path) => {
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most)
      return value as number
    throw wrong(path, `a whole number from ${least} to ${most}`, value)
  }
}

/** `true` or `false`. */
export const flag: Check<boolean> = (value, path) => {
  if (typeof value === 'boolean') return value
  throw wrong(path, 'true or false', value)
}

/** A text, a number, `true`, `false` or `null`. */
export const scalar: Check<Scalar> = (value, path) => {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value))
    return value as Scalar
  throw wrong(path, 'a text, a number, true, false or null', value)
}

/** One of these. */
export function oneOf<T extends Scalar>(...allowed: readonly T[]): Check<T> {
  return (value, path) => {
    if (allowed.includes(value as T)) return value as T
    throw wrong(
      path,
      allowed
        .map(shown)
        .join(', ')
        .replace(/, ([^,]*)$/, ' or $1'),
      value,
    )
  }
}

const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds of `500ms`, `10s`, `2m`, `1h` or `1d`. */
export const duration: Check<number> = (value, path) => {
  const [, count = '', unit = ''] =
    /^(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(String(value)) ?? []
  const milliseconds = Number(count) * (units[unit] ?? 0)
  if (typeof value === 'string' && milliseconds >= 1 && milliseconds < 2 ** 31) return milliseconds
  throw wrong(path, 'a time such as "500ms", "10s", "2m" or "1h", at most "24d"', value)
}

/** A value that may be absent. */
export function optional<T, D>(check: Check<T>, initial: D): Check<T | D> {
  return (value, path) => (value === undefined ? initial : check(value, path))
}

/** A list. */
export function list<T>(check: Check<T>, least = 1, most = 1000): Check<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value) || value.length < least || value.length > most)
      throw wrong(path, `a list of ${least} to ${most}`, value)
    return value.map((each, index) => check(each, `${path}[${index}]`))
  }
}

/** An object. */
export const object: Check<Readonly<Record<string, unknown>>> = (value, path) => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>
  throw wrong(path, 'an object', value)
}

/** A name that can stand in a template. */
export const word: Check<string> = (value, path) => {
  if (typeof value === 'string' && /^[A-Za-z_][\w-]{0,63}$/.test(value)) return value
  throw wrong(path, 'a name: a letter, then letters, digits, "_" and "-"', value)
}

/** An object with names of the author's own. */
export function named<T>(check: Check<T>): Check<ReadonlyMap<string, T>> {
  return (value, path) =>
    new Map(
      Object.entries(object(value, path)).map(([name, each]) => [
        word(name, `${path}.${name}`),
        check(each, `${path}.${name}`),
      ]),
    )
}

/** An object with these names and no others. */
export function shape<T>(checks: { readonly [K in keyof T]: Check<T[K]> }): Check<T> {
  return (value, path) => {
    const given = object(value, path)
    const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
    for (const name of Object.keys(given))
      if (!Object.hasOwn(checks, name))
        throw new DescriptionError(
          below(name),
          `unknown; allowed: ${Object.keys(checks).join(', ')}`,
        )
    const entries = Object.keys(checks).map((name) => {
      const each = Object.hasOwn(given, name) ? given[name] : undefined
      return [name, checks[name as keyof T](each, below(name))]
    })
    return Object.fromEntries(entries) as T
  }
}
