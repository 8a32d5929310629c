/** `mqwire/store/level` on a page of the site: each location is a store in memory, so that a program leaves nothing behind in the reader's browser. */
import { memoryStore } from 'mqwire/store'

/** See `src/store/level.ts`. Options are ignored. */
export const levelStore = async () => memoryStore()
