/**
 * Codecs convert between the values of a program and the payloads of messages.
 *
 * An error thrown by a codec becomes the cause of an `ERR_INVALID_PAYLOAD`. The codecs of this file
 * keep no reference to the bytes that they decode.
 */

import type { Message } from '../client/options/index.js'
import { MqttError, type PayloadIssue, printable, textOf } from '../errors.js'
import { refuse } from './refuse.js'
import type { SchemaInput, SchemaOutput, SchemaResult, StandardSchema } from './standard-schema.js'
import { isHalf } from './template.js'

/** Converts values to payloads and back, synchronously or asynchronously. */
export interface Codec<In, Out = In> {
  /**
   * Returns the payload of a value, or a promise of it. Throw for a value that cannot be encoded.
   */
  encode(value: In): Uint8Array | string | Promise<Uint8Array | string>
  /**
   * Returns the value of a payload, or a promise of it. Throw for a payload that is not valid. The
   * codec may keep and change `bytes`, unless {@link inPlace} is set.
   */
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

/**
 * A codec whose `decode` uses only the bytes, such as functions of a library that may have further
 * optional parameters.
 */
export interface BytesCodec<In, Out = In> extends Omit<Codec<In, Out>, 'decode'> {
  /** As `decode` of a {@link Codec}. */
  decode(bytes: Uint8Array): Out | Promise<Out>
}

/**
 * Returns a codec unchanged, with its types inferred.
 * @throws MqttError ERR_INVALID_OPTION when `encode` or `decode` is not a function
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

/** Text in UTF-8. Other bytes are an invalid payload. */
export function text(): Codec<string> {
  const format = (value: string): string =>
    isText(value) ? value : raise(bad('is no well-formed text'))
  return textual('text/plain', format, (value) => value)
}

/** True for a string without lone surrogates, which UTF-8 cannot encode. */
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

/** Bytes unchanged, copied into an array of their own. */
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

/**
 * Values that JSON writes and reads unchanged. Recursive types are compared with it instead of
 * being expanded endlessly.
 */
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
   * Maps an output value back to the schema's input: for example a `Date` to the ISO text from
   * which the schema creates it. Publishers and receivers then use the same type. Default: none;
   * publishers pass the schema's input.
   */
  encode(value: Out): In | Promise<In>
}

/**
 * JSON. With a schema, values are checked before they are sent, in the form that receivers will
 * read, and received values are the schema's output.
 * @throws MqttError ERR_INVALID_OPTION for an invalid schema, or an `encode` that is not a function
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
    // `__proto__` is removed: it is not checked here, but other programs would read it.
    return given.includes('"__proto__":') ? JSON.stringify(parse(given)) : given
  }
  const { encode, decode, ...more } = withSchema(schema, options, format, parse)
  return Object.assign(textual<unknown>('application/json', encode as never, decode), more)
}

/**
 * Encodes and decodes values, checked against a schema if there is one. The encoded form is decoded
 * and checked, so changes by the caller during an asynchronous check have no effect.
 * @param copy copies the raw form, for a `read` whose result shares its memory, because a schema
 * may modify that
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
    // U+FFFD replaces invalid UTF-8, unless the text itself contains it; decoding the bytes again
    // shows which.
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
  // Not awaited here, so that a synchronous schema stays synchronous.
  return (value, remote) =>
    after(standard.validate(value), (result) =>
      result.issues === undefined ? result : raise(invalid(result.issues, undefined, remote)),
    )
}

function outputOf(result: SchemaResult<unknown>): unknown {
  return (result as { value: unknown }).value
}

/** Calls `next` with a value: now, or when its promise has fulfilled. */
export function after<T, R>(value: T | PromiseLike<T>, next: (value: T) => R): R | Promise<R> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

/** True for any thenable. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | undefined)?.then === 'function'
}

/** The error for an invalid payload. */
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

/** Converts an error thrown by a codec to `ERR_INVALID_PAYLOAD`. */
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

/** `throw` as an expression. */
export function raise(error: unknown): never {
  throw error
}
