/** The platform that the world gives to the client under test: every timer, every microtask, every random number and every dial is the world's. */

import { openKeeper } from '../../src/client/durable/keeper.js'
import type { Platform } from '../../src/client/platform.js'
import { Reads } from '../../src/common/reads.js'
import type { Dial } from '../../src/transport/transport.js'
import type { WorldClock } from './clock.js'
import type { Random } from './random.js'

export interface ScriptedPlatform {
  readonly platform: Platform
  /** Timers of the client that have not run. */
  readonly timers: () => number
  readonly wake: () => void
}

/** Makes a platform. `onThrow` is told what a callback of the client threw; nothing is called once `alive` says no. */
export function scriptedPlatform(
  clock: WorldClock,
  random: Random,
  dial: Dial,
  onThrow: (where: string, error: unknown) => void,
  alive: () => boolean,
): ScriptedPlatform {
  let timers = 0
  const wakers = new Set<() => void>()
  const guarded = (where: string, callback: () => void) => (): void => {
    if (!alive()) return
    try {
      callback()
    } catch (error) {
      onThrow(where, error)
    }
  }
  const platform: Platform = {
    now: () => clock.now(),
    date: () => 1_700_000_000_000 + clock.now(),
    random: () => random.float(),
    setTimer(callback, delay) {
      timers += 1
      let live = true
      const done = (): void => {
        if (live) timers -= 1
        live = false
      }
      const run = guarded('a timer', () => {
        done()
        callback()
      })
      const cancel = clock.setTimer(run, delay)
      return () => {
        done()
        cancel()
      }
    },
    microtask: (callback) => queueMicrotask(guarded('a microtask', callback)),
    nextTurn: (callback) => void clock.setTimer(guarded('the next turn', callback), 0),
    onWake(callback) {
      wakers.add(callback)
      return () => wakers.delete(callback)
    },
    reads: (...parts) => new Reads(...parts),
    schemes: 'every scheme',
    loadKeeper: (parts) => openKeeper(parts as Parameters<typeof openKeeper>[0]),
    dialler: () => dial,
    isTlsError: () => false,
    describe: (error) => error.message,
    unsupported: () => undefined,
  }
  return {
    platform,
    timers: () => timers,
    wake: () => {
      for (const callback of [...wakers]) guarded('a wake-up', callback)()
    },
  }
}
