/**
 * `mqwire/testing`: doubles for testing programs that use mqwire, without a network and without
 * waiting.
 *
 * @module
 */
import type { VirtualPlatform } from '../client/options/index.js'
import type { VirtualClock } from './virtual-clock.js'
import { virtualPlatform as platformOn } from './virtual-platform.js'

export type { VirtualPlatform } from '../client/options/index.js'
export { createMemoryHub, memoryPair } from '../transport/memory.js'
export * from './broker/index.js'
export { type ScramLookup, type ScramServerOptions, scramServer } from './scram-server.js'
export { type Answer, type PeerEnd, ScriptedPeer } from './scripted-peer.js'
export {
  type StoreContractCase,
  type StoreContractOptions,
  storeContract,
} from './store-contract.js'
export { VirtualClock } from './virtual-clock.js'
export {
  type CutOptions,
  type SleepOptions,
  VirtualWorld,
  type VirtualWorldOptions,
} from './virtual-world.js'

/**
 * Creates a value for the option `platform` of `connect` and `new Client`. Clients then use the
 * time of `clock`, and every random number (client identifiers, the jitter of reconnects) derives
 * from `seed`: a whole number from 0 to 4,294,967,295, default 1. The platform has no transport:
 * endpoints must have their own, such as `{ url: 'mqtt://broker', transport: broker.dial }` with a
 * `MemoryBroker` on the same clock. {@link VirtualWorld} does all this for you.
 */
export const virtualPlatform: (clock: VirtualClock, seed?: number) => VirtualPlatform = platformOn
