/**
 * Parsers for option objects. The parser of a field returns the checked value, or throws a typed
 * error that names the option and its allowed values.
 *
 * The caller's object is read once and never changed; the result is a frozen copy with every field
 * present.
 */

import { MqttError, type MqttErrorCode, printable, programFault, textOf } from '../errors.js'
import { utf8Length } from '../wire/utf8.js'
import { isObject } from '../wire/writer.js'

/** Longest delay of timers, in milliseconds. */
export const longestTimer = 2_147_483_647

/** Checks a value; `path` names it in errors. */
export type Parser<T> = (value: unknown, path: string) => T

/** Checks an object; `path` is empty for a whole options object. */
export type Options<T> = (value: unknown, path?: string) => T

/** One parser per field. */
export type Schema<T> = { readonly [K in keyof T]-?: Parser<T[K]> }

/** The result type of a schema. */
export type Parsed<S> = { readonly [K in keyof S]: S[K] extends Parser<infer T> ? T : never }

/**
 * An error about an option, an argument or one of its fields; by default with the message of the
 * code.
 */
export function optionError(code: MqttErrorCode, option: string, message?: string): MqttError {
  return new MqttError(code, message, { option })
}

/** Refuses an option. `data`: the type is right, so the value may come from the program's data. */
export function invalid(path: string, expected: string, data = false): never {
  const error = optionError('ERR_INVALID_OPTION', path, `${path} must be ${expected}`)
  throw data ? error : programFault(error)
}

/** Refuses an extra argument, such as a callback. @throws MqttError ERR_INVALID_OPTION */
export function assertLast(
  more: unknown,
  callback = 'no callback: await the promise',
  other = 'fewer arguments',
): void {
  if (more === undefined) return
  const takes = typeof more === 'function' ? callback : other
  throw programFault(optionError('ERR_INVALID_OPTION', 'options', `this call takes ${takes}`))
}

/** The error for an option that is not supported here. */
export function unsupported(option: string, where = 'on MQTT 3.1.1'): MqttError {
  return optionError('ERR_UNSUPPORTED_OPTION', option, `unsupported option: ${option} ${where}`)
}

/** Refuses options, naming the first. @throws MqttError ERR_UNSUPPORTED_OPTION */
export function assertNone([refused]: readonly string[]): void {
  if (refused !== undefined) throw unsupported(refused)
}

/** @throws MqttError ERR_INVALID_HANDLER */
export function assertHandler(value: unknown, option: string, hint = ''): void {
  if (typeof value !== 'function')
    throw programFault(
      optionError('ERR_INVALID_HANDLER', option, `${option} must be a function${hint}`),
    )
}

/** The beginning of a text, safe to print. */
export function quoted(given: string): string {
  return `"${printable(given.length > 64 ? `${given.slice(0, 64)}…` : given)}"`
}

/** Names in other clients, and what to use here; some only beside another option. */
const former = {
  option: `tls headers protocols socket transport:the endpoint, as { url, * }:clientId
ca cert key pfx:tls of the endpoint
rejectUnauthorized:tls.insecure of the endpoint
host hostname path port protocol servers:the URL
wsOptions:headers of the endpoint
transformWsUrl:credentials
reconnectPeriod:reconnect.backoff
queueQoSZero:outbound.offline.qos0
incomingStore outgoingStore:store
log:logger
message:payload
contentType responseTopic correlationData messageExpiryInterval payloadFormatIndicator userProperties:properties.*
topic:filter`,
  event: `message subscribe:subscribe() or listen()
close end offline:disconnect, state`,
}

/**
 * Refuses an unknown name and suggests a replacement, or the most similar name (by common pairs of
 * letters). `path` is the option at fault.
 */
export function unknown(
  path: string,
  what: 'option' | 'event',
  given: string,
  names: readonly string[],
  prefix = '',
): never {
  const near = names.reduce((best, name) =>
    likeness(given, name) > likeness(given, best) ? name : best,
  )
  const rows = former[what].split('\n').map((row) => row.split(':') as [string, string, string?])
  const other = rows.find(
    ([old, , beside]) =>
      old.split(' ').includes(near === 'message' ? near : given) &&
      (beside === undefined || names.includes(beside)),
  )
  const meant = other?.[1].replace('*', given) ?? (likeness(given, near) > 0.2 && near)
  const text = `unknown ${what} ${printable(prefix + given)}${meant ? `; did you mean ${meant}?` : ''}`
  throw programFault(optionError('ERR_INVALID_OPTION', path, text))
}

function likeness(given: string, name: string): number {
  let shared = 0
  for (let at = 0; at + 1 < name.length; at++)
    if (given.toLowerCase().includes(name.slice(at, at + 2).toLowerCase())) shared += 1
  return shared / (given.length + name.length)
}

/**
 * A value that passes a test, unchanged. With `shown`, the error includes the value, so it must not
 * be secret. Values of the type `data` may come from the program's data.
 */
export function that<T>(
  passes: (value: unknown) => boolean,
  expected: string,
  shown = false,
  data?: 'number' | 'string',
): Parser<T> {
  return (value, path) => {
    if (passes(value)) return value as T
    const text = shown
      ? `${expected}, not ${typeof value === 'string' ? quoted(value) : printable(textOf(value))}`
      : expected
    return invalid(path, text, typeof value === data)
  }
}

/** An integer in a range. */
export function integer(min: number, max: number, unit = ''): Parser<number> {
  return that(
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    `a whole number from ${min} to ${max}${unit}`,
    true,
    'number',
  )
}

/** Milliseconds. */
export const duration: Parser<number> = that(
  (value) => typeof value === 'number' && value >= 0 && value <= longestTimer,
  `from 0 to ${longestTimer} milliseconds`,
  true,
  'number',
)

/** A count that may be Infinity. */
export const limit: Parser<number> = that(
  (value) =>
    value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && (value as number) > 0),
  'a whole number above 0, or Infinity',
  true,
  'number',
)

export const boolean: Parser<boolean> = that(
  (value) => typeof value === 'boolean',
  'true or false',
  true,
)

export const string: Parser<string> = that((value) => typeof value === 'string', 'a string')

/** A string that can be sent as a UTF-8 Encoded String (section 1.5.4). */
export const text: Parser<string> = that(
  (value) => {
    const length = typeof value === 'string' ? utf8Length(value) : -1
    return length >= 0 && length <= 65_535
  },
  'well-formed text of at most 65,535 bytes',
  false,
  'string',
)

/** Any function; its parameters are up to the caller's types. */
export const callable: Parser<never> = that((value) => typeof value === 'function', 'a function')

/**
 * A value that the parser accepts, or any function, whose parameters are up to the caller's types.
 */
export function orFunction<T>(parse: Parser<T>): Parser<never> {
  return (value, path) => (typeof value === 'function' ? value : parse(value, path)) as never
}

/** Any object. */
export const anyObject: Parser<object> = that(
  (value) => typeof value === 'object' && value !== null,
  'an object',
)

/** An abort signal of any realm. */
export const signal: Parser<AbortSignal> = that(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    'aborted' in value &&
    'addEventListener' in value,
  'an AbortSignal',
)

/** Encodes text as UTF-8. */
export const encoder: InstanceType<typeof TextEncoder> = /* @__PURE__ */ new TextEncoder()

/** Bytes in any of the platform's forms, not copied; a string is encoded as UTF-8. */
export const givenBytes: Parser<Uint8Array> = (value, path) =>
  typeof value === 'string'
    ? encoder.encode(value)
    : (viewBytes(value) ?? invalid(path, `a string or bytes, not ${wayOut(value)}`))

// Describes a value given instead of bytes, and how to convert it.
function wayOut(value: unknown): string {
  if (value === undefined || value === null) return `${value}: '' is an empty payload`
  if (typeof value !== 'object')
    return `${typeof value}${typeof value === 'function' ? '' : ': String() it'}`
  if (Array.isArray(value)) return 'an array: JSON.stringify() it, or Uint8Array.from() it'
  if (typeof (value as PromiseLike<unknown>).then === 'function') return 'a promise: await it'
  if (typeof (value as Blob).arrayBuffer === 'function')
    return 'a Blob: await blob.arrayBuffer() first'
  return 'an object: JSON.stringify() it'
}

/** The same, copied. */
export const bytes: Parser<ReturnType<Uint8Array['slice']>> = (value, path) =>
  givenBytes(value, path).slice()

/** The bytes of a view or buffer, not copied; undefined for anything else. */
export function viewBytes(value: unknown): Uint8Array | undefined {
  // A Node Buffer becomes a plain view, because its `slice` does not copy.
  if (value?.constructor === Uint8Array) return value as Uint8Array
  if (ArrayBuffer.isView(value))
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  // An ArrayBuffer may come from another realm.
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
    ? new Uint8Array(value as ArrayBuffer)
    : undefined
}

/** One of a few values. */
export function oneOf<const T extends readonly (string | number | boolean)[]>(
  ...allowed: T
): Parser<T[number]> {
  const names = allowed.map((item) => JSON.stringify(item)).join(', ')
  return that(
    (value) => allowed.includes(value as T[number]),
    names.replace(/, ([^,]*)$/, ' or $1'),
    true,
  )
}

/** An optional value with a default. */
export function withDefault<T>(parser: Parser<T>, fallback: T): Parser<T> {
  return (value, path) => (value === undefined ? fallback : parser(value, path))
}

/** An optional value. */
export function optional<T>(parser: Parser<T>): Parser<T | undefined> {
  return withDefault<T | undefined>(parser, undefined)
}

/** Names of the settings that have a value. */
export function settingsIn(settings: object): string[] {
  return Object.keys(settings).filter(
    (name) => (settings as Record<string, unknown>)[name] !== undefined,
  )
}

/** True when at least one setting has a value. */
export function hasSettings(settings: object): boolean {
  return settingsIn(settings).length > 0
}

const list: Parser<readonly unknown[]> = that(
  Array.isArray,
  'an array of pairs of strings, as Object.entries() gives',
)
const pair: Parser<readonly unknown[]> = that(
  (value) => Array.isArray(value) && value.length === 2,
  'a pair of strings',
)

/** Pairs of strings, copied (section 2.2.2.2). */
export const userProperties: Parser<[string, string][]> = (value, path) =>
  list(value, path).map((item, index) => {
    const at = `${path}[${index}]`
    return pair(item, at).map((part) => text(part, at)) as [string, string]
  })

/**
 * An object with only known fields; undefined counts as an empty object. Unknown fields are
 * refused; undefined ones count as absent. `example` and `callback` are hints for errors when
 * something else, or a function, is given. In a `sparse` result only given fields are own
 * properties; its prototype has the defaults, which many results then share.
 */
export function object<T extends object>(
  schema: Schema<T>,
  example = '',
  callback = 'await the promise',
  sparse = false,
): Options<T> {
  const names = Object.keys(schema) as (keyof T & string)[]
  // What each parser gives for undefined.
  const defaults = Object.create(null) as Partial<T>
  // The result for undefined, shared by all calls.
  let none: T | undefined
  return function parse(value: unknown, path = ''): T {
    if (value === undefined) {
      none ??= parse({}, path)
      return none
    }
    if (typeof value === 'function')
      return invalid(path || 'options', `an object, not a callback: ${callback}`)
    if (!isObject(value)) return invalid(path || 'options', `an object${example}`)
    const prefix = path && `${path}.`
    const given = value as Record<string, unknown>
    for (const name of Object.keys(given))
      if (!names.includes(name as keyof T & string) && given[name] !== undefined)
        unknown(prefix + name, 'option', name, names, prefix)
    const parsed = (sparse ? Object.create(defaults) : {}) as T
    for (const name of names) {
      const field = given[name]
      if (field !== undefined) parsed[name] = schema[name](field, prefix + name)
      else {
        if (!(name in defaults)) defaults[name] = schema[name](field, prefix + name)
        if (!sparse) parsed[name] = defaults[name] as T[typeof name]
      }
    }
    return Object.freeze(parsed)
  }
}
