/**
 * What a PUBLISH whose contents break a rule is known again by, read from its frame as far as that can be believed.
 *
 * Its packet identifier, flags and Subscription Identifiers differ from connection to connection, so that they are left out. Pure.
 */
import { headSize, samplePayload } from '../../wire/carry.js'
import { uint16 } from '../../wire/fields.js'
import type { FrameSource } from '../../wire/frames.js'
import type { ProtocolVersion, QoS } from '../../wire/packets.js'
import { decodeUtf8, ILL_FORMED, scanUtf8 } from '../../wire/utf8.js'

/** A message that breaks a rule. */
export interface FaultyPublish {
  /** Topic, length and beginning of the payload. */
  readonly key: string
  /** Topic Name; '' where it is the topic that is wrong. */
  readonly topic: string
  readonly qos: QoS
  readonly dup: boolean
  /** 0 at QoS 0, and where the packet has no identifier. */
  readonly packetId: number
}

/** Reads the current frame, a PUBLISH. */
export function faultyPublish(
  { bytes, start, body, end, size, apart }: FrameSource,
  version: ProtocolVersion,
): FaultyPublish {
  const first = bytes[start] as number
  const qos = ((first >> 1) & 3) as QoS
  const topicStart = Math.min(body + 2, end)
  const topicEnd = Math.min(end, topicStart + (topicStart === body + 2 ? uint16(bytes, body) : 0))
  const head = Math.min(size, headSize(bytes, start, body, end, version))
  const sample = (apart ?? bytes.subarray(start + head, end)).subarray(0, samplePayload)
  const isText = scanUtf8(bytes, topicStart, topicEnd) !== ILL_FORMED
  return {
    key: `${hashOf(bytes.subarray(topicStart, topicEnd))} ${size - head} ${hashOf(sample)}`,
    topic: isText ? decodeUtf8(bytes, topicStart, topicEnd) : '',
    qos,
    dup: (first & 8) > 0,
    packetId: qos > 0 && topicEnd + 2 <= end ? uint16(bytes, topicEnd) : 0,
  }
}

function hashOf(bytes: Uint8Array): number {
  let hash = bytes.length
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x9e3779b1) ^ (hash >>> 15)
  return hash
}
