/**
 * The numbers of subscribing: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// pending-packets.ts
/** Bytes of a SUBSCRIBE or UNSUBSCRIBE besides its filters and user properties. */
export const packetOverhead = 32
/** Bytes of a filter besides its text. */
export const filterOverhead = 3
export const identifierLimit = 268_435_455
/** Identifiers on file that are not looked through. */
export const leastRecount = 64

// subscribe-sender.ts, membership.ts
/** Packets in the queue, or consumers that are gone, before they are looked through for those that are not needed any more. */
export const leastSweep = 64

// broker-subscription.ts
/** Where retained messages come in, beside the SUBACK of who asked for them. */
export const before = 1
export const behind = 2
