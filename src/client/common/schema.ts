/**
 * Parsing of option objects: each field has a parser that gives the checked value or throws a typed error naming the option and what it may be.
 *
 * The caller's object is read once and never written to; what comes out is a frozen copy with every field present.
 */
import { MqttError } from '../../errors.js'
import { utf8Length } from '../../wire/utf8.js'

/** Checks one value; `path` names it in errors. */
export type Parser<T> = (value: unknown, path: string) => T

/** One parser per field. */
export type Schema<T> = { readonly [K in keyof T]-?: Parser<T[K]> }

/** What a schema's parsers give. */
export type Parsed<S> = { readonly [K in keyof S]: S[K] extends Parser<infer T> ? T : never }

/** Refuses an option. */
export function invalid(path: string, expected: string): never {
  throw new MqttError('ERR_INVALID_OPTION', `${path} must be ${expected}`, { option: path })
}

/** What passes a test, as it is. */
export function that<T>(passes: (value: unknown) => boolean, expected: string): Parser<T> {
  return (value, path) => (passes(value) ? (value as T) : invalid(path, expected))
}

/** A whole number in a range. */
export function integer(min: number, max: number, unit = ''): Parser<number> {
  return that(
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    `a whole number from ${min} to ${max}${unit}`,
  )
}

/** Longest duration that timers take, in milliseconds. */
export const longestDelay = 2_147_483_647

/** Milliseconds. */
export const duration: Parser<number> = that(
  (value) => typeof value === 'number' && value >= 0 && value <= longestDelay,
  `from 0 to ${longestDelay} milliseconds`,
)

/** A count that may be Infinity. */
export const limit: Parser<number> = that(
  (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && (value as number) > 0),
  'a whole number above 0, or Infinity',
)

export const boolean: Parser<boolean> = that((value) => typeof value === 'boolean', 'true or false')

export const string: Parser<string> = that((value) => typeof value === 'string', 'a string')

/** A string that fits a UTF-8 Encoded String (section 1.5.4). */
export const text: Parser<string> = that((value) => {
  const length = typeof value === 'string' ? utf8Length(value) : -1
  return length >= 0 && length <= 65_535
}, 'well-formed text of at most 65,535 bytes')

/** Anything that can be called; what it takes is up to the caller's types. */
export const callable: Parser<never> = that((value) => typeof value === 'function', 'a function')

/** An object of whatever kind. */
export const anyObject: Parser<object> = that((value) => typeof value === 'object' && value !== null, 'an object')

/** An abort signal of this realm or another. */
export const signal: Parser<AbortSignal> = that(
  (value) => typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value,
  'an AbortSignal',
)

/** Bytes in any of the platform's forms, copied; a string becomes UTF-8. */
export const bytes: Parser<ReturnType<Uint8Array['slice']>> = (value, path) => {
  if (typeof value === 'string') return encoder.encode(value)
  return viewBytes(value)?.slice() ?? invalid(path, 'a string or bytes')
}

const encoder = new TextEncoder()

/** The bytes of a view or buffer, in place; undefined for anything else. */
export function viewBytes(value: unknown): Uint8Array | undefined {
  // A Node Buffer becomes a plain view: its own `slice` would not copy.
  if (value?.constructor === Uint8Array) return value as Uint8Array
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  // An ArrayBuffer may come from another realm.
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]' ? new Uint8Array(value as ArrayBuffer) : undefined
}

/** One of a few values. */
export function oneOf<const T extends readonly (string | number | boolean)[]>(...allowed: T): Parser<T[number]> {
  const names = allowed.map((item) => JSON.stringify(item)).join(', ')
  return that((value) => allowed.includes(value as T[number]), names.replace(/, ([^,]*)$/, ' or $1'))
}

/** May be left out, and is then this. */
export function withDefault<T>(parser: Parser<T>, fallback: T): Parser<T> {
  return (value, path) => (value === undefined ? fallback : parser(value, path))
}

/** May be left out. */
export function optional<T>(parser: Parser<T>): Parser<T | undefined> {
  return withDefault<T | undefined>(parser, undefined)
}

/** Pairs of strings, copied (section 2.2.2.2). */
export const userProperties: Parser<[string, string][]> = (value, path) => {
  if (!Array.isArray(value)) return invalid(path, 'an array of [name, value] pairs')
  return value.map((pair: unknown, index) => {
    const at = `${path}[${index}]`
    return Array.isArray(pair) && pair.length === 2 ? [text(pair[0], at), text(pair[1], at)] : invalid(at, 'a pair of strings')
  })
}

/** An object whose fields are all known; left out it is one without fields. Unknown ones are mistakes and refused; undefined ones count as left out. */
export function object<T extends object>(schema: Schema<T>): Parser<T> {
  const names = Object.keys(schema) as (keyof T & string)[]
  // What nobody gave is the same for all.
  let none: T | undefined
  const parse: Parser<T> = (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return invalid(path === '' ? 'options' : path, 'an object')
    const prefix = path === '' ? '' : `${path}.`
    const given = value as Record<string, unknown>
    for (const name of Object.keys(given))
      if (!names.includes(name as keyof T & string) && given[name] !== undefined) invalid(prefix + name, `one of ${names.join(', ')}`)
    const parsed = {} as T
    for (const name of names) parsed[name] = schema[name](given[name], prefix + name)
    return Object.freeze(parsed)
  }
  return (value, path) => {
    if (value !== undefined) return parse(value, path)
    none ??= parse({}, path)
    return none
  }
}
