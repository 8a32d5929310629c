/**
 * Synchronous candidates side by side: they run in turns within one process or page, and the median of their rounds counts.
 *
 * Runs in browsers as well: no Node here. It times what it is given and nothing else.
 */
import { median } from './statistics.js'

const wallClock = () => performance.now()

/**
 * Nanoseconds per operation of each candidate; `run(count)` does at least `count` operations, and says how many where it did more.
 * @param {Record<string, (count: number) => number | void>} candidates
 * @param {{ rounds?: number, roundTime?: number, clock?: () => number }} [options] rounds that count, milliseconds of each, and what tells them
 * @returns {Record<string, number>}
 */
export function compare(candidates, { rounds = 15, roundTime = 40, clock = wallClock } = {}) {
  const entries = Object.entries(candidates).map(([name, run]) => ({
    name,
    run,
    count: calibrate(run, roundTime, clock),
    times: /** @type {number[]} */ ([]),
  }))
  // Once more for all, so that what one has taught the compiler about shared code is learnt before anything counts.
  for (const { run, count } of entries) run(count)
  for (let round = 0; round < rounds; round++) {
    for (const { run, count, times } of entries) times.push(time(run, count, clock).each)
  }
  return Object.fromEntries(entries.map(({ name, times }) => [name, median(times) * 1e6]))
}

// As many operations as fill a round, found on warm code. The best of three, since a run that was interrupted says little.
function calibrate(run, roundTime, clock) {
  for (let count = 64; ; count *= 2) {
    const took = Math.min(...[1, 2, 3].map(() => time(run, count, clock).took))
    if (took >= roundTime) return count
  }
}

function time(run, count, clock) {
  const start = clock()
  const done = run(count) ?? count
  const took = clock() - start
  return { took, each: took / done }
}
