/**
 * The numbers of what several rooms use: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// schema.ts
/** Longest duration that timers take, in milliseconds. */
export const longestDelay = 2_147_483_647
/** A QoS 0 publish of so many bytes settles when it was written, a smaller one when it was handed over. */
export const largePayload = 32 * 1024
