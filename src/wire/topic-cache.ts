/**
 * Topic Names that were written lately, with their bytes: checked and encoded once, for every writer of the thread.
 *
 * Two generations: what is used moves into the younger one; when that is full, the older one is forgotten. So it is bounded, and topics that never
 * come again do not stay. Each remembers which one came after it: programs often write the same topics in the same order. It must hold
 * nothing that was not checked.
 */

/** Topics of a generation, and the longest that takes part, in bytes. */
const generation = 256
const longest = 256

interface Known {
  readonly topic: unknown
  readonly bytes: Uint8Array | undefined
  /** What was asked for after it. */
  next: Known | undefined
}

let younger = /* @__PURE__ */ new Map<unknown, Known>()
let older = younger
/** The one that was asked for last. */
let last: Known = { topic: undefined, bytes: undefined, next: undefined }

/** The bytes of a topic that was written lately, length in front, or undefined. */
export function knownTopic(topic: unknown): Uint8Array | undefined {
  if (topic === last.topic) return last.bytes
  const { next } = last
  if (next === undefined || next.topic !== topic) return recall(topic)
  last = next
  return next.bytes
}

/** Keeps what was written: a valid Topic Name and its bytes, length in front, which are copied. */
export function keepTopic(topic: string, bytes: Uint8Array): void {
  if (bytes.length <= longest) keep({ topic, bytes: new Uint8Array(bytes), next: undefined })
}

function recall(topic: unknown): Uint8Array | undefined {
  const young = younger.get(topic)
  const known = young ?? older.get(topic)
  if (young !== undefined) follow(young)
  else if (known !== undefined) keep(known)
  return known?.bytes
}

function follow(known: Known): void {
  last.next = known
  last = known
}

function keep(known: Known): void {
  if (younger.size === generation) {
    // What is forgotten must not keep others alive.
    for (const forgotten of older.values()) forgotten.next = undefined
    older = younger
    younger = new Map()
  }
  younger.set(known.topic, known)
  follow(known)
}
