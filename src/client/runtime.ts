/**
 * The parts of a platform that every runtime has under the same names: time, randomness, timers, microtasks.
 *
 * The entry files use it, and who stands on clients that do not tell their time; whatever differs between runtimes stays with the entry files.
 */
import type { Platform } from './platform.js'

// Drawn many at a time: a call of the platform costs more than the numbers. None is used twice.
const drawn = /* @__PURE__ */ new Uint32Array(64)
let left = 0

/** The common parts of every platform. */
export const runtime: Pick<Platform, 'now' | 'date' | 'random' | 'setTimer' | 'microtask'> = {
  now: () => performance.now(),
  date: () => Date.now(),
  // Nobody is to guess the response topics and identifiers that come from it.
  random() {
    if (left === 0) left = crypto.getRandomValues(drawn).length
    left -= 1
    return (drawn[left] as number) / 4_294_967_296
  },
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
  microtask: (callback) => queueMicrotask(callback),
}
