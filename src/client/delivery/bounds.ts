/**
 * The numbers of the delivery: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// drop-report.ts
/** Losses are told at most once in this many milliseconds. */
export const dropInterval = 1000
// budget.ts
/**
 * Over the budget: how often it is looked whether what is held has been handed out, and how many looks without progress end that wait. Milliseconds.
 */
export const lookAgain = 100
export const mostIdleLooks = 10
// audience.ts
/** Filters that were left and are still known, at most. */
export const mostLeft = 1024

// hands.ts
/** Messages in hand that are not looked through. */
export const leastSweep = 64

// handling.ts
/** Times that a failed message is handed to its handler again, and the milliseconds before that: the first ones, and the most. */
export const retries = 5
export const firstDelay = 100
export const longestDelay = 5000

// message.ts
/** Bytes of memory for the objects of a message, and for its properties; measured. */
export const messageObjects = 384
export const propertyObjects = 256
