/**
 * A PUBLISH for many receivers: the common part is encoded once, the rest for each receiver.
 *
 * Messages must have passed a decoder or an encoder. Only the last message is cached, and each
 * packet is a new array.
 */
import { encode } from '../../../wire/encode.js'
import type { QoS } from '../../../wire/packets.js'
import { type BrokerMessage, remaining } from './message.js'

/** The parts of a message that all its PUBLISH packets share. */
interface Parts {
  /** Topic with its length. */
  readonly topic: Uint8Array
  /** Properties without their length, in the order in which they were published. */
  readonly properties: Uint8Array
  /** Where the four bytes of Message Expiry Interval stand in the properties; -1 without it. */
  readonly expiryAt: number
}

/** The part that differs between receivers. */
export interface Variation {
  readonly qos: QoS
  readonly retain: boolean
  readonly dup: boolean
  readonly packetId: number | undefined
  /** True for 5.0. */
  readonly hasProperties: boolean
  readonly identifiers: readonly number[]
  /** Topic Alias; 0 for none. */
  alias: number
  /** False where the alias replaces the topic. */
  hasTopic: boolean
}

const noTopic = new Uint8Array(2)

/** See the file's comment. */
export class PublishBytes {
  #message: BrokerMessage | undefined
  #parts: Parts = { topic: noTopic, properties: noTopic, expiryAt: -1 }

  /**
   * Sets the message for {@link size} and {@link write}. Throws a WireError if it cannot be
   * encoded.
   */
  take(message: BrokerMessage): void {
    if (this.#message === message) return
    this.#parts = partsOf(message)
    this.#message = message
  }

  size(variation: Variation): number {
    const body = this.#body(variation)
    return 1 + varintSize(body) + body
  }

  write(variation: Variation, now: number): Uint8Array {
    const { qos, retain, dup, packetId = 0, hasTopic, hasProperties } = variation
    const payload = (this.#message as BrokerMessage).payload
    const body = this.#body(variation)
    const bytes = new Uint8Array(1 + varintSize(body) + body)
    bytes[0] = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
    let at = putVarint(bytes, 1, body)
    const topic = hasTopic ? this.#parts.topic : noTopic
    bytes.set(topic, at)
    at += topic.length
    if (qos > 0) {
      bytes[at++] = packetId >> 8
      bytes[at++] = packetId & 0xff
    }
    if (hasProperties) at = this.#putProperties(bytes, at, variation, now)
    bytes.set(payload, at)
    return bytes
  }

  #body(variation: Variation): number {
    const { qos, hasTopic, hasProperties } = variation
    const { payload } = this.#message as BrokerMessage
    const size = (hasTopic ? this.#parts.topic.length : 2) + (qos > 0 ? 2 : 0) + payload.length
    if (!hasProperties) return size
    const properties = this.#propertiesSize(variation)
    return size + varintSize(properties) + properties
  }

  #propertiesSize({ identifiers, alias }: Variation): number {
    let size = this.#parts.properties.length + (alias > 0 ? 3 : 0)
    for (const identifier of identifiers) size += 1 + varintSize(identifier)
    return size
  }

  #putProperties(bytes: Uint8Array, start: number, variation: Variation, now: number): number {
    const { properties, expiryAt } = this.#parts
    let at = putVarint(bytes, start, this.#propertiesSize(variation))
    bytes.set(properties, at)
    if (expiryAt >= 0) putFour(bytes, at + expiryAt, remaining(this.#message as BrokerMessage, now))
    at += properties.length
    for (const identifier of variation.identifiers) {
      bytes[at++] = 0x0b
      at = putVarint(bytes, at, identifier)
    }
    if (variation.alias === 0) return at
    bytes[at++] = 0x23
    bytes[at++] = variation.alias >> 8
    bytes[at++] = variation.alias & 0xff
    return at
  }
}

function partsOf({ topic, properties }: BrokerMessage): Parts {
  const empty = (messageExpiryInterval: number | undefined): Uint8Array =>
    encode({
      type: 'publish',
      topic,
      properties:
        messageExpiryInterval === undefined ? properties : { ...properties, messageExpiryInterval },
    })
  const hasExpiry = properties.messageExpiryInterval !== undefined
  const bytes = empty(hasExpiry ? 0 : undefined)
  const start = skipVarint(bytes, 1)
  const end = start + 2 + (((bytes[start] as number) << 8) | (bytes[start + 1] as number))
  const first = skipVarint(bytes, end)
  // Finds the interval: the first byte that differs when the interval is another one.
  const other = hasExpiry ? empty(0xffff_ffff) : bytes
  const expiryAt = hasExpiry ? bytes.findIndex((byte, index) => byte !== other[index]) - first : -1
  return { topic: bytes.subarray(start, end), properties: bytes.subarray(first), expiryAt }
}

function varintSize(value: number): number {
  return value < 128 ? 1 : value < 16_384 ? 2 : value < 2_097_152 ? 3 : 4
}

function putVarint(bytes: Uint8Array, start: number, value: number): number {
  let at = start
  let rest = value
  for (; rest > 127; rest >>= 7) bytes[at++] = (rest & 127) | 128
  bytes[at++] = rest
  return at
}

function skipVarint(bytes: Uint8Array, start: number): number {
  let at = start
  while (((bytes[at] as number) & 128) !== 0) at++
  return at + 1
}

function putFour(bytes: Uint8Array, at: number, value: number): void {
  for (let index = 0; index < 4; index++) bytes[at + index] = (value >>> (24 - index * 8)) & 0xff
}
