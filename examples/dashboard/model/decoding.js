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

/** Bytes of a payload that is decoded, and characters of it as text; bytes of a descriptor and of a picture; levels of a value. */
export const limits = {
  bytes: 65_536,
  descriptor: 4 * 1024 * 1024,
  picture: 8 * 1024 * 1024,
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

/** The format that a content type promises; undefined for others. */
export function promisedFormat(bytes, contentType = '') {
  const type = contentType.toLowerCase().split(';')[0].trim()
  if (type.startsWith('image/') && pictureType(bytes) !== undefined) return 'image'
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
    if (format === 'protobuf') return decodeMessage(bytes, schema)
    return printed(decoders[format].decode(withoutMark(bytes), {}))
  } catch (error) {
    return { text: '', note: `Not shown as ${names[format]}: ${error.message}` }
  }
}

const names = { cbor: 'CBOR', msgpack: 'MessagePack', protobuf: 'this type' }

/** CBOR may begin with three bytes that say no more than that it is CBOR (RFC 8949, section 3.4.6). */
const withoutMark = (bytes) =>
  bytes.slice(bytes[0] === 0xd9 && bytes[1] === 0xd9 && bytes[2] === 0xf7 ? 3 : 0)

function decodeMessage(bytes, { type, registry }) {
  const message = fromBinary(type, bytes)
  const { text, note } = printed(toJson(type, message, { registry }))
  const isKnown = message.$unknown === undefined
  return { text, note: isKnown ? note : `It has fields that ${type.name} does not have. ${note}` }
}

/** What is said of bytes that are not shown. */
export const cutNote = (bytes, limit) =>
  bytes.length > limit
    ? `Cut at ${limit.toLocaleString('en')} of ${bytes.length.toLocaleString('en')} bytes.`
    : ''

/** The message types of a descriptor set: name to `{ type, registry }`. @throws Error when it is none */
export function typesIn(bytes) {
  const set = fromBinary(FileDescriptorSetSchema, bytes)
  const registry = createFileRegistry(set)
  const files = set.file.map(({ name }) => name)
  // What a file imports stands before it: the last one is what it is about.
  const rank = ({ file }) => -files.indexOf(file.proto.name)
  const found = [...registry]
    .filter(({ kind }) => kind === 'message')
    .sort((one, other) => rank(one) - rank(other))
  if (found.length === 0) throw new Error('it has no message types')
  return new Map(found.map((type) => [type.typeName, { type, registry }]))
}

/** A value as JSON, and in it what JSON has no words for: `{ text, note }`, of as many characters as are shown. */
function printed(value) {
  const parts = []
  let room = limits.bytes
  const write = (text) => {
    room -= text.length
    parts.push(text)
  }
  const walk = (each, level) => {
    if (room <= 0) return
    if (typeof each !== 'object' || each === null || isScalar(each)) return write(scalar(each))
    const isList = Array.isArray(each)
    const [open, close] = isList ? '[]' : '{}'
    const names = Object.keys(each)
    if (names.length === 0 || level === limits.depth)
      return write(names.length === 0 ? open + close : '…')
    const line = `\n${'  '.repeat(level + 1)}`
    write(open)
    for (const [index, name] of names.entries()) {
      if (room <= 0) return
      write(`${index === 0 ? '' : ','}${line}${isList ? '' : `${JSON.stringify(name)}: `}`)
      walk(each[name], level + 1)
    }
    write(line.slice(0, -2) + close)
  }
  walk(value, 0)
  const note = room <= 0 ? `Cut at ${limits.bytes.toLocaleString('en')} characters.` : ''
  return { text: parts.join('').slice(0, limits.bytes), note }
}

const isScalar = (value) => value instanceof Uint8Array || value instanceof Date

function scalar(value) {
  if (value instanceof Uint8Array) return `h'${hexOf(value)}'`
  if (value instanceof Date) return `"${value.toISOString()}"`
  const isPlain = typeof value !== 'bigint' && (typeof value !== 'number' || Number.isFinite(value))
  return isPlain ? (JSON.stringify(value) ?? 'undefined') : String(value)
}

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
