/**
 * The numbers of subscribing: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// subscribe-jobs.ts
/** Bytes of a SUBSCRIBE or UNSUBSCRIBE besides its filters and user properties. */
export const packetOverhead = 32
/** Bytes of a filter besides its text. */
export const filterOverhead = 3
export const identifierLimit = 268_435_455
/** Identifiers on file that are not looked through. */
export const leastRecount = 64

// subscribe-sender.ts
/** Jobs that may wait in the queue before it is looked through for those that were withdrawn. */
export const leastSweep = 64

// filter-entry.ts
/** Where retained messages come in, beside the SUBACK of who asked for them. */
export const before = 1
export const behind = 2
