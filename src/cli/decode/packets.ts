/**
 * The packets in some bytes, each with its fields and its verdict. Pure.
 *
 * The verdict is that of `decode`; the fields and the statement are laid beside it. Goes on behind a
 * broken packet as long as its length can be read.
 */
import {
  decode,
  type ProtocolVersion,
  type Sender,
  WireError,
  type WireErrorKind,
} from 'mqwire/wire'
import { type Field, typeNames, upTo, type Walked, walk } from './fields.js'
import { statementOf } from './statements.js'

/** What is wrong with a packet. */
export interface Broken {
  readonly message: string
  /** Bytes from the start of the packet. */
  readonly offset: number
  readonly kind: WireErrorKind
  readonly statement?: string
}

/** A field, and the statement that is broken there. */
export interface ShownField extends Field {
  readonly statement?: string
}

/** A packet. */
export interface ShownPacket {
  /** As the standard writes it, such as `CONNECT`. */
  readonly type: string
  /** Bytes from the start of the input. */
  readonly offset: number
  readonly length: number
  readonly from: Sender
  readonly protocolVersion: ProtocolVersion
  readonly fields: readonly ShownField[]
  readonly valid: boolean
  readonly error?: Broken
}

/** By packet type: who alone may send it (section 2.1.2). */
const senders: readonly (Sender | undefined)[] = [
  undefined,
  'client',
  'server',
  ...Array.from({ length: 5 }, () => undefined),
  'client',
  'server',
  'client',
  'server',
  'client',
  'server',
]

/** The sender that the type of the first packet shows; a client when both may send it. */
export function senderOf(bytes: Uint8Array): Sender {
  return senders[(bytes[0] as number) >> 4] ?? 'client'
}

/**
 * Splits the bytes, at least one, into packets.
 *
 * @param from who sent them; without it a packet that only one side may send is from that side, and
 * the others are from the side that the first packet shows
 */
export function* packetsOf(
  bytes: Uint8Array,
  from: Sender | undefined,
  version: ProtocolVersion,
): Generator<ShownPacket, void> {
  let protocolVersion = version
  const usual = senderOf(bytes)
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at)
    const sender = from ?? senders[(rest[0] as number) >> 4] ?? usual
    const packet = packetOf(rest.subarray(0, sizeOf(rest)), at, sender, protocolVersion)
    yield packet
    protocolVersion = packet.protocolVersion
    at += packet.length
  }
}

/** Size of the packet that begins the bytes; undefined when it is unknown where it ends. */
function sizeOf(bytes: Uint8Array): number | undefined {
  const first = bytes[0] as number
  // No packet, or one of HTTP or TLS: what follows is no length.
  if (first < 0x10 || first === 0x15 || first === 0x48) return undefined
  let length = 0
  for (let count = 1; count <= 4; count++) {
    const byte = bytes[count]
    if (byte === undefined) return undefined
    length += (byte & 127) << (7 * (count - 1))
    // A longer form than needed is malformed, too.
    if (byte < 128) return byte === 0 && count > 1 ? undefined : 1 + count + length
  }
  return undefined
}

function packetOf(
  bytes: Uint8Array,
  offset: number,
  from: Sender,
  version: ProtocolVersion,
): ShownPacket {
  const walked = walk(bytes, version)
  const error = errorOf(bytes, from, version)
  const shown = {
    type: typeNames[(bytes[0] as number) >> 4] as string,
    offset,
    length: bytes.length,
    from,
    protocolVersion: walked.version,
  }
  if (error === undefined) return { ...shown, fields: walked.fields, valid: true }
  return { ...shown, ...broken(bytes, walked, error, shown), valid: false }
}

function errorOf(
  bytes: Uint8Array,
  from: Sender,
  protocolVersion: ProtocolVersion,
): WireError | undefined {
  try {
    decode(bytes, { from, protocolVersion })
    return undefined
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}

function broken(
  bytes: Uint8Array,
  walked: Walked,
  { message, kind, offset: position }: WireError,
  { type, from }: Pick<ShownPacket, 'type' | 'from'>,
): { readonly fields: readonly ShownField[]; readonly error: Broken } {
  const named = (name: string): Field | undefined =>
    walked.fields.find((field) => field.name === name)
  // The codec judges name and version together, at the name.
  const isVersion =
    message === 'unsupported protocol version' && named('Protocol Name')?.value === 'MQTT'
  const offset = (isVersion ? named('Protocol Version')?.offset : undefined) ?? position
  const fields = upTo(walked.fields, offset, bytes.length)
  const field = fields.find((each) => offset < each.offset + each.length)
  const place = message === 'packet is too short' ? (walked.missing ?? field) : field
  const statement = statementOf({
    message,
    type,
    from,
    version: walked.version,
    name: place?.name ?? '',
    value: field?.value ?? '',
    within: place?.within ?? '',
    first: bytes[0] as number,
    connectFlags: bytes[named('Connect Flags')?.offset ?? bytes.length] ?? 0,
  })
  if (statement === undefined) return { fields, error: { message, offset, kind } }
  return {
    fields: fields.map((each) => (each === field ? { ...each, statement } : each)),
    error: { message, offset, kind, statement },
  }
}
