/**
 * Candidates side by side, by tinybench: they run in turns within one process or page, and the median of their rounds counts. The benches of codec and
 * routing use it. Those over sockets do not (`programs/rounds.js`): they connect outside of what they time, and count both the clock and the processor.
 *
 * Runs in browsers as well: no Node here. It times what it is given and nothing else.
 */
import { Bench } from 'tinybench'
import { median } from './statistics.js'

const wallClock = () => performance.now()

/** One call each, and no more of it: the rounds are passes over all of them, so that what disturbs the machine disturbs all. */
const onePass = { iterations: 1, time: 0, warmup: false, throws: true }

const collected = (bench, times, unit = 1) => {
  for (const { name, result } of bench.tasks) times[name].push(result.latency.p50 * unit)
}
const noTimes = (names) =>
  Object.fromEntries(names.map((name) => [name, /** @type {number[]} */ ([])]))

/**
 * Nanoseconds per operation of each candidate; `run(count)` does at least `count` operations, and says how many where it did more.
 * @param {Record<string, (count: number) => number | void>} candidates
 * @param {{ rounds?: number, roundTime?: number, clock?: () => number, turn?: () => void }} [options] rounds that count, milliseconds of each, what tells
 * them, and what waits for a round
 * @returns {Record<string, number>}
 */
export function compare(candidates, options) {
  return Object.fromEntries(
    Object.entries(timesOf(candidates, options)).map(([name, each]) => [name, median(each)]),
  )
}

/** The same, of each round. With `fixed`, a round is so many operations, as processes need that are compared with each other. */
export function timesOf(
  candidates,
  { rounds = 15, roundTime = 40, fixed, clock = wallClock, turn = () => undefined } = {},
) {
  const bench = new Bench({ ...onePass, now: clock })
  for (const [name, run] of Object.entries(candidates)) {
    const count = fixed ?? calibrate(run, roundTime, clock)
    // A call does many operations: tinybench is told how long one of them took.
    bench.add(name, () => ({ overriddenDuration: time(run, count, clock).each }), { async: false })
  }
  // Once more for all, so that what one has taught the compiler about shared code is learnt before anything counts.
  for (let pass = 0; pass < (fixed ? rounds : 1); pass++) {
    bench.reset()
    bench.runSync()
  }
  const times = noTimes(Object.keys(candidates))
  for (let round = 0; round < rounds; round++) {
    turn()
    bench.reset()
    bench.runSync()
    collected(bench, times, 1e6)
  }
  return times
}

/**
 * The same of candidates that take their time: `run(count)` resolves to how many operations it did. Gives the nanoseconds of each round.
 * @param {Record<string, (count: number) => Promise<number>>} candidates
 * @param {{ rounds: number, warmUp: number, count: number, clock?: () => number }} options
 * @returns {Promise<Record<string, number[]>>}
 */
export async function compareAsync(candidates, { rounds, warmUp, count, clock = wallClock }) {
  const bench = new Bench({ ...onePass, now: clock })
  for (const [name, run] of Object.entries(candidates)) {
    const timed = async () => {
      const start = clock()
      const done = await run(count)
      return { overriddenDuration: ((clock() - start) / done) * 1e6 }
    }
    bench.add(name, timed, { async: true })
  }
  for (let round = 0; round < warmUp; round++) {
    bench.reset()
    await bench.run()
  }
  const times = noTimes(Object.keys(candidates))
  for (let round = 0; round < rounds; round++) {
    bench.reset()
    await bench.run()
    collected(bench, times)
  }
  return times
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
