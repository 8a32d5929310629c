/**
 * Topic Names that were written lately, with their bytes: checked and encoded once, for every writer of the thread.
 *
 * Two generations: what is used moves into the younger one; when that is full, the older one is forgotten. So it is bounded, and topics that never
 * come again do not stay. It must hold nothing that was not checked.
 */

/** Topics of a generation, and the longest that takes part, in bytes. */
const generation = 256
const longest = 256

let younger: Map<unknown, Uint8Array> | undefined
let older: Map<unknown, Uint8Array> | undefined
/** The one that was asked for last: whoever writes often writes the same topic. */
let lastTopic: unknown
let lastBytes: Uint8Array | undefined

/** The bytes of a topic that was written lately, length in front, or undefined. */
export function knownTopic(topic: unknown): Uint8Array | undefined {
  if (topic === lastTopic) return lastBytes
  const bytes = younger?.get(topic) ?? recall(topic)
  if (bytes !== undefined) remember(topic, bytes)
  return bytes
}

function remember(topic: unknown, bytes: Uint8Array): void {
  lastTopic = topic
  lastBytes = bytes
}

/** Keeps what was written: a valid Topic Name and its bytes, length in front, which are copied. */
export function keepTopic(topic: string, bytes: Uint8Array): void {
  if (bytes.length <= longest) keep(topic, new Uint8Array(bytes))
}

function recall(topic: unknown): Uint8Array | undefined {
  const bytes = older?.get(topic)
  if (bytes !== undefined) keep(topic, bytes)
  return bytes
}

function keep(topic: unknown, bytes: Uint8Array): void {
  if (younger === undefined || younger.size === generation) {
    older = younger
    younger = new Map()
  }
  younger.set(topic, bytes)
  remember(topic, bytes)
}
