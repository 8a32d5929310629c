/**
 * Writes PUBLISH (section 3.3): with all checks, or on a fast path where everything but the topic
 * was checked before.
 *
 * A refusal is a WireError of fault `'local'` that names the field, and leaves the writer
 * unchanged. Must not import the encoder of server packets.
 */
import { type Author, MAXIMUM_VARIABLE_BYTE_INTEGER, PUBLISH } from './constants.js'
import { bit, writePacket, writePropertyBlock } from './encode-client.js'
import { refused } from './error.js'
import { isBytes, nothing, sizeOf } from './fields.js'
import type { Properties, ProtocolVersion, QoS } from './packets.js'
import { TOPIC_ALIAS, WROTE_ALIAS } from './properties.js'
import { integer, type Writer } from './writer.js'

/** Upper bound of the head of a PUBLISH without topic and properties. */
export const headRoom = 16

/** A PUBLISH to encode: absent fields mean QoS 0, false flags, empty payload. */
export interface PublishInput {
  /** Empty only with a topic alias. */
  topic: string
  /** Default: empty. */
  payload?: Uint8Array | undefined
  /** 0, 1 or 2. Default 0. */
  qos?: number | undefined
  /** Default false. */
  retain?: boolean | undefined
  /**
   * Default false. At QoS 0 only on 3.1.1, where some peers set it although they should not
   * [MQTT-3.3.1-2].
   */
  dup?: boolean | undefined
  /** 1 to 65,535; absent or 0 at QoS 0. */
  packetId?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

function writeAnyHead(
  writer: Writer,
  firstByte: number,
  topic: string,
  packetId: number,
  properties: Properties | undefined,
  payloadLength: number,
  version: ProtocolVersion,
  from: Author,
): void {
  const fill = (): void => {
    const aliased = topic === '' && properties !== undefined
    if (aliased) writer.u16(0)
    else writer.topic(topic, 'topic')
    if (packetId > 0) writer.u16(packetId)
    const wrote = writePropertyBlock(writer, properties, PUBLISH, version, from)
    if (aliased && (wrote & WROTE_ALIAS) === 0) throw refused('topic', 'must be a topic name') // [MQTT-4.7.3-1]
  }
  // Exact for ASCII topics without properties.
  const guess =
    payloadLength + (typeof topic === 'string' ? topic.length : 0) + ((firstByte & 6) > 0 ? 5 : 3)
  writePacket(writer, firstByte, fill, payloadLength, guess, 'payload')
}

/**
 * Fast path: writes a PUBLISH without its payload and without checks; no properties except a topic
 * alias.
 *
 * @param topic with its length in front
 * @param packetId 0 at QoS 0
 * @param topicAlias 0 for none; 5.0 only
 */
export function writeKnownHead(
  writer: Writer,
  firstByte: number,
  topic: Uint8Array,
  packetId: number,
  topicAlias: number,
  payloadLength: number,
  version: ProtocolVersion,
): void {
  const size = topic.length
  let rest =
    size + (packetId > 0 ? 2 : 0) + (topicAlias > 0 ? 4 : version === 5 ? 1 : 0) + payloadLength
  if (rest > MAXIMUM_VARIABLE_BYTE_INTEGER)
    throw refused('payload', 'must not exceed 268,435,455 bytes', 'too-large')
  writer.reserve(size + 11)
  const { bytes } = writer
  let at = writer.length
  bytes[at++] = firstByte
  for (; rest > 127; rest >>>= 7) bytes[at++] = (rest & 127) | 128
  bytes[at++] = rest
  if (size < 16) for (let i = 0; i < size; i++) bytes[at + i] = topic[i] as number
  else bytes.set(topic, at)
  at += size
  if (packetId > 0) {
    bytes[at++] = packetId >> 8
    bytes[at++] = packetId
  }
  if (topicAlias > 0) {
    bytes[at++] = 3
    bytes[at++] = TOPIC_ALIAS
    bytes[at++] = topicAlias >> 8
    bytes[at++] = topicAlias
  } else if (version === 5) bytes[at++] = 0
  writer.length = at
}

/** The empty Topic Name of a PUBLISH under an alias. */
const noTopic = /* @__PURE__ */ new Uint8Array(2)

/** The options of a client's message, checked except for the properties. */
export interface PublishSettings {
  readonly qos: QoS
  readonly retain: boolean
  readonly properties: Properties | undefined
}

/**
 * Writes a client's PUBLISH with its payload or, with `headOnly`, without it. Returns false and
 * writes nothing when a text payload is not ASCII.
 *
 * @param topic empty only with an alias
 * @param packetId 0 at QoS 0
 * @param alias 0 for none; 5.0 only
 */
export function writeMessage(
  writer: Writer,
  topic: string,
  payload: Uint8Array | string | { readonly length: number },
  { qos, retain, properties }: PublishSettings,
  packetId: number,
  alias: number,
  dup: boolean,
  version: ProtocolVersion,
  headOnly: boolean,
): boolean {
  const { length } = payload
  const start = writer.length
  // Without properties, space is reserved once for everything.
  writer.reserve(topic.length * 3 + headRoom + (headOnly ? 0 : length))
  const firstByte = (PUBLISH << 4) | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  const known =
    properties !== undefined ? undefined : topic === '' && alias > 0 ? noTopic : writer.known(topic)
  if (known !== undefined)
    writeKnownHead(writer, firstByte, known, packetId, alias, length, version)
  else {
    const all = alias > 0 ? { ...properties, topicAlias: alias } : properties
    writeAnyHead(writer, firstByte, topic, packetId, all, length, version, 'client')
  }
  if (headOnly) return true
  if (typeof payload !== 'string') writer.raw(payload as Uint8Array)
  else if (!writer.ascii(payload)) {
    // The text was not ASCII, so the fixed header would have another length.
    writer.length = start
    return false
  }
  return true
}

/** Writes a PUBLISH with all checks and its payload, by the rules of `from`. */
export function writePublish(
  writer: Writer,
  input: PublishInput,
  version: ProtocolVersion,
  from: Author = 'client',
): void {
  const { payload = nothing, topic, packetId, properties } = input
  if (!isBytes(payload)) throw refused('payload', 'must be a Uint8Array')
  const start = writer.length
  const size = sizeOf(payload)
  const firstByte = givenByte(input, version)
  const id = givenIdentifier(firstByte, packetId)
  const known = properties === undefined ? writer.known(topic) : undefined
  if (known === undefined)
    writeAnyHead(writer, firstByte, topic, id, properties, size, version, from)
  else writeKnownHead(writer, firstByte, known, id, 0, size, version)
  if (sizeOf(payload) !== size) {
    // A getter of the packet resized or transferred the payload.
    writer.length = start
    throw refused('payload', 'must keep its length')
  }
  writer.raw(payload, size)
}

/** The first byte of a PUBLISH, with checked flags. */
function givenByte({ qos = 0, dup, retain }: PublishInput, version: ProtocolVersion): number {
  integer(qos, 0, 2, 'qos')
  const again = bit(dup, 'dup')
  // [MQTT-3.3.1-2]; tolerated on 3.1.1, as in decoding.
  if (again > qos && version === 5) throw refused('dup', 'must be false at QoS 0')
  return (PUBLISH << 4) | (again << 3) | (qos << 1) | bit(retain, 'retain')
}

/**
 * Checks the Packet Identifier: required above QoS 0 [MQTT-2.2.1-3], forbidden at QoS 0
 * [MQTT-2.2.1-2]; 0: none.
 */
function givenIdentifier(firstByte: number, packetId: unknown): number {
  if ((firstByte & 6) > 0) return integer(packetId, 1, 65_535, 'packetId')
  if (packetId !== undefined && packetId !== 0) throw refused('packetId', 'must be absent at QoS 0')
  return 0
}
