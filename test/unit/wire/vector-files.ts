/**
 * The byte-exact vectors and the vocabulary to compare with them.
 *
 * Errors are compared by the names that the vectors use; binary values as lower-case hex.
 */
import { readFileSync } from 'node:fs'
import type { Packet, WireError } from '../../../src/wire/index.js'
import { Decoder } from '../../../src/wire/index.js'

export interface Vector {
  name: string
  direction: 'c2s' | 's2c'
  hex: string
  valid: boolean
  layer?: 'codec' | 'role' | 'session'
  error?: string
  acceptErrors?: string[]
  decoded?: unknown
  fill?: { byte: string; count: number }
  context?: { connect?: Record<string, number>; connack?: Record<string, number> }
  statements?: string[]
}

export function readVectors(path: string): Vector[] {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as Vector[]
}

export function bytesOf(vector: Vector): Uint8Array {
  const head = Buffer.from(vector.hex, 'hex')
  if (vector.fill === undefined) return new Uint8Array(head)
  const bytes = new Uint8Array(head.length + vector.fill.count).fill(Number.parseInt(vector.fill.byte, 16))
  bytes.set(head)
  return bytes
}

export function senderOf(vector: Vector): 'client' | 'server' {
  return vector.direction === 'c2s' ? 'client' : 'server'
}

/** Binary values as hex and absent fields left out, as in the files. */
export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).flatMap(([key, field]) => (field === undefined ? [] : [[key, plain(field)]])))
}

const specific: Record<number, string> = {
  129: 'MalformedPacket',
  130: 'ProtocolError',
  132: 'UnsupportedProtocolVersion',
  133: 'ClientIdentifierNotValid',
  148: 'TopicAliasInvalid',
  149: 'PacketTooLarge',
}

export function nameOf(error: WireError): string {
  return error.kind === 'incomplete' ? 'Incomplete' : (specific[error.reasonCode ?? 0] ?? `${error.kind} ${error.reasonCode}`)
}

export interface Outcome {
  packets: unknown[]
  error: { name: string; message: string; offset: number } | undefined
  pending: number
}

/** What a Decoder makes of the chunks, up to and with its first error. */
export function decodeChunks(chunks: Iterable<Uint8Array>, options: ConstructorParameters<typeof Decoder>[0]): Outcome {
  const decoder = new Decoder(options)
  const packets: Packet[] = []
  try {
    for (const chunk of chunks) for (const packet of decoder.push(chunk)) packets.push(packet)
  } catch (caught) {
    const error = caught as WireError
    return { packets: packets.map(plain), error: { name: nameOf(error), message: error.message, offset: error.offset }, pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: decoder.pending }
}

/** Every way to cut the bytes in two, thinned out for long ones. */
export function* splits(bytes: Uint8Array): Generator<[Uint8Array, Uint8Array]> {
  const step = bytes.length > 1000 ? 997 : 1
  for (let at = 0; at <= bytes.length; at += at < 64 || at > bytes.length - 64 ? 1 : step) yield [bytes.slice(0, at), bytes.slice(at)]
}

/** One byte at a time, each in the same buffer, which is overwritten: what keeps a chunk shows. */
export function* drip(bytes: Uint8Array): Generator<Uint8Array> {
  const one = new Uint8Array(1)
  for (const byte of bytes) {
    one[0] = byte
    yield one
    one[0] = 0xee
  }
}
