/**
 * The numbers of dialling: bounds, waits and thresholds. It imports nothing, so that bundlers put them where they are used.
 */

// authentication.ts
/** Milliseconds for a re-authentication. */
export const patience = 30_000

// brokers.ts
/** References that lead on from one another. */
export const mostHops = 3

// dialling.ts
/** Milliseconds between dials that do not wait for the backoff: wake-ups, `reconnect()`, our own replacements. */
export const wakeInterval = 1000
/** Credentials that live no longer than twice this are renewed in ever longer intervals, at most so long. Milliseconds. */
export const leastLife = 5000
export const longestHaste = 300_000
/** Receive Maximum at most, once messages did not fit the memory budget. */
export const narrow = 1024

// supervisor.ts
/** Milliseconds, where a backoff of the application gives no delay. */
export const fallback = 30_000
