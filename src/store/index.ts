/**
 * `mqwire/store`: the store interface, a store in memory, and the records of sessions and queues.
 *
 * @module
 */

export { isOfLaterVersion, openRecord, quarantine, sealRecord } from './base/record.js'
export type { Store, StoreEntry, StoreOperation, StoreRange } from './base/store.js'
export { memoryStore } from './memory.js'
export { sessionStore } from './session-store.js'
