/**
 * Payloads that are no text, as text: CBOR, MessagePack, Protobuf, base64; and which of them are pictures.
 *
 * The codecs of the package allocate no more than a payload has bytes. Pure.
 */
import { createFileRegistry, fromBinary, toJson } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { cbor } from 'mqwire/typed/cbor'
import { msgpack } from 'mqwire/typed/msgpack'
import { base64Of } from './bytes.js'

/** Bytes of a payload that is decoded, of a descriptor and of a picture; message types of a descriptor; levels of a value. */
export const limits = {
  bytes: 65_536,
  descriptor: 4 * 1024 * 1024,
  picture: 8 * 1024 * 1024,
  types: 1000,
  depth: 32,
}

const types = {
  cbor: /^application\/(?:cbor|[\w.-]+\+cbor)$/,
  msgpack: /^application\/(?:(?:vnd\.|x-)?msgpack|[\w.-]+\+msgpack)$/,
  protobuf: /^application\/(?:(?:vnd\.google\.|x-)?protobuf|[\w.-]+\+protobuf)$/,
}

/** What pictures begin with; of WebP, after the name and size of the file that it is in. */
const pictures = {
  'image/png': '\x89PNG\r\n',
  'image/jpeg': '\xff\xd8\xff',
  'image/gif': 'GIF8',
  'image/webp': 'WEBP',
}

/** The media type of a picture; undefined for other bytes. */
export function pictureType(bytes) {
  const start = String.fromCharCode(...bytes.subarray(0, 12)).replace(/^RIFF.{4}/s, '')
  const [type] = Object.entries(pictures).find(([, magic]) => start.startsWith(magic)) ?? []
  return type
}

/** The format that a content type promises, or that the bytes show; undefined for others. */
export function promisedFormat(bytes, contentType = '') {
  if (pictureType(bytes) !== undefined) return 'image'
  const type = contentType.toLowerCase().split(';')[0].trim()
  return Object.keys(types).find((format) => types[format].test(type))
}

const decoders = { cbor: cbor(), msgpack: msgpack() }

/** A payload as text: `{ text, note }`. `schema` describes the messages of Protobuf. */
export function decode(bytes, format, schema) {
  if (format === 'base64') {
    const shown = bytes.subarray(0, limits.bytes)
    return { text: base64Of(shown).replace(/.{76}/g, '$&\n'), note: cutNote(bytes, limits.bytes) }
  }
  if (bytes.length > limits.bytes)
    return { text: '', note: `It has more than ${limits.bytes.toLocaleString('en')} bytes.` }
  if (format === 'protobuf' && schema === undefined)
    return {
      text: '',
      note: 'Open a descriptor: protoc --include_imports --descriptor_set_out=FILE',
    }
  try {
    const value =
      format === 'protobuf'
        ? toJson(schema.type, fromBinary(schema.type, bytes), { registry: schema.registry })
        : decoders[format].decode(bytes.slice(), {})
    return { text: printed(value), note: '' }
  } catch (error) {
    return { text: '', note: `This is no ${names[format]}: ${error.message}` }
  }
}

const names = { cbor: 'CBOR', msgpack: 'MessagePack', protobuf: 'message of this type' }

/** What is said of bytes that are not shown. */
export const cutNote = (bytes, limit) =>
  bytes.length > limit
    ? `Cut at ${limit.toLocaleString('en')} of ${bytes.length.toLocaleString('en')} bytes.`
    : ''

/** The message types of a descriptor set: name to `{ type, registry }`. @throws Error when it is none */
export function typesIn(bytes) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes))
  const found = [...registry].filter(({ kind }) => kind === 'message').slice(0, limits.types)
  if (found.length === 0) throw new Error('it has no message types')
  return new Map(found.map((type) => [type.typeName, { type, registry }]))
}

/** A value as JSON, and in it what JSON has no words for. */
function printed(value, level = 0) {
  if (level > limits.depth) return '…'
  if (value instanceof Uint8Array) return `h'${hexOf(value)}'`
  if (value instanceof Date) return `"${value.toISOString()}"`
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
  const isList = Array.isArray(value)
  const parts = isList
    ? value.map((each) => printed(each, level + 1))
    : Object.entries(value).map(
        ([name, each]) => `${JSON.stringify(name)}: ${printed(each, level + 1)}`,
      )
  const [open, close] = isList ? '[]' : '{}'
  if (parts.length === 0) return open + close
  const indent = '  '.repeat(level + 1)
  return `${open}\n${indent}${parts.join(`,\n${indent}`)}\n${'  '.repeat(level)}${close}`
}

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
