/**
 * The packets in some bytes, each with its fields and its verdict. Pure.
 *
 * The verdict is that of `decode`; the fields and the statement are laid beside it. Goes on behind a
 * broken packet as long as its length can be read.
 */
import { decode, type ProtocolVersion, type Sender, WireError } from 'mqwire/wire'
import { type Field, packetSize, typeNames, upTo, type Walked, walk } from './fields.js'
import { statementOf } from './statements.js'

/** A packet. */
export interface ShownPacket {
  /** As the standard writes it, such as `CONNECT`. */
  readonly type: string
  /** Bytes from the start of the input. */
  readonly offset: number
  readonly length: number
  readonly from: Sender
  readonly protocolVersion: ProtocolVersion
  readonly fields: readonly Field[]
  readonly valid: boolean
  /** What is wrong; the offset counts from the start of the packet. */
  readonly error?: Pick<WireError, 'message' | 'offset' | 'kind'> & Pick<Field, 'statement'>
}

const byClient = ['CONNECT', 'SUBSCRIBE', 'UNSUBSCRIBE', 'PINGREQ']
const byServer = ['CONNACK', 'SUBACK', 'UNSUBACK', 'PINGRESP']

const typeOf = ([first = 0]: Uint8Array): string => typeNames[first >> 4] as string

/** Who alone may send a packet of this type (section 2.1.2). */
function soleSender(bytes: Uint8Array): Sender | undefined {
  if (byClient.includes(typeOf(bytes))) return 'client'
  return byServer.includes(typeOf(bytes)) ? 'server' : undefined
}

/** The sender that the type of the first packet shows; a client when both may send it. */
export const senderOf = (bytes: Uint8Array): Sender => soleSender(bytes) ?? 'client'

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
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at)
    const sender = from ?? soleSender(rest) ?? senderOf(bytes)
    const packet = packetOf(rest.subarray(0, packetSize(rest)), at, sender, protocolVersion)
    yield packet
    protocolVersion = packet.protocolVersion
    at += packet.length
  }
}

function packetOf(
  bytes: Uint8Array,
  offset: number,
  from: Sender,
  version: ProtocolVersion,
): ShownPacket {
  const walked = walk(bytes, version)
  const type = typeOf(bytes)
  const shown = { type, offset, length: bytes.length, from, protocolVersion: walked.version }
  try {
    decode(bytes, { from, protocolVersion: version })
    return { ...shown, fields: walked.fields, valid: true }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return { ...shown, ...broken(bytes, walked, error, shown), valid: false }
  }
}

/** Stands for the field of a fault at the end of a packet. */
const nowhere: Field = { offset: 0, length: 0, name: '', value: '', within: '' }

function broken(
  bytes: Uint8Array,
  walked: Walked,
  { message, kind, offset: position }: WireError,
  { type, from }: Pick<ShownPacket, 'type' | 'from'>,
): Pick<ShownPacket, 'fields' | 'error'> {
  const named = (name: string): Field | undefined =>
    walked.fields.find((field) => field.name === name)
  // The codec judges name and version together, at the name.
  const isVersion = /^unsupported/.test(message) && named('Protocol Name')?.value === 'MQTT'
  const offset = (isVersion ? named('Protocol Version')?.offset : undefined) ?? position
  const fields = upTo(walked.fields, offset, bytes.length)
  const field = fields.find((each) => offset < each.offset + each.length) ?? nowhere
  const statement = statementOf({
    ...field,
    ...(message === 'packet is too short' ? walked.missing : undefined),
    message,
    type,
    from,
    version: walked.version,
    bytes: bytes.subarray(field.offset, field.offset + field.length),
    connectFlags: bytes[named('Connect Flags')?.offset ?? bytes.length] ?? 0,
  })
  const noted = statement === undefined ? {} : { statement }
  return {
    fields: fields.map((each) => (each === field ? { ...each, ...noted } : each)),
    error: { message, offset, kind, ...noted },
  }
}
