/**
 * `mqwire/store`: what a store is, one in memory, and the records that sessions and queues keep in stores.
 *
 * @module
 */

export { isOfLaterVersion, openRecord, quarantine, sealRecord } from './base/record.js'
export type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
export { memoryStore } from './memory.js'
export { sessionStore } from './session-store.js'
