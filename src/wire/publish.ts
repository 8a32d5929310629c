/**
 * PUBLISH read in place: the one parser of that packet (section 3.3).
 *
 * A view is a set of offsets into the caller's buffer, made to be reused: `read` checks the whole packet and allocates nothing. What it hands out by
 * `payload` is a view of that buffer and lives as long as the bytes do; everything else is a copy.
 */
import type { Sender } from './constants.js'
import { PUBLISH } from './constants.js'
import { protocolError, rebased } from './error.js'
import {
  checkString,
  fieldEnd,
  nothing,
  packetIdentifier,
  skip,
  variableByteInteger,
  variableByteIntegerSize,
} from './fields.js'
import type { Properties, ProtocolVersion, PublishPacket, QoS } from './packets.js'
import type { PropertyNotes } from './properties.js'
import { MOST_NOTED, readProperties, validateProperties } from './properties.js'
import type { TopicRecord, TopicTable } from './topic-table.js'
import { decodeUtf8, HAS_WILDCARD } from './utf8.js'

/** A flyweight over one PUBLISH. Its fields hold what the last {@link read} found; when that threw, nothing that belongs together. */
export class PublishView implements PropertyNotes {
  /** What it is a view of. */
  bytes: Uint8Array = nothing
  /** The topic as the table knows it that the packet was read with; undefined without one, and when a topic alias stands for the topic. */
  record: TopicRecord | undefined
  /** Quality of Service. */
  qos: QoS = 0
  /** DUP flag. */
  dup = false
  /** RETAIN flag. */
  retain = false
  /** Where the Topic Name begins, behind its length. */
  topicStart = 0
  /** Equal to `topicStart` when a topic alias stands for the topic. */
  topicEnd = 0
  /** 0 at QoS 0. */
  packetId = 0
  /** Behind the Property Length. */
  propertiesStart = 0
  /** Where the properties end. */
  propertiesEnd = 0
  /** The payload is `bytes[payloadStart..payloadEnd)`, where it does not lie apart. */
  payloadStart = 0
  /** Where the payload ends. */
  payloadEnd = 0
  /** The payload in an array of its own: of a large packet that came in several reads. */
  apart: Uint8Array | undefined
  /** 0: no identifier. */
  topicAlias = 0
  /** How many user properties there are. */
  userPropertyCount = 0
  /** How many Subscription Identifiers there are. */
  subscriptionIdentifierCount = 0
  /** The first `subscriptionIdentifierCount` are this packet's, the others left from packets before; 256 at most. */
  readonly subscriptionIdentifiers: number[] = []
  readonly lenient: boolean
  willDelay = false

  /** @param lenient takes what {@link PropertyNotes.lenient} says */
  constructor(lenient = false) {
    this.lenient = lenient
  }

  /**
   * Takes the PUBLISH in `bytes[start..end)`, whose fixed header ends at `body` and was accepted by the framer.
   *
   * @param data shows the same bytes: with it most of the checking goes four bytes at a time
   * @param topics finds the topic's record, or takes it up; needs `data`
   * @throws WireError for everything that the packet can break by itself
   */
  read(
    bytes: Uint8Array,
    start: number,
    body: number,
    end: number,
    version: ProtocolVersion,
    from: Sender,
    data?: DataView,
    topics?: TopicTable,
  ): void {
    try {
      const flags = bytes[start] as number
      const qos = ((flags >> 1) & 3) as QoS
      const topicStart = body + 2
      let at = topicStart + (((bytes[body] as number) << 8) | (bytes[body + 1] as number))
      // Two comparisons find that something is wrong; the rest finds what.
      if (topicStart > end || at > end) fieldEnd(bytes, body, end)
      // What the table knows was checked when it came in first.
      const known = data === undefined ? undefined : topics?.find(data, topicStart, at)
      if (known === undefined && checkString(bytes, body, at) === HAS_WILDCARD)
        throw protocolError('wildcard in a topic name', body) // [MQTT-3.3.2-2]
      this.record = known
      this.bytes = bytes
      this.qos = qos
      this.dup = (flags & 8) > 0
      this.retain = (flags & 1) > 0
      this.topicStart = topicStart
      this.topicEnd = at
      this.packetId = 0
      if (qos > 0) {
        this.packetId = packetIdentifier(bytes, at, end)
        at += 2
      }
      this.topicAlias = 0
      this.userPropertyCount = 0
      this.subscriptionIdentifierCount = 0
      this.propertiesStart = at
      if (version === 5 && at < end && bytes[at] === 0) this.propertiesStart = ++at
      else if (version === 5) {
        const length = variableByteInteger(bytes, at, end)
        this.propertiesStart = at + variableByteIntegerSize(length)
        at = skip(this.propertiesStart, length, end)
        validateProperties(bytes, this.propertiesStart, at, PUBLISH, from, this, undefined, data)
      }
      if (this.topicEnd === this.topicStart && this.topicAlias === 0)
        throw protocolError('empty topic name', body) // [MQTT-4.7.3-1]
      this.propertiesEnd = at
      this.payloadStart = at
      this.payloadEnd = end
      this.apart = undefined
      if (known === undefined && topics !== undefined && this.topicEnd > this.topicStart)
        this.record = topics.add(bytes, this.topicStart, this.topicEnd)
    } catch (error) {
      throw rebased(error, start)
    }
  }

  /** Lets go of the bytes: nothing is read from this packet any more. */
  release(): void {
    this.bytes = nothing
    this.record = undefined
    this.apart = undefined
  }

  /** The Topic Name; empty when a topic alias stands for it. */
  topic(): string {
    return this.record === undefined
      ? decodeUtf8(this.bytes, this.topicStart, this.topicEnd)
      : this.record.name
  }

  /** The packet as an object of its own, with copies of everything. */
  packet(): PublishPacket {
    return {
      type: 'publish',
      dup: this.dup,
      qos: this.qos,
      retain: this.retain,
      topic: this.topic(),
      packetId: this.packetId || undefined,
      properties: this.properties(),
      payload: new Uint8Array(this.payload()),
    }
  }

  /** The properties, decoded at each call. */
  properties(): Properties {
    return readProperties(this.bytes, this.propertiesStart, this.propertiesEnd)
  }

  /** Calls `visit` with the Subscription Identifiers, in order [MQTT-3.3.4-4]: the first 256 of them. */
  forEachSubscriptionIdentifier(visit: (identifier: number) => void): void {
    const count = Math.min(this.subscriptionIdentifierCount, MOST_NOTED)
    for (let i = 0; i < count; i++) visit(this.subscriptionIdentifiers[i] as number)
  }

  /** The payload as a view, not a copy. */
  payload(): Uint8Array {
    return this.apart ?? this.bytes.subarray(this.payloadStart, this.payloadEnd)
  }
}
