/**
 * `mqwire/typed/cbor`: payloads in CBOR (RFC 8949). It uses the optional peer `cbor-x`, in the
 * build that generates no code at run time.
 *
 * The library's record extension is off, because no other library reads it.
 *
 * @module
 */
import { Encoder } from 'cbor-x/index-no-eval'
import { type Codec, raise, type SchemaOptions } from './codec.js'
import { assertTime, type Format, packed, type Walk } from './packed.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.js'

const encoder = /* @__PURE__ */ new Encoder({
  useRecords: false,
  mapsAsObjects: true,
  variableMapSize: true,
  tagUint8Array: false,
} as object)

const format: Format = {
  contentType: 'application/cbor',
  pack: (value) => encoder.encode(value),
  unpack: (bytes) => encoder.decode(bytes),
  head,
}

/**
 * CBOR: JSON values, `undefined`, `Date`, `Uint8Array`, and `bigint` of up to 1,024 bits including
 * the sign. Other values are refused before anything is sent, and so are values that a schema
 * refuses on the receiving side. Memory for received values is bounded by the size of the payload.
 * @throws MqttError ERR_INVALID_OPTION as `json`
 */
export function cbor<T = unknown>(): Codec<T>
export function cbor<Schema extends StandardSchema>(
  schema: Schema,
  options: SchemaOptions<SchemaInput<Schema>, SchemaOutput<Schema>>,
): Codec<SchemaOutput<Schema>>
export function cbor<Schema extends StandardSchema>(
  schema: Schema,
): Codec<SchemaInput<Schema>, SchemaOutput<Schema>>
export function cbor(
  schema?: StandardSchema,
  options?: SchemaOptions<unknown, unknown>,
): Codec<unknown> {
  return packed(format, schema, options)
}

/** Most bytes of a big number, because converting one takes time quadratic in its length. */
const longestNumber = 128

// Section 3: three bits of major type, and five bits of a number or of its length in bytes.
function head(walk: Walk): void {
  const first = walk.byte()
  const info = first & 31
  switch (first >> 5) {
    case 0:
    case 1:
      return void lengthOf(walk, info)
    case 2:
      return walk.skip(lengthOf(walk, info))
    case 3:
      return void walk.text(lengthOf(walk, info))
    case 4:
      return walk.enter(info === 31 ? Number.POSITIVE_INFINITY : lengthOf(walk, info))
    case 5:
      return walk.enter(info === 31 ? Number.NEGATIVE_INFINITY : 2 * lengthOf(walk, info))
    case 6:
      return tagged(walk, lengthOf(walk, info))
    default:
      if (info === 31) return walk.end()
      // 20 to 23: false, true, null, undefined. 25 to 27: floats of 2, 4 and 8 bytes.
      if (info >= 20 && info <= 23) return
      return info >= 25 && info <= 27
        ? walk.skip(1 << (info - 24))
        : raise(new Error(`has a simple value that is not known: ${info}`))
  }
}

function lengthOf(walk: Walk, info: number): number {
  if (info < 24) return info
  return info < 28
    ? walk.number(1 << (info - 24))
    : raise(new Error('has a length that is not valid'))
}

/** Times (tags 0, 1) and big numbers (tags 2, 3): section 3.4. */
function tagged(walk: Walk, tag: number): void {
  if (tag > 3) raise(new Error(`has a tag that is not known: ${tag}`))
  const first = walk.byte()
  const [type, info] = [first >> 5, first & 31]
  const isTime =
    tag === 0 ? type === 3 : tag === 1 && (type < 2 || (type === 7 && info >= 25 && info <= 27))
  if (!isTime && !(tag > 1 && type === 2))
    raise(new Error(`has a tag ${tag} on what it does not fit`))
  if (type === 7) return assertTime(1000 * floatOf(walk.view(1 << (info - 24))))
  const length = lengthOf(walk, info)
  if (type === 2 && length > longestNumber)
    raise(new Error(`has a number of more than ${longestNumber} bytes`))
  if (type === 3) assertTime(Date.parse(walk.text(length)))
  else if (type === 2) walk.skip(length)
}

// Floats are read only for times. Of a half float, only whether it is a number matters.
function floatOf(view: DataView): number {
  if (view.byteLength === 2) return (view.getUint16(0) & 0x7c00) === 0x7c00 ? Number.NaN : 0
  return view.byteLength === 4 ? view.getFloat32(0) : view.getFloat64(0)
}
