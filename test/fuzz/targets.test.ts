/**
 * The targets of the fuzzer, built with counters: inputs of a fixed seed, and the corpus (few inputs that enter all that long runs entered).
 *
 * A failure prints the smallest input in hexadecimal. Searches that go on are `npm run lab -- fuzz`.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { root } from '../support/node-bundle.js'
import { type Input, sessionInputs, wireInputs } from './arbitraries.js'
import { hex } from './build.js'
import { bundle } from './bundler.js'
import { builtSeeds, readSeeds } from './seeds.js'

const text = readFileSync(path.join(root, 'test', 'fuzz', 'seeds.txt'), 'utf8')
const seeds = readSeeds(text)

let built: typeof import('./targets.js')
beforeAll(async () => {
  const folder = path.join(root, 'node_modules', '.cache', 'mqwire-fuzz', `test-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  const file = await bundle(root, 'test/fuzz/targets.ts', path.join(folder, 'targets.mjs'))
  built = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as typeof built
  rmSync(folder, { recursive: true })
})

/** So many inputs of one seed. */
function feed(target: string, inputs: fc.Arbitrary<Input>, numRuns: number): void {
  const { run } = built.targetOf(target)
  built.countCopies()
  const each = fc.property(inputs, ({ bytes }) => run(bytes))
  fc.assert(each, { seed: 20_261_126, numRuns })
}

describe('inputs at random', { timeout: 60_000 }, () => {
  test("any server's or client's session, changed here and there, decodes or raises a WireError, the same for any chunking", () => {
    feed('wire', wireInputs, 3000)
  })

  test("any server's session, changed here and there, keeps the session's books: slots, quotas, acknowledgements in order, the same for any chunking [MQTT-4.6.0-2] [MQTT-3.3.4-9]", () => {
    feed('session', sessionInputs, 1000)
  })
})

describe('the corpus of the fuzzer', () => {
  // Ways through the code, as functions and branches: a corpus that went stale reaches far less.
  test.each([
    ['wire', 600],
    ['session', 850],
  ] as const)(
    '%s: no input of it breaks a promise, and together they reach most of the code',
    { timeout: 120_000 },
    (name, least) => {
      const target = built.targetOf(name)
      const inputs = [
        ...builtSeeds(name),
        ...seeds.filter((seed) => seed.target === name).map(({ bytes }) => bytes),
      ]
      const failures: string[] = []
      target.counters().fill(0)
      for (const bytes of inputs) {
        try {
          target.run(bytes.slice())
        } catch (error) {
          failures.push(`${name} ${hex(bytes)} ${String(error)}`)
        }
      }
      expect(failures).toEqual([])
      expect(inputs.length).toBeGreaterThan(20)
      expect(target.counters().filter((count) => count > 0).length).toBeGreaterThan(least)
    },
  )
})
