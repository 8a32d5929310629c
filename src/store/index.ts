/**
 * `mqwire/store`: what a store is, one in memory, and the records that sessions and queues keep in stores.
 *
 * @module
 */
export { memoryStore } from './memory.js'
export { isOfLaterVersion, openRecord, quarantine, sealRecord } from './record.js'
export type { Store, StoreEntry, StoreOperation, StoreRange } from './store.js'
