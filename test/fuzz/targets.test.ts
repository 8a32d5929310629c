/**
 * The targets of the fuzzer: inputs of a fixed seed, and the corpus (what was ever found, and the fewest inputs that reach what long runs reached).
 *
 * Searches that go on are `npm run lab -- fuzz`.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { clientInputs, sessionInputs, wireInputs } from './arbitraries.js'
import { hex } from './build.js'
import { type Built, build, feed, root } from './fixed.js'
import { builtSeeds, readSeeds, seedLine } from './seeds.js'

const text = readFileSync(path.join(root, 'test', 'fuzz', 'seeds.txt'), 'utf8')
const seeds = readSeeds(text)
const names = ['wire', 'session', 'client'] as const

let built: Built
beforeAll(async () => {
  built = await build('targets')
})

describe('inputs at random', () => {
  test(
    "any server's or client's session, changed here and there, decodes or raises a WireError, the same for any chunking",
    () => feed(built, 'wire', wireInputs, 3000),
    60_000,
  )

  test(
    "any server's session, changed here and there, keeps the session's books: slots, quotas, acknowledgements in order, the same for any chunking [MQTT-4.6.0-2] [MQTT-3.3.4-9]",
    () => feed(built, 'session', sessionInputs, 1000),
    60_000,
  )

  test(
    'any program and any peer: nothing is thrown outside the API, every promise settles, everything stays within its limits, the same for any chunking',
    () => feed(built, 'client', clientInputs, 200),
    60_000,
  )
})

describe('the corpus of the fuzzer', () => {
  test.each(names)('%s: no input of it breaks a promise, and together they reach most of the code', { timeout: 120_000 }, async (name) => {
    const { targets, counters } = built
    const target = targets.targetOf(name)
    const inputs = [...builtSeeds(name), ...seeds.filter((seed) => seed.target === name).map(({ bytes }) => bytes)]
    const failures: string[] = []
    counters.counters().fill(0)
    for (const bytes of inputs) {
      await Promise.resolve()
        .then(() => target.run(bytes.slice()))
        .catch((error: unknown) => failures.push(`${name} ${hex(bytes)} ${String(error)}`))
    }
    expect(failures).toEqual([])
    expect(inputs.length).toBeGreaterThan(20)
    const reached = target.counters().filter((count) => count > 0).length
    // Ways through the code, as functions and branches: a corpus that went stale reaches far less.
    expect(reached).toBeGreaterThan({ wire: 600, session: 850, client: 2400 }[name])
  })

  test('seeds.txt is small, and every line of it is an input', () => {
    expect(text.length).toBeLessThan(200_000)
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(seeds.map(seedLine)).toEqual(lines)
    expect(new Set(lines).size).toBe(lines.length)
    for (const { target } of seeds) expect(names).toContain(target)
  })
})
