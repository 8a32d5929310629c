/**
 * Rendezvous hashing: each topic has its own order of the members, which depends on names alone. A member that leaves moves only its own topics.
 */

/** FNV-1a, 32 bits, over the UTF-8 of ASCII text and the code units of other text. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    hash = Math.imul(hash ^ (code & 0xff), 0x01000193)
    if (code > 0xff) hash = Math.imul(hash ^ (code >>> 8), 0x01000193)
  }
  return hash >>> 0
}

// Names that differ in their last letter only must not give the same order: each bit of what goes in changes half of those that come out.
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** How much a member wants a topic. @param name hash of the member's name @param topic hash of the topic */
export function weight(name: number, topic: number): number {
  return mixed(topic ^ mixed(name))
}
