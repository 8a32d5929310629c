/**
 * The byte-exact vectors and the vocabulary to compare with them.
 *
 * Errors are compared by the names that the vectors use; binary values as lower-case hex.
 */
import { readFileSync } from 'node:fs'
import { Decoder, type Packet, WireError } from '../../../src/wire/index.js'
import { Scanner, type ScanOptions } from '../../../src/wire/scanner.js'
import { thrown } from './hex.js'

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

/** A file of objects; that of 3.1.1 is shorter: a text with name, direction, bytes and errors, and behind it what a valid one decodes to. */
export function readVectors(path: string): Vector[] {
  const entries = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as (
    | Vector
    | string
  )[]
  return entries.flatMap((entry, index) => {
    if (typeof entry !== 'string') return path.includes('311') ? [] : [entry]
    const [name = '', direction, hex = '', ...acceptErrors] = entry.split(' ')
    const vector = { name, direction: direction as Vector['direction'], hex }
    const [error] = acceptErrors
    return [
      error === undefined
        ? { ...vector, valid: true, decoded: whole(entries[index + 1]) }
        : { ...vector, valid: false, error, acceptErrors },
    ]
  })
}

// What a vector of 3.1.1 leaves out, by packet type and for the parts of two.
const usual: Readonly<Record<string, object>> = {
  connect: {
    protocolName: 'MQTT',
    protocolVersion: 4,
    cleanStart: true,
    keepAlive: 60,
    clientId: 'c',
  },
  will: { retain: false, properties: {} },
  publish: { qos: 0, dup: false, retain: false },
  subscriptions: { noLocal: false, retainAsPublished: false, retainHandling: 0 },
  ...Object.fromEntries(
    ['puback', 'pubrec', 'pubrel', 'pubcomp', 'disconnect'].map((type) => [
      type,
      { reasonCode: 0 },
    ]),
  ),
}

function whole(given: unknown): unknown {
  const packet = { ...(given as { type: string; will?: object; subscriptions?: object[] }) }
  if (packet.type.startsWith('ping')) return packet
  if (packet.will !== undefined) packet.will = { ...usual['will'], ...packet.will }
  if (packet.subscriptions !== undefined)
    packet.subscriptions = packet.subscriptions.map((each) => ({
      ...usual['subscriptions'],
      ...each,
    }))
  return { properties: {}, ...usual[packet.type], ...packet }
}

export function bytesOf(vector: Vector): Uint8Array {
  const head = Buffer.from(vector.hex, 'hex')
  if (vector.fill === undefined) return new Uint8Array(head)
  const bytes = new Uint8Array(head.length + vector.fill.count).fill(
    Number.parseInt(vector.fill.byte, 16),
  )
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
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) =>
      field === undefined ? [] : [[key, plain(field)]],
    ),
  )
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
  return error.kind === 'incomplete'
    ? 'Incomplete'
    : (specific[error.reasonCode ?? 0] ?? `${error.kind} ${error.reasonCode}`)
}

/** What there is to say of an error. */
export function shownError(error: unknown): ShownError {
  if (!(error instanceof WireError)) throw error
  const { kind, code, fault, reasonCode, reasonName, message, offset } = error
  return { name: nameOf(error), kind, code, fault, reasonCode, reasonName, message, offset }
}

type ShownError = Pick<
  WireError,
  'name' | 'kind' | 'code' | 'fault' | 'reasonCode' | 'reasonName' | 'message' | 'offset'
>

export interface Outcome {
  packets: unknown[]
  error: ShownError | undefined
  pending: number
}

/** What a Decoder makes of the chunks, up to and with its first error. */
export function decodeChunks(
  chunks: Iterable<Uint8Array>,
  options: ConstructorParameters<typeof Decoder>[0],
): Outcome {
  const decoder = new Decoder(options)
  const packets: Packet[] = []
  try {
    for (const chunk of chunks) for (const packet of decoder.push(chunk)) packets.push(packet)
  } catch (caught) {
    return { packets: packets.map(plain), error: shownError(caught), pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: decoder.pending }
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not so: ${what}`)
}

const roomy = new Uint8Array(400_000)

/** What a Scanner makes of the same; `window`: each chunk lies at the beginning of a larger array that is overwritten as soon as it is read. */
export function scanned(
  chunks: Iterable<Uint8Array>,
  options: ScanOptions,
  window: Uint8Array = roomy,
): Outcome {
  const scanner = new Scanner(options)
  const packets: Packet[] = []
  try {
    for (const chunk of chunks) {
      window.set(chunk)
      scanner.push(window, chunk.length)
      while (scanner.next()) {
        packets.push(scanner.packet())
        must(scanner.type === packets.at(-1)?.type, 'the type is that of the packet')
      }
      // Ours again, and as it was.
      must(Buffer.compare(window.subarray(0, chunk.length), chunk) === 0, 'the chunk is as it was')
      window.fill(0xee, 0, chunk.length)
    }
  } catch (error) {
    must(thrown(() => scanner.next()) === error, 'the error stays')
    must(thrown(() => scanner.push(new Uint8Array(2))) === error, 'the error stays')
    return { packets: packets.map(plain), error: shownError(error), pending: 0 }
  }
  return { packets: packets.map(plain), error: undefined, pending: scanner.pending }
}

/** Every way to cut the bytes in two, thinned out for long ones. */
export function* splits(bytes: Uint8Array): Generator<[Uint8Array, Uint8Array]> {
  const step = bytes.length > 1000 ? 997 : 1
  for (let at = 0; at <= bytes.length; at += at < 64 || at > bytes.length - 64 ? 1 : step)
    yield [bytes.slice(0, at), bytes.slice(at)]
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
