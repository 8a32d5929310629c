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
  // Nobody is to guess the response topics and identifiers that come from it.
  random: () => (crypto.getRandomValues(new Uint32Array(1))[0] as number) / 4_294_967_296,
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
  microtask: (callback) => queueMicrotask(callback),
}
