/**
 * Reads PUBLISH in place; the only parser of that packet (section 3.3).
 *
 * A view is a reusable set of offsets into the caller's buffer: `read` checks the whole packet and
 * allocates nothing. `payload` returns a view of that buffer, valid as long as its bytes are;
 * everything else is a copy.
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
import type { Bytes, Properties, ProtocolVersion, PublishPacket, QoS } from './packets.js'
import type { PropertyNotes } from './properties.js'
import { MOST_NOTED, readProperties, validateProperties } from './properties.js'
import type { TopicRecord, TopicTable } from './topic-table.js'
import { decodeUtf8, HAS_WILDCARD } from './utf8.js'

/**
 * A reusable view of one PUBLISH. Its fields are the results of the last {@link read}, and
 * inconsistent if that threw.
 */
export class PublishView implements PropertyNotes {
  /** The buffer that the offsets refer to. */
  bytes: Uint8Array = nothing
  /**
   * The topic's record in the table given to `read`; undefined without one, and when a topic alias
   * is used instead of a topic.
   */
  record: TopicRecord | undefined
  /** Quality of Service. */
  qos: QoS = 0
  /** DUP flag. */
  dup = false
  /** RETAIN flag. */
  retain = false
  /** Start of the Topic Name, after its length. */
  topicStart = 0
  /** Equal to `topicStart` when a topic alias is used instead. */
  topicEnd = 0
  /** 0 at QoS 0. */
  packetId = 0
  /** Start of the properties, after the Property Length. */
  propertiesStart = 0
  /** Where the properties end. */
  propertiesEnd = 0
  /** The payload is `bytes[payloadStart..payloadEnd)`, unless it is apart. */
  payloadStart = 0
  /** Where the payload ends. */
  payloadEnd = 0
  /** The payload in its own array, for a large packet received in several reads. */
  apart: Uint8Array | undefined
  /** 0: none. */
  topicAlias = 0
  /** How many user properties there are. */
  userPropertyCount = 0
  /** How many Subscription Identifiers there are. */
  subscriptionIdentifierCount = 0
  /**
   * Only the first `subscriptionIdentifierCount` belong to this packet, the rest to earlier ones;
   * at most 256.
   */
  readonly subscriptionIdentifiers: number[] = []
  readonly lenient: boolean
  willDelay = false

  /** @param lenient see {@link PropertyNotes.lenient} */
  constructor(lenient = false) {
    this.lenient = lenient
  }

  /**
   * Reads the PUBLISH in `bytes[start..end)`, whose fixed header ends at `body` and was accepted by
   * the framer.
   *
   * @param data a DataView of the same bytes: most checks then take four bytes at a time
   * @param topics finds or adds the topic's record; needs `data`
   * @throws WireError for every rule that the packet can break by itself
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
      // Two comparisons detect an error; only then is it located.
      if (topicStart > end || at > end) fieldEnd(bytes, body, end)
      // Topics in the table were validated when they were added.
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

  /** Releases the bytes. */
  release(): void {
    this.bytes = nothing
    this.record = undefined
    this.apart = undefined
  }

  /** The Topic Name; empty when a topic alias is used instead. */
  topic(): string {
    return this.record === undefined
      ? decodeUtf8(this.bytes, this.topicStart, this.topicEnd)
      : this.record.name
  }

  /** The packet as an object with copies of everything. */
  packet(): PublishPacket {
    return packetWith(this, new Uint8Array(this.payload()))
  }

  /** Decodes the properties; at each call. */
  properties(): Properties {
    return readProperties(this.bytes, this.propertiesStart, this.propertiesEnd)
  }

  /** Calls `visit` with the first 256 Subscription Identifiers, in order [MQTT-3.3.4-4]. */
  forEachSubscriptionIdentifier(visit: (identifier: number) => void): void {
    const count = Math.min(this.subscriptionIdentifierCount, MOST_NOTED)
    for (let i = 0; i < count; i++) visit(this.subscriptionIdentifiers[i] as number)
  }

  /** The payload as a view, not a copy. */
  payload(): Uint8Array {
    return this.apart ?? this.bytes.subarray(this.payloadStart, this.payloadEnd)
  }
}

/** The packet in a view as an object, with this copy of its payload. */
export function packetWith(view: PublishView, payload: Bytes): PublishPacket {
  return {
    type: 'publish',
    dup: view.dup,
    qos: view.qos,
    retain: view.retain,
    topic: view.topic(),
    packetId: view.packetId || undefined,
    properties: view.properties(),
    payload,
  }
}
