/**
 * Codecs: between the values of a program and the payloads of messages.
 *
 * What a codec throws becomes `ERR_INVALID_PAYLOAD`, with what it threw as the cause. None keeps the bytes that it was given.
 */

import type { Message } from '../client/options/index.js'
import { MqttError, type PayloadIssue, printable, textOf } from '../errors.js'
import { refuse } from './refuse.js'
import type { SchemaInput, SchemaOutput, SchemaResult, StandardSchema } from './standard-schema.js'
import { isHalf } from './template.js'

/** How values become payloads, and payloads values: at once, or later. */
export interface Codec<In, Out = In> {
  /** The payload of a value, or the promise of one. Throw for a value that has none. */
  encode(value: In): Uint8Array | string | Promise<Uint8Array | string>
  /** The value of a payload, or the promise of one. Throw for a payload that has none. The codec may keep and change `bytes`, unless {@link inPlace} is set. */
  decode(bytes: Uint8Array, message: Message): Out | Promise<Out>
  /**
   * Content Type sent with messages and compared on receipt: a different one means an invalid
   * payload, a missing one is accepted (section 3.3.2.3.9). Default: none.
   */
  readonly contentType?: string | undefined
  /** 1 for UTF-8 text; sent along (section 3.3.2.3.2). Default: none. */
  readonly payloadFormatIndicator?: 0 | 1 | undefined
  /**
   * True: `decode` keeps no view of `bytes`, and the result of `encode` is not changed later, so
   * neither is copied. Default false.
   */
  readonly inPlace?: boolean | undefined
}

/** A codec that looks at bytes alone: of a library, whose functions may take options of their own besides. */
export interface BytesCodec<In, Out = In> extends Omit<Codec<In, Out>, 'decode'> {
  /** As `decode` of a {@link Codec}. */
  decode(bytes: Uint8Array): Out | Promise<Out>
}

/**
 * Returns a codec unchanged, with its types inferred. @throws MqttError ERR_INVALID_OPTION when
 * `encode` or `decode` is not a function
 */
export function codec<In, Out = In>(given: Codec<In, Out>): Codec<In, Out>
export function codec<In, Out = In>(given: BytesCodec<In, Out>): Codec<In, Out>
export function codec<In, Out = In>(given: Codec<In, Out>): Codec<In, Out> {
  for (const name of ['encode', 'decode'] as const)
    if (typeof given?.[name] !== 'function') refuse(name, 'must be a function')
  return given
}

/**
 * Reads the message itself instead of its payload, as an optimisation of one particular `decode`.
 */
export type Reading<Out> = ((bytes: Uint8Array, message: Message) => Out) & {
  /** As `decode`. */
  readonly read?: ((message: Message) => Out) | undefined
}

/** Codecs that check values against a schema. */
export interface CheckedCodec<In, Out> extends Codec<In, Out> {
  /** The schema that values are checked against. */
  readonly schema: StandardSchema
}

const utf8 = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Text in UTF-8. Bytes that are not UTF-8 are a bad payload. */
export function text(): Codec<string> {
  const format = (value: string): string =>
    isText(value) ? value : raise(bad('is no well-formed text'))
  return textual('text/plain', format, (value) => value)
}

/** False unless it is a string without lone surrogates, which would change on the way. */
export function isText(value: unknown): boolean {
  if (typeof value !== 'string') return false
  for (const character of value) if (isHalf(character)) return false
  return true
}

/** A finite number as decimal text. */
export function number(): Codec<number> {
  const parse = (given: string): number => {
    const value = isDecimal(given.trim()) ? Number(given) : Number.NaN
    return Number.isFinite(value) ? value : raise(bad('is no number', true))
  }
  const format = (value: number): string =>
    Number.isFinite(value) ? String(value) : raise(bad('is no finite number'))
  return textual('text/plain', format, parse)
}

// `Number` would also accept empty text and other bases.
function isDecimal(given: string): boolean {
  for (const unit of given) if (!'0123456789+-.eE'.includes(unit)) return false
  return given !== ''
}

/** Bytes as they are, in an array of their own. */
export function bytes(): Codec<Uint8Array> {
  const own = (value: unknown): Uint8Array =>
    value instanceof Uint8Array ? value : raise(bad('are no bytes'))
  return { encode: own, decode: (given) => new Uint8Array(given), inPlace: true }
}

/**
 * The type of a value after JSON: a `Date` becomes text, a `Map` an empty object, a `bigint` is
 * impossible.
 */
export type FromJson<T> = [T] extends [JsonData] ? T : [T] extends [Reread<T>] ? T : Reread<T>

/** Values that JSON writes and reads as they are. Recursive types are compared with it, and not taken apart without end. */
export type JsonData =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly JsonData[]
  | { readonly [Name in string]: JsonData }

type Reread<T> = unknown extends T
  ? T
  : T extends JsonData
    ? T
    : T extends { toJSON(...given: never[]): infer Written }
      ? Reread<Written>
      : T extends bigint
        ? never
        : T extends symbol | ((...given: never[]) => unknown)
          ? undefined
          : T extends ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
            ? Readonly<Record<string, never>>
            : { [Key in keyof T]: Reread<T[Key]> }

/** Options of codecs with a schema. */
export interface SchemaOptions<In, Out> {
  /**
   * Maps a value back to what the schema takes: to an ISO text, for a schema that makes a `Date` of it. Then what is published is what is received. Default:
   * what the schema takes is published.
   */
  encode(value: Out): In | Promise<In>
}

/**
 * JSON. With a schema, values are checked before they are sent, as their receivers will read them, and what comes is what the schema makes of it.
 * @throws MqttError ERR_INVALID_OPTION for what is no schema, or an `encode` that is no function
 */
export function json<T = unknown>(): Codec<T, FromJson<T>>
export function json<Schema extends StandardSchema>(
  schema: Schema,
  options: SchemaOptions<SchemaInput<Schema>, SchemaOutput<Schema>>,
): Codec<SchemaOutput<Schema>>
export function json<Schema extends StandardSchema>(
  schema: Schema,
): Codec<SchemaInput<Schema>, SchemaOutput<Schema>>
export function json(
  schema?: StandardSchema,
  options?: SchemaOptions<unknown, unknown>,
): Codec<unknown> {
  const parse = (given: string): unknown => {
    const escaped = given.includes('__proto__') || given.includes('\\u')
    return JSON.parse(
      given,
      escaped ? (key, value) => (key === '__proto__' ? undefined : value) : undefined,
    )
  }
  const format = (value: unknown): string => {
    const given = JSON.stringify(value) ?? raise(bad('has no JSON'))
    // Other programs would read `__proto__`, which is neither read nor checked here.
    return given.includes('"__proto__":') ? JSON.stringify(parse(given)) : given
  }
  const { encode, decode, ...more } = withSchema(schema, options, format, parse)
  return Object.assign(textual<unknown>('application/json', encode as never, decode), more)
}

/**
 * Writes and reads values of a schema, where there is one. What leaves is checked as it will be read, whatever the caller does to it meanwhile.
 * @param copy where what is read may be part of what it is read from: a schema may write to it
 */
export function withSchema<Raw>(
  schema: StandardSchema | undefined,
  options: SchemaOptions<unknown, unknown> | undefined,
  write: (value: unknown) => Raw,
  read: (raw: Raw) => unknown,
  copy: (raw: Raw) => Raw = (raw) => raw,
): {
  encode(value: unknown): Raw | Promise<Raw>
  decode(raw: Raw): unknown
  readonly schema?: StandardSchema
} {
  if (schema === undefined) return { encode: write, decode: read }
  const validate = validatorOf(schema)
  const map = options?.encode
  if (options !== undefined && typeof map !== 'function') refuse('encode', 'must be a function')
  const written = (value: unknown): Raw | Promise<Raw> => {
    const raw = write(value)
    return after(validate(read(copy(raw)), false), () => raw)
  }
  return {
    encode: (value) =>
      map === undefined
        ? written(value)
        : (after(map(value), (made): Raw | Promise<Raw> => written(made)) as Raw | Promise<Raw>),
    decode: (raw) => after(validate(read(raw), true), outputOf),
    schema,
  }
}

function textual<T>(
  contentType: string,
  encode: (value: T) => string,
  parse: (text: string) => T,
): Codec<T> {
  const decode = (given: Uint8Array): T => parse(utf8.decode(given))
  const read = (message: Message): T => {
    const given = message.text()
    // Only bytes that are no text give this, or text that holds it.
    return given.includes('\ufffd') ? decode(message.payload) : parse(given)
  }
  return {
    encode,
    decode: Object.assign(decode, { read }),
    contentType,
    payloadFormatIndicator: 1,
    inPlace: true,
  }
}

type Validate = (
  value: unknown,
  remote: boolean,
) => SchemaResult<unknown> | Promise<SchemaResult<unknown>>

function validatorOf(schema: StandardSchema): Validate {
  const standard = (schema as StandardSchema | undefined)?.['~standard']
  if (typeof standard?.validate !== 'function') refuse('schema', 'must be a Standard Schema')
  // Starts immediately, so that everyone waiting gets the error.
  return (value, remote) =>
    after(standard.validate(value), (result) =>
      result.issues === undefined ? result : raise(invalid(result.issues, undefined, remote)),
    )
}

function outputOf(result: SchemaResult<unknown>): unknown {
  return (result as { value: unknown }).value
}

/** Goes on with a value now, or with that of a promise once it is there. */
export function after<T, R>(value: T | PromiseLike<T>, next: (value: T) => R): R | Promise<R> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

/** True for whatever has a `then`. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | undefined)?.then === 'function'
}

/** The error of a payload. */
export function invalid(
  issues: readonly PayloadIssue[],
  cause?: unknown,
  remote = false,
): MqttError {
  const [first] = issues
  const place = first?.path
    ?.map((step) => textOf(typeof step === 'object' ? step.key : step))
    .join('.')
  const message = `invalid payload: ${place ? `${place}: ` : ''}${textOf(first?.message ?? 'no issue is named')}`
  return new MqttError('ERR_INVALID_PAYLOAD', printable(message), {
    issues,
    cause,
    fault: remote ? 'remote' : 'local',
  })
}

/** Whatever was thrown by a codec, as the error of a payload. */
export function asInvalid(error: unknown, remote = false): MqttError {
  const known = MqttError.is(error) && error.code === 'ERR_INVALID_PAYLOAD'
  if (known && (!remote || error.fault === 'remote')) return error
  return invalid(
    known
      ? (error.issues ?? [])
      : [{ message: error instanceof Error ? error.message : textOf(error) }],
    known ? error.cause : error,
    remote,
  )
}

function bad(what: string, remote = false): MqttError {
  return invalid([{ message: what }], undefined, remote)
}

/** Throws, where an expression is asked for. */
export function raise(error: unknown): never {
  throw error
}
