/**
 * The numbers of a connection's reading half: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// packet-reader.ts
/** Of the memory budget, for topics that the server gives aliases to; 64 KiB at least. */
export const aliasShare = 0.25
export const leastAliasBytes = 65_536

// connection.ts
/** Milliseconds that a peer gets to end its side of the stream once all that we had to say has left. */
export const closePatience = 1000

// control.ts
/** Most user properties of a packet, and most Subscription Identifiers where we have fewer filters. */
export const userPropertyLimit = 128
export const subscriptionIdentifierLimit = 64

// stream-reader.ts
/** Of the memory budget, for topics that come in again and again. */
export const topicShare = 0.0625
/** Packets, and milliseconds of work, after which others have their turn: whichever is reached first. */
export const sliceLength = 10_000
export const sliceTime = 5
/** The clock is read once in so many packets. */
export const clockStride = 64
/** Bytes that wait for the next turn at most. */
export const mostWaiting = 1_048_576

// packet-writer.ts
/** Acknowledgements for which an empty queue keeps its array. */
export const mostIdleAcks = 4096
/** Room that writing an acknowledgement asks for: a few bytes more than it takes. */
export const ackRoom = 8
/**
 * Where the connection before did not hold, so many acknowledgements leave in a millisecond, for so many milliseconds. What leaves in one go over a
 * link that breaks again is lost in one go, and a server that sends everything again reads nothing meanwhile: some have to get through.
 */
export const carefulAcks = 8
export const carefulTime = 100
/** Writes under way, above which small ones wait for a transport that asks for patience. */
export const mostWrites = 64
/** Bytes under way above which user data waits: a transport may take all that comes, and tell only after this turn what has left. */
export const mostUnderWay = 1024 * 1024
/** Text up to this length is written by hand, if it is ASCII; a call into the platform costs more. */
export const shortText = 256
