/**
 * The parts of a platform that every runtime has under the same names: time, randomness, timers, microtasks.
 *
 * Only the entry files use it; whatever differs between runtimes stays with them.
 */
import type { Platform } from './platform.js'

/** The common parts of every platform. */
export const runtime: Pick<Platform, 'now' | 'date' | 'random' | 'setTimer' | 'microtask'> = {
  now: () => performance.now(),
  date: () => Date.now(),
  random: () => Math.random(),
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
  microtask: (callback) => queueMicrotask(callback),
}
