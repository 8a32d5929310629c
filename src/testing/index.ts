/**
 * `mqwire/testing`: doubles for testing programs that use mqwire, without a network and without waiting.
 *
 * @module
 */
export { createMemoryHub, memoryPair } from '../transport/memory.js'
export * from './broker/index.js'
export { type ScramLookup, type ScramServerOptions, scramServer } from './scram-server.js'
export { type Answer, type PeerEnd, ScriptedPeer } from './scripted-peer.js'
export { VirtualClock } from './virtual-clock.js'
export { virtualPlatform } from './virtual-platform.js'
