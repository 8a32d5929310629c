/**
 * The numbers of publishing: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// publish-queue.ts
/** Reason code: Packet Identifier in use. */
export const identifierInUse = 0x91
/** Times that a publish is tried under another identifier. */
export const mostRetries = 16

// publish-item.ts
/** Bytes per message, on top of payload, topic and properties; and per user property. */
export const overhead = 64

// room.ts
/** Times that `writable` is fulfilled at once, before a turn of the event loop passes. */
export const grantsInTurn = 64

// failures.ts
/** Events that one turn tells one by one; what fails beyond that is counted with the last of them. */
export const mostTold = 256
/** Milliseconds until the next ones, after so many. */
export const pause = 1000

// isolation.ts
/** After so many connections a message is sent alone. */
export const suspicious = 2
/** Connections that ended over it without another word, before the message waits for an answer to PINGREQ; and how many milliseconds at most. */
export const patient = 3
export const longestDoubt = 250
/** Milliseconds that a connection has to live at most before it carries such a message. */
export const longestTrial = 30_000
/** Suspects that were answered count as so many at most. */
export const mostDoubt = 15
/** Milliseconds for which nothing follows it. */
export const longestSilence = 5000
