/**
 * A platform for clients under test: time from a virtual clock, repeatable random numbers, and no
 * transport of its own.
 */

import { openKeeper } from '../client/durable/keeper.js'
import type { Platform } from '../client/platform.js'
import { Reads } from '../common/reads.js'
import type { VirtualClock } from './virtual-clock.js'

/** Creates a platform. Every random number derives from `seed`. */
export function virtualPlatform(clock: VirtualClock, seed = 1): Platform {
  let state = seed >>> 0 || 1
  return {
    now: () => clock.now(),
    date: () => clock.now(),
    random() {
      // Xorshift: enough for tests, and the same everywhere.
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return (state >>> 0) / 4_294_967_296
    },
    setTimer: (callback, delay) => clock.setTimer(callback, delay),
    microtask: (callback) => queueMicrotask(callback),
    nextTurn: (callback) => void clock.setTimer(callback, 0),
    reads: (...parts) => new Reads(...parts),
    loadKeeper: (parts) => openKeeper(parts as Parameters<typeof openKeeper>[0]),
    schemes: 'the `transport` of an endpoint',
    dialler: () => undefined,
    isTlsError: () => false,
    describe: (error) => error.message,
    unsupported: () => undefined,
  }
}
