/**
 * The numbers of requests: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// request.ts
export const correlationLength = 12
export const overhead = 256
