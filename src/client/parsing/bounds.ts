/**
 * The numbers of options and requests: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// options.ts
export const unsigned32 = 4_294_967_295
export const megabyte = 1024 * 1024
/** Seconds that the server keeps a session that is in a store here. */
export const week = 604_800
/** Seconds of keep-alive that a PINGREQ a minute late still keeps: the server waits for one and a half times as long. */
export const hiddenKeepAlive = 180

// endpoint.ts
/** Most servers that one reference may name. */
export const mostReferences = 8

// requests.ts
/** Messages of a subscription that may wait to be read, where nothing else is said. */
export const mostBuffered = 1024
