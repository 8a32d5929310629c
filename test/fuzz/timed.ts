/**
 * Property tests that run for a time: the targets as the fuzzer builds them, fed by fast-check, with a fresh seed each time.
 *
 * `MQWIRE_FUZZ_SEED` repeats a run, `MQWIRE_FUZZ_SECONDS` changes its length. A failure prints the smallest input in hexadecimal, which
 * `npm run fuzz -- --target NAME --replay HEX` tells about.
 */
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Input } from './arbitraries.js'
import { bundle, type Defect } from './bundler.js'

/** The project's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Seconds of one test at a push: a longer search is `npm run fuzz`. */
export const usualSeconds = 6

/** The parts of a built target that tests call. */
export interface Built {
  readonly targets: typeof import('./targets.js')
  readonly search: typeof import('./search.js')
  readonly counters: typeof import('./counters.js')
}

/** Builds the targets, with counters and perhaps with a defect, and loads them. `name` makes the file another one. */
export async function build(name: string, defect?: Defect): Promise<Built> {
  const folder = path.join(root, 'node_modules', '.cache', 'mqwire-fuzz', `test-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  const { file } = await bundle(root, 'test/fuzz/built.ts', path.join(folder, `${name}.mjs`), defect)
  const built = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Built
  rmSync(folder, { recursive: true })
  return built
}

/** What a run came to. */
export interface Timed {
  readonly inputs: number
  readonly seed: number
}

/** Inputs of one property: whether the time is over is asked in between. */
const batch = 200

/** Feeds a target until the time is over and more than `least` inputs ran, however slow the machine is. Throws what fast-check says of a failure. */
export async function fuzz(target: string, inputs: fc.Arbitrary<Input>, least: number): Promise<Timed> {
  const { targets, counters } = await build(target)
  counters.countCopies()
  const { run } = targets.targetOf(target)
  const seed = Number(process.env['MQWIRE_FUZZ_SEED'] ?? (Date.now() ^ (process.pid << 12)) | 0)
  const end = performance.now() + Number(process.env['MQWIRE_FUZZ_SECONDS'] ?? usualSeconds) * 1000
  let count = 0
  const property = fc.asyncProperty(inputs, async ({ bytes }) => {
    count += 1
    await run(bytes)
  })
  // Each batch has a seed of its own, which a failure names: with it the batch comes first.
  for (let number = 0; count <= least || performance.now() < end; number++) await fc.assert(property, { seed: (seed + number) | 0, numRuns: batch })
  return { inputs: count, seed }
}
