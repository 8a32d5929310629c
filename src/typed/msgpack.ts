/**
 * `mqwire/typed/msgpack`: payloads in MessagePack. It uses the optional peer `msgpackr`.
 *
 * The library's record extension is off: no other library reads it, and it generates code from
 * received data.
 *
 * @module
 */
import { Packr } from 'msgpackr'
import { type Codec, raise, type SchemaOptions } from './codec.js'
import { assertTime, type Format, packed, type Walk } from './packed.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.js'

const packr = /* @__PURE__ */ new Packr({
  useRecords: false,
  variableMapSize: true,
  encodeUndefinedAsNil: true,
  skipValues: [undefined],
} as object)

const format: Format = {
  contentType: 'application/msgpack',
  pack: (value) => packr.pack(value),
  unpack: (bytes) => packr.unpack(bytes),
  head,
}

/**
 * MessagePack: JSON values, `Date`, `Uint8Array`, and `bigint` of up to 64 bits. Keys whose value
 * is undefined are left out. Other values are refused before anything is sent, and so are values
 * that a schema refuses on the receiving side. Memory for received values is bounded by the size of
 * the payload.
 * @throws MqttError ERR_INVALID_OPTION as `json`
 */
export function msgpack<T = unknown>(): Codec<T>
export function msgpack<Schema extends StandardSchema>(
  schema: Schema,
  options: SchemaOptions<SchemaInput<Schema>, SchemaOutput<Schema>>,
): Codec<SchemaOutput<Schema>>
export function msgpack<Schema extends StandardSchema>(
  schema: Schema,
): Codec<SchemaInput<Schema>, SchemaOutput<Schema>>
export function msgpack(
  schema?: StandardSchema,
  options?: SchemaOptions<unknown, unknown>,
): Codec<unknown> {
  return packed(format, schema, options)
}

/**
 * Number of bytes after the first byte, for first bytes from 0xc0 to 0xd3 that no length follows.
 * For the others see below.
 */
const fixed: Readonly<Record<number, number>> = {
  192: 0,
  194: 0,
  195: 0,
  202: 4,
  203: 8,
  204: 1,
  205: 2,
  206: 4,
  207: 8,
  208: 1,
  209: 2,
  210: 4,
  211: 8,
}

function head(walk: Walk): void {
  const first = walk.byte()
  if (first < 0x80 || first >= 0xe0) return
  if (first < 0x90) return walk.enter(2 * (first & 15))
  if (first < 0xa0) return walk.enter(first & 15)
  if (first < 0xc0) return void walk.text(first & 31)
  const length = fixed[first]
  if (length !== undefined) return walk.skip(length)
  if (first === 0xc1) return raise(new Error('has a byte that MessagePack does not use'))
  // First bytes come in threes, for lengths of 1, 2 and 4 bytes: binary, then extensions.
  if (first < 0xc7) return walk.skip(walk.number(1 << (first - 0xc4)))
  if (first < 0xca) return extension(walk, walk.number(1 << (first - 0xc7)))
  if (first < 0xd9) return extension(walk, 1 << (first - 0xd4))
  if (first < 0xdc) return void walk.text(walk.number(1 << (first - 0xd9)))
  walk.enter(walk.number(first % 2 === 0 ? 2 : 4) * (first < 0xde ? 1 : 2))
}

// The standard defines one extension, the timestamp; the library's own are not accepted.
function extension(walk: Walk, length: number): void {
  const type = walk.byte()
  if (type !== 0xff || ![4, 8, 12].includes(length))
    raise(new Error(`has an extension of type ${(type << 24) >> 24}, and is no time`))
  const view = walk.view(length)
  // 64 bits of seconds follow the nanoseconds.
  if (length === 12) assertTime(Number(view.getBigInt64(4)) * 1000)
}
