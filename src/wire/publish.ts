/**
 * PUBLISH read in place: the one parser of that packet (section 3.3).
 *
 * A view is a set of offsets into somebody's buffer, made to be reused: `read` checks the whole packet and allocates nothing. What it hands out by
 * `payload` is a view of that buffer and lives as long as the bytes do; everything else is a copy.
 */
import type { Sender } from './constants.js'
import { PUBLISH } from './constants.js'
import { malformed, protocolError, rebased } from './error.js'
import { checkString, fieldEnd, uint16, variableByteInteger } from './fields.js'
import type { Properties, ProtocolVersion, QoS } from './packets.js'
import type { PropertyNotes } from './properties.js'
import { forEachSubscriptionIdentifier, readProperties, validateProperties } from './properties.js'
import { decodeUtf8, HAS_WILDCARD } from './utf8.js'
import { variableByteIntegerSize } from './writer.js'

const nothing = /* @__PURE__ */ new Uint8Array(0)

/** A flyweight over one PUBLISH. Its fields hold what the last {@link read} that did not throw found. */
export class PublishView implements PropertyNotes {
  bytes: Uint8Array = nothing
  qos: QoS = 0
  dup = false
  retain = false
  topicStart = 0
  /** Equal to `topicStart` when a topic alias stands for the topic. */
  topicEnd = 0
  /** 0 at QoS 0. */
  packetId = 0
  /** Behind the Property Length. */
  propertiesStart = 0
  propertiesEnd = 0
  payloadStart = 0
  payloadEnd = 0
  /** 0 when there is none. */
  topicAlias = 0
  userPropertyCount = 0
  subscriptionIdentifierCount = 0

  /**
   * Takes the PUBLISH in `bytes[start..end)`, whose fixed header ends at `body` and was accepted by the framer.
   *
   * @throws WireError for everything that the packet can break by itself
   */
  read(bytes: Uint8Array, start: number, body: number, end: number, version: ProtocolVersion, from: Sender): void {
    try {
      this.#read(bytes, start, body, end, version, from)
    } catch (error) {
      throw rebased(error, start)
    }
  }

  #read(bytes: Uint8Array, start: number, body: number, end: number, version: ProtocolVersion, from: Sender): void {
    const flags = bytes[start] as number
    this.bytes = bytes
    this.qos = ((flags >> 1) & 3) as QoS
    this.dup = (flags & 8) !== 0
    this.retain = (flags & 1) !== 0
    const topicEnd = fieldEnd(bytes, body, end)
    if (checkString(bytes, body, topicEnd) === HAS_WILDCARD) throw protocolError('wildcard in a topic name', body) // [MQTT-3.3.2-2]
    this.topicStart = body + 2
    this.topicEnd = topicEnd
    let at = topicEnd
    this.packetId = 0
    if (this.qos > 0) {
      if (end - at < 2) throw malformed('packet is too short', at)
      this.packetId = uint16(bytes, at)
      if (this.packetId === 0) throw protocolError('packet identifier 0', at) // [MQTT-2.2.1-3]
      at += 2
    }
    this.topicAlias = 0
    this.userPropertyCount = 0
    this.subscriptionIdentifierCount = 0
    this.propertiesStart = at
    this.propertiesEnd = at
    if (version === 5) this.#readProperties(at, end, from)
    if (topicEnd === this.topicStart && this.topicAlias === 0) throw protocolError('empty topic name', body) // [MQTT-4.7.3-1]
    this.payloadStart = this.propertiesEnd
    this.payloadEnd = end
  }

  #readProperties(at: number, end: number, from: Sender): void {
    const length = variableByteInteger(this.bytes, at, end)
    this.propertiesStart = at + variableByteIntegerSize(length)
    this.propertiesEnd = this.propertiesStart + length
    if (this.propertiesEnd > end) throw malformed('properties are cut off', at)
    if (length > 0) validateProperties(this.bytes, this.propertiesStart, this.propertiesEnd, PUBLISH, from, this)
  }

  /** The Topic Name; empty when a topic alias stands for it. */
  topic(): string {
    return decodeUtf8(this.bytes, this.topicStart, this.topicEnd)
  }

  /** The properties, decoded at each call. */
  properties(): Properties {
    return readProperties(this.bytes, this.propertiesStart, this.propertiesEnd)
  }

  /** Calls `visit` with each Subscription Identifier, in order [MQTT-3.3.4-4]. */
  forEachSubscriptionIdentifier(visit: (identifier: number) => void): void {
    if (this.subscriptionIdentifierCount > 0) forEachSubscriptionIdentifier(this.bytes, this.propertiesStart, this.propertiesEnd, visit)
  }

  /** The payload as a view, not a copy. */
  payload(): Uint8Array {
    return this.bytes.subarray(this.payloadStart, this.payloadEnd)
  }
}
