/**
 * Checks of JSON: each names the path of a value, the rule, and what is allowed.
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

/** What a check gives. */
export type Checked<C> = C extends Check<infer T> ? T : never

/** A value of JSON as an error shows it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

function must<T>(rule: string, holds: (value: unknown) => boolean): Check<T> {
  return (value, path) => {
    if (holds(value)) return value as T
    const found = value === undefined ? 'it is missing' : `it is ${shown(value)}`
    throw new DescriptionError(path, `must be ${rule}; ${found}`)
  }
}

/** A text of a bounded length. */
export const text = (least = 1, most = 1000): Check<string> =>
  must(
    `a text of ${least} to ${most} characters`,
    (value) => typeof value === 'string' && value.length >= least && value.length <= most,
  )

/** A number in a range. */
export const number = (least = -1e15, most = 1e15): Check<number> =>
  must(
    `a number from ${least} to ${most}`,
    (value) => typeof value === 'number' && value >= least && value <= most,
  )

/** A whole number in a range. */
export const whole = (least: number, most: number): Check<number> =>
  must(
    `a whole number from ${least} to ${most}`,
    (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
  )

/** `true` or `false`. */
export const flag: Check<boolean> = must('true or false', (value) => typeof value === 'boolean')

/** Anything but a list or an object. */
export const scalar: Check<Scalar> = must(
  'a text, a number, true, false or null',
  (value) => value === null || ['string', 'number', 'boolean'].includes(typeof value),
)

/** One of these. */
export const oneOf = <T extends Scalar>(...allowed: readonly T[]): Check<T> =>
  must(
    allowed
      .map(shown)
      .join(', ')
      .replace(/, ([^,]*)$/, ' or $1'),
    (value) => allowed.includes(value as T),
  )

/** A name that can stand in a template. */
export const word: Check<string> = must(
  'a name: a letter, then letters, digits, "_" and "-"',
  (value) => typeof value === 'string' && /^[A-Za-z_][\w-]{0,63}$/.test(value),
)

/** Any object. */
export const object: Check<Readonly<Record<string, unknown>>> = must(
  'an object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)

const units: Readonly<Record<string, number>> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 }

function milliseconds(value: unknown): number {
  const [, count, unit = ''] = /^(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(String(value)) ?? []
  return Number(count) * (units[unit] ?? 0)
}

/** Milliseconds of `500ms`, `10s`, `2m`, `1h` or `1d`. */
export const duration: Check<number> = (value, path) =>
  milliseconds(
    must('a time such as "500ms", "10s", "2m" or "1h", at most "24d"', (each) => {
      const time = milliseconds(each)
      return typeof each === 'string' && time >= 1 && time < 2 ** 31
    })(value, path),
  )

/** A value that may be absent. */
export function optional<T>(check: Check<T>): Check<T | undefined>
export function optional<T>(check: Check<T>, initial: NoInfer<T>): Check<T>
export function optional<T>(check: Check<T>, initial?: T): Check<T | undefined> {
  return (value, path) => (value === undefined ? initial : check(value, path))
}

/** A list. */
export function list<T>(check: Check<T>, least = 1, most = 1000): Check<readonly T[]> {
  const all: Check<readonly unknown[]> = must(
    `a list of ${least} to ${most}`,
    (value) => Array.isArray(value) && value.length >= least && value.length <= most,
  )
  return (value, path) => all(value, path).map((each, at) => check(each, `${path}[${at}]`))
}

/** An object with names of the author's own. */
export function named<T>(check: Check<T>, names = word): Check<ReadonlyMap<string, T>> {
  return (value, path) =>
    new Map(
      Object.entries(object(value, path)).map(([name, each]) => {
        const at = `${path}.${name}`
        return [names(name, at), check(each, at)]
      }),
    )
}

/** An object with these names and no others. */
export function shape<T>(checks: { readonly [K in keyof T]: Check<T[K]> }): Check<T> {
  const names = Object.keys(checks)
  return (value, path) => {
    const given = object(value, path)
    const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
    const strange = Object.keys(given).find((name) => !names.includes(name))
    if (strange !== undefined)
      throw new DescriptionError(below(strange), `unknown; allowed: ${names.join(', ')}`)
    const entries = names.map((name) => {
      const each = Object.hasOwn(given, name) ? given[name] : undefined
      return [name, checks[name as keyof T](each, below(name))]
    })
    return Object.fromEntries(entries) as T
  }
}
