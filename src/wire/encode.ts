/**
 * The public encoder for control packets of both sides.
 *
 * It does not know the sender, so it accepts what either side may send. It selects the writer for
 * the packet type; the writers check everything.
 */

import { MqttError } from '../errors.js'
import { PUBACK } from './constants.js'
import {
  type ConnectInput,
  type SubscribeInput,
  type SubscriptionInput,
  type UnsubscribeInput,
  writeAck,
  writeAuth,
  writeConnect,
  writeDisconnect,
  writePingreq,
  writeSubscribe,
  writeUnsubscribe,
} from './encode-client.js'
import { type PublishInput, writePublish } from './encode-publish.js'
import {
  type ConnackInput,
  type SubackInput,
  writeConnack,
  writePingresp,
  writeSuback,
  writeUnsuback,
} from './encode-server.js'
import { refused } from './error.js'
import { givenOptions, givenPacket } from './given-fields.js'
import type { Bytes, Properties, ProtocolVersion } from './packets.js'
import { isObject, Writer } from './writer.js'

const initialCapacity = 1024
/** A writer larger than this is not reused. */
const largestSpare = 64 * 1024
let spare: Writer | undefined

const acknowledgements = ['puback', 'pubrec', 'pubrel', 'pubcomp']

/**
 * Encodes one control packet, with reason codes and property lengths in their shortest form, and
 * properties in the order of the object's keys.
 *
 * @param options `protocolVersion`: 5 (default) or 4 for 3.1.1; a CONNECT uses its own
 * `protocolVersion`
 * @throws WireError with fault `'local'` and `option`, the path of the field that cannot be encoded
 */
export function encode(
  packet: PacketInput,
  options: { protocolVersion?: ProtocolVersion | undefined } = {},
): Bytes {
  const version = versionOf(options)
  // Removed while in use, because a getter of the packet may call `encode`.
  const writer = spare ?? new Writer(initialCapacity)
  spare = undefined
  writer.reset()
  try {
    writePacketInput(writer, packet, version)
    return writer.take()
  } finally {
    if (writer.bytes.length <= largestSpare) spare = writer
  }
}

/** The protocol version in the options. @throws WireError */
export function versionOf(options: {
  protocolVersion?: ProtocolVersion | undefined
}): ProtocolVersion {
  if (!isObject(options)) throw refused('options', 'must be an object')
  const { protocolVersion = 5 } = givenOptions(options)
  if (protocolVersion !== 4 && protocolVersion !== 5)
    throw refused('protocolVersion', 'must be 4 or 5')
  return protocolVersion
}

/**
 * Writes a packet of any type. Each checked field is read only once, because getters and proxies
 * may return different values.
 *
 * @throws WireError as {@link encode}; the writer is then unchanged
 */
export function writePacketInput(
  writer: Writer,
  given: PacketInput,
  version: ProtocolVersion,
): void {
  if (!isObject(given)) throw refused('packet', 'must be an object')
  const packet = givenPacket(given)
  const { type } = packet
  // On 3.1.1 no writer writes properties, so reading them once more here is safe.
  if (version === 4 && type !== 'connect') {
    check311({
      type,
      properties: (packet as DisconnectInput).properties,
      reasonCode: 0,
      subscriptions: undefined,
    } as unknown as PacketInput)
  }
  switch (type) {
    case 'connect':
      writeAnyConnect(writer, packet as ConnectInput, version)
      break
    case 'connack':
      writeConnack(writer, packet as ConnackInput, version)
      break
    case 'publish':
      writePublish(writer, packet as PublishInput, version, 'either')
      break
    case 'puback':
    case 'pubrec':
    case 'pubrel':
    case 'pubcomp':
      writeAnyAck(writer, PUBACK + acknowledgements.indexOf(type), packet as AckInput, version)
      break
    case 'subscribe':
      writeAnySubscribe(writer, packet as SubscribeInput, version)
      break
    case 'suback':
      writeSuback(writer, packet as SubackInput, version)
      break
    case 'unsubscribe':
      writeUnsubscribe(writer, packet as UnsubscribeInput, version)
      break
    case 'unsuback':
      writeUnsuback(writer, packet as SubackInput, version)
      break
    case 'pingreq':
      writePingreq(writer)
      break
    case 'pingresp':
      writePingresp(writer)
      break
    case 'disconnect':
      writeAnyDisconnect(writer, packet as DisconnectInput, version)
      break
    case 'auth':
      writeAnyAuth(writer, packet as AuthInput)
      break
    default:
      throw refused('type', 'is no packet type')
  }
}

/** Uses the version of the CONNECT. */
function writeAnyConnect(writer: Writer, packet: ConnectInput, version: ProtocolVersion): void {
  const {
    protocolName,
    protocolVersion = version,
    cleanStart,
    keepAlive,
    clientId,
    will,
    username,
    password,
    properties,
  } = packet
  const once = {
    type: 'connect',
    protocolName,
    protocolVersion,
    cleanStart,
    keepAlive,
    clientId,
    will,
    username,
    password,
    properties,
  } as const
  if (protocolName !== undefined && protocolName !== 'MQTT')
    throw refused('protocolName', 'must be MQTT')
  versionOf(once)
  if (protocolVersion === 4) check311(once)
  writeConnect(writer, once)
}

function writeAnyAck(
  writer: Writer,
  packetType: number,
  packet: AckInput,
  version: ProtocolVersion,
): void {
  const { packetId, reasonCode = 0, properties } = packet
  if (version === 4) check311({ type: 'puback', packetId, reasonCode, properties: undefined })
  writeAck(writer, packetType, packetId, reasonCode, properties, version, 'either')
}

function writeAnySubscribe(writer: Writer, packet: SubscribeInput, version: ProtocolVersion): void {
  if (version === 5) return writeSubscribe(writer, packet, version)
  const { packetId, subscriptions } = packet
  const once = {
    type: 'subscribe',
    packetId,
    properties: undefined,
    subscriptions: copiesOf(subscriptions),
  } as const
  check311(once)
  writeSubscribe(writer, once, version)
}

/** Copies of the elements up to the first non-object, which is included. */
function copiesOf(list: readonly SubscriptionInput[]): readonly SubscriptionInput[] {
  if (!Array.isArray(list)) return list
  const copies: SubscriptionInput[] = []
  const { length } = list
  for (let index = 0; index < length; index++) {
    const item = list[index] as SubscriptionInput
    if (!isObject(item)) return [...copies, item]
    const { filter, qos, noLocal, retainAsPublished, retainHandling } = item
    copies.push({ filter, qos, noLocal, retainAsPublished, retainHandling })
  }
  return copies
}

/**
 * A property may require a certain sender [MQTT-3.14.2-2]; the reason code must suit that sender.
 */
function writeAnyDisconnect(
  writer: Writer,
  packet: DisconnectInput,
  version: ProtocolVersion,
): void {
  const { reasonCode = 0, properties: given } = packet
  if (version === 4) check311({ type: 'disconnect', reasonCode, properties: undefined })
  const properties = isObject(given)
    ? (Object.assign(Object.create(null) as Properties, given) as Properties)
    : given
  const fromClient = properties?.sessionExpiryInterval !== undefined
  const fromServer = properties?.serverReference !== undefined
  writeDisconnect(
    writer,
    reasonCode,
    properties,
    version,
    fromClient ? 'client' : fromServer ? 'server' : 'either',
  )
}

function writeAnyAuth(writer: Writer, packet: AuthInput): void {
  const { reasonCode = 0, properties } = packet
  writeAuth(writer, reasonCode, properties, 'either')
}

const encoderCapacity = 1024

/** Encodes many control packets into one buffer. */
export class Encoder {
  readonly #writer = new Writer(encoderCapacity, true)
  readonly #version: ProtocolVersion
  /** Bytes of whole packets. */
  #length = 0
  #writing = false

  /**
   * @param options `protocolVersion`: 5 (default) or 4 for 3.1.1; a CONNECT uses its own
   * `protocolVersion`
   * @throws WireError with fault `'local'`
   */
  constructor(options: { protocolVersion?: ProtocolVersion | undefined } = {}) {
    this.#version = versionOf(options)
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length
  }

  /**
   * What was written, as a view of the encoder's memory; valid until the next `write` or `clear`.
   */
  get bytes(): Bytes {
    return this.#writer.bytes.subarray(0, this.#length) as Bytes
  }

  /**
   * Appends one packet.
   *
   * @throws WireError as `encode`; nothing is written then
   */
  write(packet: PacketInput): void {
    this.#checkIdle()
    this.#writing = true
    try {
      writePacketInput(this.#writer, packet, this.#version)
      this.#length = this.#writer.length
    } finally {
      this.#writer.length = this.#length
      this.#writing = false
    }
  }

  /** Discards what was written and keeps the memory. */
  clear(): void {
    this.#checkIdle()
    this.#writer.length = this.#length = 0
  }

  /** An exact copy of what was written. */
  take(): Bytes {
    return this.#writer.bytes.slice(0, this.#length)
  }

  // A getter of the packet may call the encoder again.
  #checkIdle(): void {
    if (this.#writing)
      throw new MqttError(
        'ERR_INVALID_OPTION',
        'packet: must leave the encoder alone while it is written',
        { option: 'packet' },
      )
  }
}

/** @throws WireError that names a field which 3.1.1 does not have or forbids */
export function check311(packet: PacketInput): void {
  if (packet.type === 'auth') throw refused('type', 'does not exist on 3.1.1')
  checkEmpty((packet as { properties?: unknown }).properties, 'properties')
  if (packet.type === 'connect') checkConnect(packet)
  else if (packet.type === 'subscribe') checkSubscriptions(packet.subscriptions)
  // CONNACK has its own return codes.
  else if (packet.type !== 'connack' && 'reasonCode' in packet && (packet.reasonCode ?? 0) !== 0) {
    throw refused('reasonCode', 'must be 0 on 3.1.1')
  }
}

function checkEmpty(properties: unknown, path: string): void {
  const empty =
    properties === undefined ||
    (isObject(properties) && Object.values(properties).every((value) => value === undefined))
  if (!empty) throw refused(path, 'must be empty on 3.1.1')
}

function checkConnect(packet: PacketInput & { type: 'connect' }): void {
  if (isObject(packet.will)) checkEmpty(packet.will.properties, 'will.properties')
  // [MQTT-3.1.2-22] and [MQTT-3.1.3-7] of 3.1.1.
  if (packet.password !== undefined && packet.username === undefined)
    throw refused('password', 'needs a user name on 3.1.1')
  if ((packet.clientId ?? '') === '' && packet.cleanStart === false) {
    throw refused('clientId', 'must not be empty without a clean session on 3.1.1')
  }
}

function checkSubscriptions(subscriptions: unknown): void {
  if (!Array.isArray(subscriptions)) return
  subscriptions.forEach((subscription: unknown, index) => {
    const { noLocal, retainAsPublished, retainHandling } = (subscription ?? {}) as Record<
      string,
      unknown
    >
    if (noLocal || retainAsPublished || retainHandling)
      throw refused(`subscriptions[${index}]`, 'must not have options beyond QoS on 3.1.1')
  })
}

/** An acknowledgement of a PUBLISH to encode: absent means reason code 0. */
export interface AckInput {
  /** 1 to 65,535. */
  packetId: number
  /** A reason code of this packet. MQTT 5.0 only. Default 0. */
  reasonCode?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** A DISCONNECT to encode: absent means reason code 0. */
export interface DisconnectInput {
  /** A reason code of DISCONNECT. MQTT 5.0 only. Default 0. */
  reasonCode?: number | undefined
  /** MQTT 5.0 only. Default: none. */
  properties?: Properties | undefined
}

/** An AUTH to encode: absent means reason code 0; the method is mandatory. */
export interface AuthInput {
  /** 0x00, 0x18 or 0x19. Default 0. */
  reasonCode?: number | undefined
  /** With the authentication method. */
  properties: Properties
}

/**
 * Input of {@link encode}: decoded packets, and looser forms in which fields with a natural default
 * may be absent.
 */
export type PacketInput =
  | ({ type: 'connect' } & ConnectInput)
  | ({ type: 'connack' } & ConnackInput)
  | ({ type: 'publish' } & PublishInput)
  | ({ type: 'puback' | 'pubrec' | 'pubrel' | 'pubcomp' } & AckInput)
  | ({ type: 'subscribe' } & SubscribeInput)
  | ({ type: 'suback' | 'unsuback' } & SubackInput)
  | ({ type: 'unsubscribe' } & UnsubscribeInput)
  | { type: 'pingreq' | 'pingresp' }
  | ({ type: 'disconnect' } & DisconnectInput)
  | ({ type: 'auth' } & AuthInput)
