/**
 * Rounds of candidates in turns, within one process: what the programs here share.
 *
 * A program takes its settings as JSON in its first argument and prints its result as one line of JSON. The first runs of each candidate warm it up
 * and find how much work fills a round; the rounds that count then go A B A B, so that what disturbs the machine disturbs both.
 *
 * Not tinybench, which `compare.js` uses: each round here connects anew outside of what is timed, and yields the clock's time, the processor's of user and
 * system, and what else the candidate counted.
 */
import { readSync, writeSync } from 'node:fs'

/** The settings that this program was started with. */
export const settings = JSON.parse(process.argv[2] ?? '{}')

/** Waits for this process's turn, where `runInTurns` has started it together with others. Nothing happens meanwhile: it is a call that blocks. */
export function turn() {
  if (!settings.turns) return
  writeSync(1, '\n')
  if (readSync(3, Buffer.alloc(1)) === 0) process.exit(1)
}

/** Milliseconds of processor time of this process, which a busy machine does not change. */
export function processorClock() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Seconds, and seconds of processor time of this process, that `work` takes. */
export async function timed(work) {
  const before = process.cpuUsage()
  const start = performance.now()
  await work()
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before)
  return { seconds, user: user / 1e6, system: system / 1e6 }
}

/**
 * Runs candidates in turns. Each is `(count) => Promise<{ seconds, user, system }>`, and does its own connecting outside of what it times.
 * With a `count`, each round has so many operations, and `warmUp` rounds come before those that count.
 * @returns for each candidate an array of `{ count, rate, user, system }`: operations per second, and processor seconds per million
 */
export async function alternate(
  candidates,
  { rounds = 5, seconds = 0.4, first = 2000, most = 4_000_000, count: given, warmUp = 0 } = {},
) {
  const entries = []
  for (const [name, run] of Object.entries(candidates)) {
    const count = given ?? (await calibrate(run, seconds, first, most))
    entries.push({ name, run, count, results: [] })
  }
  for (let round = -warmUp; round < rounds; round++) {
    if (round >= 0) turn()
    for (const { run, count, results } of entries) {
      globalThis.gc?.()
      const { seconds, user, system, ...more } = await run(count)
      if (round < 0) continue
      results.push({
        count,
        rate: count / seconds,
        user: (user / count) * 1e6,
        system: (system / count) * 1e6,
        ...more,
      })
    }
  }
  return Object.fromEntries(entries.map(({ name, results }) => [name, results]))
}

// The better of two runs counts, since one that was interrupted says little.
async function calibrate(run, wanted, first, most) {
  for (let count = first; ; ) {
    const [one, two] = [await run(count), await run(count)]
    const seconds = Math.min(one.seconds, two.seconds)
    if (seconds > wanted / 2 || count >= most)
      return Math.max(1, Math.min(most, Math.round((count * wanted) / seconds)))
    count = Math.min(most, Math.round(count * Math.min(8, Math.max(2, wanted / seconds))))
  }
}

/** Prints the result and ends, whatever is still open. */
export function finish(result) {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0))
}
