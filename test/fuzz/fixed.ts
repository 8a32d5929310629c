/**
 * Property tests with a fixed seed: the targets as the fuzzer builds them, fed by fast-check.
 *
 * A failure prints the smallest input in hexadecimal, which `npm run lab -- fuzz --replay "TARGET HEX"` shows as a program.
 */
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Input } from './arbitraries.js'
import { bundle } from './bundler.js'

/** The project's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The parts of a built target that tests call. */
export interface Built {
  readonly targets: typeof import('./targets.js')
  readonly search: typeof import('./search.js')
  readonly counters: typeof import('./counters.js')
}

/** Builds the targets, with counters, and loads them. `name` makes the file another one. */
export async function build(name: string): Promise<Built> {
  const folder = path.join(root, 'node_modules', '.cache', 'mqwire-fuzz', `test-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  const { file } = await bundle(root, 'test/fuzz/built.ts', path.join(folder, `${name}.mjs`))
  const built = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Built
  rmSync(folder, { recursive: true })
  return built
}

/** Feeds a target so many inputs of one seed. Throws what fast-check says of a failure. */
export async function feed({ targets, counters }: Built, target: string, inputs: fc.Arbitrary<Input>, numRuns: number): Promise<void> {
  counters.countCopies()
  const { run } = targets.targetOf(target)
  await fc.assert(
    fc.asyncProperty(inputs, async ({ bytes }) => run(bytes)),
    { seed: 20_261_126, numRuns },
  )
}
