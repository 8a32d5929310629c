/**
 * Side-by-side measurement: candidates run in turns within one process, the median of their rounds counts.
 *
 * It times what it is given and nothing else; results are ratios, because absolute figures belong to one machine.
 */
import { cpus } from 'node:os'

const rounds = 15
const roundTime = 40

/** One line that says what was measured on. */
export function machine() {
  const all = cpus()
  return `${all.length} × ${all[0]?.model ?? 'unknown processor'}, Node ${process.versions.node}`
}

/**
 * Nanoseconds per operation of each candidate; `run(count)` does `count` operations.
 * @param {Record<string, (count: number) => void>} candidates
 * @returns {Record<string, number>}
 */
export function compare(candidates) {
  const entries = Object.entries(candidates).map(([name, run]) => ({ name, run, count: calibrate(run), times: /** @type {number[]} */ ([]) }))
  for (let round = 0; round < rounds; round++) {
    for (const entry of entries) entry.times.push(time(entry.run, entry.count) / entry.count)
  }
  return Object.fromEntries(entries.map(({ name, times }) => [name, times.sort((a, b) => a - b)[rounds >> 1] * 1e6]))
}

// As many operations as fill a round, found on warm code.
function calibrate(run) {
  let count = 64
  while (time(run, count) < roundTime) count *= 2
  return count
}

function time(run, count) {
  const start = performance.now()
  run(count)
  return performance.now() - start
}
